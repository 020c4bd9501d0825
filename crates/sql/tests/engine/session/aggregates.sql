-- Aggregates: one row to see, whose they are, and grouping.

CREATE TABLE x (a int PRIMARY KEY, b int, c text);
CREATE TABLE y (a int PRIMARY KEY, b int);
INSERT INTO x VALUES (1, 1, 'p'), (2, 1, 'q'), (3, 2, 'r'), (4, NULL, NULL);
INSERT INTO y VALUES (1, 5), (2, 6);

--- Without FROM there is one row.
SELECT count(*);
-- 1
SELECT sum(8), min(3), max('a'), avg(2), count(NULL), array_agg(1), string_agg('a', ','), bool_and(true);
-- 8|3|a|2.0000000000000000|0|{1}|a|t
SELECT count(*) WHERE false;
-- 0
SELECT sum(8) WHERE false;
-- NULL
SELECT count(*) WHERE true;
-- 1
SELECT count(*) HAVING count(*) > 0;
-- 1
SELECT count(*) HAVING count(*) > 1;
SELECT 1 HAVING true;
-- 1
SELECT 1 HAVING false;
SELECT 1 WHERE false HAVING true;
-- 1
SELECT (SELECT count(*)), (SELECT sum(8)), (SELECT count(*) WHERE false);
-- 1|8|0
SELECT * FROM (SELECT count(*) AS n, sum(4) AS s) q;
-- 1|4
SELECT count(*), count(*) FILTER (WHERE false), sum(1) FILTER (WHERE true);
-- 1|0|1
SELECT count(*) GROUP BY ();
-- 1
SELECT count(*) ORDER BY 1 LIMIT 1;
-- 1
SELECT count(*) LIMIT 0;
SELECT DISTINCT count(*);
-- 1
SELECT count(*) + 1 AS n, 'a' AS t;
-- 2|a
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
SELECT * FROM y ORDER BY a;
-- 1|5
-- 2|6
-- 101|7
DELETE FROM y WHERE a > 100;
UPDATE y SET b = (SELECT count(*) + 4) WHERE a = 1 RETURNING *;
-- 1|5
SELECT sum(1) OVER ();
-- 1
SELECT count(*) OVER (), row_number() OVER ();
-- 1|1
SELECT sum(count(*)) OVER ();
-- 1

