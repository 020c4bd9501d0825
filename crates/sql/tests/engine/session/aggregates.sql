-- Aggregates: one row to see, whose they are, and grouping.

CREATE TABLE x (a int PRIMARY KEY, b int, c text);
CREATE TABLE y (a int PRIMARY KEY, b int);
INSERT INTO x VALUES (1, 1, 'p'), (2, 1, 'q'), (3, 2, 'r'), (4, NULL, NULL);
INSERT INTO y VALUES (1, 5), (2, 6);

--- Without FROM there is one row.
SELECT sum(8), min(3), max('a'), avg(2), count(NULL), array_agg(1), string_agg('a', ','), bool_and(true);
-- 8|3|a|2.0000000000000000|0|{1}|a|t
SELECT count(*) WHERE false;
-- 0
SELECT sum(8) WHERE false;
-- NULL
SELECT count(*) HAVING count(*) > 1;
SELECT 1 HAVING true;
-- 1
SELECT 1 HAVING false;
SELECT 1 WHERE false HAVING true;
-- 1
SELECT * FROM (SELECT count(*) AS n, sum(4) AS s) q;
-- 1|4
SELECT count(*), count(*) FILTER (WHERE false), sum(1) FILTER (WHERE true);
-- 1|0|1
SELECT count(*) LIMIT 0;
SELECT count(*) UNION ALL SELECT count(*) WHERE false ORDER BY 1;
-- 0
-- 1
SELECT EXISTS (SELECT count(*) WHERE false), ARRAY(SELECT sum(2));
-- t|{2}
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY 3);
-- 3
WITH q AS (SELECT count(*) AS n) SELECT n FROM q;
-- 1
SELECT count(DISTINCT 1), count(1);
-- 1|1
SELECT json_agg(1), jsonb_object_agg('a', 1);
-- [1]|{"a": 1}
INSERT INTO y SELECT count(*) + 100, sum(7);
DELETE FROM y WHERE a > 100;
SELECT sum(1) OVER ();
-- 1
SELECT count(*) OVER (), row_number() OVER ();
-- 1|1
SELECT sum(count(*)) OVER ();
-- 1

--- An aggregate over columns of the query around it belongs to that query.
SELECT (SELECT sum(c) FROM y) FROM x;
-- ERROR 42883: function sum(text) does not exist
SELECT sum((SELECT o.a)) FROM x o;
-- 10
SELECT (SELECT sum(q.s) FROM (SELECT o.a AS s) q) FROM x o ORDER BY o.a;
-- 1
-- 2
-- 3
-- 4

--- 42803.
SELECT a FROM x GROUP BY b;
-- ERROR 42803: column "x.a" must appear in the GROUP BY clause or be used in an aggregate function
SELECT a, count(*) FROM x;
-- ERROR 42803: column "x.a" must appear in the GROUP BY clause or be used in an aggregate function
SELECT x.c FROM x GROUP BY b;
-- ERROR 42803: column "x.c" must appear in the GROUP BY clause or be used in an aggregate function
SELECT b FROM x GROUP BY b HAVING a > 1;
-- ERROR 42803: column "x.a" must appear in the GROUP BY clause or be used in an aggregate function
SELECT b FROM x GROUP BY b ORDER BY a;
-- ERROR 42803: column "x.a" must appear in the GROUP BY clause or be used in an aggregate function
SELECT count(*) FROM x WHERE count(*) > 1;
-- ERROR 42803: aggregate functions are not allowed in WHERE
SELECT count(count(*)) FROM x;
-- ERROR 42803: aggregate function calls cannot be nested
SELECT 1 FROM x GROUP BY count(*);
-- ERROR 42803: aggregate functions are not allowed in GROUP BY
SELECT sum(a) FROM x LIMIT count(*);
-- ERROR 42803: aggregate functions are not allowed in LIMIT
SELECT x.a, y.b FROM x, y GROUP BY x.a;
-- ERROR 42803: column "y.b" must appear in the GROUP BY clause or be used in an aggregate function
SELECT x.a, x.b, x.c FROM x GROUP BY x.a ORDER BY 1;
-- 1|1|p
-- 2|1|q
-- 3|2|r
-- 4|NULL|NULL
SELECT x.* FROM x GROUP BY a ORDER BY 1;
-- 1|1|p
-- 2|1|q
-- 3|2|r
-- 4|NULL|NULL
DELETE FROM x WHERE count(*) > 1;
-- ERROR 42803: aggregate functions are not allowed in WHERE
VALUES (count(*));
-- ERROR 42803: aggregate functions are not allowed in VALUES
SELECT * FROM generate_series(1, count(*));
-- ERROR 42803: aggregate functions are not allowed in functions in FROM

--- grouping().
SELECT b, c, count(*) FROM x GROUP BY b, ROLLUP (c) ORDER BY 1, 2, 3;
-- 1|p|1
-- 1|q|1
-- 1|NULL|2
-- 2|r|1
-- 2|NULL|1
-- NULL|NULL|1
-- NULL|NULL|1
SELECT b, c, count(*) FROM x GROUP BY ROLLUP (b), ROLLUP (c) ORDER BY 1, 2, 3;
-- 1|p|1
-- 1|q|1
-- 1|NULL|2
-- 2|r|1
-- 2|NULL|1
-- NULL|p|1
-- NULL|q|1
-- NULL|r|1
-- NULL|NULL|1
-- NULL|NULL|1
-- NULL|NULL|1
-- NULL|NULL|4
SELECT b, sum(a) FROM x GROUP BY GROUPING SETS ((b), (b)) ORDER BY 1, 2;
-- 1|3
-- 1|3
-- 2|3
-- 2|3
-- NULL|4
-- NULL|4
SELECT b, c, sum(a) FROM x GROUP BY ROLLUP ((b, c)) ORDER BY 1, 2, 3;
-- 1|p|1
-- 1|q|2
-- 2|r|3
-- NULL|NULL|4
-- NULL|NULL|10
SELECT b, c, sum(a) FROM x GROUP BY GROUPING SETS ((b, c), b, ()) ORDER BY 1, 2, 3;
-- 1|p|1
-- 1|q|2
-- 1|NULL|3
-- 2|r|3
-- 2|NULL|3
-- NULL|NULL|4
-- NULL|NULL|4
-- NULL|NULL|10
SELECT count(*) FROM x GROUP BY GROUPING SETS ((), ());
-- 4
-- 4
SELECT count(*) FROM x WHERE false GROUP BY GROUPING SETS ((), (b));
-- 0
SELECT count(*) FROM x WHERE false GROUP BY ROLLUP (b);
-- 0
SELECT DISTINCT b FROM x GROUP BY ROLLUP (b, c) ORDER BY 1;
-- 1
-- 2
-- NULL
SELECT a, b, grouping(a) FROM x GROUP BY ROLLUP (a) ORDER BY 1;
-- ERROR 42803: column "x.b" must appear in the GROUP BY clause or be used in an aggregate function

--- Arrays of arrays.
