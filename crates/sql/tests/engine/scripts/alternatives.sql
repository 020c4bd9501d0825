-- Conditions that are alternatives become keys of one index, each row once; and what an index's entries hold is read from them alone.

CREATE TABLE alt (id int PRIMARY KEY, k int, c text, d char(4), n numeric, f float8, note text);
CREATE INDEX alt_k ON alt (k);
CREATE INDEX alt_ck ON alt (c DESC, k, d);
CREATE INDEX alt_n ON alt (n);
CREATE UNIQUE INDEX alt_f ON alt (f, k);
INSERT INTO alt SELECT i, i % 50, 'c' || i % 7, 'd' || i % 3, (i % 5) * 1.10, i / 2.0, 'note ' || i FROM generate_series(1, 1000) i;
INSERT INTO alt VALUES (1001, NULL, NULL, NULL, NULL, NULL, 'nothing'), (1002, 7, NULL, 'd1', 2.200, -0.0, 'partly');

SELECT count(k) FROM alt WHERE k BETWEEN 3 AND 5 OR k BETWEEN 4 AND 8 OR k BETWEEN 40 AND 41;
-- 161
SELECT count(*), sum(id) FROM alt WHERE k = 3 OR k > 47 OR k IS NULL;
-- 61|31501
SELECT k, count(*) FROM alt WHERE k = 3 OR k = 3 OR k IN (3, 4) OR k < 1 GROUP BY k ORDER BY k;
-- 0|20
-- 3|20
-- 4|20
SELECT id, k FROM alt WHERE id < 4 OR id BETWEEN 3 AND 6 OR id = 5 OR id = 999 OR id > 1000 ORDER BY id;
-- 1|1
-- 2|2
-- 3|3
-- 4|4
-- 5|5
-- 6|6
-- 999|49
-- 1001|NULL
-- 1002|7
SELECT id FROM alt WHERE id < 4 OR id = 999 OR id > 1000 ORDER BY id DESC;
-- 1002
-- 1001
-- 999
-- 3
-- 2
-- 1
SELECT id FROM alt WHERE id < 400 OR id = 999 ORDER BY id DESC LIMIT 3;
-- 999
-- 399
-- 398
SELECT id, k, c FROM alt WHERE (c, k) IN (('c1', 8), ('c2', 9), ('c2', 9), ('c3', 100)) ORDER BY id LIMIT 12;
-- 8|8|c1
-- 9|9|c2
-- 358|8|c1
-- 359|9|c2
-- 708|8|c1
-- 709|9|c2
SELECT count(*) FROM alt WHERE c = 'c1' AND (k = 8 OR k BETWEEN 10 AND 12 AND d = 'd1' OR k > 48);
-- 9
SELECT count(*) FROM alt WHERE (k = 3 OR c = 'c1') AND id < 100;
-- 17
SELECT count(*) FROM alt WHERE k = 3 OR note = 'note 5';
-- 21
SELECT count(*) FROM alt WHERE k = 3 OR NULL;
-- 20
SELECT count(*) FROM alt WHERE k = NULL OR k = 4;
-- 20
SELECT count(*) FROM alt WHERE NOT (k = 3 OR k > 5);
-- 100
SELECT count(*) FROM alt WHERE k > 45 OR k < 2 OR k < NULL;
-- 120
SELECT count(*) FROM alt WHERE (k = 1 OR k = 2) AND (id = 51 OR id = 52 OR id = 53);
-- 2
SELECT k, d, '[' || d || ']' FROM alt WHERE c = 'c4' AND k < 3 ORDER BY k, d LIMIT 5;
-- 0|d0  |[d0]
-- 0|d1  |[d1]
-- 0|d2  |[d2]
-- 1|d0  |[d0]
-- 1|d1  |[d1]
SELECT c, k, id FROM alt WHERE c IN ('c1', 'c5') AND k = 5 ORDER BY id LIMIT 6;
-- c5|5|5
-- c1|5|155
-- c5|5|355
-- c1|5|505
-- c5|5|705
-- c1|5|855
SELECT n, count(*) FROM alt WHERE n = 2.2 GROUP BY n ORDER BY count(*);
-- 2.20|201
SELECT n FROM alt WHERE n BETWEEN 2.1 AND 2.3 ORDER BY id DESC LIMIT 2;
-- 2.200
-- 2.20
SELECT f FROM alt WHERE f = 0;
-- 0
SELECT k FROM alt WHERE f = 0 AND k = 7;
-- 7
SELECT id FROM alt WHERE k IS NULL;
-- 1001
SELECT k, id FROM alt WHERE k = 49 ORDER BY k, id LIMIT 3;
-- 49|49
-- 49|99
-- 49|149
SELECT min(k), max(k), count(DISTINCT c) FROM alt WHERE c > 'c2' OR c IS NULL;
-- 0|49|4
SELECT a.id, b.id FROM alt a JOIN alt b ON (b.c = a.c AND b.k = 1 OR b.c = a.c AND b.k = 2) WHERE a.id = 3 ORDER BY 2 LIMIT 4;
-- 3|52
-- 3|101
-- 3|402
-- 3|451
SELECT a.id, (SELECT count(k) FROM alt b WHERE b.k = a.id OR b.k = a.id + 1) FROM alt a WHERE a.id IN (10, 48, 49, 60) ORDER BY 1;
-- 10|40
-- 48|40
-- 49|20
-- 60|0
UPDATE alt SET note = 'seen' WHERE k = 3 OR k BETWEEN 2 AND 4 AND id < 100 OR id = 1001;
SELECT count(*) FROM alt WHERE note = 'seen';
-- 25
UPDATE alt SET k = k + 1 WHERE k BETWEEN 5 AND 6 OR k BETWEEN 6 AND 8;
SELECT k, count(*) FROM alt WHERE k BETWEEN 5 AND 6 OR k BETWEEN 6 AND 9 GROUP BY k ORDER BY k;
-- 6|20
-- 7|20
-- 8|21
-- 9|40
DELETE FROM alt WHERE (c, k) IN (('c1', 1), ('c2', 2)) OR c = 'c3' AND k > 40;
SELECT count(*), sum(id) FROM alt;
-- 970|486575
