# A plan is made anew for values of its parameters that call for another one, and stays what it was otherwise (decision 237).
CREATE TABLE sk (id int PRIMARY KEY, k int, t int, d int, pad text);
INSERT INTO sk SELECT g, CASE WHEN g % 100 = 0 THEN g ELSE 1 END, g % 3, g, repeat('x', 50) FROM generate_series(1, 20000) g;
CREATE INDEX sk_k ON sk (k);
CREATE INDEX sk_d ON sk (d);
CREATE TABLE sk2 (id int PRIMARY KEY, v int);
INSERT INTO sk2 SELECT g, g FROM generate_series(1, 20000) g;
ANALYZE sk;
ANALYZE sk2;
----
CREATE TABLE
INSERT 0 20000
CREATE INDEX
CREATE INDEX
CREATE TABLE
INSERT 0 20000
ANALYZE
ANALYZE

PREPARE a (int) AS SELECT sum(t) FROM sk WHERE k = $1;
PREPARE b (int, int) AS SELECT sum(t) FROM sk WHERE d BETWEEN $1 AND $2;
PREPARE j (int) AS SELECT sum(s2.v) FROM sk JOIN sk2 s2 ON s2.id = sk.d WHERE sk.k = $1;
PREPARE o (int) AS SELECT id, t FROM sk WHERE k = $1 ORDER BY d LIMIT 5;
PREPARE p (int) AS SELECT t FROM sk WHERE id = $1;
PREPARE u (int) AS UPDATE sk SET t = t WHERE k = $1;
EXPLAIN (COSTS OFF) EXECUTE a(200);
EXPLAIN (COSTS OFF) EXECUTE a(1);
EXPLAIN (COSTS OFF) EXECUTE b(5, 10);
EXPLAIN (COSTS OFF) EXECUTE b(1, 100000);
EXPLAIN (COSTS OFF) EXECUTE j(200);
EXPLAIN (COSTS OFF) EXECUTE j(1);
EXPLAIN (COSTS OFF) EXECUTE o(200);
EXPLAIN (COSTS OFF) EXECUTE o(1);
EXPLAIN (COSTS OFF) EXECUTE p(7);
EXPLAIN (COSTS OFF) EXECUTE u(1);
----
PREPARE
PREPARE
PREPARE
PREPARE
PREPARE
PREPARE
QUERY PLAN:text
Aggregate
  ->  Index Scan using sk_k on sk
        Index Cond: (k = $1)
EXPLAIN
QUERY PLAN:text
Aggregate
  ->  Seq Scan on sk
        Filter: (k = 1)
EXPLAIN
QUERY PLAN:text
Aggregate
  ->  Index Scan using sk_d on sk
        Index Cond: ((d >= $1) AND (d <= $2))
EXPLAIN
QUERY PLAN:text
Aggregate
  ->  Seq Scan on sk
        Filter: ((d >= 1) AND (d <= 100000))
EXPLAIN
QUERY PLAN:text
Aggregate
  ->  Nested Loop
        ->  Index Scan using sk_k on sk
              Index Cond: (k = $1)
        ->  Point Lookup using sk2_pkey on sk2 s2
              Index Cond: (id = sk.d)
EXPLAIN
QUERY PLAN:text
Aggregate
  ->  Lookup or Hash Join
        Hash Cond: (sk.d = s2.id)
        ->  Seq Scan on sk
              Filter: (sk.k = 1)
        ->  Seq Scan on sk2 s2
        Lookup
          ->  Point Lookup using sk2_pkey on sk2 s2
                Index Cond: (id = sk.d)
EXPLAIN
QUERY PLAN:text
Limit
  ->  Sort
        Sort Key: d
        ->  Index Scan using sk_k on sk
              Index Cond: (k = $1)
EXPLAIN
QUERY PLAN:text
Limit
  ->  Index Scan using sk_d on sk
        Filter: (k = 1)
EXPLAIN
QUERY PLAN:text
Point Lookup using sk_pkey on sk
  Index Cond: (id = $1)
EXPLAIN
QUERY PLAN:text
Update on sk
  ->  Index Scan using sk_k on sk
        Index Cond: (k = $1)
EXPLAIN

