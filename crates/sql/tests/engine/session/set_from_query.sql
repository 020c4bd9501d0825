--- SET (a, b) = (SELECT ..): the query runs once for a row that it is about, once for the statement where it is about none.
CREATE TABLE t (id int PRIMARY KEY, a int, b int, c text);
INSERT INTO t VALUES (1, 0, 0, 'x'), (2, 0, 0, 'y'), (3, 0, 0, NULL);
CREATE TABLE u (id int, n int);
INSERT INTO u VALUES (1, 10), (2, 20), (2, 21);
CREATE SEQUENCE s;
--- not correlated
UPDATE t SET (a, b) = (SELECT nextval('s')::int, 7);
SELECT * FROM t ORDER BY id;
-- 1|1|7|x
-- 2|1|7|y
-- 3|1|7|NULL
SELECT nextval('s');
-- 2
UPDATE t SET (a, b) = (SELECT nextval('s')::int, nextval('s')::int), c = (SELECT 'z') WHERE id < 3;
SELECT * FROM t ORDER BY id;
-- 1|3|4|z
-- 2|3|4|z
-- 3|1|7|NULL
SELECT nextval('s');
-- 5
--- correlated
UPDATE t SET (a, b) = (SELECT nextval('s')::int + t.id * 0, t.id) WHERE id < 3;
SELECT * FROM t ORDER BY id;
-- 1|6|1|z
-- 2|7|2|z
-- 3|1|7|NULL
SELECT nextval('s');
-- 8
UPDATE t SET (a, b, c) = (SELECT n, n + 1, c || '!' FROM u WHERE u.id = t.id) WHERE id <> 2;
SELECT * FROM t ORDER BY id;
-- 1|10|11|z!
-- 2|7|2|z
-- 3|NULL|NULL|NULL
UPDATE t SET (a, b) = (SELECT n, n FROM u WHERE u.id = t.id);
-- ERROR 21000: more than one row returned by a subquery used as an expression
SELECT * FROM t ORDER BY id;
-- 1|10|11|z!
-- 2|7|2|z
-- 3|NULL|NULL|NULL
--- two of them, beside a plain value, over a join
UPDATE t SET (a, b) = (SELECT min(n), max(n) FROM u WHERE u.id = t.id), c = w.v, id = t.id + 100 FROM (VALUES (2, 'two'), (3, 'three')) AS w(k, v) WHERE w.k = t.id;
SELECT * FROM t ORDER BY id;
-- 1|10|11|z!
-- 102|20|21|two
-- 103|NULL|NULL|three
UPDATE t SET (a, b) = (SELECT count(*), sum(n) FROM u WHERE u.id = t.id - 100), (c, id) = (SELECT max(n)::text, t.id - 100 FROM u WHERE u.id <= t.id - 100) WHERE id > 100 RETURNING *;
-- 2|2|41|21
-- 3|0|NULL|21
--- too few, too many, too many rows
UPDATE t SET (a, b) = (SELECT 1);
-- ERROR 42601: number of columns does not match number of values
UPDATE t SET (a, b) = (SELECT 1, 2, 3);
-- ERROR 42601: number of columns does not match number of values
UPDATE t SET (a, b) = (SELECT * FROM u WHERE u.id = t.id) WHERE t.id = 1 RETURNING a, b;
-- 1|10
UPDATE t SET (a, b, id) = (SELECT * FROM u WHERE u.id = t.id);
-- ERROR 42601: number of columns does not match number of values
UPDATE t SET (a, b) = (SELECT * FROM u);
-- ERROR 21000: more than one row returned by a subquery used as an expression
UPDATE t SET (a, b) = (SELECT id, n FROM u WHERE false);
SELECT * FROM t ORDER BY id;
-- 1|NULL|NULL|z!
-- 2|NULL|NULL|21
-- 3|NULL|NULL|21
UPDATE t SET (a, a) = (SELECT 1, 2);
-- ERROR 42601: multiple assignments to same column "a"
UPDATE t SET (a, b) = (VALUES (5, 6)) WHERE id = 1 RETURNING *;
-- 1|5|6|z!
UPDATE t SET (a, b) = (VALUES (t.id, t.id + 1)) WHERE id < 3 RETURNING *;
-- 1|1|2|z!
-- 2|2|3|21
UPDATE t SET (c, b) = (SELECT 'lit', 4) WHERE id = 3 RETURNING *;
-- 3|NULL|4|lit
--- ON CONFLICT
INSERT INTO t VALUES (1, 1, 1, 'new'), (2, 2, 2, 'new') ON CONFLICT (id) DO UPDATE SET (a, b) = (SELECT nextval('s')::int, 9) RETURNING *;
-- 1|9|9|z!
-- 2|9|9|21
--- inside WITH
WITH w AS (UPDATE t SET (a, b) = (SELECT t.id, nextval('s')::int) WHERE id = 2 RETURNING id, a, b) SELECT * FROM w ORDER BY id;
-- 2|2|10
PREPARE p AS UPDATE t SET (a, b) = (SELECT $1::int, t.id + $2) WHERE id = $3 RETURNING *;
EXECUTE p(1, 2, 3);
-- 3|1|5|lit
