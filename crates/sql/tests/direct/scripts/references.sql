-- Foreign keys: what a row must find, and what happens to rows that point at one that goes.

CREATE TABLE parent (id int PRIMARY KEY, code text, UNIQUE (code));
-- CREATE TABLE
CREATE TABLE child (id int PRIMARY KEY, pid int REFERENCES parent (id), code text REFERENCES parent (code) ON DELETE SET NULL ON UPDATE CASCADE);
-- CREATE TABLE
CREATE TABLE grand (id int PRIMARY KEY, cid bigint REFERENCES child (id) ON DELETE CASCADE);
-- CREATE TABLE
CREATE INDEX grand_cid ON grand (cid);
-- CREATE INDEX
INSERT INTO child VALUES (1, 1, NULL);
-- ERROR 23503: insert or update on table "child" violates foreign key constraint "child_pid_fkey"
-- DETAIL: Key (pid)=(1) is not present in table "parent".
INSERT INTO parent VALUES (1, 'a'), (2, 'b'), (3, 'c');
-- INSERT 0 3
INSERT INTO child VALUES (1, 1, 'a'), (2, NULL, 'b'), (3, 3, NULL);
-- INSERT 0 3
INSERT INTO grand VALUES (1, 1), (2, 1), (3, 2);
-- INSERT 0 3
INSERT INTO grand VALUES (4, 99999999999);
-- ERROR 23503: insert or update on table "grand" violates foreign key constraint "grand_cid_fkey"
-- DETAIL: Key (cid)=(99999999999) is not present in table "child".
UPDATE child SET pid = 9 WHERE id = 1;
-- ERROR 23503: insert or update on table "child" violates foreign key constraint "child_pid_fkey"
-- DETAIL: Key (pid)=(9) is not present in table "parent".
DELETE FROM parent WHERE id = 1;
-- ERROR 23503: update or delete on table "parent" violates foreign key constraint "child_pid_fkey" on table "child"
-- DETAIL: Key (id)=(1) is still referenced from table "child".
UPDATE parent SET id = 10 WHERE id = 1;
-- ERROR 23503: update or delete on table "parent" violates foreign key constraint "child_pid_fkey" on table "child"
-- DETAIL: Key (id)=(1) is still referenced from table "child".
UPDATE parent SET code = 'aa' WHERE id = 1;
-- UPDATE 1
SELECT id, code FROM child ORDER BY id;
-- 1|aa
-- 2|b
-- 3|NULL
-- SELECT 3
DELETE FROM parent WHERE id = 2;
-- DELETE 1
SELECT id, code FROM child ORDER BY id;
-- 1|aa
-- 2|NULL
-- 3|NULL
-- SELECT 3
DELETE FROM child WHERE id = 1;
-- DELETE 1
SELECT * FROM grand ORDER BY id;
-- 3|2
-- SELECT 1

CREATE TABLE tree (id int PRIMARY KEY, up int REFERENCES tree (id) ON DELETE CASCADE);
-- CREATE TABLE
INSERT INTO tree VALUES (3, 2), (2, 1), (1, NULL), (4, 3), (5, 5);
-- INSERT 0 5
INSERT INTO tree VALUES (6, 7);
-- ERROR 23503: insert or update on table "tree" violates foreign key constraint "tree_up_fkey"
-- DETAIL: Key (up)=(7) is not present in table "tree".
DELETE FROM tree WHERE id = 2;
-- DELETE 1
SELECT * FROM tree ORDER BY id;
-- 1|NULL
-- 5|5
-- SELECT 2
DELETE FROM tree WHERE id = 5;
-- DELETE 1

CREATE TABLE keep (id int PRIMARY KEY);
-- CREATE TABLE
CREATE TABLE hold (id int PRIMARY KEY, kid int DEFAULT 1 REFERENCES keep ON DELETE SET DEFAULT, rid int REFERENCES keep ON DELETE RESTRICT);
-- CREATE TABLE
INSERT INTO keep VALUES (1), (2), (3);
-- INSERT 0 3
INSERT INTO hold VALUES (1, 2, 3);
-- INSERT 0 1
DELETE FROM keep WHERE id = 3;
-- ERROR 23503: update or delete on table "keep" violates foreign key constraint "hold_rid_fkey" on table "hold"
-- DETAIL: Key (id)=(3) is still referenced from table "hold".
DELETE FROM keep WHERE id = 2;
-- DELETE 1
SELECT * FROM hold;
-- 1|1|3
-- SELECT 1
DELETE FROM keep WHERE id = 1;
-- ERROR 23503: update or delete on table "keep" violates foreign key constraint "hold_kid_fkey" on table "hold"
-- DETAIL: Key (id)=(1) is still referenced from table "hold".

CREATE TABLE pair (a int, b text, PRIMARY KEY (a, b));
-- CREATE TABLE
CREATE TABLE points (id int PRIMARY KEY, y text, x int, FOREIGN KEY (x, y) REFERENCES pair (a, b) ON UPDATE CASCADE);
-- CREATE TABLE
INSERT INTO pair VALUES (1, 'x'), (1, 'y');
-- INSERT 0 2
INSERT INTO points VALUES (1, 'x', 1), (2, NULL, 5);
-- INSERT 0 2
INSERT INTO points VALUES (3, 'x', 2);
-- ERROR 23503: insert or update on table "points" violates foreign key constraint "points_x_y_fkey"
-- DETAIL: Key (x, y)=(2, x) is not present in table "pair".
UPDATE pair SET b = 'z' WHERE b = 'x';
-- UPDATE 1
SELECT * FROM points ORDER BY id;
-- 1|z|1
-- 2|NULL|5
-- SELECT 2
--- A key that goes and comes back within one statement is not missed.
UPDATE keep SET id = 1 WHERE id = 1;
-- UPDATE 1
