# Cursors and EXPLAIN with parameters; prepared statements after a change of their tables; what conflicts are about.

CREATE TABLE t (id int PRIMARY KEY, s text); INSERT INTO t SELECT g, 'row ' || g FROM generate_series(1, 5) g;
----
CREATE TABLE
INSERT 0 5

BEGIN;
----
BEGIN
(in block)

\extended
DECLARE c CURSOR FOR SELECT id, s FROM t WHERE id > $1 AND s <> $2 ORDER BY id
2
row 4
----
(no data)
DECLARE CURSOR
(in block)

FETCH ALL FROM c; COMMIT;
----
id:int4 | s:text
3 | row 3
5 | row 5
FETCH 2
COMMIT

DECLARE c CURSOR WITH HOLD FOR SELECT $1::int;
----
ERROR 42P02: there is no parameter $1

\extended
DECLARE c CURSOR WITH HOLD FOR SELECT $1::int + 1 AS n
41
----
(no data)
DECLARE CURSOR

FETCH c; CLOSE c;
----
n:int4
42
FETCH 1
CLOSE CURSOR

\extended
EXPLAIN SELECT * FROM t WHERE id = $1
1
----
QUERY PLAN:text
Point Lookup using t_pkey on t  (cost=0.00..1.00 rows=1 width=0)
  Index Cond: (id = $1)
EXPLAIN

PREPARE p (int) AS SELECT s FROM t WHERE id = $1; EXPLAIN EXECUTE p(1);
----
PREPARE
QUERY PLAN:text
Point Lookup using t_pkey on t  (cost=0.00..1.00 rows=1 width=0)
  Index Cond: (id = $1)
EXPLAIN

EXPLAIN (ANALYZE, COSTS off) EXECUTE nosuch(1);
----
ERROR 26000: prepared statement "nosuch" does not exist

EXPLAIN EXECUTE p(1, 2);
----
ERROR 42601: wrong number of parameters for prepared statement "p"
  detail: Expected 1 parameters but got 2.

# The same columns after DROP and CREATE: planned again.
DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, more int, s text); INSERT INTO t VALUES (1, 2, 'new');
----
DROP TABLE
CREATE TABLE
INSERT 0 1

EXECUTE p(1);
----
s:text
new
SELECT 1

ALTER TABLE t ALTER COLUMN s TYPE varchar(10);
----
ALTER TABLE

EXECUTE p(1);
----
ERROR 0A000: cached plan must not change result type
  hint: Prepare the statement again.

ALTER TABLE t ALTER COLUMN s TYPE text; ALTER TABLE t RENAME s TO other; ALTER TABLE t ADD s text DEFAULT 'again';
----
ALTER TABLE
ALTER TABLE
ALTER TABLE

EXECUTE p(1);
----
s:text
again
SELECT 1

# A parameter keeps the type that was found first.
PREPARE q AS SELECT s FROM t WHERE id = $1; ALTER TABLE t ALTER COLUMN id TYPE bigint;
----
PREPARE
ALTER TABLE

EXECUTE q(1);
----
s:text
again
SELECT 1

DEALLOCATE ALL; EXECUTE q(1);
----
DEALLOCATE ALL
ERROR 26000: prepared statement "q" does not exist

# What conflicts and refused locks are about.
DROP TABLE t; CREATE TABLE t (a int, b text, v int, PRIMARY KEY (a, b)); CREATE UNIQUE INDEX u ON t (v DESC); INSERT INTO t VALUES (1, 'x', 10), (2, 'y', 20);
----
DROP TABLE
CREATE TABLE
CREATE INDEX
INSERT 0 2

BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t;
----
BEGIN
count:int8
2
SELECT 1
(in block)

[b] UPDATE t SET v = 11 WHERE a = 1;
----
UPDATE 1

UPDATE t SET v = 12 WHERE a = 1; COMMIT;
----
ERROR 40001: restart transaction: what was read or written was changed by a transaction that committed first
  detail: It is about the row (a, b)=(1, x) of table "t".
  hint: Run the transaction again from its start.
(failed)

ROLLBACK;
----
ROLLBACK

BEGIN; SELECT v FROM t WHERE a = 1; SELECT v FROM t WHERE v = 20;
----
BEGIN
v:int4
11
SELECT 1
v:int4
20
SELECT 1
(in block)

[b] INSERT INTO t VALUES (3, 'z', 30); UPDATE t SET v = 21 WHERE a = 2;
----
INSERT 0 1
UPDATE 1

INSERT INTO t VALUES (4, 'w', 40); COMMIT;
----
INSERT 0 1
ERROR 40001: restart transaction: what was read or written was changed by a transaction that committed first
  detail: It is about the row (v)=(20) of index "u" of table "t".
  hint: Run the transaction again from its start.

BEGIN; SELECT v FROM t WHERE a = 1 FOR UPDATE;
----
BEGIN
v:int4
11
SELECT 1
(in block)

[b] SELECT v FROM t WHERE a = 1 FOR UPDATE NOWAIT;
----
v:int4
ERROR 55P03: could not obtain lock on row in relation "t"
  detail: It is about the row (a, b)=(1, x) of table "t".

[b] SET lock_timeout = '1ms'; UPDATE t SET v = 0 WHERE b = 'x';
----
SET
ERROR 55P03: canceling statement due to lock timeout
  detail: It is about the row (a, b)=(1, x) of table "t".

COMMIT;
----
COMMIT
