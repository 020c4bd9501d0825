--- Referential actions of a statement of several parts happen when all parts are done.
CREATE TABLE p (id int PRIMARY KEY, v int);
CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE, v int);
CREATE TABLE n (id int PRIMARY KEY, p int REFERENCES p ON DELETE SET NULL);
CREATE TABLE cc (id int PRIMARY KEY, c int REFERENCES c ON DELETE CASCADE);
INSERT INTO p SELECT i, i FROM generate_series(1, 9) i;
INSERT INTO c SELECT i * 10, i, 0 FROM generate_series(1, 9) i;
INSERT INTO n SELECT i * 100, i FROM generate_series(1, 9) i;
INSERT INTO cc SELECT i * 1000, i * 10 FROM generate_series(1, 9) i;
--- The second part still finds the rows that the first will take along.
WITH d AS (DELETE FROM p WHERE id = 1 RETURNING id) UPDATE c SET v = 1 FROM d WHERE c.p = d.id RETURNING c.*;
-- 10|1|1
SELECT * FROM c WHERE id = 10;
WITH d AS (DELETE FROM p WHERE id = 2 RETURNING id) SELECT d.id, c.id, (SELECT count(*) FROM cc), (SELECT count(*) FROM n WHERE n.p IS NULL) FROM d JOIN c ON c.p = d.id;
-- 2|20|8|1
SELECT (SELECT count(*) FROM c), (SELECT count(*) FROM cc), (SELECT count(*) FROM n WHERE p IS NULL);
-- 7|7|2
--- What a later part inserts goes too; what it takes away does not.
WITH d AS (DELETE FROM p WHERE id = 3 RETURNING id) INSERT INTO c SELECT 31, d.id, 0 FROM d;
SELECT * FROM c WHERE p = 3;
WITH d AS (DELETE FROM p WHERE id = 4) UPDATE c SET p = 5 WHERE p = 4;
SELECT * FROM c WHERE p = 5 ORDER BY id;
-- 40|5|0
-- 50|5|0
WITH d AS (DELETE FROM p WHERE id = 5 RETURNING id), e AS (DELETE FROM c WHERE p = 5 RETURNING id) SELECT d.id, e.id FROM d, e ORDER BY 2;
-- 5|40
-- 5|50
SELECT * FROM c WHERE p = 5;
WITH u AS (UPDATE p SET id = 60 WHERE id = 6 RETURNING id) UPDATE c SET v = 6 WHERE p = 6 RETURNING *;
-- ERROR 23503: update or delete on table "p" violates foreign key constraint "n_p_fkey" on table "n"
SELECT * FROM c WHERE v = 6;
--- A reference to what goes is refused where nothing is said of it.
CREATE TABLE r (id int PRIMARY KEY, p int REFERENCES p);
INSERT INTO r VALUES (1, 7);
WITH d AS (DELETE FROM p WHERE id = 7) SELECT 1;
-- ERROR 23503: update or delete on table "p" violates foreign key constraint "r_p_fkey" on table "r"
WITH d AS (DELETE FROM p WHERE id = 7), e AS (DELETE FROM r WHERE p = 7) SELECT 1;
-- 1
SELECT (SELECT count(*) FROM p), (SELECT count(*) FROM r), (SELECT count(*) FROM c);
-- 3|0|3
WITH d AS (DELETE FROM p WHERE id = 8), e AS (INSERT INTO p VALUES (8, 80) RETURNING id) SELECT 1;
-- ERROR 23505: duplicate key value violates unique constraint "p_pkey"
SELECT * FROM p ORDER BY id;
-- 6|6
-- 8|8
-- 9|9
