# Rows of FOR UPDATE that are fetched in parts are locked, and given, as they are when their part is fetched.

CREATE TABLE p (id int PRIMARY KEY, g int, v int);
----
CREATE TABLE

CREATE TABLE c (id int PRIMARY KEY, p int, w int);
----
CREATE TABLE

INSERT INTO p SELECT n, n % 2, n * 10 FROM generate_series(1, 40) n;
----
INSERT 0 40

INSERT INTO c SELECT n, n, n FROM generate_series(1, 40) n;
----
INSERT 0 40

# What others have changed since the first part is there at READ COMMITTED, and nothing of it is lost.

[a] BEGIN ISOLATION LEVEL READ COMMITTED; DECLARE k CURSOR FOR SELECT id, v FROM p WHERE g < 5 FOR UPDATE;
----
BEGIN
DECLARE CURSOR
(in block)

[a] FETCH 2 FROM k;
----
id:int4 | v:int4
1 | 10
2 | 20
FETCH 2
(in block)

[b] UPDATE p SET v = v + 1 WHERE id = 3;
----
UPDATE 1

[b] UPDATE p SET g = 9 WHERE id = 4;
----
UPDATE 1

[b] DELETE FROM p WHERE id = 5;
----
DELETE 1

[a] SELECT 1;
----
?column?:int4
1
SELECT 1
(in block)

[a] FETCH 3 FROM k;
----
id:int4 | v:int4
3 | 31
6 | 60
7 | 70
FETCH 3
(in block)

[a] ROLLBACK;
----
ROLLBACK

# The same of rows that were sorted.

[a] BEGIN ISOLATION LEVEL READ COMMITTED; DECLARE k CURSOR FOR SELECT id, v FROM p WHERE g < 5 ORDER BY v DESC FOR UPDATE;
----
BEGIN
DECLARE CURSOR
(in block)

[a] FETCH 2 FROM k;
----
id:int4 | v:int4
40 | 400
39 | 390
FETCH 2
(in block)

[b] UPDATE p SET v = v + 1 WHERE id = 38;
----
UPDATE 1

[b] DELETE FROM p WHERE id = 37;
----
DELETE 1

[a] SELECT 1;
----
?column?:int4
1
SELECT 1
(in block)

[a] FETCH 3 FROM k;
----
id:int4 | v:int4
38 | 381
36 | 360
35 | 350
FETCH 3
(in block)

[a] ROLLBACK;
----
ROLLBACK

# What the transaction itself has changed since.

[a] BEGIN; DECLARE k CURSOR FOR SELECT id, v FROM p WHERE g < 5 AND id > 10 FOR UPDATE;
----
BEGIN
DECLARE CURSOR
(in block)

[a] FETCH 2 FROM k;
----
id:int4 | v:int4
11 | 110
12 | 120
FETCH 2
(in block)

[a] UPDATE p SET v = -13 WHERE id = 13;
----
UPDATE 1
(in block)

[a] DELETE FROM p WHERE id = 14;
----
DELETE 1
(in block)

[a] UPDATE p SET g = 7 WHERE id = 15;
----
UPDATE 1
(in block)

[a] FETCH 3 FROM k;
----
id:int4 | v:int4
13 | -13
16 | 160
17 | 170
FETCH 3
(in block)

[a] ROLLBACK;
----
ROLLBACK

# Of two tables.

[a] BEGIN; DECLARE k CURSOR FOR SELECT p.id, v, w FROM p JOIN c ON c.p = p.id WHERE g < 5 AND p.id > 20 FOR UPDATE;
----
BEGIN
DECLARE CURSOR
(in block)

[a] FETCH 2 FROM k;
----
id:int4 | v:int4 | w:int4
21 | 210 | 21
22 | 220 | 22
FETCH 2
(in block)

[a] UPDATE c SET w = -23 WHERE id = 23;
----
UPDATE 1
(in block)

[a] DELETE FROM c WHERE id = 24;
----
DELETE 1
(in block)

[a] UPDATE p SET v = -25 WHERE id = 25;
----
UPDATE 1
(in block)

[a] FETCH 3 FROM k;
----
id:int4 | v:int4 | w:int4
23 | 230 | 23
24 | 240 | 24
25 | 250 | 25
FETCH 3
(in block)

[a] ROLLBACK;
----
ROLLBACK

# To a savepoint behind which locks were taken.

[a] BEGIN; DECLARE k CURSOR FOR SELECT id, v FROM p WHERE g < 5 AND id > 30 FOR UPDATE;
----
BEGIN
DECLARE CURSOR
(in block)

[a] SAVEPOINT s; FETCH 2 FROM k;
----
SAVEPOINT
id:int4 | v:int4
31 | 310
32 | 320
FETCH 2
(in block)

[a] UPDATE p SET v = -33 WHERE id = 33;
----
UPDATE 1
(in block)

[a] ROLLBACK TO s;
----
ROLLBACK
(in block)

[a] FETCH 3 FROM k;
----
id:int4 | v:int4
33 | 330
34 | 340
35 | 350
FETCH 3
(in block)

[a] COMMIT;
----
COMMIT
