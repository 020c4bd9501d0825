-- Groups of several short columns are looked up as one number; a filter of several conditions decodes what each asks for.

CREATE TABLE packed (id int PRIMARY KEY, a char(1), b char(1), c smallint, d boolean, e int, n numeric(10,2));
INSERT INTO packed VALUES (1, 'x', 'y', 1, true, 5, 1.50), (2, 'x', 'y', 1, true, 5, 2.25), (3, 'x', NULL, 0, false, NULL, 3), (4, NULL, 'x', NULL, NULL, 0, NULL), (5, '', 'é', -1, false, -5, -1.5), (6, 'é', '', 0, NULL, 0, 7), (7, NULL, NULL, NULL, true, NULL, 8), (8, '', ' ', 256, false, 65536, 9), (9, 'y', 'x', -32768, true, -1, 10);
SELECT a, b, count(*), sum(n) FROM packed GROUP BY a, b ORDER BY a NULLS FIRST, b NULLS FIRST;
-- NULL|NULL|1|8.00
-- NULL|x|1|NULL
--  | |1|9.00
--  |é|1|-1.50
-- x|NULL|1|3.00
-- x|y|2|3.75
-- y|x|1|10.00
-- é| |1|7.00
SELECT b, a, count(*) FROM packed GROUP BY b, a ORDER BY b NULLS FIRST, a NULLS FIRST;
-- NULL|NULL|1
-- NULL|x|1
--  | |1
--  |é|1
-- x|NULL|1
-- x|y|1
-- y|x|2
-- é| |1
SELECT c, d, count(*), min(n), max(n) FROM packed GROUP BY c, d ORDER BY c NULLS FIRST, d NULLS FIRST;
-- NULL|NULL|1|NULL|NULL
-- NULL|t|1|8.00|8.00
-- -32768|t|1|10.00|10.00
-- -1|f|1|-1.50|-1.50
-- 0|NULL|1|7.00|7.00
-- 0|f|1|3.00|3.00
-- 1|t|2|1.50|2.25
-- 256|f|1|9.00|9.00
SELECT d, e, count(*) FROM packed GROUP BY d, e ORDER BY d NULLS FIRST, e NULLS FIRST;
-- NULL|0|2
-- f|NULL|1
-- f|-5|1
-- f|65536|1
-- t|NULL|1
-- t|-1|1
-- t|5|2
SELECT a, c, d, sum(e) FROM packed GROUP BY a, c, d ORDER BY a NULLS FIRST, c NULLS FIRST, d NULLS FIRST;
-- NULL|NULL|NULL|0
-- NULL|NULL|t|NULL
--  |-1|f|-5
--  |256|f|65536
-- x|0|f|NULL
-- x|1|t|10
-- y|-32768|t|-1
-- é|0|NULL|0
SELECT a, d, count(DISTINCT b) FROM packed GROUP BY a, d ORDER BY a NULLS FIRST, d NULLS FIRST;
-- NULL|NULL|1
-- NULL|t|0
--  |f|2
-- x|f|0
-- x|t|1
-- y|t|1
-- é|NULL|1
ALTER TABLE packed ADD COLUMN late smallint DEFAULT 7, ADD COLUMN none boolean;
INSERT INTO packed (id, a, late, none) VALUES (10, 'z', 7, NULL), (11, 'z', NULL, true);
SELECT late, none, count(*) FROM packed GROUP BY late, none ORDER BY late NULLS FIRST, none NULLS FIRST;
-- NULL|t|1
-- 7|NULL|10
SELECT a, late, count(*) FROM packed GROUP BY a, late ORDER BY a NULLS FIRST, late NULLS FIRST;
-- NULL|7|2
--  |7|2
-- x|7|3
-- y|7|1
-- z|NULL|1
-- z|7|1
-- é|7|1
SELECT id, a, n FROM packed WHERE n > 1 AND a = 'x' AND c = 1 ORDER BY id;
-- 1|x|1.50
-- 2|x|2.25
SELECT id FROM packed WHERE e > 0 AND d AND n / e < 1 ORDER BY id;
-- 1
-- 2
SELECT id, b FROM packed WHERE late = 7 AND none IS NULL AND b IS NOT NULL ORDER BY id;
-- 1|y
-- 2|y
-- 4|x
-- 5|é
-- 6| 
-- 8| 
-- 9|x
SELECT count(*) FROM packed WHERE c IS NULL AND d AND e IS NULL;
-- 1
SELECT id FROM packed WHERE e <> 0 AND 10 / e > 1 ORDER BY id;
-- 1
-- 2
SELECT count(*), count(*) + 1 FROM packed;
-- 11|12
SELECT min(id), max(id), min(id) + max(id) FROM packed;
-- 1|11|12
SELECT min(e), max(e) FROM packed;
-- -5|65536
CREATE INDEX ON packed (e);
SELECT min(e), max(e) FROM packed;
-- -5|65536
SELECT min(e), max(e), max(id) FROM packed WHERE e < 5;
-- -5|0|9
SELECT min(e), max(e) FROM packed WHERE e IS NULL;
-- NULL|NULL
SELECT max(e) - min(e), min(e) FROM packed HAVING min(e) < 0;
-- 65541|-5
