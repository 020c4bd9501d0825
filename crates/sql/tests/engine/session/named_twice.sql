--- What an audit of issue 7 found: queries that are named twice, or stand within each other.
CREATE TABLE n (a int PRIMARY KEY, b int);
INSERT INTO n VALUES (1, 10), (2, 20), (3, NULL);

--- A WITH query that reads one which reads a column of the row around both.
SELECT (WITH q AS (SELECT n.a AS x), r AS (SELECT x FROM q) SELECT x FROM r) FROM n ORDER BY 1;
-- 1
-- 2
-- 3
SELECT (WITH q AS (SELECT n.a AS x), r AS (SELECT x FROM q) SELECT sum(r.x + s.x) FROM r, r s) FROM n ORDER BY 1;
-- 2
-- 4
-- 6
SELECT (WITH q AS (SELECT n.a AS x) SELECT (SELECT max(x) FROM q)) FROM n ORDER BY 1;
-- 1
-- 2
-- 3
SELECT a, (WITH RECURSIVE q AS (SELECT n.a AS x UNION ALL SELECT x + 1 FROM q WHERE x < 3) SELECT count(*) + count(r.x) FROM q, q r) FROM n ORDER BY 1;
-- 1|18
-- 2|8
-- 3|2
WITH RECURSIVE q AS (SELECT random() AS x UNION ALL SELECT x FROM q WHERE false) SELECT count(*) FROM q, q r WHERE q.x = r.x;
-- 1
WITH q AS NOT MATERIALIZED (SELECT * FROM n) SELECT count(*) FROM q, q r WHERE q.a = r.a;
-- 3

--- Columns that several full joins merge.
SELECT * FROM n FULL JOIN (VALUES (2, 1), (4, 2)) m (a, c) USING (a) FULL JOIN (VALUES (4, 7), (5, 8)) o (a, d) USING (a) ORDER BY a;
-- 1|10|NULL|NULL
-- 2|20|1|NULL
-- 3|NULL|NULL|NULL
-- 4|NULL|2|7
-- 5|NULL|NULL|8
SELECT a, pg_typeof(a), count(*) FROM n FULL JOIN (VALUES (2::bigint), (9)) m (a) USING (a) FULL JOIN (VALUES (1), (8)) o (a) USING (a) FULL JOIN (VALUES (7.5)) p (a) USING (a) GROUP BY a ORDER BY a;
-- 1|numeric|1
-- 2|numeric|1
-- 3|numeric|1
-- 7.5|numeric|1
-- 8|numeric|1
-- 9|numeric|1
SELECT a FROM (SELECT 1 AS a) x NATURAL FULL JOIN (SELECT 2 AS a) y NATURAL FULL JOIN (SELECT 2 AS a) z NATURAL FULL JOIN (SELECT 3 AS a) w WHERE a > 1 ORDER BY a;
-- 2
-- 3

--- An aggregate of the query around within another that names nothing nearer.
SELECT (SELECT sum((SELECT count(x.a))) FROM n y) FROM n x;
-- ERROR 42803: aggregate function calls cannot be nested
SELECT (SELECT max((SELECT min(x.a) FROM n z LIMIT 1)) FROM n y LIMIT 1) FROM n x;
-- ERROR 42803: aggregate function calls cannot be nested
SELECT (SELECT sum((SELECT count(x.a)) + y.a) FROM n y) FROM n x;
-- 15
SELECT (SELECT max((SELECT sum(y.a))) FROM n y) FROM n x;
-- ERROR 42803: aggregate function calls cannot be nested

--- DISTINCT sorts by the same value that it is given.
SELECT count(DISTINCT (SELECT b FROM n m WHERE m.a = n.a)), array_agg(DISTINCT (SELECT m.a FROM n m WHERE m.a = n.a)) FROM n;
-- 2|{1,2,3}
SELECT json_agg(DISTINCT (SELECT m.a FROM n m WHERE m.a = n.a)), json_agg(ARRAY(SELECT n.a)) FROM n WHERE a < 2;
-- [1]|[[1]]

SELECT a, count(*) FROM n GROUP BY GROUPING SETS (GROUPING SETS ((a), ()), GROUPING SETS (ROLLUP (a))) ORDER BY a, 2;
-- 1|1
-- 1|1
-- 2|1
-- 2|1
-- 3|1
-- 3|1
-- NULL|3
-- NULL|3
SELECT interval '4 millenniums', interval '1 millennium';
-- 4000 years|1000 years
SELECT pg_database_size('nosuch');
-- ERROR 3D000: database "nosuch" does not exist
SELECT pg_database_size('postgres') >= 0, pg_database_size(999::oid);
-- t|NULL
