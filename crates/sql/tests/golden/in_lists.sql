# Lists that begin with a query: they are lists, as in PostgreSQL.
CREATE TABLE t (x int);
INSERT INTO t VALUES (1), (5), (8), (NULL);
SELECT x FROM t WHERE x IN ((SELECT max(x) FROM t), 1) ORDER BY x;
SELECT x FROM t WHERE x IN ((SELECT 1), (SELECT 5)) ORDER BY x;
SELECT x FROM t WHERE x NOT IN ((SELECT 1) + 4, 8) ORDER BY x;
SELECT x FROM t WHERE x IN (((SELECT 5)), (VALUES (8))) ORDER BY x;
SELECT x FROM t WHERE x IN ((SELECT x FROM t)) ORDER BY x;
SELECT x FROM t WHERE x IN ((SELECT 1) UNION (SELECT 8)) ORDER BY x;
SELECT 1 IN ((SELECT 1), (SELECT 2) IN (2, 3)::int);
CREATE VIEW v AS SELECT x FROM t WHERE x IN ((SELECT max(x) FROM t), 1);
SELECT x FROM v ORDER BY x;
SELECT pg_get_viewdef('v');
PREPARE p AS SELECT x FROM t WHERE x IN ((SELECT min(x) FROM t), $1) ORDER BY x;
EXECUTE p(5);
----
CREATE TABLE
INSERT 0 4
x:int4
1
8
SELECT 2
x:int4
1
5
SELECT 2
x:int4
1
SELECT 1
x:int4
5
8
SELECT 2
x:int4
1
5
8
SELECT 3
x:int4
1
8
SELECT 2
?column?:bool
t
SELECT 1
CREATE VIEW
x:int4
1
8
SELECT 2
pg_get_viewdef:text
 SELECT t.x FROM public.t WHERE t.x IN ((SELECT max(t.x) FROM public.t), 1);
SELECT 1
PREPARE
x:int4
1
5
SELECT 2

SELECT x FROM t WHERE x IN ((SELECT x FROM t), 8);
----
x:int4
ERROR 21000: more than one row returned by a subquery used as an expression
