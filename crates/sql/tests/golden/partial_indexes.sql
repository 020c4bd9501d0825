# Partial indexes: what they hold, whom they guard, what refuses them.

CREATE TABLE users (id int PRIMARY KEY, email text, name varchar(40), deleted_at timestamp, active boolean, age int);
----
CREATE TABLE

INSERT INTO users VALUES (1, 'a@x', 'Ann', NULL, true, 30), (2, 'a@x', 'Bob', '2020-01-01', false, 40), (3, 'b@x', 'Cid', NULL, true, 50);
----
INSERT 0 3

CREATE UNIQUE INDEX users_live_email ON users (email) WHERE deleted_at IS NULL;
----
CREATE INDEX

CREATE INDEX ON users (age) WHERE active AND age > 18;
----
CREATE INDEX

INSERT INTO users VALUES (4, 'a@x', 'Dan', NULL, true, 20);
----
ERROR 23505: duplicate key value violates unique constraint "users_live_email"
  detail: Key (email)=(a@x) already exists.
  constraint: users_live_email

INSERT INTO users VALUES (4, 'a@x', 'Dan', '2021-01-01', true, 20);
----
INSERT 0 1

UPDATE users SET deleted_at = NULL WHERE id = 2;
----
ERROR 23505: duplicate key value violates unique constraint "users_live_email"
  detail: Key (email)=(a@x) already exists.
  constraint: users_live_email

UPDATE users SET deleted_at = '2022-01-01' WHERE id = 1;
----
UPDATE 1

UPDATE users SET deleted_at = NULL WHERE id = 2;
----
UPDATE 1

UPDATE users SET deleted_at = NULL WHERE id IN (1, 4);
----
ERROR 23505: duplicate key value violates unique constraint "users_live_email"
  detail: Key (email)=(a@x) already exists.
  constraint: users_live_email

SELECT id FROM users WHERE email = 'a@x' AND deleted_at IS NULL;
----
id:int4
2
SELECT 1

SELECT id FROM users WHERE email = 'a@x' ORDER BY id;
----
id:int4
1
2
4
SELECT 3

SELECT id FROM users WHERE active AND age > 25 ORDER BY age;
----
id:int4
1
3
SELECT 2

SELECT id FROM users WHERE active = true AND age = 50;
----
id:int4
3
SELECT 1

SELECT id FROM users WHERE age > 10 ORDER BY id;
----
id:int4
1
2
3
4
SELECT 4

DELETE FROM users WHERE id = 2;
----
DELETE 1

INSERT INTO users VALUES (5, 'a@x', 'Eve', NULL, true, 60);
----
INSERT 0 1

# ON CONFLICT infers a partial index only by a predicate that implies its own.

INSERT INTO users (id, email) VALUES (6, 'a@x') ON CONFLICT (email) DO NOTHING;
----
ERROR 42P10: there is no unique or exclusion constraint matching the ON CONFLICT specification

INSERT INTO users (id, email) VALUES (6, 'a@x') ON CONFLICT (email) WHERE deleted_at IS NULL DO NOTHING;
----
INSERT 0 0

INSERT INTO users (id, email, age) VALUES (6, 'a@x', 61), (7, 'c@x', 7) ON CONFLICT (email) WHERE deleted_at IS NULL DO UPDATE SET age = excluded.age RETURNING id, email, age;
----
id:int4 | email:text | age:int4
5 | a@x | 61
7 | c@x | 7
INSERT 0 2

INSERT INTO users (id, email, deleted_at) VALUES (8, 'a@x', '2020-01-01') ON CONFLICT (email) WHERE deleted_at IS NULL DO NOTHING RETURNING id;
----
id:int4
8
INSERT 0 1

INSERT INTO users (id, email) VALUES (9, 'a@x') ON CONFLICT (email) WHERE deleted_at IS NULL AND id > 0 DO NOTHING RETURNING id;
----
id:int4
INSERT 0 0

