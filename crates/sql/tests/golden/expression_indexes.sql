# Indexes on expressions.

CREATE TABLE people (id int PRIMARY KEY, name varchar(40), email text, born date, at timestamptz, a int, b int, doc jsonb);
----
CREATE TABLE

INSERT INTO people VALUES (1, 'Ann', 'Ann@X', '2000-01-01', NULL, 1, 2), (2, 'Bob', 'bob@x', '1990-05-05', NULL, 3, 4), (3, NULL, NULL, NULL, NULL, NULL, 5);
----
INSERT 0 3

CREATE INDEX ON people (lower(name));
----
CREATE INDEX

CREATE UNIQUE INDEX ON people (lower(email));
----
CREATE INDEX

CREATE INDEX ON people ((a + b));
----
CREATE INDEX

CREATE INDEX people_mixed ON people (id DESC, (a * 2) DESC, upper(name)) WHERE a IS NOT NULL;
----
CREATE INDEX

CREATE INDEX ON people (lower(name), lower(email));
----
CREATE INDEX

CREATE INDEX ON people ((email));
----
CREATE INDEX

SELECT id FROM people WHERE lower(name) = 'ann';
----
id:int4
1
SELECT 1

SELECT id FROM people WHERE lower(name) > 'ann' ORDER BY id;
----
id:int4
2
SELECT 1

SELECT id FROM people WHERE lower(email) IN ('ann@x', 'bob@x') ORDER BY id;
----
id:int4
1
2
SELECT 2

SELECT id FROM people WHERE a + b = 7;
----
id:int4
2
SELECT 1

SELECT id FROM people WHERE a + b > 2 AND a + b <= 7 ORDER BY id;
----
id:int4
1
2
SELECT 2

SELECT id FROM people WHERE lower(name) IS NULL;
----
id:int4
3
SELECT 1

SELECT p.id, q.id FROM people p JOIN people q ON lower(q.name) = lower(p.name) ORDER BY 1;
----
id:int4 | id:int4
1 | 1
2 | 2
SELECT 2

INSERT INTO people (id, email) VALUES (4, 'ANN@x');
----
ERROR 23505: duplicate key value violates unique constraint "people_lower_idx1"
  detail: Key (lower(email))=(ann@x) already exists.
  constraint: people_lower_idx1

INSERT INTO people (id, email) VALUES (4, 'ANN@x') ON CONFLICT (lower(email)) DO UPDATE SET name = 'again' RETURNING id, name;
----
id:int4 | name:varchar
1 | again
INSERT 0 1

INSERT INTO people (id, email) VALUES (4, 'ANN@x') ON CONFLICT (email) DO NOTHING;
----
ERROR 42P10: there is no unique or exclusion constraint matching the ON CONFLICT specification

INSERT INTO people (id, email) VALUES (4, 'ANN@x') ON CONFLICT (upper(email)) DO NOTHING;
----
ERROR 42P10: there is no unique or exclusion constraint matching the ON CONFLICT specification

UPDATE people SET email = 'ANN@X' WHERE id = 2;
----
ERROR 23505: duplicate key value violates unique constraint "people_lower_idx1"
  detail: Key (lower(email))=(ann@x) already exists.
  constraint: people_lower_idx1

UPDATE people SET name = 'Zed' WHERE lower(name) = 'bob';
----
UPDATE 1

SELECT id FROM people WHERE lower(name) = 'bob';
----
id:int4
SELECT 0

SELECT id FROM people WHERE lower(name) = 'zed';
----
id:int4
2
SELECT 1

DELETE FROM people WHERE lower(name) = 'zed' RETURNING id;
----
id:int4
2
DELETE 1

SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'people' ORDER BY indexname;
----
indexname:name | indexdef:text
people_email_idx | CREATE INDEX people_email_idx ON public.people USING btree (email)
people_expr_idx | CREATE INDEX people_expr_idx ON public.people USING btree (((a + b)))
people_lower_idx | CREATE INDEX people_lower_idx ON public.people USING btree (lower((name)::text))
people_lower_idx1 | CREATE UNIQUE INDEX people_lower_idx1 ON public.people USING btree (lower(email))
people_lower_lower1_idx | CREATE INDEX people_lower_lower1_idx ON public.people USING btree (lower((name)::text), lower(email))
people_mixed | CREATE INDEX people_mixed ON public.people USING btree (id DESC, ((a * 2)) DESC, upper((name)::text)) WHERE (a IS NOT NULL)
people_pkey | CREATE UNIQUE INDEX people_pkey ON public.people USING btree (id)
SELECT 7

