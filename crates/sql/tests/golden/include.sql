# INCLUDE: columns that an index says it carries.

CREATE TABLE t (a int, b text, c int, d int, CONSTRAINT t_c UNIQUE (c) INCLUDE (d), PRIMARY KEY (a) INCLUDE (b, c));
----
CREATE TABLE

CREATE UNIQUE INDEX ON t (b) INCLUDE (c, d) WHERE d IS NOT NULL;
----
CREATE INDEX

CREATE INDEX ON t (lower(b) DESC, a) INCLUDE (b);
----
CREATE INDEX

INSERT INTO t VALUES (1, 'x', 1, 1), (2, 'y', 2, NULL), (3, 'y', 3, NULL);
----
INSERT 0 3

INSERT INTO t VALUES (4, 'x', 4, 4);
----
ERROR 23505: duplicate key value violates unique constraint "t_b_c_d_idx"
  detail: Key (b)=(x) already exists.
  constraint: t_b_c_d_idx

INSERT INTO t VALUES (1, 'z', 5, 5);
----
ERROR 23505: duplicate key value violates unique constraint "t_pkey"
  detail: Key (a)=(1) already exists.
  constraint: t_pkey

INSERT INTO t VALUES (5, 'z', 1, 5) ON CONFLICT (c) DO UPDATE SET d = excluded.d RETURNING *;
----
a:int4 | b:text | c:int4 | d:int4
1 | x | 1 | 5
INSERT 0 1

SELECT b, c, d FROM t WHERE b = 'x' AND d IS NOT NULL;
----
b:text | c:int4 | d:int4
x | 1 | 5
SELECT 1

SELECT indexdef FROM pg_indexes WHERE tablename = 't' ORDER BY indexname;
----
indexdef:text
CREATE UNIQUE INDEX t_b_c_d_idx ON public.t USING btree (b) INCLUDE (c, d) WHERE (d IS NOT NULL)
CREATE UNIQUE INDEX t_c ON public.t USING btree (c) INCLUDE (d)
CREATE INDEX t_lower_a_b_idx ON public.t USING btree (lower(b) DESC, a) INCLUDE (b)
CREATE UNIQUE INDEX t_pkey ON public.t USING btree (a) INCLUDE (b, c)
SELECT 4

SELECT relname, relnatts, indnatts, indnkeyatts, indkey, pg_get_indexdef(indexrelid, 2, true) FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE indrelid = 't'::regclass ORDER BY relname;
----
relname:name | relnatts:int2 | indnatts:int2 | indnkeyatts:int2 | indkey:int2vector | pg_get_indexdef:text
t_b_c_d_idx | 3 | 3 | 1 | 2 3 4 | c
t_c | 2 | 2 | 1 | 3 4 | d
t_lower_a_b_idx | 3 | 3 | 2 | 0 1 2 | a
t_pkey | 3 | 3 | 1 | 1 2 3 | b
SELECT 4

SELECT conname, conkey, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 't'::regclass ORDER BY 1;
----
conname:name | conkey:_int2 | pg_get_constraintdef:text
t_c | {3} | UNIQUE (c) INCLUDE (d)
t_pkey | {1} | PRIMARY KEY (a) INCLUDE (b, c)
SELECT 2

SELECT c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE c.relname LIKE 't\_%' ORDER BY 1, 2;
----
relname:name | attnum:int2 | attname:name | format_type:text
t_b_c_d_idx | 1 | b | text
t_b_c_d_idx | 2 | c | integer
t_b_c_d_idx | 3 | d | integer
t_c | 1 | c | integer
t_c | 2 | d | integer
t_lower_a_b_idx | 1 | lower | text
t_lower_a_b_idx | 2 | a | integer
t_lower_a_b_idx | 3 | b | text
t_pkey | 1 | a | integer
t_pkey | 2 | b | text
t_pkey | 3 | c | integer
SELECT 11

CREATE INDEX ON t (a) INCLUDE (nothing);
----
ERROR 42703: column "nothing" does not exist

CREATE INDEX ON t (a) INCLUDE (lower(b));
----
ERROR 0A000: expressions are not supported in included columns

CREATE INDEX ON t (nothing);
----
ERROR 42703: column "nothing" does not exist

ALTER TABLE t ADD CONSTRAINT t_d UNIQUE (d) INCLUDE (a);
----
ALTER TABLE

ALTER TABLE t ALTER COLUMN b TYPE varchar(9) USING b;
----
ALTER TABLE

ALTER TABLE t DROP COLUMN d;
----
ALTER TABLE

SELECT indexdef FROM pg_indexes WHERE tablename = 't' ORDER BY indexname;
----
indexdef:text
CREATE INDEX t_lower_a_b_idx ON public.t USING btree (lower((b)::text) DESC, a) INCLUDE (b)
CREATE UNIQUE INDEX t_pkey ON public.t USING btree (a) INCLUDE (b, c)
SELECT 2
