# Sequences, and views.

CREATE SEQUENCE s; SELECT nextval('s'), nextval('s');
----
CREATE SEQUENCE
nextval:int8 | nextval:int8
1 | 2
SELECT 1

SELECT currval('s'), lastval();
----
currval:int8 | lastval:int8
2 | 2
SELECT 1

SELECT setval('s', 10); SELECT nextval('s');
----
setval:int8
10
SELECT 1
nextval:int8
11
SELECT 1

SELECT setval('s', 10, false), nextval('s');
----
setval:int8 | nextval:int8
10 | 10
SELECT 1

# A rollback gives no number back.
BEGIN; SELECT nextval('s'); ROLLBACK;
----
BEGIN
nextval:int8
11
SELECT 1
ROLLBACK

SELECT nextval('s');
----
nextval:int8
12
SELECT 1

ALTER SEQUENCE s INCREMENT BY 5 MAXVALUE 20;
----
ALTER SEQUENCE

SELECT nextval('s'); SELECT nextval('s');
----
nextval:int8
17
SELECT 1
nextval:int8
ERROR 2200H: nextval: reached maximum value of sequence "s" (20)

ALTER SEQUENCE s CYCLE RESTART;
----
ALTER SEQUENCE

SELECT nextval('s');
----
nextval:int8
1
SELECT 1

CREATE SEQUENCE bad INCREMENT 0;
----
ERROR 22023: INCREMENT must not be zero

CREATE SEQUENCE bad MINVALUE 5 MAXVALUE 3;
----
ERROR 22023: MINVALUE (5) must be less than MAXVALUE (3)

CREATE SEQUENCE down INCREMENT -1; SELECT nextval('down'), nextval('down');
----
CREATE SEQUENCE
nextval:int8 | nextval:int8
-1 | -2
SELECT 1

[b] SELECT currval('s');
----
currval:int8
ERROR 55000: currval of sequence "s" is not yet defined in this session

SELECT nextval('nothing');
----
ERROR 42P01: relation "nothing" does not exist

DROP SEQUENCE s, down;
----
DROP SEQUENCE

CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t VALUES (1, 'x'), (2, 'y'); CREATE VIEW v AS SELECT a, b FROM t WHERE a > 1;
----
CREATE TABLE
INSERT 0 2
CREATE VIEW

SELECT * FROM v;
----
a:int4 | b:text
2 | y
SELECT 1

DROP TABLE t;
----
ERROR 2BP01: cannot drop table t because other objects depend on it
  detail: view v depends on table t
  hint: Use DROP ... CASCADE to drop the dependent objects too.

ALTER TABLE t DROP COLUMN b;
----
ERROR 2BP01: cannot drop column b of table t because other objects depend on it
  detail: view v depends on column b of table t
  hint: Use DROP ... CASCADE to drop the dependent objects too.

ALTER TABLE t RENAME TO t2; SELECT * FROM v;
----
ALTER TABLE
a:int4 | b:text
2 | y
SELECT 1

CREATE VIEW v AS SELECT 1 AS x;
----
ERROR 42P07: relation "v" already exists

CREATE OR REPLACE VIEW v AS SELECT a, b, a AS c FROM t2;
----
CREATE VIEW

CREATE OR REPLACE VIEW v AS SELECT a FROM t2;
----
ERROR 42P16: cannot drop columns from view

DROP TABLE t2 CASCADE;
----
NOTICE: drop cascades to view v
DROP TABLE

SELECT * FROM v;
----
ERROR 42P01: relation "v" does not exist
  position: 15
