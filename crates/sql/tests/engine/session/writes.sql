-- INSERT, UPDATE, DELETE: forms, joins, conflicts, RETURNING.

CREATE TABLE t (a int, b int DEFAULT 7, c text DEFAULT 'd');
CREATE TABLE k (id int PRIMARY KEY, v int, w text, UNIQUE (v));
CREATE TABLE o (id int PRIMARY KEY, v int, w text);
CREATE TABLE n (x int, y text);

--- As many values as columns.
INSERT INTO t (a, b, c) VALUES (1, 2);
-- ERROR 42601: INSERT has more target columns than expressions
INSERT INTO t (a, b) VALUES (1, 2, 3);
-- ERROR 42601: INSERT has more expressions than target columns
INSERT INTO t VALUES (1, 2, 'x', 4);
-- ERROR 42601: INSERT has more expressions than target columns
INSERT INTO t VALUES (1, 2);
INSERT INTO t VALUES (1), (2, 3);
-- ERROR 42601: VALUES lists must all be the same length
INSERT INTO t (a, b) VALUES (1, 2), (3);
-- ERROR 42601: VALUES lists must all be the same length
INSERT INTO t VALUES (1, DEFAULT), (2, DEFAULT, 'z');
-- ERROR 42601: VALUES lists must all be the same length
INSERT INTO t (a, b, c) SELECT 1, 2;
-- ERROR 42601: INSERT has more target columns than expressions
INSERT INTO t (a) SELECT 1, 2;
-- ERROR 42601: INSERT has more expressions than target columns
INSERT INTO t SELECT 1;
INSERT INTO t SELECT 1, 2, 'x', 4;
-- ERROR 42601: INSERT has more expressions than target columns
INSERT INTO t (a, b, c) SELECT * FROM (VALUES (1, 2)) v;
-- ERROR 42601: INSERT has more target columns than expressions
INSERT INTO t (c, b, a) VALUES (1, 2);
-- ERROR 42601: INSERT has more target columns than expressions
INSERT INTO t (a, a) VALUES (1, 2);
-- ERROR 42701: column "a" specified more than once
INSERT INTO t (a, nope) VALUES (1, 2);
-- ERROR 42703: column "nope" of relation "t" does not exist
INSERT INTO t () VALUES ();
-- ERROR 42601: syntax error at or near ")"
INSERT INTO t (a, b, c) VALUES ((1, 2, 'x'));
-- ERROR 42601: INSERT has more target columns than expressions
INSERT INTO t VALUES ();
-- ERROR 42601: syntax error at or near ")"
INSERT INTO t DEFAULT VALUES;
INSERT INTO t (a) DEFAULT VALUES;
-- ERROR 42601: syntax error at or near "DEFAULT"
INSERT INTO t (c, a) VALUES ('swap', 5) RETURNING *;
-- 5|7|swap
INSERT INTO t AS q (a) VALUES (6) RETURNING q.a, q.b, c AS "C";
-- 6|7|d
SELECT * FROM t ORDER BY a NULLS LAST, b, c;
-- 1|2|d
-- 1|7|d
-- 5|7|swap
-- 6|7|d
-- NULL|7|d

--- A default longer than its column fails when it is used.
CREATE TABLE d (id int PRIMARY KEY, s varchar(2) DEFAULT 'abc', n numeric(3, 1) DEFAULT 1234.5, c char(2) DEFAULT 'xyz', i smallint DEFAULT 100000);
INSERT INTO d VALUES (1);
-- ERROR 22001: value too long for type character varying(2)
INSERT INTO d VALUES (1, 'ab');
-- ERROR 22003: numeric field overflow
INSERT INTO d VALUES (1, 'ab', 1);
-- ERROR 22001: value too long for type character(2)
INSERT INTO d VALUES (1, 'ab', 1, 'x');
-- ERROR 22003: smallint out of range
INSERT INTO d VALUES (1, 'ab', 1, 'x', 1) RETURNING *;
-- 1|ab|1.0|x |1
ALTER TABLE d ALTER s SET DEFAULT 'abcd';
INSERT INTO d (id, n, c, i) VALUES (2, 1, 'x', 1);
-- ERROR 22001: value too long for type character varying(2)
CREATE TABLE d2 (id int, f int DEFAULT 'x');
-- ERROR 22P02: invalid input syntax for type integer: "x"
CREATE TABLE d4 (id int, f date DEFAULT 'never');
-- ERROR 22007: invalid input syntax for type date: "never"
CREATE TABLE d5 (id int, f varchar(2) DEFAULT repeat('x', 3));
INSERT INTO d5 VALUES (1);
-- ERROR 22001: value too long for type character varying(2)
CREATE TABLE d6 (id int, f int DEFAULT 1/0);
INSERT INTO d6 VALUES (1);
-- ERROR 22012: division by zero
INSERT INTO d6 VALUES (1, 2) RETURNING *;
-- 1|2
ALTER TABLE d6 ADD COLUMN g varchar(1) DEFAULT 'ab';
-- ERROR 22001: value too long for type character varying(1)