# They answer alike, whichever plan is taken.
EXECUTE a(200);
EXECUTE a(1);
EXECUTE a(NULL);
EXECUTE b(5, 10);
EXECUTE b(1, 100000);
EXECUTE j(200);
EXECUTE j(1);
EXECUTE o(200);
EXECUTE o(1);
EXECUTE o(-5);
EXECUTE u(200);
EXECUTE u(1);
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE a(1);
----
sum:int8
2
SELECT 1
sum:int8
19800
SELECT 1
sum:int8
NULL
SELECT 1
sum:int8
6
SELECT 1
sum:int8
20001
SELECT 1
sum:int8
200
SELECT 1
sum:int8
198000000
SELECT 1
id:int4 | t:int4
200 | 2
SELECT 1
id:int4 | t:int4
1 | 1
2 | 2
3 | 0
4 | 1
5 | 2
SELECT 5
id:int4 | t:int4
SELECT 0
UPDATE 1
UPDATE 19800
QUERY PLAN:text
Aggregate (actual rows=1 loops=1)
  ->  Seq Scan on sk (actual rows=19800 loops=1)
        Filter: (k = 1)
        Rows Removed by Filter: 200
Rows: 1
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN

# As PostgreSQL says it.
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE a(1);
EXPLAIN (COSTS OFF) EXECUTE p(7);
EXECUTE a(1);
SET plan_cache_mode = force_custom_plan;
EXPLAIN (COSTS OFF) EXECUTE a(200);
EXPLAIN (COSTS OFF) EXECUTE p(7);
EXECUTE a(1);
EXECUTE p(7);
RESET plan_cache_mode;
EXPLAIN (COSTS OFF) EXECUTE a(200);
EXPLAIN (COSTS OFF) EXECUTE a(1);
----
SET
QUERY PLAN:text
Aggregate
  ->  Index Scan using sk_k on sk
        Index Cond: (k = $1)
EXPLAIN
QUERY PLAN:text
Point Lookup using sk_pkey on sk
  Index Cond: (id = $1)
EXPLAIN
sum:int8
19800
SELECT 1
SET
QUERY PLAN:text
Aggregate
  ->  Index Scan using sk_k on sk
        Index Cond: (k = 200)
EXPLAIN
QUERY PLAN:text
Point Lookup using sk_pkey on sk
  Index Cond: (id = 7)
EXPLAIN
sum:int8
19800
SELECT 1
t:int4
1
SELECT 1
RESET
QUERY PLAN:text
Aggregate
  ->  Index Scan using sk_k on sk
        Index Cond: (k = $1)
EXPLAIN
QUERY PLAN:text
Aggregate
  ->  Seq Scan on sk
        Filter: (k = 1)
EXPLAIN

# What fails with its values fails when it runs.
PREPARE z (int, int) AS SELECT sum(t / $2) FROM sk WHERE k = $1;
EXECUTE z(1, 0);
----
PREPARE
sum:int8
ERROR 22012: division by zero

PREPARE y (int, int) AS SELECT CASE WHEN $2 = 0 THEN 0 ELSE sum(t) / $2 END FROM sk WHERE k = $1;
EXECUTE y(1, 0);
PREPARE x (int, text) AS SELECT count(*) FROM sk WHERE k = $1 AND ($2 = '' OR t = $2::int);
EXECUTE x(1, '');
EXECUTE x(1, '2');
EXECUTE x(1, 'x');
----
PREPARE
case:int8
0
SELECT 1
PREPARE
count:int8
19800
SELECT 1
count:int8
6600
SELECT 1
count:int8
ERROR 22P02: invalid input syntax for type integer: "x"

# What was right for some of a table's rows is not taken to be right for all, and eight values that no plan can be made of are no reason to make none for others.
PREPARE q (int, int) AS SELECT sum(t) FROM sk WHERE d BETWEEN $1 AND $2;
EXECUTE q(1, 2500);
EXPLAIN (COSTS OFF) EXECUTE q(1, 19999);
----
PREPARE
sum:int8
2500
SELECT 1
QUERY PLAN:text
Aggregate
  ->  Seq Scan on sk
        Filter: ((d >= 1) AND (d <= 19999))
EXPLAIN
