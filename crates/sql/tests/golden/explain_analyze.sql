# What EXPLAIN ANALYZE measures of the operators of direct plans and of the engine's: rows, loops, what a condition left out, what sorts and groupings held.
CREATE TABLE t (id int PRIMARY KEY, k int, s text);
CREATE TABLE u (id int PRIMARY KEY, t int, n int);
CREATE INDEX t_k ON t (k);
CREATE INDEX u_n ON u (n);
CREATE INDEX u_t ON u (t);
INSERT INTO t SELECT g, g % 10, 's' || g FROM generate_series(1, 200) g;
INSERT INTO u SELECT g, g % 50, g % 7 FROM generate_series(1, 100) g;
ANALYZE t, u;
----
CREATE TABLE
CREATE TABLE
CREATE INDEX
CREATE INDEX
CREATE INDEX
INSERT 0 200
INSERT 0 100
ANALYZE

# Direct plans.
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM t WHERE s LIKE '%7';
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM t WHERE id = 5 AND k = 6;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT s FROM t WHERE id < 100 AND k > 4 ORDER BY s LIMIT 5;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT t.s, u.n FROM t JOIN u ON u.id = t.id WHERE t.id < 20 AND u.n > 2;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT t.s, u.n FROM t LEFT JOIN u ON u.id = t.id AND u.n > 2 WHERE t.id BETWEEN 90 AND 110 AND coalesce(u.n, 9) <> 3;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT k, count(*) FROM t WHERE id < 50 GROUP BY k HAVING count(*) > 4 ORDER BY 2, 1;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT DISTINCT k FROM t WHERE id < 50 ORDER BY k OFFSET 2;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM t WHERE id = 7 OR k = 3;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM t WHERE id < 5 AND k <> 2 FOR UPDATE;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM t WHERE id = (SELECT max(t) FROM u WHERE id < 10);
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT min(id), max(id) FROM t;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT 1 LIMIT 1;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM t WHERE 1 = 2;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM t JOIN u ON u.id = t.id WHERE t.id = 1000;
----
QUERY PLAN:text
Seq Scan on t (actual rows=20 loops=1)
  Filter: (s ~~ '%7'::text)
  Rows Removed by Filter: 180
Rows: 20
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
QUERY PLAN:text
Point Lookup using t_pkey on t (actual rows=0 loops=1)
  Index Cond: (id = 5)
  Filter: (k = 6)
  Rows Removed by Filter: 1
Rows: 0
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
QUERY PLAN:text
Limit (actual rows=5 loops=1)
  ->  Sort (actual rows=5 loops=1)
        Sort Key: s
        Sort Method: top-N heapsort  Memory: 10kB
        ->  Index Scan using t_pkey on t (actual rows=50 loops=1)
              Index Cond: (id < 100)
              Filter: (k > 4)
              Rows Removed by Filter: 49
Rows: 5
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
QUERY PLAN:text
Nested Loop (actual rows=11 loops=1)
  ->  Index Scan using t_pkey on t (actual rows=19 loops=1)
        Index Cond: (id < 20)
  ->  Point Lookup using u_pkey on u (actual rows=1 loops=19)
        Index Cond: (id = t.id)
        Filter: (u.n > 2)
        Rows Removed by Filter: 0
Rows: 11
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
QUERY PLAN:text
Nested Loop Left Join (actual rows=20 loops=1)
  Filter: (COALESCE(u.n, 9) <> 3)
  Rows Removed by Filter: 1
  ->  Index Scan using t_pkey on t (actual rows=21 loops=1)
        Index Cond: ((id >= 90) AND (id <= 110))
  ->  Point Lookup using u_pkey on u (actual rows=0 loops=21)
        Index Cond: (id = t.id)
        Filter: (u.n > 2)
        Rows Removed by Filter: 0
Rows: 20
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
QUERY PLAN:text
Sort (actual rows=9 loops=1)
  Sort Key: count(*), k
  Sort Method: quicksort  Memory: 1kB
  ->  HashAggregate (actual rows=9 loops=1)
        Group Key: k
        Filter: (count(*) > 4)
        Rows Removed by Filter: 1
        Batches: 1  Memory Usage: 2kB
        ->  Index Scan using t_pkey on t (actual rows=49 loops=1)
              Index Cond: (id < 50)
