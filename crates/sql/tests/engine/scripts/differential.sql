-- What random statements beside PostgreSQL found (tests/e2e/differential.rs), each as small as it gets.

CREATE TABLE r (id int PRIMARY KEY, f bool, b int);
INSERT INTO r VALUES (1, true, 1), (2, true, NULL), (3, NULL, 2), (4, NULL, 2), (5, false, NULL);

--- Rows that are equal but for a NULL do not meet in a join.
SELECT x.id, y.id FROM r x JOIN r y ON (x.f, 1) = (y.f, 1) ORDER BY 1, 2;
-- 1|1
-- 1|2
-- 2|1
-- 2|2
-- 5|5
SELECT x.id, y.id FROM r x, r y WHERE (x.f, x.b) = (y.f, y.b) ORDER BY 1, 2;
-- 1|1
SELECT x.id, y.id FROM r x LEFT JOIN r y ON (x.b, x.id) = (y.b, y.id) ORDER BY 1, 2;
-- 1|1
-- 2|NULL
-- 3|3
-- 4|4
-- 5|NULL
SELECT count(*) FROM r x JOIN r y ON (x.f, x.b) IS NOT DISTINCT FROM (y.f, y.b);
-- 7
SELECT count(*) FROM r x JOIN r y ON x = y;
-- 5
SELECT count(*) FROM r x JOIN r y ON (x.f, x.b) = (y.f, 1, 2);
-- ERROR 42601: unequal number of entries in row expressions