--- An aggregate over columns of the query around it belongs to that query.
SELECT (SELECT count(o.a) FROM y LIMIT 1) FROM x o;
-- 4
SELECT (SELECT count(o.a) FROM y i WHERE i.a = 1) FROM x o;
-- 4
SELECT (SELECT sum(o.a)) FROM x o;
-- 10
SELECT (SELECT max(o.a) + 1) AS m FROM x o;
-- 5
SELECT (SELECT sum(o.a) FROM y) FROM x o;
-- ERROR 21000: more than one row returned by a subquery used as an expression
SELECT (SELECT count(o.a + i.a) FROM y i) FROM x o ORDER BY 1;
-- 2
-- 2
-- 2
-- 2
SELECT (SELECT sum(i.b) + o.a FROM y i) FROM x o ORDER BY o.a;
-- 12
-- 13
-- 14
-- 15
SELECT o.b, (SELECT sum(o.a)) FROM x o GROUP BY o.b ORDER BY 1;
-- 1|3
-- 2|3
-- NULL|4
SELECT o.b, (SELECT sum(o.a) + count(*) FROM y i) FROM x o GROUP BY o.b ORDER BY 1;
-- 1|5
-- 2|5
-- NULL|6
SELECT o.b, (SELECT string_agg(o.c, '+' ORDER BY o.a DESC)) FROM x o GROUP BY o.b ORDER BY 1;
-- 1|q+p
-- 2|r
-- NULL|NULL
SELECT o.b FROM x o GROUP BY o.b HAVING (SELECT sum(o.a)) > 2 ORDER BY 1;
-- 1
-- 2
-- NULL
SELECT o.b FROM x o GROUP BY o.b HAVING EXISTS (SELECT 1 FROM y i WHERE i.a = count(o.a)) ORDER BY 1;
-- 1
-- 2
-- NULL
SELECT o.b FROM x o GROUP BY o.b ORDER BY (SELECT sum(o.a)) DESC, o.b;
-- NULL
-- 1
-- 2
SELECT (SELECT (SELECT sum(o.a))) FROM x o;
-- 10
SELECT (SELECT count(*) FROM y i WHERE i.a <= count(o.a)) FROM x o;
-- 2
SELECT (SELECT i.b FROM y i ORDER BY i.a + sum(o.a) DESC LIMIT 1) FROM x o;
-- 6
SELECT (SELECT count(o.a) FILTER (WHERE o.b = 1)) FROM x o;
-- 2
SELECT (SELECT count(DISTINCT o.b)) FROM x o;
-- 2
SELECT sum(o.a), (SELECT sum(o.a)) FROM x o;
-- 10|10
SELECT (SELECT sum(o.a + i.a) FROM y i) FROM x o ORDER BY o.a;
-- 5
-- 7
-- 9
-- 11
SELECT (SELECT sum(a) FROM y) FROM x ORDER BY x.a;
-- 3
-- 3
-- 3
-- 3
SELECT (SELECT sum(c) FROM y) FROM x;
-- ERROR 42883: function sum(text) does not exist
SELECT (SELECT string_agg(c, ',') FROM y LIMIT 1) FROM x;
-- p,q,r
SELECT EXISTS (SELECT sum(o.a) FROM y) FROM x o;
-- t
SELECT 10 IN (SELECT sum(o.a) FROM y) FROM x o;
-- t
SELECT ARRAY(SELECT sum(o.a) FROM y) FROM x o;
-- {10,10}
SELECT (SELECT o.a FROM y LIMIT 1), count(*) FROM x o;
-- ERROR 42803: subquery uses ungrouped column "o.a" from outer query
SELECT (SELECT o.a + count(o.b)) FROM x o;
-- ERROR 42803: subquery uses ungrouped column "o.a" from outer query
SELECT (SELECT o.b + count(o.a)) FROM x o GROUP BY o.b ORDER BY 1;
-- 3
-- 3
-- NULL
SELECT 1 FROM x o WHERE (SELECT sum(o.a)) > 1;
-- ERROR 42803: aggregate functions are not allowed in WHERE
SELECT 1 FROM x o WHERE EXISTS (SELECT 1 FROM y HAVING sum(o.a) > 1);
-- ERROR 42803: aggregate functions are not allowed in WHERE
SELECT 1 FROM x o JOIN y p ON (SELECT sum(o.a)) > 1;
-- ERROR 42803: aggregate functions are not allowed in JOIN conditions
SELECT 1 FROM x o GROUP BY (SELECT sum(o.a));
-- ERROR 42803: aggregate functions are not allowed in GROUP BY
SELECT 1 FROM x o, LATERAL (SELECT sum(o.a)) l;
-- ERROR 42803: aggregate functions are not allowed in FROM clause of their own query level
SELECT 1 FROM x o, LATERAL (SELECT sum(o.a) FROM y) l;
-- ERROR 42803: aggregate functions are not allowed in FROM clause of their own query level
SELECT (SELECT sum(sum(o.a))) FROM x o;
-- ERROR 42803: aggregate function calls cannot be nested
SELECT (SELECT sum(i.a) FROM y i WHERE sum(o.a) > 1) FROM x o;
-- 3
SELECT sum((SELECT o.a)) FROM x o;
-- 10
SELECT sum((SELECT sum(i.a) FROM y i)) FROM x o;
-- 12
SELECT sum((SELECT sum(o.a))) FROM x o;
-- ERROR 42803: aggregate function calls cannot be nested
SELECT sum((SELECT sum(o.a + i.a) FROM y i)) FROM x o;
-- 32
SELECT (SELECT (SELECT count(o.a) FROM y i2 LIMIT 1) FROM y i LIMIT 1) FROM x o;
-- 4
SELECT (SELECT (SELECT count(i.a)) FROM y i) FROM x o ORDER BY o.a;
-- 2
-- 2
-- 2
-- 2
SELECT (SELECT (SELECT count(i.a + o.a)) FROM y i) FROM x o ORDER BY o.a;
-- 2
-- 2
-- 2
-- 2
SELECT (SELECT (SELECT sum(o.a + i.a) FROM y i2 LIMIT 1) FROM y i) FROM x o ORDER BY o.a;
-- 5
-- 7
-- 9
-- 11
SELECT (SELECT q.s FROM (SELECT sum(o.a) AS s) q) FROM x o;
-- 10
SELECT (SELECT sum(q.s) FROM (SELECT o.a AS s) q) FROM x o ORDER BY o.a;
-- 1
-- 2
-- 3
-- 4
SELECT (WITH q AS (SELECT sum(o.a) AS s) SELECT s FROM q) FROM x o;
-- 10
SELECT (SELECT sum(o.a) UNION ALL SELECT 1 LIMIT 1) FROM x o;
-- 10
SELECT (VALUES (sum(o.a))) FROM x o;
-- 10
SELECT CASE WHEN (SELECT max(o.a)) > 3 THEN 'big' ELSE 'small' END FROM x o;
-- big

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
SELECT 1 FROM x JOIN y ON count(*) > 0;
-- ERROR 42803: aggregate functions are not allowed in JOIN conditions
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
SELECT x FROM x GROUP BY b;
-- ERROR 42803: column "x.*" must appear in the GROUP BY clause or be used in an aggregate function
SELECT (SELECT x.a) FROM x GROUP BY b;
-- ERROR 42803: subquery uses ungrouped column "x.a" from outer query
SELECT (SELECT y.a FROM y WHERE y.a = x.a) FROM x GROUP BY b;
-- ERROR 42803: subquery uses ungrouped column "x.a" from outer query
DELETE FROM x WHERE count(*) > 1;
-- ERROR 42803: aggregate functions are not allowed in WHERE
INSERT INTO y VALUES (count(*), 1);
-- ERROR 42803: aggregate functions are not allowed in VALUES
VALUES (count(*));
-- ERROR 42803: aggregate functions are not allowed in VALUES
SELECT * FROM generate_series(1, count(*));
-- ERROR 42803: aggregate functions are not allowed in functions in FROM