Rows: 9
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
QUERY PLAN:text
Limit (actual rows=8 loops=1)
  ->  Sort (actual rows=10 loops=1)
        Sort Key: column1
        Sort Method: quicksort  Memory: 1kB
        ->  Unique (actual rows=10 loops=1)
              ->  Index Scan using t_pkey on t (actual rows=49 loops=1)
                    Index Cond: (id < 50)
Rows: 8
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
QUERY PLAN:text
Bitmap Heap Scan on t (actual rows=21 loops=1)
  Filter: ((id = 7) OR (k = 3))
  ->  BitmapOr (actual rows=0 loops=1)
        ->  Bitmap Index Scan on t_pkey (actual rows=1 loops=1)
              Index Cond: (id = 7)
        ->  Bitmap Index Scan on t_k (actual rows=20 loops=1)
              Index Cond: (k = 3)
Rows: 21
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
QUERY PLAN:text
LockRows (actual rows=3 loops=1)
  ->  Index Scan using t_pkey on t (actual rows=3 loops=1)
        Index Cond: (id < 5)
        Filter: (k <> 2)
        Rows Removed by Filter: 1
Rows: 3
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
QUERY PLAN:text
Point Lookup using t_pkey on t (actual rows=1 loops=1)
  Index Cond: (id = $1)
  InitPlan 1 (returns $1)
    ->  Aggregate (actual rows=1 loops=1)
          ->  Index Only Scan Backward using u_t on u (actual rows=1 loops=1)
                Filter: (id < 10)
                Rows Removed by Filter: 81
Rows: 1
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
QUERY PLAN:text
Aggregate (actual rows=1 loops=1)
  ->  Seq Scan on t (actual rows=1 loops=1)
  ->  Seq Scan Backward on t (actual rows=1 loops=1)
Rows: 1
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
QUERY PLAN:text
Limit (actual rows=1 loops=1)
  ->  Result (actual rows=1 loops=1)
Rows: 1
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
QUERY PLAN:text
Seq Scan on t (never executed)
  One-Time Filter: false
Rows: 0
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
QUERY PLAN:text
Nested Loop (actual rows=0 loops=1)
  ->  Point Lookup using t_pkey on t (actual rows=0 loops=1)
        Index Cond: (id = 1000)
  ->  Point Lookup using u_pkey on u (never executed)
        Index Cond: (id = t.id)
Rows: 0
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN

# What writes.
BEGIN;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) UPDATE t SET s = 'x' WHERE id < 10 AND k <> 2;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) DELETE FROM u WHERE id < 30 AND n = 3 RETURNING id;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) DELETE FROM t WHERE k = 1 AND s <> 's11';
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) INSERT INTO u VALUES (1001, 1, 1), (1002, 2, 2);
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) INSERT INTO u SELECT id + 2000, k, 1 FROM t WHERE id < 30 AND k = 4;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) WITH gone AS (DELETE FROM u WHERE id < 60 AND n = 4 RETURNING t) SELECT count(*) FROM gone;
ROLLBACK;
----
BEGIN
QUERY PLAN:text
Update on t (actual rows=0 loops=1)
  ->  Index Scan using t_pkey on t (actual rows=8 loops=1)
        Index Cond: (id < 10)
        Filter: (k <> 2)
        Rows Removed by Filter: 1
Rows: 8
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
QUERY PLAN:text
Delete on u (actual rows=4 loops=1)
  ->  Index Scan using u_n on u (actual rows=4 loops=1)
        Index Cond: (n = 3)
        Filter: (id < 30)
        Rows Removed by Filter: 10
Rows: 4
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
QUERY PLAN:text
Delete on t (actual rows=0 loops=1)
  ->  Index Scan using t_k on t (actual rows=19 loops=1)
        Index Cond: (k = 1)
        Filter: (s <> 's11'::text)
        Rows Removed by Filter: 1
Rows: 19
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
QUERY PLAN:text
Insert on u (actual rows=0 loops=1)
  ->  Values Scan (actual rows=2 loops=1)
Rows: 2
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
QUERY PLAN:text
Insert on u (actual rows=0 loops=1)
  ->  Index Only Scan using t_k on t (actual rows=3 loops=1)
        Index Cond: (k = 4)
        Filter: (id < 30)
        Rows Removed by Filter: 17