SELECT relname, indkey, indnatts, pg_get_expr(indexprs, indrelid), pg_get_indexdef(indexrelid, 1, true), pg_get_indexdef(indexrelid, 2, false) FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE indrelid = 'people'::regclass ORDER BY relname;
----
relname:name | indkey:int2vector | indnatts:int2 | pg_get_expr:text | pg_get_indexdef:text | pg_get_indexdef:text
people_email_idx | 3 | 1 | NULL | email | 
people_expr_idx | 0 | 1 | (a + b) | (a + b) | 
people_lower_idx | 0 | 1 | lower((name)::text) | lower(name::text) | 
people_lower_idx1 | 0 | 1 | lower(email) | lower(email) | 
people_lower_lower1_idx | 0 0 | 2 | lower((name)::text), lower(email) | lower(name::text) | lower(email)
people_mixed | 1 0 0 | 3 | (a * 2), upper((name)::text) | id | ((a * 2))
people_pkey | 1 | 1 | NULL | id | 
SELECT 7

SELECT c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE c.relname LIKE 'people\_%' ORDER BY 1, 2;
----
relname:name | attnum:int2 | attname:name | format_type:text
people_email_idx | 1 | email | text
people_expr_idx | 1 | expr | integer
people_lower_idx | 1 | lower | text
people_lower_idx1 | 1 | lower | text
people_lower_lower1_idx | 1 | lower | text
people_lower_lower1_idx | 2 | lower1 | text
people_mixed | 1 | id | integer
people_mixed | 2 | expr | integer
people_mixed | 3 | upper | text
people_pkey | 1 | id | integer
SELECT 10

# What PostgreSQL refuses.

CREATE INDEX ON people (lower(nothing));
----
ERROR 42703: column "nothing" does not exist

CREATE INDEX ON people ((now()));
----
ERROR 42P17: functions in index expression must be marked IMMUTABLE

CREATE INDEX ON people (date_trunc('day', at));
----
ERROR 42P17: functions in index expression must be marked IMMUTABLE

CREATE INDEX ON people ((born::text));
----
ERROR 42P17: functions in index expression must be marked IMMUTABLE

CREATE INDEX ON people ((at::date));
----
ERROR 42P17: functions in index expression must be marked IMMUTABLE

CREATE INDEX ON people ((random()));
----
ERROR 42P17: functions in index expression must be marked IMMUTABLE

CREATE INDEX ON people (((SELECT 1)));
----
ERROR 0A000: cannot use subquery in index expression

CREATE INDEX ON people (max(a));
----
ERROR 42803: aggregate functions are not allowed in index expressions

CREATE INDEX ON people (generate_series(1, a));
----
ERROR 0A000: set-returning functions are not allowed in index expressions

CREATE INDEX ON people (a + b);
----
ERROR 42601: syntax error at or near "+"
  position: 27

CREATE UNIQUE INDEX people_sum ON people ((a / 100));
----
CREATE INDEX

INSERT INTO people (id, a) VALUES (10, 1);
----
ERROR 23505: duplicate key value violates unique constraint "people_sum"
  detail: Key ((a / 100))=(0) already exists.
  constraint: people_sum

INSERT INTO people (id, a) VALUES (11, 200);
----
INSERT 0 1

CREATE UNIQUE INDEX people_div ON people ((100 / a));
----
CREATE INDEX

DROP INDEX people_sum;
----
DROP INDEX

INSERT INTO people (id, a) VALUES (12, 0);
----
ERROR 22012: division by zero

ALTER TABLE people RENAME COLUMN name TO "Full Name";
----
ALTER TABLE