--- grouping().
SELECT a % 2 AS p, b, count(*), grouping(a % 2), grouping(b), grouping(a % 2, b) FROM x GROUP BY ROLLUP (a % 2, b) ORDER BY 6, 1, 2;
-- 0|1|1|0|0|0
-- 0|NULL|1|0|0|0
-- 1|1|1|0|0|0
-- 1|2|1|0|0|0
-- 0|NULL|2|0|1|1
-- 1|NULL|2|0|1|1
-- NULL|NULL|4|1|1|3
SELECT b, c, count(*), grouping(b, c) FROM x GROUP BY CUBE (b, c) ORDER BY 4, 1, 2;
-- 1|p|1|0
-- 1|q|1|0
-- 2|r|1|0
-- NULL|NULL|1|0
-- 1|NULL|2|1
-- 2|NULL|1|1
-- NULL|NULL|1|1
-- NULL|p|1|2
-- NULL|q|1|2
-- NULL|r|1|2
-- NULL|NULL|1|2
-- NULL|NULL|4|3
SELECT b, c, sum(a), grouping(b), grouping(c) FROM x GROUP BY GROUPING SETS ((b), (c), ()) ORDER BY 4, 5, 1, 2;
-- 1|NULL|3|0|1
-- 2|NULL|3|0|1
-- NULL|NULL|4|0|1
-- NULL|p|1|1|0
-- NULL|q|2|1|0
-- NULL|r|3|1|0
-- NULL|NULL|4|1|0
-- NULL|NULL|10|1|1
SELECT b, grouping(b) FROM x GROUP BY b ORDER BY 1;
-- 1|0
-- 2|0
-- NULL|0
SELECT b, count(*) FROM x GROUP BY ROLLUP (b) HAVING grouping(b) = 1;
-- NULL|4
SELECT b, count(*) FROM x GROUP BY ROLLUP (b) ORDER BY grouping(b), b;
-- 1|2
-- 2|1
-- NULL|1
-- NULL|4
SELECT CASE WHEN grouping(b) = 1 THEN 'all' ELSE b::text END, sum(a) FROM x GROUP BY ROLLUP (b) ORDER BY 1 NULLS FIRST;
-- NULL|4
-- 1|3
-- 2|3
-- all|10
SELECT grouping(a) FROM x GROUP BY ROLLUP (b);
-- ERROR 42803: arguments to GROUPING must be grouping expressions of the associated query level
SELECT grouping(b) FROM x;
-- ERROR 42803: arguments to GROUPING must be grouping expressions of the associated query level
SELECT b FROM x WHERE grouping(b) = 1 GROUP BY b;
-- ERROR 42803: grouping operations are not allowed in WHERE
SELECT grouping(b) + 1, sum(a) FILTER (WHERE a > 1) FROM x GROUP BY ROLLUP (b) ORDER BY 1, 2;
-- 1|2
-- 1|3
-- 1|4
-- 2|9
SELECT b, c, grouping(c, b) FROM x GROUP BY GROUPING SETS (ROLLUP (b), CUBE (c)) ORDER BY 3, 1, 2;
-- NULL|p|1
-- NULL|q|1
-- NULL|r|1
-- NULL|NULL|1
-- 1|NULL|2
-- 2|NULL|2
-- NULL|NULL|2
-- NULL|NULL|3
-- NULL|NULL|3
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
SELECT b, rank() OVER (PARTITION BY grouping(b) ORDER BY sum(a) DESC) FROM x GROUP BY ROLLUP (b) ORDER BY grouping(b), 2, 1;
-- NULL|1
-- 1|2
-- 2|2
-- NULL|1
SELECT a, b, grouping(a) FROM x GROUP BY ROLLUP (a) ORDER BY 1;
-- ERROR 42803: column "x.b" must appear in the GROUP BY clause or be used in an aggregate function
SELECT b, (SELECT grouping(b)) FROM x GROUP BY ROLLUP (b) ORDER BY 2, 1;
-- 1|0
-- 2|0
-- NULL|0
-- NULL|1
SELECT x.b AS bb, grouping(x.b) FROM x GROUP BY CUBE (bb) ORDER BY 2, 1;
-- 1|0
-- 2|0
-- NULL|0
-- NULL|1

