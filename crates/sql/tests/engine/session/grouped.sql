-- Groups found by the bytes that are stored: NULL, columns that rows are too old for, words and longer keys, several keys, filters.
CREATE TABLE g (id int PRIMARY KEY, k int, s text, d date, b bool, n numeric, f float8, w bigint);
INSERT INTO g SELECT i, nullif(i % 4, 3), nullif('t' || i % 3, 't2'), date '2020-01-01' + i % 2, i % 5 = 0, (i % 2)::numeric(4,1), (i % 3)::float8, i::bigint << 33 FROM generate_series(1, 700) i;
ALTER TABLE g ADD COLUMN late int DEFAULT 7, ADD COLUMN later text DEFAULT 'old', ADD COLUMN none int;
INSERT INTO g VALUES (701, 0, 't0', '2020-01-01', true, 1.00, -0.0, 5, 7, 'old', NULL), (702, 1, 't1', NULL, NULL, 1, 0, 5, 8, 'new', 1), (703, -1, '', 'infinity', false, NULL, 'NaN', 5, NULL, NULL, 1);
SELECT k, count(*) FROM g GROUP BY k ORDER BY k;
-- -1|1
-- 0|176
-- 1|176
-- 2|175
-- NULL|175
SELECT s, count(*), sum(k) FROM g GROUP BY s ORDER BY s;
-- |1|-1
-- t0|234|174
-- t1|235|176
-- NULL|233|176
SELECT d, min(id), max(s) FROM g GROUP BY d ORDER BY d;
-- 2020-01-01|2|t1
-- 2020-01-02|1|t1
-- infinity|703|
-- NULL|702|t1
SELECT b, count(k), count(DISTINCT k) FROM g GROUP BY b ORDER BY b;
-- f|421|4
-- t|106|3
-- NULL|1|1
SELECT n, count(*) FROM g GROUP BY n ORDER BY n;
-- 0.0|350
-- 1.0|352
-- NULL|1
SELECT f, count(*) FROM g GROUP BY f ORDER BY f;
-- 0|235
-- 1|234
-- 2|233
-- NaN|1
SELECT late, count(*) FROM g GROUP BY late ORDER BY late;
-- 7|701
-- 8|1
-- NULL|1
SELECT later, count(*), sum(late) FROM g GROUP BY later ORDER BY later;
-- new|1|8
-- old|701|4907
-- NULL|1|NULL
SELECT none, count(*), sum(w) FROM g GROUP BY none ORDER BY none;
-- 1|2|10
-- NULL|701|2107540452147205
SELECT k, s, count(*), array_agg(id ORDER BY id DESC) FILTER (WHERE id < 12) FROM g GROUP BY k, s ORDER BY k, s;
-- -1||1|NULL
-- 0|t0|59|NULL
-- 0|t1|59|{4}
-- 0|NULL|58|{8}
-- 1|t0|58|{9}
-- 1|t1|60|{1}
-- 1|NULL|58|{5}
-- 2|t0|58|{6}
-- 2|t1|58|{10}
-- 2|NULL|59|{2}
-- NULL|t0|59|{3}
-- NULL|t1|58|{7}
-- NULL|NULL|58|{11}
SELECT k, later, count(*) FROM g WHERE id > 650 GROUP BY k, later ORDER BY k, later;
-- -1|NULL|1
-- 0|old|14
-- 1|new|1
-- 1|old|12
-- 2|old|12
-- NULL|old|13
SELECT k, count(*) FROM g WHERE s = 't1' AND w > 5 GROUP BY k ORDER BY k;
-- 0|59
-- 1|59
-- 2|58
-- NULL|58
SELECT k, sum(w) FROM g WHERE (SELECT max(h.id) FROM g h WHERE h.k = g.k) > 700 GROUP BY k ORDER BY k;
-- -1|5
-- 0|529139970867205
-- 1|524630255206405
SELECT k, sum((SELECT count(*) FROM g h WHERE h.id <= g.late)) FROM g WHERE id > 690 GROUP BY k ORDER BY k;
-- -1|0
-- 0|28
-- 1|22
-- 2|14
-- NULL|21
SELECT w, count(*) FROM g GROUP BY w HAVING count(*) > 1;
-- 5|3
SELECT count(*), count(DISTINCT w) FROM (SELECT w FROM g GROUP BY w) x;
-- 701|701
SELECT DISTINCT k, b FROM g ORDER BY k, b;
-- -1|f
-- 0|f
-- 0|t
-- 1|f
-- 1|t
-- 1|NULL
-- 2|f
-- 2|t
-- NULL|f
-- NULL|t
SELECT k, x, count(*) FROM g, (VALUES (1), (2)) v(x) GROUP BY k, x ORDER BY k, x;
-- -1|1|1
-- -1|2|1
-- 0|1|176
-- 0|2|176
-- 1|1|176
-- 1|2|176
-- 2|1|175
-- 2|2|175
-- NULL|1|175
-- NULL|2|175
SELECT (SELECT string_agg(k::text || ':' || c, ' ' ORDER BY k) FROM (SELECT k, count(*) c FROM g WHERE g.id < o.id GROUP BY k) y) FROM g o WHERE id IN (10, 20, 30) ORDER BY id;
-- 0:2 1:3 2:2
-- 0:4 1:5 2:5
-- 0:7 1:8 2:7
UPDATE g SET k = 9 WHERE id % 2 = 0;
SELECT k, count(*) FROM g GROUP BY k ORDER BY k;
-- -1|1
-- 0|1
-- 1|175
-- 9|351
-- NULL|175
BEGIN;
DELETE FROM g WHERE k = 9;
SELECT k, count(*) FROM g GROUP BY k ORDER BY k;
-- -1|1
-- 0|1
-- 1|175
-- NULL|175
ROLLBACK;
SELECT late, k, count(*) FROM g GROUP BY GROUPING SETS ((late), (k), ()) ORDER BY late, k, 3;
-- 7|NULL|701
-- 8|NULL|1
-- NULL|-1|1
-- NULL|0|1
-- NULL|1|175
-- NULL|9|351
-- NULL|NULL|1
-- NULL|NULL|175
-- NULL|NULL|703
SELECT count(*), sum(w), max(s), count(DISTINCT d), string_agg(s, '' ORDER BY id) FILTER (WHERE id < 7) FROM g;
-- 703|2107540452147215|t1|3|t1t0t1t0
SELECT count(*) FILTER (WHERE b), avg(id), min(late) FROM g WHERE id > 100;
-- 121|402.0000000000000000|7
SELECT count(*), sum(id) FROM g WHERE false;
-- 0|NULL