--- INSERT .. SELECT with ON CONFLICT.
INSERT INTO k SELECT 5 ON CONFLICT DO NOTHING;
INSERT INTO k SELECT 5, 50 ON CONFLICT (id) DO UPDATE SET v = excluded.v RETURNING *;
-- 5|50|NULL
INSERT INTO k (id, v) SELECT 6, 60 ON CONFLICT (id) DO NOTHING RETURNING *;
-- 6|60|NULL
INSERT INTO k (id, v) SELECT 6, 61 WHERE true ON CONFLICT (id) DO UPDATE SET v = excluded.v + k.v RETURNING *;
-- 6|121|NULL
INSERT INTO k SELECT id + 1, v, w FROM k WHERE id = 6 ON CONFLICT (v) DO NOTHING RETURNING *;
INSERT INTO k (id, v) SELECT g, g * 10 FROM generate_series(1, 3) g ON CONFLICT DO NOTHING RETURNING id;
-- 1
-- 2
-- 3
INSERT INTO k (id, v) SELECT g, g FROM generate_series(1, 4) AS g ON CONFLICT (id) DO UPDATE SET w = 'seen' WHERE k.id > 2 RETURNING id, v, w;
-- 3|30|seen
-- 4|4|NULL
INSERT INTO k (id) SELECT 1 UNION SELECT 2 ON CONFLICT DO NOTHING;
INSERT INTO k (id) SELECT 'a' ON CONFLICT DO NOTHING;
-- ERROR 22P02: invalid input syntax for type integer: "a"
INSERT INTO k AS q VALUES (1, 11, 'x') ON CONFLICT (id) DO UPDATE SET (v, w) = (excluded.v, q.w || '?') RETURNING *;
-- 1|11|NULL
INSERT INTO k VALUES (1, 12, 'y') ON CONFLICT (id) DO UPDATE SET (v, w) = ROW(excluded.v, 'row') RETURNING *;
-- 1|12|row
INSERT INTO k VALUES (1, 12, 'y') ON CONFLICT (id) DO UPDATE SET (v, w) = (SELECT 13, 'sub') RETURNING *;
-- 1|13|sub
INSERT INTO k VALUES (1, 12, 'y') ON CONFLICT (id) DO UPDATE SET id = 2;
-- ERROR 23505: duplicate key value violates unique constraint "k_pkey"
INSERT INTO k VALUES (1, 12, 'y') ON CONFLICT (id) DO UPDATE SET v = excluded.nope;
-- ERROR 42703: column excluded.nope does not exist
INSERT INTO k VALUES (9, 90), (9, 91) ON CONFLICT (id) DO UPDATE SET v = excluded.v;
-- ERROR 21000: ON CONFLICT DO UPDATE command cannot affect row a second time
INSERT INTO k VALUES (9, 90), (9, 91) ON CONFLICT DO NOTHING RETURNING *;
-- 9|90|NULL
INSERT INTO k (id, v) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET w = excluded.w WHERE excluded.v > 5 RETURNING *;
WITH q AS (SELECT 20 AS id, 200 AS v) INSERT INTO k (id, v) SELECT id, v FROM q ON CONFLICT (id) DO NOTHING RETURNING *;
-- 20|200|NULL

