--- Cursors give what there was at their DECLARE, whatever the transaction does before they are read.
CREATE TABLE cu (id int PRIMARY KEY, k int);
INSERT INTO cu SELECT i, i % 3 FROM generate_series(1, 500) i;
BEGIN;
DECLARE c CURSOR FOR SELECT k, count(*) FROM cu GROUP BY k ORDER BY k;
DECLARE d NO SCROLL CURSOR FOR SELECT id FROM cu WHERE id < 7 ORDER BY id;
DECLARE e INSENSITIVE SCROLL CURSOR FOR SELECT id, k FROM cu WHERE id < 5 ORDER BY id;
FETCH 1 FROM d;
-- 1
FETCH 2 FROM e;
-- 1|1
-- 2|2
DELETE FROM cu WHERE id % 2 = 0;
INSERT INTO cu VALUES (0, 9);
UPDATE cu SET k = 7 WHERE id = 3;
DECLARE f CURSOR FOR SELECT id, k FROM cu WHERE id < 6 ORDER BY id;
DELETE FROM cu;
FETCH ALL FROM c;
-- 0|166
-- 1|167
-- 2|167
FETCH ALL FROM d;
-- 2
-- 3
-- 4
-- 5
-- 6
FETCH ALL FROM e;
-- 3|0
-- 4|1
FETCH BACKWARD 3 FROM e;
-- 4|1
-- 3|0
-- 2|2
FETCH ALL FROM f;
-- 0|9
-- 1|1
-- 3|7
-- 5|2
SELECT count(*) FROM cu;
-- 0
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT id, k FROM cu WHERE id < 4 ORDER BY id;
SAVEPOINT s;
UPDATE cu SET k = k + 10 WHERE id < 4;
DECLARE d CURSOR FOR SELECT id, k FROM cu WHERE id < 4 ORDER BY id;
SAVEPOINT s2;
DELETE FROM cu;
FETCH 2 FROM c;
-- 1|1
-- 2|2
FETCH 2 FROM d;
-- 1|11
-- 2|12
ROLLBACK TO s2;
FETCH 2 FROM c;
-- 3|0
FETCH 2 FROM d;
-- 3|10
ROLLBACK TO s;
DECLARE e CURSOR FOR SELECT id, k FROM cu WHERE id < 4 ORDER BY id;
INSERT INTO cu VALUES (-1, 0);
FETCH ALL FROM e;
-- 1|1
-- 2|2
-- 3|0
FETCH BACKWARD ALL FROM c;
-- 3|0
-- 2|2
-- 1|1
COMMIT;
--- Held over the commit: what there was at the DECLARE, too.
BEGIN;
DECLARE c CURSOR WITH HOLD FOR SELECT id, k FROM cu WHERE id < 3 ORDER BY id;
UPDATE cu SET k = 100 WHERE id < 3;
COMMIT;
DELETE FROM cu WHERE id < 3;
FETCH ALL FROM c;
-- -1|0
-- 1|1
-- 2|2
FETCH FIRST FROM c;
-- -1|0
CLOSE c;
--- Other ways to write.
PREPARE p AS DELETE FROM cu WHERE id = 3;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM cu WHERE id < 6 ORDER BY id;
EXECUTE p;
FETCH ALL FROM c;
-- 3
-- 4
-- 5
DECLARE d CURSOR FOR SELECT id FROM cu WHERE id < 6 ORDER BY id;
WITH w AS (DELETE FROM cu WHERE id = 4 RETURNING id) SELECT id FROM w;
-- 4
FETCH ALL FROM d;
-- 4
-- 5
DECLARE e CURSOR FOR SELECT count(*) FROM cu;
--- differs: a cursor that was read out is in nobody's way
TRUNCATE cu;
--- differs: as above
FETCH ALL FROM e;
-- 496
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM cu WHERE id < 6 ORDER BY id;
--- differs: as above
ALTER TABLE cu ADD COLUMN z int;
--- differs: as above
FETCH 1 FROM c;
-- 3|0
ROLLBACK;
--- What a query fails with, its FETCH says.
BEGIN;
DECLARE c CURSOR FOR SELECT 10 / (id - 5) FROM cu WHERE id < 6 ORDER BY id;
UPDATE cu SET k = 1 WHERE id = 6;
SELECT count(*) FROM cu;
-- 498
FETCH ALL FROM c;
-- ERROR 22012: division by zero
ROLLBACK;
