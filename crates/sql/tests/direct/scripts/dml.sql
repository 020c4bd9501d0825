-- INSERT, UPDATE, DELETE and what they answer.

CREATE TABLE t (id int PRIMARY KEY, name text NOT NULL, n int DEFAULT 7, UNIQUE (name));
-- CREATE TABLE
INSERT INTO t (id, name) VALUES (1, 'one'), (2, 'two');
-- INSERT 0 2
INSERT INTO t VALUES (3, 'three', NULL) RETURNING *, id + 1 AS next;
-- 3|three|NULL|4
-- INSERT 0 1
SELECT * FROM t ORDER BY id;
-- 1|one|7
-- 2|two|7
-- 3|three|NULL
-- SELECT 3
SELECT * FROM t;
-- 1|one|7
-- 2|two|7
-- 3|three|NULL
-- SELECT 3
INSERT INTO t VALUES (1, 'again', 1);
-- ERROR 23505: duplicate key value violates unique constraint "t_pkey"
-- DETAIL: Key (id)=(1) already exists.
INSERT INTO t VALUES (4, 'one', 1);
-- ERROR 23505: duplicate key value violates unique constraint "t_name_key"
-- DETAIL: Key (name)=(one) already exists.
INSERT INTO t VALUES (4, NULL, 1);
-- ERROR 23502: null value in column "name" of relation "t" violates not-null constraint
-- DETAIL: Failing row contains (4, null, 1).
INSERT INTO t (id) VALUES (5);
-- ERROR 23502: null value in column "name" of relation "t" violates not-null constraint
-- DETAIL: Failing row contains (5, null, 7).
INSERT INTO t (id, id) VALUES (5, 6);
-- ERROR 42701: column "id" specified more than once
INSERT INTO t (id, nope) VALUES (5, 6);
-- ERROR 42703: column "nope" of relation "t" does not exist
INSERT INTO t (id, name) VALUES (5);
-- ERROR 42601: INSERT has more target columns than expressions
INSERT INTO t (id) VALUES (5, 6);
-- ERROR 42601: INSERT has more expressions than target columns
INSERT INTO t VALUES (6, 'six', DEFAULT) RETURNING n;
-- 7
-- INSERT 0 1
UPDATE t SET n = n + 1 WHERE id = 1 RETURNING id, n;
-- 1|8
-- UPDATE 1
UPDATE t SET n = coalesce(n, 0) + 100;
-- UPDATE 4
SELECT id, n FROM t ORDER BY id;
-- 1|108
-- 2|107
-- 3|100
-- 6|107
-- SELECT 4
UPDATE t SET name = 'two' WHERE id = 1;
-- ERROR 23505: duplicate key value violates unique constraint "t_name_key"
-- DETAIL: Key (name)=(two) already exists.
UPDATE t SET name = 'uno', id = 10 WHERE id = 1;
-- UPDATE 1
SELECT * FROM t WHERE name = 'uno';
-- 10|uno|108
-- SELECT 1
SELECT * FROM t WHERE name = 'one';
-- SELECT 0
UPDATE t SET id = id + 100 WHERE id > 2 RETURNING id;
-- 103
-- 106
-- 110
-- UPDATE 3
UPDATE t SET n = 1, n = 2;
-- ERROR 42601: multiple assignments to same column "n"
UPDATE t SET n = DEFAULT WHERE id = 2 RETURNING n;
-- 7
-- UPDATE 1
DELETE FROM t WHERE name = 'uno' RETURNING id, name;
-- 110|uno
-- DELETE 1
DELETE FROM t WHERE id IN (2, 103) RETURNING id;
-- 2
-- 103
-- DELETE 2
SELECT count(*), sum(n), min(id), max(name), avg(n) FROM t;
-- 1|107|106|six|107.0000000000000000
-- SELECT 1
DELETE FROM t;
-- DELETE 1
SELECT count(*), sum(n), min(id) FROM t;
-- 0|NULL|NULL
-- SELECT 1
