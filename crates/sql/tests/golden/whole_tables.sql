# Where statistics say that a secondary index leads to a large part of a table, all of it is read; not where the index holds what is asked for, gives an order, or
# the statement locks what it reads.
CREATE TABLE sk (id int PRIMARY KEY, k int, t int, d int, pad text);
INSERT INTO sk SELECT g, CASE WHEN g % 100 = 0 THEN g ELSE 1 END, g % 3, g, repeat('x', 50) FROM generate_series(1, 4000) g;
CREATE INDEX sk_k ON sk (k);
CREATE INDEX sk_d ON sk (d, k);
ANALYZE sk;
----
CREATE TABLE
INSERT 0 4000
CREATE INDEX
CREATE INDEX
ANALYZE

EXPLAIN (COSTS OFF) SELECT sum(t) FROM sk WHERE k = 1;
EXPLAIN (COSTS OFF) SELECT sum(t) FROM sk WHERE k = 200;
EXPLAIN (COSTS OFF) SELECT sum(t) FROM sk WHERE d BETWEEN 1 AND 100000;
EXPLAIN (COSTS OFF) SELECT sum(t) FROM sk WHERE d BETWEEN 1 AND 100;
EXPLAIN (COSTS OFF) SELECT sum(k) FROM sk WHERE d BETWEEN 1 AND 100000;
EXPLAIN (COSTS OFF) SELECT t FROM sk WHERE k = 1 ORDER BY id LIMIT 3;
EXPLAIN (COSTS OFF) SELECT t FROM sk WHERE d > 5 ORDER BY d LIMIT 3;
EXPLAIN (COSTS OFF) SELECT t FROM sk WHERE k = 1 FOR UPDATE;
EXPLAIN (COSTS OFF) UPDATE sk SET t = 0 WHERE k = 1;
EXPLAIN (COSTS OFF) SELECT sum(t) FROM (SELECT t, row_number() OVER () FROM sk WHERE k = 1 AND t = 2) x;
EXPLAIN (COSTS OFF) SELECT sum(k) FROM (SELECT k, row_number() OVER () FROM sk WHERE d > 1) x;
----
QUERY PLAN:text
Aggregate
  ->  Seq Scan on sk
        Filter: (k = 1)
EXPLAIN
QUERY PLAN:text
Aggregate
  ->  Index Scan using sk_k on sk
        Index Cond: (k = 200)
EXPLAIN
QUERY PLAN:text
Aggregate
  ->  Seq Scan on sk
        Filter: ((d >= 1) AND (d <= 100000))
EXPLAIN
QUERY PLAN:text
Aggregate
  ->  Index Scan using sk_d on sk
        Index Cond: ((d >= 1) AND (d <= 100))
EXPLAIN
QUERY PLAN:text
Aggregate
  ->  Index Only Scan using sk_d on sk
        Index Cond: ((d >= 1) AND (d <= 100000))
EXPLAIN
QUERY PLAN:text
Limit
  ->  Seq Scan on sk
        Filter: (k = 1)
EXPLAIN
QUERY PLAN:text
Limit
  ->  Index Scan using sk_d on sk
        Index Cond: (d > 5)
EXPLAIN
QUERY PLAN:text
LockRows
  ->  Index Scan using sk_k on sk
        Index Cond: (k = 1)
EXPLAIN
QUERY PLAN:text
Update on sk
  ->  Index Scan using sk_k on sk
        Index Cond: (k = 1)
EXPLAIN
QUERY PLAN:text
Aggregate
  ->  WindowAgg
        ->  Seq Scan on sk
              Filter: ((k = 1) AND (t = 2))
EXPLAIN
QUERY PLAN:text
Aggregate
  ->  WindowAgg
        ->  Index Only Scan using sk_d on sk
              Index Cond: (d > 1)
EXPLAIN

SELECT sum(t), count(*) FROM sk WHERE k = 1;
SELECT sum(t), count(*) FROM sk WHERE d BETWEEN 11 AND 100000 AND t = 1;
SELECT sum(t) FROM (SELECT t, row_number() OVER () FROM sk WHERE k = 1 AND t = 2) x;
SELECT sum(k) FROM (SELECT k, row_number() OVER () FROM sk WHERE d > 1) x;
----
sum:int8 | count:int8
3960 | 3960
SELECT 1
sum:int8 | count:int8
1330 | 1330
SELECT 1
sum:int8
2640
SELECT 1
sum:int8
85959
SELECT 1

# What comes with an execution is taken for a rare value, unless it is known to be frequent (decision 237).
PREPARE of_k(int) AS SELECT sum(t) FROM sk WHERE k = $1;
EXPLAIN (COSTS OFF) EXECUTE of_k(1);
EXECUTE of_k(1);
----
PREPARE
QUERY PLAN:text
Aggregate
  ->  Seq Scan on sk
        Filter: (k = 1)
EXPLAIN
sum:int8
3960
SELECT 1

# A small table may grow.
CREATE TABLE few (id int PRIMARY KEY, k int, t int);
INSERT INTO few SELECT g, 1, g FROM generate_series(1, 100) g;
CREATE INDEX few_k ON few (k);
ANALYZE few;
EXPLAIN (COSTS OFF) SELECT sum(t) FROM few WHERE k = 1;
----
CREATE TABLE
INSERT 0 100
CREATE INDEX
ANALYZE
QUERY PLAN:text
Aggregate
  ->  Index Scan using few_k on few
        Index Cond: (k = 1)
EXPLAIN