--- Arrays of arrays.
SELECT array(SELECT ARRAY[1, 2]);
-- {{1,2}}
SELECT array(SELECT ARRAY[a, b] FROM x WHERE a < 3 ORDER BY a), pg_typeof(array(SELECT ARRAY[1]));
-- {{1,1},{2,1}}|integer[]
SELECT array(SELECT ARRAY[]::int[] WHERE false), array_dims(array(SELECT ARRAY[ARRAY[1, 2], ARRAY[3, 4]] FROM y));
-- {}|[1:2][1:2][1:2]
SELECT array(SELECT v FROM (VALUES (ARRAY[1]), (ARRAY[1, 2])) q(v));
-- ERROR 2202E: cannot accumulate arrays of different dimensionality
SELECT array(SELECT v FROM (VALUES (ARRAY[1]), (NULL)) q(v));
-- ERROR 22004: cannot accumulate null arrays
SELECT array(SELECT ARRAY[]::int[] FROM y);
-- ERROR 2202E: cannot accumulate empty arrays
SELECT array_agg(ARRAY[a, b] ORDER BY a) FROM x WHERE a < 4;
-- {{1,1},{2,1},{3,2}}
SELECT array_agg(ARRAY[a] ORDER BY a DESC), array_dims(array_agg(ARRAY[ARRAY[a, a]])) FROM x;
-- {{4},{3},{2},{1}}|[1:4][1:1][1:2]
SELECT array_agg(v) FROM (VALUES (ARRAY[1]), (ARRAY[1, 2])) q(v);
-- ERROR 2202E: cannot accumulate arrays of different dimensionality
SELECT array_agg(v) FROM (VALUES (ARRAY[1]), (NULL)) q(v);
-- ERROR 22004: cannot accumulate null arrays
SELECT array_agg('{}'::int[]) FROM x;
-- ERROR 2202E: cannot accumulate empty arrays
SELECT array_agg(ARRAY[1]) FROM x WHERE false;
-- NULL
SELECT b, array_agg(ARRAY[a, 0] ORDER BY a) FROM x GROUP BY b ORDER BY b;
-- 1|{{1,0},{2,0}}
-- 2|{{3,0}}
-- NULL|{{4,0}}
SELECT array_agg(DISTINCT ARRAY[b, 1]) FROM x WHERE b IS NOT NULL;
-- {{1,1},{2,1}}
SELECT array_agg(string_to_array('a,b', ',')) FROM y;
-- {{a,b},{a,b}}