--- SET of several columns.
INSERT INTO o VALUES (1, 10, 'one'), (2, 20, 'two'), (3, 30, 'three');
UPDATE o SET (v, w) = (11, 'uno') WHERE id = 1 RETURNING *;
-- 1|11|uno
UPDATE o SET (v, w) = ROW(12, 'ein') WHERE id = 1 RETURNING *;
-- 1|12|ein
UPDATE o SET (v, w) = (SELECT 13, 'un') WHERE id = 1 RETURNING *;
-- 1|13|un
UPDATE o SET (v, w) = (SELECT o2.v + 1, o2.w FROM o o2 WHERE o2.id = o.id + 1) WHERE id < 3 RETURNING *;
-- 1|21|two
-- 2|31|three
UPDATE o SET (v, w) = (SELECT 1, 'x' WHERE false) WHERE id = 3 RETURNING *;
-- 3|NULL|NULL
UPDATE o SET (v) = (SELECT 5) WHERE id = 3 RETURNING *;
-- 3|5|NULL
UPDATE o SET (v) = ROW(6) WHERE id = 3 RETURNING *;
-- 3|6|NULL
UPDATE o SET (v) = (7) WHERE id = 3 RETURNING *;
-- ERROR 0A000: source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression
UPDATE o SET (v, w) = (DEFAULT, DEFAULT) WHERE id = 3 RETURNING *;
-- 3|NULL|NULL
UPDATE o SET (v, w) = (v + 1, w || '!'), id = 30 WHERE id = 3 RETURNING *;
-- 30|NULL|NULL
UPDATE o SET (v, w) = (1) WHERE id = 1;
-- ERROR 0A000: source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression
UPDATE o SET (v, w) = (1, 2, 3) WHERE id = 1;
-- ERROR 42601: number of columns does not match number of values
UPDATE o SET (v, w) = (SELECT 1) WHERE id = 1;
-- ERROR 42601: number of columns does not match number of values
UPDATE o SET (v, w) = (SELECT 1, 2, 3) WHERE id = 1;
-- ERROR 42601: number of columns does not match number of values
UPDATE o SET (v, w) = (SELECT v, w FROM o) WHERE id = 1;
-- ERROR 21000: more than one row returned by a subquery used as an expression
UPDATE o SET (v, v) = (1, 2) WHERE id = 1;
-- ERROR 42601: multiple assignments to same column "v"
UPDATE o SET v = 1, v = 2 WHERE id = 1;
-- ERROR 42601: multiple assignments to same column "v"
UPDATE o SET (w, v) = (SELECT s.w, s.v FROM (VALUES ('from', 99)) s(w, v)) WHERE id = 2 RETURNING id, w, v;
-- 2|from|99
UPDATE n SET (x, y) = (SELECT 1, 'a');
INSERT INTO n VALUES (1, 'p'), (2, 'q');
UPDATE n SET (x, y) = (SELECT n.x + 10, n.y || m.y FROM (VALUES ('m')) m(y)) RETURNING *;
-- 11|pm
-- 12|qm
UPDATE n SET (x, y) = (SELECT 3, 'sub') WHERE x = 11 RETURNING *;
-- 3|sub

--- UPDATE .. FROM and DELETE .. USING.
DELETE FROM o;
INSERT INTO o VALUES (1, 10, 'one'), (2, 20, 'two'), (3, 30, 'three'), (4, NULL, NULL);
UPDATE o SET v = s.v FROM (SELECT 1 AS id, 100 AS v) s WHERE o.id = s.id RETURNING o.*;
-- 1|100|one
UPDATE o SET v = s.v FROM (SELECT 1 AS id, 101 AS v) s WHERE o.id = s.id RETURNING *;
-- 1|101|one|1|101
UPDATE o SET v = s.c, w = s.w FROM (SELECT id, count(*) AS c, max(w) AS w FROM o GROUP BY id) s WHERE s.id = o.id AND o.id = 2 RETURNING o.id, o.v, s.c, s.w;
-- 2|1|1|two
UPDATE o AS q SET w = x.t FROM (VALUES (1, 'eins'), (3, 'drei')) AS x(i, t) WHERE q.id = x.i RETURNING q.id, w, x.t;
-- 1|eins|eins
-- 3|drei|drei
UPDATE o SET v = g.g * 1000 FROM generate_series(1, 2) g WHERE o.id = g.g RETURNING o.id, o.v;
-- 1|1000
-- 2|2000
UPDATE o SET v = 0 FROM (SELECT 1) s WHERE o.id = 1 RETURNING *;
-- 1|0|eins|1
UPDATE o SET w = (SELECT max(k.w) FROM k WHERE k.id = o.id) FROM (SELECT 2 AS i) s WHERE o.id = s.i RETURNING o.id, o.w;
-- 2|NULL
UPDATE o SET v = s.v FROM (SELECT 1 AS id, 1 AS v UNION ALL SELECT 1, 1) s WHERE o.id = s.id RETURNING o.id, o.v;
-- 1|1
UPDATE n SET y = s.y FROM (SELECT 'derived' AS y) s WHERE n.x = 12 RETURNING n.x, n.y;
-- 12|derived
UPDATE n SET y = s.y FROM (SELECT 'both' AS y) s RETURNING *;
-- 3|both|both
-- 12|both|both
UPDATE n SET y = (SELECT max(w) FROM o WHERE o.id < n.x) RETURNING *;
-- 3|eins
-- 12|eins
UPDATE o SET v = 1 FROM o WHERE true;
-- ERROR 42712: table name "o" specified more than once
UPDATE o SET o.v = 1;
-- ERROR 42703: column "o" of relation "o" does not exist
UPDATE o SET v = s.nope FROM (SELECT 1 AS a) s;
-- ERROR 42703: column s.nope does not exist
UPDATE o SET v = 5 WHERE id IN (SELECT id FROM o ORDER BY id LIMIT 1) RETURNING *;
-- 1|5|eins
UPDATE o SET v = 6 WHERE EXISTS (SELECT 1 FROM k WHERE k.id = o.id AND k.id = 2) RETURNING *;
-- 2|6|NULL
UPDATE o SET v = o2.v FROM o o2 WHERE o2.id = o.id + 1 AND o.id = 1 RETURNING o.id, o.v, o2.id;
-- 1|6|2
WITH s AS (SELECT 3 AS id, 333 AS v) UPDATE o SET v = s.v FROM s WHERE s.id = o.id RETURNING o.*;
-- 3|333|drei
WITH s AS (SELECT 3 AS id, 334 AS v) UPDATE o SET v = s.v FROM s WHERE s.id = o.id RETURNING *;
-- 3|334|drei|3|334
DELETE FROM o USING (SELECT 4 AS id) s WHERE s.id = o.id RETURNING o.id, s.id;
-- 4|4
DELETE FROM o USING (VALUES (3, 'x')) s(i, t) WHERE s.i = o.id RETURNING *;
-- 3|334|drei|3|x
DELETE FROM o USING k WHERE k.id = o.id AND o.id = 2 RETURNING *;
-- 2|6|NULL|2|20|NULL
DELETE FROM o USING k LEFT JOIN n ON true WHERE k.id = o.id RETURNING o.id;
-- 1
DELETE FROM n USING (SELECT 12 AS x) s WHERE s.x = n.x RETURNING *;
-- 12|eins|12
DELETE FROM n AS q WHERE q.x > 100 RETURNING q.*;
DELETE FROM n WHERE x = (SELECT min(x) FROM n) RETURNING x, y, 1 + 1 AS two;
-- 3|eins|2
DELETE FROM o USING o;
-- ERROR 42712: table name "o" specified more than once
SELECT * FROM o ORDER BY id;

