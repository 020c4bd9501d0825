-- SELECT on the direct path: access paths, order, limits, joins, groups.

CREATE TABLE s (a int, b int, c text, d text, PRIMARY KEY (a, b));
-- CREATE TABLE
CREATE INDEX s_c ON s (c, b DESC);
-- CREATE INDEX
CREATE UNIQUE INDEX s_d ON s (d);
-- CREATE INDEX
INSERT INTO s VALUES (1, 1, 'x', NULL), (1, 2, 'y', 'd12'), (2, 1, 'x', 'd21'), (2, 2, NULL, NULL), (3, 1, 'x', 'd31');
-- INSERT 0 5
SELECT 1 AS one, 'text', NULL, 2 > 1;
-- 1|text|NULL|t
-- SELECT 1
SELECT 1 WHERE false;
-- SELECT 0
SELECT *;
-- ERROR 42601: SELECT * with no tables specified is not valid
SELECT b, a FROM s WHERE a = 1 ORDER BY b DESC;
-- 2|1
-- 1|1
-- SELECT 2
EXPLAIN SELECT b, a FROM s WHERE a = 1 ORDER BY b DESC;
-- Index Scan Backward using s_pkey on s
--   Index Cond: (a = 1)
SELECT * FROM s WHERE a = 2 AND b = 2;
-- 2|2|NULL|NULL
-- SELECT 1
EXPLAIN SELECT * FROM s WHERE a = 2 AND b = 2;
-- Point Lookup using s_pkey on s
--   Index Cond: ((a = 2) AND (b = 2))
SELECT a, b FROM s WHERE c = 'x' ORDER BY b;
-- 3|1
-- 2|1
-- 1|1
-- SELECT 3
EXPLAIN SELECT a, b FROM s WHERE c = 'x' ORDER BY b LIMIT 1;
-- Limit
--   ->  Index Only Scan Backward using s_c on s
--         Index Cond: (c = 'x'::text)
SELECT a, b, c FROM s ORDER BY c, a;
-- 1|1|x
-- 2|1|x
-- 3|1|x
-- 1|2|y
-- 2|2|NULL
-- SELECT 5
SELECT a, b, c FROM s ORDER BY c DESC, a DESC;
-- 2|2|NULL
-- 1|2|y
-- 3|1|x
-- 2|1|x
-- 1|1|x
-- SELECT 5
SELECT a, b, c FROM s ORDER BY c NULLS FIRST, a LIMIT 2 OFFSET 1;
-- 1|1|x
-- 2|1|x
-- SELECT 2
SELECT a FROM s WHERE d = 'd21';
-- 2
-- SELECT 1
EXPLAIN SELECT a FROM s WHERE d = 'd21';
-- Index Only Lookup using s_d on s
--   Index Cond: (d = 'd21'::text)
SELECT a, b FROM s WHERE d IS NULL ORDER BY 1, 2;
-- 1|1
-- 2|2
-- SELECT 2
SELECT a, b FROM s WHERE a IN (3, 1, 3, 7) AND b = 1;
-- 1|1
-- 3|1
-- SELECT 2
EXPLAIN SELECT a, b FROM s WHERE a IN (3, 1) AND b = 1;
-- Point Lookup using s_pkey on s
--   Index Cond: ((a = ANY (ARRAY[3, 1])) AND (b = 1))
SELECT a, b FROM s WHERE a BETWEEN 2 AND 3 AND b < 2;
-- 2|1
-- 3|1
-- SELECT 2
EXPLAIN SELECT a, b FROM s WHERE a >= 2 AND a < 3;
-- Index Scan using s_pkey on s
--   Index Cond: ((a >= 2) AND (a < 3))
SELECT a FROM s WHERE a > 99999999999;
-- SELECT 0
SELECT a FROM s WHERE a < 99999999999 AND a > -99999999999 LIMIT 2;
-- 1
-- 1
-- SELECT 2
SELECT a FROM s WHERE a = 1.5;
-- SELECT 0
SELECT DISTINCT c FROM s ORDER BY c;
-- x
-- y
-- NULL
-- SELECT 3
SELECT DISTINCT c FROM s ORDER BY a;
-- ERROR 42P10: for SELECT DISTINCT, ORDER BY expressions must appear in select list
SELECT count(*), count(c), count(d) FROM s;
-- 5|4|3
-- SELECT 1
SELECT max(a), min(b) FROM s WHERE c = 'x';
-- 3|1
-- SELECT 1
SELECT max(d) FROM s;
-- d31
-- SELECT 1
EXPLAIN SELECT max(d) FROM s;
-- Aggregate
--   ->  Index Only Scan Backward using s_d on s
SELECT min(d), max(d), min(a), max(a) FROM s;
-- d12|d31|1|3
-- SELECT 1
EXPLAIN SELECT min(d), max(d), min(a) FROM s;
-- Aggregate
--   ->  Index Only Scan using s_d on s
--   ->  Index Only Scan Backward using s_d on s
--   ->  Seq Scan on s
SELECT max(a) - min(a), max(a) FROM s HAVING max(a) > 2;
-- 2|3
-- SELECT 1
SELECT min(a), max(a) FROM s HAVING max(a) > 3;
-- SELECT 0
SELECT min(a), max(d) FROM s WHERE a > 3;
-- NULL|NULL
-- SELECT 1
SELECT min(a), max(a) FROM s WHERE 1 > 2;
-- NULL|NULL
-- SELECT 1
EXPLAIN SELECT min(d), max(c || '') FROM s;
-- Aggregate
--   ->  Seq Scan on s
SELECT a, count(*), sum(b) FROM s GROUP BY a HAVING count(*) > 1 ORDER BY a DESC;
-- 2|2|3
-- 1|2|3
-- SELECT 2
SELECT a + b AS ab, count(*) FROM s GROUP BY ab ORDER BY 2 DESC, 1;
-- 3|2
-- 4|2
-- 2|1
-- SELECT 3
SELECT a, b, count(*) FROM s GROUP BY a;
-- ERROR 42803: column "s.b" must appear in the GROUP BY clause or be used in an aggregate function
SELECT sum(count(*)) FROM s;
-- ERROR 42803: aggregate function calls cannot be nested
SELECT s1.a, s2.b FROM s s1, s s2 WHERE s1.a = s2.a AND s1.b = 1 AND s2.b = 2 ORDER BY 1;
-- 1|2
-- 2|2
-- SELECT 2
EXPLAIN SELECT s1.a, s2.b FROM s s1 JOIN s s2 ON s1.a = s2.a WHERE s1.d = 'd21';
-- Nested Loop
--   ->  Index Only Lookup using s_d on s s1
--         Index Cond: (d = 'd21'::text)
--   ->  Index Scan using s_pkey on s s2
--         Index Cond: (a = s1.a)
SELECT s1.a, s2.d FROM s s1 LEFT JOIN s s2 ON s2.a = s1.a + 1 AND s2.b = 1 WHERE s1.b = 1 ORDER BY s1.a;
-- 1|d21
-- 2|d31
-- 3|NULL
-- SELECT 3
SELECT s1.a FROM s s1 LEFT JOIN s s2 ON s2.a = s1.a + 1 AND s2.b = 1 WHERE s1.b = 1 AND s2.a IS NULL;
-- 3
-- SELECT 1
SELECT a FROM s WHERE a = (SELECT max(a) FROM s) ;
-- 3
-- SELECT 1
SELECT a, b FROM s WHERE a IN (SELECT a FROM s WHERE c = 'y') AND b NOT IN (SELECT 2);
-- 1|1
-- SELECT 1
SELECT a FROM s WHERE EXISTS (SELECT 1 FROM s WHERE d = 'nope');
-- SELECT 0
SELECT (SELECT a FROM s);
-- ERROR 21000: more than one row returned by a subquery used as an expression
SELECT s.* FROM s WHERE (a, b) = (1, 2);
-- 1|2|y|d12
-- SELECT 1
SELECT nope FROM s;
-- ERROR 42703: column "nope" does not exist
SELECT a FROM nope;
-- ERROR 42P01: relation "nope" does not exist
SELECT x.a FROM s;
-- ERROR 42P01: missing FROM-clause entry for table "x"
SELECT a FROM s, s;
-- ERROR 42712: table name "s" specified more than once
SELECT a FROM s LIMIT -1;
-- ERROR 2201W: LIMIT must not be negative
SELECT a FROM s ORDER BY 9;
-- ERROR 42P10: ORDER BY position 9 is not in select list
SELECT b FROM s WHERE a = 1 ORDER BY b FOR UPDATE;
-- 1
-- 2
-- SELECT 2
SELECT a, b FROM s WHERE c = 'x' ORDER BY d DESC NULLS LAST LIMIT 1 FOR UPDATE SKIP LOCKED;
-- 3|1
-- SELECT 1
SELECT count(*) FROM s FOR UPDATE;
-- ERROR 0A000: FOR UPDATE is not allowed with aggregate functions
SELECT a FROM s WHERE c LIKE 'x%' AND NOT a = 1;
-- 2
-- 3
-- SELECT 2
EXPLAIN SELECT a FROM s WHERE c LIKE 'x%';
-- Index Only Scan using s_c on s
--   Index Cond: ((c >= 'x'::text) AND (c < 'y'::text))
--   Filter: (c ~~ 'x%'::text)
SELECT a, b FROM s WHERE c LIKE 'x%' ORDER BY a;
-- 1|1
-- 2|1
-- 3|1
-- SELECT 3
SELECT a FROM s WHERE d LIKE 'd_1' ORDER BY a;
-- 2
-- 3
-- SELECT 2
