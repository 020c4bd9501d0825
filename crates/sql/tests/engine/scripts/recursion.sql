-- Where a recursive query may name itself.

WITH RECURSIVE r(n) AS (SELECT n FROM r UNION ALL SELECT 1) SELECT * FROM r LIMIT 3;
-- ERROR 42P19: recursive reference to query "r" must not appear within its non-recursive term
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT a.n+1 FROM r a, r b WHERE a.n < 4) SELECT * FROM r LIMIT 9;
-- ERROR 42P19: recursive reference to query "r" must not appear more than once
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r WHERE n < (SELECT max(n)+3 FROM r)) SELECT * FROM r LIMIT 9;
-- ERROR 42P19: recursive reference to query "r" must not appear within a subquery
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT r.n+1 FROM (VALUES (1),(2)) v(x) LEFT JOIN r ON r.n = v.x) SELECT * FROM r LIMIT 9;
-- ERROR 42P19: recursive reference to query "r" must not appear within an outer join
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT r.n+1 FROM r LEFT JOIN (VALUES (1),(2)) v(x) ON r.n = v.x WHERE r.n < 5) SELECT * FROM r LIMIT 9;
-- 1
-- 2
-- 3
-- 4
-- 5
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT r.n+1 FROM r RIGHT JOIN (VALUES (1),(2)) v(x) ON r.n = v.x WHERE r.n < 5) SELECT * FROM r LIMIT 9;
-- ERROR 42P19: recursive reference to query "r" must not appear within an outer join
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT r.n+1 FROM r FULL JOIN (VALUES (1),(2)) v(x) ON r.n = v.x WHERE r.n < 5) SELECT * FROM r LIMIT 9;
-- ERROR 42P19: recursive reference to query "r" must not appear within an outer join
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL (SELECT n+1 FROM r WHERE n<5 EXCEPT SELECT 2)) SELECT * FROM r LIMIT 9;
-- 1
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL (SELECT 5 EXCEPT SELECT n+1 FROM r)) SELECT * FROM r LIMIT 9;
-- ERROR 42P19: recursive reference to query "r" must not appear within EXCEPT
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL (SELECT n+1 FROM r INTERSECT SELECT 2)) SELECT * FROM r LIMIT 9;
-- 1
-- 2
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT max(n)+1 FROM r WHERE n < 4) SELECT * FROM r LIMIT 9;
-- ERROR 42P19: aggregate functions are not allowed in a recursive query's recursive term
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM (SELECT * FROM r WHERE n < 4) s) SELECT * FROM r LIMIT 9;
-- 1
-- 2
-- 3
-- 4
WITH RECURSIVE r(n) AS (SELECT n FROM r) SELECT * FROM r LIMIT 9;
-- ERROR 42P19: recursive query "r" does not have the form non-recursive-term UNION [ALL] recursive-term
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r WHERE n < 4 AND n IN (WITH r(n) AS (VALUES (1),(2)) SELECT n FROM r)) SELECT * FROM r LIMIT 9;
-- 1
-- 2
-- 3
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL (WITH x AS (SELECT * FROM r) SELECT n+1 FROM x WHERE n < 4)) SELECT * FROM r LIMIT 9;
-- 1
-- 2
-- 3
-- 4
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL (WITH x AS (SELECT * FROM r) SELECT x.n+1 FROM x, x y WHERE x.n < 4)) SELECT * FROM r LIMIT 9;
-- 1
-- 2
-- 3
-- 4
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + (SELECT 1 WHERE r.n < 3) FROM r WHERE n < 4) SELECT * FROM r LIMIT 9;
-- 1
-- 2
-- 3
-- NULL
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r WHERE EXISTS (SELECT FROM generate_series(1, 3) s(x) WHERE x IN (SELECT n FROM r))) SELECT * FROM r LIMIT 9;
-- ERROR 42P19: recursive reference to query "r" must not appear within a subquery
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM ((VALUES (1)) v(x) CROSS JOIN (VALUES (2)) w(y)) LEFT JOIN (r CROSS JOIN (VALUES (3)) z(u)) ON n = x) SELECT * FROM r LIMIT 9;
-- ERROR 42P19: recursive reference to query "r" must not appear within an outer join
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL (SELECT n+1 FROM r EXCEPT ALL SELECT 5)) SELECT * FROM r LIMIT 9;
-- ERROR 42P19: recursive reference to query "r" must not appear within EXCEPT
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL (SELECT n+1 FROM r INTERSECT ALL SELECT 2)) SELECT * FROM r LIMIT 9;
-- ERROR 42P19: recursive reference to query "r" must not appear within INTERSECT
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r WHERE n < 4 GROUP BY n HAVING count(*) = 1) SELECT * FROM r LIMIT 9;
-- ERROR 42P19: aggregate functions are not allowed in a recursive query's recursive term
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT max(n)+1 FROM (SELECT n FROM r WHERE n < 4) s HAVING count(*) > 0) SELECT * FROM r LIMIT 9;
-- 1
-- 2
-- 3
-- 4

WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL (WITH x AS MATERIALIZED (SELECT * FROM r) SELECT n+1 FROM x WHERE n < 4)) SELECT * FROM r LIMIT 9;
-- 1
-- 2
-- 3
-- 4
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL (WITH x AS (SELECT * FROM r) SELECT (SELECT max(n) FROM x) + 1 FROM x WHERE x.n < 4)) SELECT * FROM r LIMIT 9;
-- 1
-- 2
-- 3
-- 4
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL (WITH x AS (SELECT * FROM r) SELECT n+1 FROM generate_series(1, 6) g(n) WHERE EXISTS (SELECT FROM x WHERE x.n = g.n AND g.n < 4))) SELECT * FROM r LIMIT 9;
-- 1
-- 2
-- 3
-- 4
SELECT g, (WITH RECURSIVE r(n) AS (SELECT g UNION ALL SELECT n+1 FROM r WHERE n < 3) SELECT count(*) FROM r) FROM generate_series(1, 3) g;
-- 1|3
-- 2|2
-- 3|1
SELECT g, (WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r WHERE n < 3) SELECT count(*) FROM r WHERE r.n >= g) FROM generate_series(1, 3) g;
-- 1|3
-- 2|2
-- 3|1