--- RETURNING.
INSERT INTO o VALUES (1, 1, 'a'), (2, 2, 'b') RETURNING id, v + 1, upper(w), (SELECT count(*) FROM k WHERE k.id = 1);
-- 1|2|A|1
-- 2|3|B|1
INSERT INTO o VALUES (8, 8, 'h') RETURNING nope;
-- ERROR 42703: column "nope" does not exist
INSERT INTO o VALUES (8, 8, 'h') RETURNING o.id, "o"."w";
-- 8|h
INSERT INTO o VALUES (9, 8, 'h') RETURNING *, id;
-- 9|8|h|9
INSERT INTO o SELECT id + 100, v, w FROM o WHERE id >= 8 ORDER BY id RETURNING id;
-- 108
-- 109
INSERT INTO o (id) SELECT generate_series(200, 202) RETURNING id;
-- 200
-- 201
-- 202
INSERT INTO o (id, v) (SELECT 300, 1) RETURNING id;
-- 300
INSERT INTO o (id, v) VALUES (301, (SELECT max(v) FROM o)), (302, (SELECT 1)) RETURNING id, v;
-- 301|8
-- 302|1
INSERT INTO o (id, w) TABLE n;
INSERT INTO o (id, v) WITH q AS (SELECT 400 AS i) SELECT i, i FROM q RETURNING id, v;
-- 400|400

--- Indexes with an order of NULLs.
CREATE TABLE ix (id int PRIMARY KEY, a int, b text);
INSERT INTO ix VALUES (1, 1, 'x'), (2, NULL, 'y'), (3, 3, NULL), (4, 2, 'z');
CREATE INDEX ix_3 ON ix (b DESC NULLS FIRST, a ASC NULLS LAST);
SELECT id FROM ix ORDER BY a;
-- 1
-- 4
-- 3
-- 2
SELECT id FROM ix ORDER BY a NULLS FIRST;
-- 2
-- 1
-- 4
-- 3
SELECT id FROM ix ORDER BY a DESC;
-- 2
-- 3
-- 4
-- 1
SELECT id FROM ix ORDER BY a DESC NULLS LAST;
-- 3
-- 4
-- 1
-- 2
SELECT id FROM ix ORDER BY a NULLS FIRST LIMIT 2;
-- 2
-- 1
SELECT id FROM ix ORDER BY a DESC NULLS LAST LIMIT 2;
-- 3
-- 4
SELECT id FROM ix WHERE a > 1 ORDER BY a DESC NULLS LAST LIMIT 1;
-- 3
SELECT id FROM ix ORDER BY b DESC NULLS LAST, a NULLS FIRST;
-- 4
-- 2
-- 1
-- 3
SELECT id FROM ix WHERE a IS NULL;
-- 2
SELECT id FROM ix WHERE a IS NOT NULL ORDER BY a;
-- 1
-- 4
-- 3
