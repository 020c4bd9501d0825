-- UPDATE FROM, DELETE USING, subqueries in DML, INSERT .. SELECT.

CREATE TABLE item (id int PRIMARY KEY, price int, kind text);
-- CREATE TABLE
CREATE TABLE change (id int PRIMARY KEY, item int, price int);
-- CREATE TABLE
INSERT INTO item VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'a');
-- INSERT 0 3
INSERT INTO change VALUES (1, 1, 11), (2, 3, 33), (3, 9, 99), (4, 1, 12);
-- INSERT 0 4
UPDATE item SET price = change.price FROM change WHERE item.id = change.item AND change.id < 4 RETURNING item.id, item.price, change.id AS by;
-- 1|11|1
-- 3|33|2
-- UPDATE 2
UPDATE item i SET price = price * 2 WHERE i.id IN (SELECT item FROM change WHERE price > 30);
-- UPDATE 1
SELECT * FROM item ORDER BY id;
-- 1|11|a
-- 2|20|b
-- 3|66|a
-- SELECT 3
UPDATE item SET price = (SELECT max(price) FROM change) WHERE id = 2;
-- UPDATE 1
DELETE FROM item USING change WHERE item.id = change.item AND change.price = 33 RETURNING *;
-- 3|66|a|2|3|33
-- DELETE 1
DELETE FROM change WHERE NOT EXISTS (SELECT 1 FROM item WHERE kind = 'zz') AND id = 4;
-- DELETE 1
INSERT INTO item SELECT id + 100, price, 'copied' FROM item RETURNING id;
-- 101
-- 102
-- INSERT 0 2
INSERT INTO item (id, kind) SELECT 1000, 'lit';
-- INSERT 0 1
INSERT INTO item (id, price, kind) VALUES ((SELECT max(id) FROM item) + 1, 5, upper('sub'));
-- INSERT 0 1
SELECT * FROM item ORDER BY id;
-- 1|11|a
-- 2|99|b
-- 101|11|copied
-- 102|99|copied
-- 1000|NULL|lit
-- 1001|5|SUB
-- SELECT 6
UPDATE item SET id = id + 1;
-- ERROR 23505: duplicate key value violates unique constraint "item_pkey"
-- DETAIL: Key (id)=(2) already exists.
SELECT id FROM item ORDER BY id;
-- 1
-- 2
-- 101
-- 102
-- 1000
-- 1001
-- SELECT 6
EXPLAIN UPDATE item SET price = 1 WHERE id = 5;
-- Update on item
--   ->  Point Lookup using item_pkey on item
--         Index Cond: (id = 5)
--         Locks rows
EXPLAIN DELETE FROM item;
-- Delete on item
--   ->  Seq Scan on item
EXPLAIN INSERT INTO item VALUES (1, 2, '3');
-- Insert on item
--   ->  Result

CREATE TABLE log (at int, what text);
-- CREATE TABLE
INSERT INTO log VALUES (1, 'x'), (1, 'x'), (2, NULL);
-- INSERT 0 3
UPDATE log SET at = at + 1 WHERE what = 'x';
-- UPDATE 2
SELECT * FROM log ORDER BY at, what;
-- 2|x
-- 2|x
-- 2|NULL
-- SELECT 3
DELETE FROM log WHERE what IS NULL;
-- DELETE 1
SELECT count(*) FROM log;
-- 2
-- SELECT 1

CREATE TABLE auto (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v varchar(3), k smallint);
-- CREATE TABLE
INSERT INTO auto (v) VALUES ('a'), ('b') RETURNING id;
-- 1
-- 2
-- INSERT 0 2
INSERT INTO auto VALUES (7, 'x');
-- ERROR 428C9: cannot insert a non-DEFAULT value into column "id"
-- DETAIL: Column "id" is an identity column defined as GENERATED ALWAYS.
INSERT INTO auto VALUES (DEFAULT, 'x') RETURNING id;
-- 3
-- INSERT 0 1
INSERT INTO auto (v) VALUES ('long');
-- ERROR 22001: value too long for type character varying(3)
INSERT INTO auto (k) VALUES (40000);
-- ERROR 22003: smallint out of range
INSERT INTO auto (k) VALUES ('x');
-- ERROR 22P02: invalid input syntax for type smallint: "x"
UPDATE auto SET id = 5;
-- ERROR 428C9: column "id" can only be updated to DEFAULT
-- DETAIL: Column "id" is an identity column defined as GENERATED ALWAYS.
UPDATE auto SET v = 'toolong' WHERE id = 1;
-- ERROR 22001: value too long for type character varying(3)

CREATE TABLE checked (id int PRIMARY KEY, n int CHECK (n > 0), m int, CONSTRAINT more CHECK (m > n));
-- CREATE TABLE
INSERT INTO checked VALUES (1, 1, 2), (2, NULL, NULL);
-- INSERT 0 2
INSERT INTO checked VALUES (3, 0, 2);
-- ERROR 23514: new row for relation "checked" violates check constraint "checked_n_check"
-- DETAIL: Failing row contains (3, 0, 2).
INSERT INTO checked VALUES (3, 3, 2);
-- ERROR 23514: new row for relation "checked" violates check constraint "more"
-- DETAIL: Failing row contains (3, 3, 2).
UPDATE checked SET n = 5 WHERE id = 1;
-- ERROR 23514: new row for relation "checked" violates check constraint "more"
-- DETAIL: Failing row contains (1, 5, 2).

CREATE TABLE w (id int PRIMARY KEY, n int, up int);
-- CREATE TABLE
WITH x AS (SELECT 1 AS a, 2 AS b) INSERT INTO w (id, n) SELECT a, b FROM x;
-- INSERT 0 1
INSERT INTO w VALUES (2, 5, 1), (3, 6, 1), (4, 7, 2);
-- INSERT 0 3
WITH x AS (SELECT up, sum(n) AS total FROM w GROUP BY up) UPDATE w SET n = x.total FROM x WHERE w.id = x.up;
-- UPDATE 2
UPDATE w SET n = (SELECT count(*) FROM w c WHERE c.up = w.id) + 100 WHERE id IN (1, 4) RETURNING *;
-- 1|102|NULL
-- 4|100|2
-- UPDATE 2
DELETE FROM w WHERE EXISTS (SELECT 1 FROM w c WHERE c.id = w.up AND c.up IS NULL) RETURNING id;
-- 2
-- 3
-- DELETE 2
WITH x AS (SELECT 4 AS id) DELETE FROM w USING x WHERE w.id = x.id;
-- DELETE 1
SELECT * FROM w ORDER BY id;
-- 1|102|NULL
-- SELECT 1

CREATE TABLE padded (id int PRIMARY KEY, c char(4), v varchar(3), n numeric(4,1), a int[]);
-- CREATE TABLE
INSERT INTO padded SELECT 1, 'abcd', 'abc', 12.34, '{1,2}';
-- INSERT 0 1
INSERT INTO padded SELECT 2, 'abcde', 'abc', 12.34, NULL;
-- ERROR 22001: value too long for type character(4)
INSERT INTO padded SELECT 2, 'ab', 'abcd', 12.34, NULL;
-- ERROR 22001: value too long for type character varying(3)
UPDATE padded SET c = (SELECT 'wxyz' FROM padded p WHERE p.id = padded.id) RETURNING *;
-- 1|wxyz|abc|12.3|{1,2}
-- UPDATE 1
SELECT id FROM padded WHERE c = 'wxyz' AND v = 'abc';
-- 1
-- SELECT 1
SELECT (SELECT max(id) FROM padded), EXISTS (SELECT 1);
-- 1|t
-- SELECT 1
