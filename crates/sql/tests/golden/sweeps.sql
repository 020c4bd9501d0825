# Many rows looked at in the bytes of their chunk, by writers and for indexes; a primary key that is added copies rows as they are. PostgreSQL answers alike.

CREATE TABLE many (a int NOT NULL, b int, t text, n numeric);
----
CREATE TABLE

INSERT INTO many SELECT i, CASE WHEN i % 7 = 0 THEN NULL ELSE (i * 7919) % 6000 END, repeat(chr(97 + i % 26), i % 40), i / 4.0 FROM generate_series(1, 6000) i;
----
INSERT 0 6000

BEGIN;
----
BEGIN
(in block)

INSERT INTO many VALUES (6001, 1, 'own', 0);
----
INSERT 0 1
(in block)

SELECT count(*), sum(a) FROM many;
----
count:int8 | sum:int8
6001 | 18009001
SELECT 1
(in block)

DELETE FROM many WHERE a % 2 = 0;
----
DELETE 3000
(in block)

SELECT count(*), sum(a) FROM many;
----
count:int8 | sum:int8
3001 | 9006001
SELECT 1
(in block)

UPDATE many SET t = t || '!' WHERE b % 5 = 1;
----
UPDATE 515
(in block)

SELECT count(*), sum(length(t)) FROM many;
----
count:int8 | sum:int8
3001 | 60518
SELECT 1
(in block)

ROLLBACK;
----
ROLLBACK

SELECT count(*), sum(a), sum(length(t)) FROM many;
----
count:int8 | sum:int8 | sum:int8
6000 | 18003000 | 117000
SELECT 1

CREATE INDEX many_b ON many (b);
----
CREATE INDEX

SELECT count(*), min(a), max(a) FROM many WHERE b BETWEEN 100 AND 110;
----
count:int8 | min:int4 | max:int4
9 | 1332 | 5900
SELECT 1

SELECT count(b), sum(b) FROM many WHERE b >= 0;
----
count:int8 | sum:int8
5143 | 15430251
SELECT 1

SELECT count(*) FROM (SELECT b FROM many WHERE b > 10 ORDER BY b DESC OFFSET 5) x;
----
count:int8
5128
SELECT 1

ALTER TABLE many ADD COLUMN late int DEFAULT 5;
----
ALTER TABLE

ALTER TABLE many DROP COLUMN n;
----
ALTER TABLE

INSERT INTO many VALUES (5, 5, 'twice', 6);
----
INSERT 0 1

ALTER TABLE many ADD PRIMARY KEY (a);
----
ERROR 23505: could not create unique index "many_pkey"
  detail: Key (a)=(5) is duplicated.
  constraint: many_pkey

DELETE FROM many WHERE t = 'twice';
----
DELETE 1

ALTER TABLE many ADD PRIMARY KEY (b);
----
ERROR 23502: column "b" of relation "many" contains null values

ALTER TABLE many ADD PRIMARY KEY (a);
----
ALTER TABLE

SELECT count(*), sum(a), sum(b), sum(length(t)), sum(late) FROM many;
----
count:int8 | sum:int8 | sum:int8 | sum:int8 | sum:int8
6000 | 18003000 | 15430251 | 117000 | 30000
SELECT 1

SELECT * FROM many WHERE a = 4097;
----
a:int4 | b:int4 | t:text | late:int4
4097 | 2143 | ppppppppppppppppp | 5
SELECT 1

SELECT * FROM many WHERE b = 7919 % 6000;
----
a:int4 | b:int4 | t:text | late:int4
1 | 1919 | b | 5
SELECT 1

SELECT count(*), min(a), max(a) FROM many WHERE b BETWEEN 100 AND 110;
----
count:int8 | min:int4 | max:int4
9 | 1332 | 5900
SELECT 1

ALTER TABLE many DROP CONSTRAINT many_pkey;
----
ALTER TABLE

SELECT count(*), sum(a), sum(b), sum(length(t)), sum(late) FROM many;
----
count:int8 | sum:int8 | sum:int8 | sum:int8 | sum:int8
6000 | 18003000 | 15430251 | 117000 | 30000
SELECT 1

ALTER TABLE many ADD CHECK (late < 7);
----
ALTER TABLE

ALTER TABLE many ADD PRIMARY KEY (a);
----
ALTER TABLE

SELECT count(*), sum(a), sum(b), sum(length(t)), sum(late) FROM many WHERE a > 1000;
----
count:int8 | sum:int8 | sum:int8 | sum:int8 | sum:int8
5000 | 17502500 | 12846000 | 97500 | 25000
SELECT 1

DELETE FROM many WHERE a % 2 = 1;
----
DELETE 3000

SELECT count(*), sum(a), sum(b), sum(length(t)), sum(late) FROM many;
----
count:int8 | sum:int8 | sum:int8 | sum:int8 | sum:int8
3000 | 9003000 | 7715004 | 57000 | 15000
SELECT 1