INSERT INTO users (id, email) VALUES (9, 'a@x') ON CONFLICT (email) WHERE id > 0 DO NOTHING;
----
ERROR 42P10: there is no unique or exclusion constraint matching the ON CONFLICT specification

INSERT INTO users (id, email) VALUES (9, 'a@x') ON CONFLICT ON CONSTRAINT users_live_email DO NOTHING;
----
ERROR 42704: constraint "users_live_email" for table "users" does not exist

# The catalogs.

SELECT indexdef FROM pg_indexes WHERE tablename = 'users' ORDER BY indexname;
----
indexdef:text
CREATE INDEX users_age_idx ON public.users USING btree (age) WHERE (active AND (age > 18))
CREATE UNIQUE INDEX users_live_email ON public.users USING btree (email) WHERE (deleted_at IS NULL)
CREATE UNIQUE INDEX users_pkey ON public.users USING btree (id)
SELECT 3

SELECT c.relname, i.indisunique, pg_get_expr(i.indpred, i.indrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = 'users'::regclass ORDER BY 1;
----
relname:name | indisunique:bool | pg_get_expr:text
users_age_idx | f | (active AND (age > 18))
users_live_email | t | (deleted_at IS NULL)
users_pkey | t | NULL
SELECT 3

SELECT pg_get_indexdef('users_live_email'::regclass, 0, true), pg_get_indexdef('users_age_idx'::regclass, 0, true), pg_get_indexdef('users_age_idx'::regclass, 1, true);
----
pg_get_indexdef:text | pg_get_indexdef:text | pg_get_indexdef:text
CREATE UNIQUE INDEX users_live_email ON users USING btree (email) WHERE deleted_at IS NULL | CREATE INDEX users_age_idx ON users USING btree (age) WHERE active AND age > 18 | age
SELECT 1

CREATE INDEX p1 ON users (id) WHERE name = 'x' OR NOT active;
----
CREATE INDEX

CREATE INDEX p2 ON users (id) WHERE age IN (1, 2) AND email LIKE 'a%' AND (age + 1) * 2 > 4;
----
CREATE INDEX

CREATE INDEX p3 ON users (id) WHERE age BETWEEN 1 AND 5 AND lower(email) <> 'q' AND active IS TRUE AND name IS NOT NULL;
----
CREATE INDEX

CREATE INDEX p4 ON users (id) WHERE coalesce(age, -1) = -1 AND deleted_at > '2020-01-01';
----
CREATE INDEX

SELECT pg_get_indexdef(indexrelid), pg_get_indexdef(indexrelid, 0, true) FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE relname IN ('p1', 'p2', 'p3', 'p4') ORDER BY relname;
----
pg_get_indexdef:text | pg_get_indexdef:text
CREATE INDEX p1 ON public.users USING btree (id) WHERE (((name)::text = 'x'::text) OR (NOT active)) | CREATE INDEX p1 ON users USING btree (id) WHERE name::text = 'x'::text OR NOT active
CREATE INDEX p2 ON public.users USING btree (id) WHERE ((age = ANY (ARRAY[1, 2])) AND (email ~~ 'a%'::text) AND (((age + 1) * 2) > 4)) | CREATE INDEX p2 ON users USING btree (id) WHERE (age = ANY (ARRAY[1, 2])) AND email ~~ 'a%'::text AND ((age + 1) * 2) > 4
CREATE INDEX p3 ON public.users USING btree (id) WHERE ((age >= 1) AND (age <= 5) AND (lower(email) <> 'q'::text) AND (active IS TRUE) AND (name IS NOT NULL)) | CREATE INDEX p3 ON users USING btree (id) WHERE age >= 1 AND age <= 5 AND lower(email) <> 'q'::text AND active IS TRUE AND name IS NOT NULL
CREATE INDEX p4 ON public.users USING btree (id) WHERE ((COALESCE(age, '-1'::integer) = '-1'::integer) AND (deleted_at > '2020-01-01 00:00:00'::timestamp without time zone)) | CREATE INDEX p4 ON users USING btree (id) WHERE COALESCE(age, '-1'::integer) = '-1'::integer AND deleted_at > '2020-01-01 00:00:00'::timestamp without time zone
SELECT 4

ALTER TABLE users RENAME COLUMN deleted_at TO gone;
----
ALTER TABLE

SELECT pg_get_indexdef('users_live_email'::regclass);
----
pg_get_indexdef:text
CREATE UNIQUE INDEX users_live_email ON public.users USING btree (email) WHERE (gone IS NULL)
SELECT 1

ALTER TABLE users DROP COLUMN gone;
----
ALTER TABLE

SELECT indexname FROM pg_indexes WHERE tablename = 'users' ORDER BY indexname;
----
indexname:name
p1
p2
p3
users_age_idx
users_pkey
SELECT 5

# What PostgreSQL refuses.

CREATE INDEX ON users (id) WHERE age;
----
ERROR 42804: argument of WHERE must be type boolean, not type integer

CREATE INDEX ON users (id) WHERE nothing > 1;
----
ERROR 42703: column "nothing" does not exist

CREATE INDEX ON users (id) WHERE now() > '2020-01-01';
----
ERROR 42P17: functions in index predicate must be marked IMMUTABLE

CREATE INDEX ON users (id) WHERE random() > 0.5;
----
ERROR 42P17: functions in index predicate must be marked IMMUTABLE

CREATE INDEX ON users (id) WHERE age > (SELECT 1);
----
ERROR 0A000: cannot use subquery in index predicate

CREATE INDEX ON users (id) WHERE max(age) > 1;
----
ERROR 42803: aggregate functions are not allowed in index predicates

CREATE UNIQUE INDEX users_u ON users (name) WHERE active;
----
CREATE INDEX

ALTER TABLE users ADD CONSTRAINT users_u UNIQUE USING INDEX users_u;
----
ERROR 42809: "users_u" is a partial index
  detail: Cannot create a primary key or unique constraint using such an index.

CREATE TABLE orders (name varchar(40) REFERENCES users (name));
----
ERROR 42830: there is no unique constraint matching given keys for referenced table "users"

# A unique partial index over rows that are there.

CREATE TABLE dup (a int, b bool);
----
CREATE TABLE

INSERT INTO dup VALUES (1, true), (1, false), (1, false), (NULL, true), (NULL, true);
----
INSERT 0 5

CREATE UNIQUE INDEX dup_f ON dup (a) WHERE NOT b;
----
ERROR 23505: could not create unique index "dup_f"
  detail: Key (a)=(1) is duplicated.
  constraint: dup_f

CREATE UNIQUE INDEX dup_t ON dup (a) WHERE b;
----
CREATE INDEX

INSERT INTO dup VALUES (1, true);
----
ERROR 23505: duplicate key value violates unique constraint "dup_t"
  detail: Key (a)=(1) already exists.
  constraint: dup_t

DELETE FROM dup WHERE b AND a = 1;
----
DELETE 1

INSERT INTO dup VALUES (1, true);
----
INSERT 0 1

ALTER TABLE dup ADD COLUMN id serial PRIMARY KEY;
----
ALTER TABLE

INSERT INTO dup VALUES (1, true);
----
ERROR 23505: duplicate key value violates unique constraint "dup_t"
  detail: Key (a)=(1) already exists.
  constraint: dup_t

TRUNCATE dup;
----
TRUNCATE TABLE

INSERT INTO dup (a, b) VALUES (1, true);
----
INSERT 0 1

INSERT INTO dup (a, b) VALUES (1, true);
----
ERROR 23505: duplicate key value violates unique constraint "dup_t"
  detail: Key (a)=(1) already exists.
  constraint: dup_t

# Two sessions that insert the same key: only rows under the predicate meet.

CREATE TABLE meet (id int PRIMARY KEY, k text, live bool);
----
CREATE TABLE

CREATE UNIQUE INDEX meet_k ON meet (k) WHERE live;
----
CREATE INDEX

[a] BEGIN; INSERT INTO meet VALUES (1, 'x', true), (2, 'y', false);
----
BEGIN
INSERT 0 2
(in block)

[b] SET lock_timeout = '10ms'; BEGIN; INSERT INTO meet VALUES (3, 'x', true), (4, 'y', false);
----
SET
BEGIN
ERROR 55P03: canceling statement due to lock timeout
  detail: It is about the row (k)=(x) of index "meet_k" of table "meet".
(failed)

[b] ROLLBACK; RESET lock_timeout; BEGIN; INSERT INTO meet VALUES (3, 'x', false), (4, 'y', false);
----
ROLLBACK
RESET
BEGIN
INSERT 0 2
(in block)

[a] COMMIT;
----
COMMIT

[b] COMMIT;
----
COMMIT

[b] BEGIN; INSERT INTO meet VALUES (5, 'z', true);
----
BEGIN
INSERT 0 1
(in block)

[a] SET lock_timeout = '5ms';
----
SET

[a] \copy
COPY meet FROM STDIN
6	z	t
----
(copy in, 3 columns)
ERROR 55P03: canceling statement due to lock timeout
  detail: It is about the row (k)=(z) of index "meet_k" of table "meet".

[b] COMMIT;
----
COMMIT

# Which queries use them.

EXPLAIN SELECT id FROM meet WHERE k = 'x' AND live;
----
QUERY PLAN:text
Point Lookup using meet_k on meet  (cost=0.00..1.00 rows=1 width=0)
  Index Cond: (k = 'x'::text)
  Filter: live
EXPLAIN

EXPLAIN SELECT id FROM meet WHERE live = true AND k = 'x';
----
QUERY PLAN:text
Point Lookup using meet_k on meet  (cost=0.00..1.00 rows=1 width=0)
  Index Cond: (k = 'x'::text)
  Filter: (live = true)
EXPLAIN

EXPLAIN SELECT id FROM meet WHERE k = 'x';
----
QUERY PLAN:text
Seq Scan on meet  (cost=0.00..100000.00 rows=100000 width=0)
  Filter: (k = 'x'::text)
EXPLAIN

EXPLAIN SELECT id FROM meet WHERE k = 'x' AND NOT live;
----
QUERY PLAN:text
Seq Scan on meet  (cost=0.00..100000.00 rows=100000 width=0)
  Filter: ((k = 'x'::text) AND (NOT live))
EXPLAIN

CREATE INDEX meet_not_null ON meet (k) WHERE k IS NOT NULL;
----
CREATE INDEX

EXPLAIN SELECT id FROM meet WHERE k = 'x';
----
QUERY PLAN:text
Index Only Scan using meet_not_null on meet  (cost=0.00..500.00 rows=500 width=0)
  Index Cond: (k = 'x'::text)
EXPLAIN

EXPLAIN SELECT id FROM meet WHERE k IS NULL;
----
QUERY PLAN:text
Seq Scan on meet  (cost=0.00..100000.00 rows=100000 width=0)
  Filter: (k IS NULL)
EXPLAIN

CREATE INDEX meet_big ON meet (live) WHERE id > 100;
----
CREATE INDEX

EXPLAIN SELECT k FROM meet WHERE id > 200 AND live;
----
QUERY PLAN:text
Index Scan using meet_big on meet  (cost=0.00..100.00 rows=100 width=0)
  Index Cond: (live = true)
  Filter: (id > 200)
EXPLAIN

EXPLAIN SELECT k FROM meet WHERE id + 0 > 50 AND live;
----
QUERY PLAN:text
Index Scan using meet_k on meet  (cost=0.00..10000.00 rows=10000 width=0)
  Filter: (((id + 0) > 50) AND live)
EXPLAIN

\copy
COPY meet (id, k, live) FROM STDIN
10	q	t
11	q	f
12	q	t
----
(copy in, 3 columns)
ERROR 23505: duplicate key value violates unique constraint "meet_k"
  detail: Key (k)=(q) already exists.
  constraint: meet_k

SELECT count(*) FROM meet WHERE k = 'q';
----
count:int8
0
SELECT 1