SELECT indexdef FROM pg_indexes WHERE tablename = 'people' ORDER BY indexname;
----
indexdef:text
CREATE UNIQUE INDEX people_div ON public.people USING btree (((100 / a)))
CREATE INDEX people_email_idx ON public.people USING btree (email)
CREATE INDEX people_expr_idx ON public.people USING btree (((a + b)))
CREATE INDEX people_lower_idx ON public.people USING btree (lower(("Full Name")::text))
CREATE UNIQUE INDEX people_lower_idx1 ON public.people USING btree (lower(email))
CREATE INDEX people_lower_lower1_idx ON public.people USING btree (lower(("Full Name")::text), lower(email))
CREATE INDEX people_mixed ON public.people USING btree (id DESC, ((a * 2)) DESC, upper(("Full Name")::text)) WHERE (a IS NOT NULL)
CREATE UNIQUE INDEX people_pkey ON public.people USING btree (id)
SELECT 8

ALTER TABLE people ALTER COLUMN "Full Name" TYPE text;
----
ALTER TABLE

SELECT indexdef FROM pg_indexes WHERE indexname = 'people_lower_idx';
----
indexdef:text
CREATE INDEX people_lower_idx ON public.people USING btree (lower("Full Name"))
SELECT 1

ALTER TABLE people DROP COLUMN "Full Name";
----
ALTER TABLE

SELECT indexname FROM pg_indexes WHERE tablename = 'people' ORDER BY indexname;
----
indexname:name
people_div
people_email_idx
people_expr_idx
people_lower_idx1
people_pkey
SELECT 5

ALTER TABLE people ADD CONSTRAINT people_l UNIQUE USING INDEX people_lower_idx1;
----
ERROR 42809: index "people_lower_idx1" contains expressions
  detail: Cannot create a primary key or unique constraint using such an index.

# Which queries use them.

CREATE TABLE words (id int PRIMARY KEY, word varchar(20), n int);
----
CREATE TABLE

CREATE UNIQUE INDEX words_lower ON words (lower(word));
----
CREATE INDEX

CREATE INDEX words_sum ON words ((n + id), n);
----
CREATE INDEX

EXPLAIN SELECT id FROM words WHERE lower(word) = 'a';
----
QUERY PLAN:text
Index Only Lookup using words_lower on words  (cost=0.00..1.00 rows=1 width=0)
  Index Cond: (lower(word::text) = 'a'::text)
EXPLAIN

\extended
SELECT id FROM words w WHERE lower(w.word) = $1
a
----
id:int4
SELECT 0

EXPLAIN SELECT id FROM words WHERE lower(word) BETWEEN 'a' AND 'c';
----
QUERY PLAN:text
Index Only Scan using words_lower on words  (cost=0.00..5000.00 rows=5000 width=0)
  Index Cond: ((lower(word::text) >= 'a'::text) AND (lower(word::text) <= 'c'::text))
EXPLAIN

EXPLAIN SELECT id FROM words WHERE upper(word) = 'A';
----
QUERY PLAN:text
Seq Scan on words  (cost=0.00..100000.00 rows=100000 width=0)
  Filter: (upper((word)::text) = 'A'::text)
EXPLAIN

EXPLAIN SELECT id FROM words WHERE n + id = 5 AND n > 2;
----
QUERY PLAN:text
Index Only Scan using words_sum on words  (cost=0.00..200.00 rows=200 width=0)
  Index Cond: (((n + id) = 5) AND (n > 2))
EXPLAIN

EXPLAIN SELECT id FROM words WHERE id + n = 5;
----
QUERY PLAN:text
Seq Scan on words  (cost=0.00..100000.00 rows=100000 width=0)
  Filter: ((id + n) = 5)
EXPLAIN

EXPLAIN SELECT v.id FROM words w JOIN words v ON lower(v.word) = w.word WHERE w.id = 1;
----
QUERY PLAN:text
Nested Loop  (cost=0.00..3.00 rows=1 width=0)
  ->  Point Lookup using words_pkey on words w  (cost=0.00..1.00 rows=1 width=0)
        Index Cond: (id = 1)
  ->  Index Only Lookup using words_lower on words v  (cost=0.00..1.00 rows=1 width=0)
        Index Cond: (lower(word::text) = w.word)
EXPLAIN

[a] BEGIN; INSERT INTO words VALUES (1, 'One', 1);
----
BEGIN
INSERT 0 1
(in block)

[b] SET lock_timeout = '5ms';
----
SET

[b] \copy
COPY words FROM STDIN
2	ONE	2
----
(copy in, 3 columns)
ERROR 55P03: canceling statement due to lock timeout
  detail: It is about rows of index "words_lower" of table "words".

[a] COMMIT;
----
COMMIT