Rows: 3
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
QUERY PLAN:text
Aggregate (actual rows=1 loops=1)
  CTE gone
    ->  Delete on u (actual rows=8 loops=1)
          ->  Index Scan using u_n on u (actual rows=8 loops=1)
                Index Cond: (n = 4)
                Filter: (id < 60)
                Rows Removed by Filter: 6
  ->  CTE Scan (actual rows=8 loops=1)
Rows: 1
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
ROLLBACK

# The engine's.
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(DISTINCT s) FROM t WHERE k = 3 AND s LIKE '%3';
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(DISTINCT t.s) FROM t JOIN u ON u.t = t.k AND u.n <> t.id % 7;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT t.id, x.n FROM t, LATERAL (SELECT n FROM u WHERE u.id > t.id + 95 AND n <> 1 OFFSET 0) x WHERE t.id < 6;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT k FROM (SELECT k, count(DISTINCT s) AS c FROM t GROUP BY k) x WHERE c > 20;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*) FROM pg_namespace WHERE nspname = 'public' OR nspname LIKE 'no such%';
----
QUERY PLAN:text
Aggregate (actual rows=1 loops=1)
  ->  Index Scan using t_k on t (actual rows=20 loops=1)
        Index Cond: (k = 3)
        Filter: (s ~~ '%3'::text)
Rows: 1
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
QUERY PLAN:text
Aggregate (actual rows=1 loops=1)
  ->  Lookup or Hash Join (actual rows=340 loops=1)
        Hash Cond: (t.k = u.t)
        Join Filter: (u.n <> (t.id % 7))
        Rows Removed by Join Filter: 60
        Batches: 1  Memory Usage: 30kB
        ->  Seq Scan on t (actual rows=200 loops=1)
        ->  Seq Scan on u (actual rows=100 loops=1)
        Lookup
          ->  Index Scan using u_t on u (never executed)
                Index Cond: (t = t.k)
                Filter: (u.n <> (t.id % 7))
Rows: 1
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
QUERY PLAN:text
Nested Loop (actual rows=7 loops=1)
  ->  Index Scan using t_pkey on t (actual rows=5 loops=1)
        Index Cond: (id < 6)
  ->  Limit (actual rows=1 loops=5)
        ->  Index Scan using u_pkey on u (actual rows=1 loops=5)
              Index Cond: (id > (t.id + 95))
              Filter: (u.n <> 1)
              Rows Removed by Filter: 1
Rows: 7
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
QUERY PLAN:text
HashAggregate (actual rows=0 loops=1)
  Group Key: k
  Filter: (count(DISTINCT s) > 20)
  Rows Removed by Filter: 10
  Batches: 1  Memory Usage: 12kB
  ->  Seq Scan on t (actual rows=200 loops=1)
Rows: 0
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
QUERY PLAN:text
Aggregate (actual rows=1 loops=1)
  ->  Catalog Scan on pg_catalog.pg_namespace (actual rows=1 loops=1)
        Filter: ((nspname = 'public'::name) OR (nspname ~~ 'no such%'::text))
        Rows Removed by Filter: 3
Rows: 1
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN

# As tools read it.
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) SELECT t.s, u.n FROM t JOIN u ON u.id = t.id WHERE t.id < 20 AND u.n > 2 ORDER BY t.s LIMIT 3;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) SELECT count(DISTINCT s) FROM t WHERE s LIKE 's%';
----
QUERY PLAN:json
[
  {
    "Plan": {
      "Node Type": "Limit",
      "Parallel Aware": false,
      "Async Capable": false,
      "Actual Rows": 3,
      "Actual Loops": 1,
      "Plans": [
        {
          "Node Type": "Sort",
          "Parent Relationship": "Outer",
          "Parallel Aware": false,
          "Async Capable": false,
          "Actual Rows": 3,
          "Actual Loops": 1,
          "Sort Key": [
            "t.s"
          ],
          "Sort Method": "top-N heapsort",
          "Sort Space Used": 3,
          "Sort Space Type": "Memory",
          "Plans": [
            {
              "Node Type": "Nested Loop",
              "Parent Relationship": "Outer",
              "Parallel Aware": false,
              "Async Capable": false,
              "Join Type": "Inner",
              "Actual Rows": 11,
              "Actual Loops": 1,
              "Plans": [
                {
                  "Node Type": "Seq Scan",
                  "Parent Relationship": "Outer",
                  "Parallel Aware": false,
                  "Async Capable": false,
                  "Relation Name": "u",
                  "Alias": "u",
                  "Actual Rows": 56,
                  "Actual Loops": 1,
                  "Filter": "(u.n > 2)",
                  "Rows Removed by Filter": 44
                },
                {
                  "Node Type": "Index Scan",
                  "Parent Relationship": "Inner",
                  "Parallel Aware": false,
                  "Async Capable": false,
                  "Scan Direction": "Forward",
                  "Index Name": "t_pkey",
                  "Relation Name": "t",
                  "Alias": "t",
                  "Actual Rows": 0,
                  "Actual Loops": 56,
                  "Index Cond": "(id = u.id)",
                  "Filter": "(t.id < 20)",
                  "Rows Removed by Filter": 1
                }
              ]
            }
          ]
        }
      ]
    },
    "Triggers": [
    ],
    "Consistency": "auto",
    "Clock bound at start": "0.000000 ms",
    "Uncertainty restarts": "0",
    "Snapshot refreshes": "0",
    "Lock wait": "0.000 ms",
    "Commit wait hidden by replication": "0.000 ms",
    "Commit wait beyond replication": "0.000 ms"
  }
]
EXPLAIN
QUERY PLAN:json
[
  {
    "Plan": {
      "Node Type": "Aggregate",
      "Parallel Aware": false,
      "Async Capable": false,
      "Strategy": "Plain",
      "Actual Rows": 1,
      "Actual Loops": 1,
      "Plans": [
        {
          "Node Type": "Seq Scan",
          "Parent Relationship": "Outer",
          "Parallel Aware": false,
          "Async Capable": false,
          "Relation Name": "t",
          "Alias": "t",
          "Actual Rows": 200,
          "Actual Loops": 1,
          "Filter": "(s ~~ 's%'::text)",
          "Rows Removed by Filter": 0
        }
      ]
    },
    "Triggers": [
    ],
    "Consistency": "auto",
    "Clock bound at start": "0.000000 ms",
    "Uncertainty restarts": "0",
    "Snapshot refreshes": "0",
    "Lock wait": "0.000 ms",
    "Commit wait hidden by replication": "0.000 ms",
    "Commit wait beyond replication": "0.000 ms"
  }
]
EXPLAIN

# A subquery that is run once, and looked into for each row.
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT id FROM t WHERE length(s) > (SELECT avg(n) FROM u WHERE u.n = t.k);
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT id FROM t WHERE id = 1 OR EXISTS (SELECT FROM u WHERE length(u.t::text) = t.k AND u.id > t.id);
EXPLAIN (COSTS OFF) SELECT id FROM t WHERE id = 1 OR EXISTS (SELECT FROM u WHERE length(u.t::text) = t.k AND u.id > t.id);
----
QUERY PLAN:text
Seq Scan on t (actual rows=69 loops=1)
  Filter: ((length(t.s))::numeric > (SubPlan 1))
  Rows Removed by Filter: 131
  SubPlan 1
    ->  Aggregate (actual rows=1 loops=10)
          ->  Index Scan using u_n on u (actual rows=10 loops=10)
                Index Cond: (n = t.k)
Rows: 69
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
QUERY PLAN:text
Seq Scan on t (actual rows=20 loops=1)
  Filter: ((t.id = 1) OR EXISTS(SubPlan 1))
  Rows Removed by Filter: 180
  SubPlan 1
    ->  Hash
          Hash Cond: (t.k = length((u.t)::text))
          Join Filter: (u.id > t.id)
          ->  Seq Scan on u (actual rows=100 loops=1)
Rows: 20
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
QUERY PLAN:text
Seq Scan on t
  Filter: ((t.id = 1) OR EXISTS(SubPlan 1))
  SubPlan 1
    ->  Hash
          Hash Cond: (t.k = length((u.t)::text))
          Join Filter: (u.id > t.id)
          ->  Seq Scan on u
EXPLAIN
