# What a correlated subquery gave for the same values is not computed again; what may change is.

CREATE TABLE one (id INT PRIMARY KEY, c INT); CREATE TABLE two (id INT PRIMARY KEY, c INT); CREATE SEQUENCE drawn;
INSERT INTO one SELECT g, nullif(g % 5, 4) FROM generate_series(1, 100) g; INSERT INTO two SELECT g, g % 7 FROM generate_series(1, 50) g;
----
CREATE TABLE
CREATE TABLE
CREATE SEQUENCE
INSERT 0 100
INSERT 0 50

EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, COSTS OFF) SELECT id FROM one WHERE id >= (SELECT count(*) FROM two z FULL JOIN two y ON z.id = y.c AND z.c = one.c);
----
QUERY PLAN:text
Seq Scan on one (actual rows=1 loops=1)
  Filter: (one.id >= (SubPlan 1))
  Rows Removed by Filter: 99
  SubPlan 1
    ->  Aggregate (actual rows=1 loops=5)
          ->  Hash Full Join (actual rows=99 loops=5)
                Hash Cond: (z.id = y.c)
                Join Filter: (z.c = one.c)
                Rows Removed by Join Filter: 39
                Batches: 1  Memory Usage: 8kB
                ->  Seq Scan on two z (actual rows=50 loops=5)
                ->  Seq Scan on two y (actual rows=50 loops=5)
Rows: 1
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN

SELECT count(*), sum(s), count(DISTINCT s) FROM (SELECT (SELECT count(*) FROM two z FULL JOIN two y ON z.id = y.c AND z.c = one.c) AS s FROM one) x;
----
count:int8 | sum:numeric | count:int8
100 | 9940 | 2
SELECT 1

SELECT count(*) FROM one WHERE EXISTS (SELECT 1 FROM two z FULL JOIN two y ON z.id = y.c WHERE z.c > one.c + 3);
----
count:int8
60
SELECT 1

SELECT count(DISTINCT n) FROM (SELECT (SELECT nextval('drawn') + 0 * one.c FROM two LIMIT 1) AS n FROM one WHERE c IS NOT NULL) x;
----
count:int8
80
SELECT 1

SELECT sum(r) FROM (SELECT nextval('drawn') > 0, (SELECT last_value - last_value + one.c FROM drawn) AS r FROM one) x;
----
sum:numeric
120
SELECT 1

SELECT id, (SELECT string_agg(z.id::text || coalesce(one.c::text, '-'), ',' ORDER BY z.id) FROM two z WHERE z.id < coalesce(one.c, 2)) FROM one WHERE id < 12 ORDER BY id;
----
id:int4 | string_agg:text
1 | NULL
2 | 12
3 | 13,23
4 | 1-
5 | NULL
6 | NULL
7 | 12
8 | 13,23
9 | 1-
10 | NULL
11 | NULL
SELECT 11

# Equal, but not the same to look at.
CREATE TABLE written (n NUMERIC, b CHAR(3)); INSERT INTO written VALUES (1.0, 'a'), (1.00, 'a '), (1, 'b');
SELECT n, (SELECT min(written.n::text || z.c) FROM two z FULL JOIN one y ON z.id = y.id WHERE z.c < written.n) FROM written;
----
CREATE TABLE
INSERT 0 3
n:numeric | min:text
1.0 | 1.00
1.00 | 1.000
1 | 10
SELECT 3

# An error is one each time.
SELECT id, (SELECT z.id FROM two z WHERE z.c < one.c) FROM one WHERE id < 3;
----
id:int4 | id:int4
ERROR 21000: more than one row returned by a subquery used as an expression

# What the right side of LATERAL gives is kept by the values that it reads.
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*), sum(n) FROM one, LATERAL (SELECT count(*) AS n FROM two WHERE two.id > one.c) x;
SELECT count(*), sum(n) FROM one, LATERAL (SELECT count(*) AS n FROM two WHERE two.id > one.c) x;
SELECT count(*), sum(two_id) FROM one LEFT JOIN LATERAL (SELECT id AS two_id FROM two WHERE two.id > one.c + 47) x ON two_id > one.id % 50;
SELECT count(*), sum(two_id) FROM one, LATERAL (SELECT id AS two_id FROM two WHERE two.id > one.c + 3) x;
SELECT count(DISTINCT r) > 5 FROM one, LATERAL (SELECT random() + one.c AS r) x;
----
QUERY PLAN:text
Aggregate (actual rows=1 loops=1)
  ->  Nested Loop (actual rows=100 loops=1)
        ->  Seq Scan on one (actual rows=100 loops=1)
        ->  Aggregate (actual rows=1 loops=5)
              ->  Index Scan using two_pkey on two (actual rows=39 loops=5)
                    Index Cond: (id > one.c)
Rows: 1
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
count:int8 | sum:numeric
100 | 3880
SELECT 1
count:int8 | sum:int8
160 | 5920
SELECT 1
count:int8 | sum:int8
3640 | 100960
SELECT 1
?column?:bool
t
SELECT 1
