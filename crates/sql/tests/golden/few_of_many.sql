# The first few of many distinct rows, or groups, in an order that an index gives: it is read no further than they go.
CREATE TABLE big (id int PRIMARY KEY, v int, w int, s text);
INSERT INTO big SELECT g, CASE WHEN g % 1000 > 0 THEN g % 1000 END, g % 3, 's' || g FROM generate_series(1, 3000) g;
CREATE INDEX big_v ON big (v);
CREATE INDEX big_w ON big (w, v);
ANALYZE big;
----
CREATE TABLE
INSERT 0 3000
CREATE INDEX
CREATE INDEX
ANALYZE

# Most of them; few values; no LIMIT; groups that others may be left out of; keys that are not in the order.
EXPLAIN (COSTS OFF) SELECT DISTINCT v FROM big ORDER BY v LIMIT 5;
EXPLAIN (COSTS OFF) SELECT DISTINCT v, w FROM big ORDER BY v DESC NULLS LAST LIMIT 5;
EXPLAIN (COSTS OFF) SELECT v, count(*) FROM big GROUP BY v ORDER BY v LIMIT 3;
EXPLAIN (COSTS OFF) SELECT DISTINCT v FROM big ORDER BY v LIMIT 500;
EXPLAIN (COSTS OFF) SELECT DISTINCT w FROM big ORDER BY w LIMIT 2;
EXPLAIN (COSTS OFF) SELECT DISTINCT v FROM big ORDER BY v;
EXPLAIN (COSTS OFF) SELECT v FROM big GROUP BY v HAVING count(*) > 1 ORDER BY v LIMIT 3;
EXPLAIN (COSTS OFF) SELECT v, w, count(*) FROM big GROUP BY v, w ORDER BY v LIMIT 3;
----
QUERY PLAN:text
Limit
  ->  Unique
        ->  Index Only Scan using big_v on big
EXPLAIN
QUERY PLAN:text
Limit
  ->  Sort
        Sort Key: column1 DESC NULLS LAST
        ->  Unique
              ->  Seq Scan on big
EXPLAIN
QUERY PLAN:text
Limit
  ->  HashAggregate
        Group Key: v
        ->  Index Only Scan using big_v on big
EXPLAIN
QUERY PLAN:text
Limit
  ->  Sort
        Sort Key: column1
        ->  Unique
              ->  Seq Scan on big
EXPLAIN
QUERY PLAN:text
Limit
  ->  Sort
        Sort Key: column1
        ->  Unique
              ->  Seq Scan on big
EXPLAIN
QUERY PLAN:text
Sort
  Sort Key: column1
  ->  Unique
        ->  Seq Scan on big
EXPLAIN
QUERY PLAN:text
Limit
  ->  Sort
        Sort Key: v
        ->  HashAggregate
              Group Key: v
              Filter: (count(*) > 1)
              ->  Seq Scan on big
EXPLAIN
QUERY PLAN:text
Limit
  ->  Sort
        Sort Key: v
        ->  HashAggregate
              Group Key: v, w
              ->  Seq Scan on big
EXPLAIN

SELECT DISTINCT v FROM big ORDER BY v LIMIT 5;
SELECT DISTINCT v FROM big ORDER BY v DESC LIMIT 3;
SELECT DISTINCT v, w FROM big ORDER BY v DESC NULLS LAST, w LIMIT 5 OFFSET 1;
SELECT v, count(*), min(s) FROM big GROUP BY v ORDER BY v LIMIT 3;
SELECT v, count(*) FROM big GROUP BY v ORDER BY v DESC LIMIT 2 OFFSET 1;
SELECT v, count(*) FROM big GROUP BY v ORDER BY v LIMIT 0;
SELECT DISTINCT v FROM big ORDER BY v LIMIT 0;
SELECT v, w, count(*) FROM big GROUP BY v, w ORDER BY v, w LIMIT 4;
SELECT count(*) FROM (SELECT DISTINCT v FROM big ORDER BY v) x;
SELECT count(*) FROM (SELECT DISTINCT w FROM big LIMIT 3) x;
----
v:int4
1
2
3
4
5
SELECT 5
v:int4
NULL
999
998
SELECT 3
v:int4 | w:int4
999 | 1
999 | 2
998 | 0
998 | 1
998 | 2
SELECT 5
v:int4 | count:int8 | min:text
1 | 3 | s1
2 | 3 | s1002
3 | 3 | s1003
SELECT 3
v:int4 | count:int8
999 | 3
998 | 3
SELECT 2
v:int4 | count:int8
SELECT 0
v:int4
SELECT 0
v:int4 | w:int4 | count:int8
1 | 0 | 1
1 | 1 | 1
1 | 2 | 1
2 | 0 | 1
SELECT 4
count:int8
1000
SELECT 1
count:int8
3
SELECT 1
