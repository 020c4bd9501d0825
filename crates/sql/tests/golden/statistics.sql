# ANALYZE, and what plans make of it: docs/decisions/0156.

CREATE TABLE city (id int PRIMARY KEY, country int, name text);
CREATE TABLE country (id int PRIMARY KEY, name text);
CREATE TABLE people (id int PRIMARY KEY, city int, age int);
CREATE INDEX people_city ON people (city);
INSERT INTO country SELECT g, 'country ' || g FROM generate_series(1, 20) g;
INSERT INTO city SELECT g, g % 20 + 1, 'city ' || g FROM generate_series(1, 400) g;
INSERT INTO people SELECT g, g % 400 + 1, g % 90 FROM generate_series(1, 4000) g;
----
CREATE TABLE
CREATE TABLE
CREATE TABLE
CREATE INDEX
INSERT 0 20
INSERT 0 400
INSERT 0 4000

# Without statistics: as written, from what has a condition.
EXPLAIN SELECT count(*), max(c.name), min(o.name) FROM people p JOIN city c ON p.city = c.id JOIN country o ON o.id = c.country WHERE p.age < 80 AND o.name = 'country 7';
----
QUERY PLAN:text
Aggregate  (cost=0.00..302001.00 rows=1 width=0)
  ->  Lookup or Hash Join  (cost=0.00..302000.00 rows=1000 width=0)
        Hash Cond: (c.id = p.city)
        Runtime Filter: (c.id)
        ->  Hash Join  (cost=0.00..201000.00 rows=1000 width=0)
              Hash Cond: (o.id = c.country)
              ->  Seq Scan on country o  (cost=0.00..100000.00 rows=1000 width=0)
                    Filter: (o.name = 'country 7'::text)
              ->  Seq Scan on city c  (cost=0.00..100000.00 rows=1000 width=0)
        ->  Seq Scan on people p  (cost=0.00..100000.00 rows=1000 width=0)
              Filter: (p.age < 80)
        Lookup
          ->  Index Scan using people_city on people p  (cost=0.00..1000.00 rows=1000 width=0)
                Index Cond: (city = c.id)
                Filter: (p.age < 80)
EXPLAIN

ANALYZE people; ANALYZE VERBOSE city (id, name), country;
----
ANALYZE
ANALYZE

# The few of one country first; its people by their index.
EXPLAIN SELECT count(*), max(c.name), min(o.name) FROM people p JOIN city c ON p.city = c.id JOIN country o ON o.id = c.country WHERE p.age < 80 AND o.name = 'country 7';
----
QUERY PLAN:text
Aggregate  (cost=0.00..8381.00 rows=1 width=0)
  ->  Lookup or Hash Join  (cost=0.00..8380.00 rows=3560 width=0)
        Hash Cond: (c.id = p.city)
        Runtime Filter: (c.id)
        ->  Lookup or Hash Join  (cost=0.00..820.00 rows=400 width=0)
              Hash Cond: (c.country = o.id)
              ->  Seq Scan on city c  (cost=0.00..400.00 rows=400 width=0)
              ->  Seq Scan on country o  (cost=0.00..20.00 rows=1 width=0)
                    Filter: (o.name = 'country 7'::text)
              Lookup
                ->  Point Lookup using country_pkey on country o  (cost=0.00..1.00 rows=1 width=0)
                      Index Cond: (id = c.country)
                      Filter: (o.name = 'country 7'::text)
        ->  Seq Scan on people p  (cost=0.00..4000.00 rows=3560 width=0)
              Filter: (p.age < 80)
        Lookup
          ->  Index Scan using people_city on people p  (cost=0.00..10.00 rows=9 width=0)
                Index Cond: (city = c.id)
                Filter: (p.age < 80)
EXPLAIN

SELECT count(*), max(c.name), min(o.name) FROM people p JOIN city c ON p.city = c.id JOIN country o ON o.id = c.country WHERE p.age < 80 AND o.name = 'country 7';
----
count:int8 | max:text | min:text
178 | city 86 | country 7
SELECT 1

# What is equal to one is equal to the other: no pair of people and country is made.
EXPLAIN SELECT count(*), max(o.name), max(p.age) FROM people p, city c, country o WHERE p.age = c.country AND c.country = o.id AND o.id = 3 AND c.name LIKE 'city 1%';
----
QUERY PLAN:text
Aggregate  (cost=0.00..8442.00 rows=1 width=0)
  ->  Hash Join  (cost=0.00..8441.00 rows=4000 width=0)
        Hash Cond: (c.country = p.age)
        Runtime Filter: (c.country)
        ->  Lookup or Hash Join  (cost=0.00..441.00 rows=40 width=0)
              Hash Cond: (c.country = o.id)
              ->  Seq Scan on city c  (cost=0.00..400.00 rows=40 width=0)
                    Filter: (c.name ~~ 'city 1%'::text)
              ->  Point Lookup using country_pkey on country o  (cost=0.00..1.00 rows=1 width=0)
                    Index Cond: (id = 3)
              Lookup
                ->  Point Lookup using country_pkey on country o  (cost=0.00..1.00 rows=1 width=0)
                      Index Cond: (id = 3)
                      Filter: (c.country = o.id)
        ->  Seq Scan on people p  (cost=0.00..4000.00 rows=4000 width=0)
EXPLAIN

# EXISTS is asked where few are left.
EXPLAIN SELECT count(*), max(c.name) FROM people p, city c WHERE p.city = c.id AND c.id = 7 AND EXISTS (SELECT 1 FROM people q WHERE q.city = p.city AND q.age > p.age);
----
QUERY PLAN:text
Aggregate  (cost=0.00..8002.00 rows=1 width=0)
  ->  Lookup or Hash Join  (cost=0.00..8001.00 rows=2000 width=0)
        Hash Cond: (c.id = p.city)
        Filter: EXISTS(SubPlan 1)
        ->  Point Lookup using city_pkey on city c  (cost=0.00..1.00 rows=1 width=0)
              Index Cond: (id = 7)
        ->  Seq Scan on people p  (cost=0.00..4000.00 rows=4000 width=0)
        Lookup
          ->  Index Scan using people_city on people p  (cost=0.00..10.00 rows=10 width=0)
                Index Cond: (city = c.id)
        SubPlan 1
          ->  Index Scan using people_city on people q  (cost=0.00..10.00 rows=3 width=0)
                Index Cond: (city = p.city)
                Filter: (q.age > p.age)
EXPLAIN

SELECT count(*), max(c.name) FROM people p, city c WHERE p.city = c.id AND c.id = 7 AND EXISTS (SELECT 1 FROM people q WHERE q.city = p.city AND q.age > p.age);
----
count:int8 | max:text
9 | city 7
SELECT 1

CREATE VIEW young AS SELECT * FROM people WHERE age < 18;
ANALYZE young;
ANALYZE pg_catalog.pg_class;
VACUUM ANALYZE people;
VACUUM (ANALYZE, VERBOSE) city;
ANALYZE;
BEGIN; ANALYZE people; COMMIT;
----
CREATE VIEW
WARNING: skipping "young" --- cannot analyze non-tables or special system tables
ANALYZE
ANALYZE
ERROR 25001: VACUUM cannot run inside a transaction block

ANALYZE nosuch;
----
ERROR 42P01: relation "nosuch" does not exist

BEGIN; VACUUM ANALYZE people;
----
BEGIN
ERROR 25001: VACUUM cannot run inside a transaction block
(failed)

ROLLBACK;
----
ROLLBACK

SELECT relname, reltuples FROM pg_class WHERE relname IN ('people', 'city', 'country', 'young') ORDER BY 1;
----
relname:name | reltuples:float4
city | 400
country | 20
people | 4000
SELECT 3

# A table that is dropped leaves none behind for another of its name.
DROP TABLE city CASCADE;
CREATE TABLE city (id int PRIMARY KEY, country int, name text);
EXPLAIN SELECT count(*), max(c.name), min(o.name) FROM people p JOIN city c ON p.city = c.id JOIN country o ON o.id = c.country WHERE o.name = 'country 7';
----
DROP TABLE
CREATE TABLE
QUERY PLAN:text
Aggregate  (cost=0.00..20001.00 rows=1 width=0)
  ->  Nested Loop  (cost=0.00..20000.00 rows=4000 width=0)
        ->  Nested Loop  (cost=0.00..12000.00 rows=4000 width=0)
              ->  Seq Scan on people p  (cost=0.00..4000.00 rows=4000 width=0)
              ->  Point Lookup using city_pkey on city c  (cost=0.00..1.00 rows=1 width=0)
                    Index Cond: (id = p.city)
        ->  Point Lookup using country_pkey on country o  (cost=0.00..1.00 rows=1 width=0)
              Index Cond: (id = c.country)
              Filter: (o.name = 'country 7'::text)
EXPLAIN

CREATE TABLE task (id int PRIMARY KEY, state text, owner int, at int);
CREATE INDEX task_state ON task (state);
CREATE INDEX task_owner ON task (owner);
CREATE INDEX task_at ON task (at);
INSERT INTO task SELECT g, CASE WHEN g % 1000 = 0 THEN 'open' ELSE 'done' END, g % 900, g FROM generate_series(1, 5000) g;
----
CREATE TABLE
CREATE INDEX
CREATE INDEX
CREATE INDEX
INSERT 0 5000

# By rule: the first of two indexes.
EXPLAIN SELECT * FROM task WHERE state = 'done' AND owner = 7;
----
QUERY PLAN:text
Index Scan using task_state on task  (cost=0.00..1000.00 rows=1000 width=0)
  Index Cond: (state = 'done'::text)
  Filter: (owner = 7)
EXPLAIN

ANALYZE task;
----
ANALYZE

# The one that leaves fewer rows.
EXPLAIN SELECT * FROM task WHERE state = 'done' AND owner = 7;
----
QUERY PLAN:text
Index Scan using task_owner on task  (cost=0.00..5.56 rows=6 width=0)
  Index Cond: (owner = 7)
  Filter: (state = 'done'::text)
EXPLAIN

EXPLAIN SELECT * FROM task WHERE state = 'open' AND owner BETWEEN 7 AND 800;
----
QUERY PLAN:text
Index Scan using task_state on task  (cost=0.00..5.00 rows=5 width=0)
  Index Cond: (state = 'open'::text)
  Filter: ((owner >= 7) AND (owner <= 800))
EXPLAIN

# In order until three are found that pass, or the few that pass, sorted.
EXPLAIN SELECT * FROM task WHERE state = 'done' ORDER BY at LIMIT 3;
----
QUERY PLAN:text
Limit  (cost=0.00..103.10 rows=3 width=0)
  ->  Index Scan using task_at on task  (cost=0.00..100.10 rows=100 width=0)
        Filter: (state = 'done'::text)
EXPLAIN

EXPLAIN SELECT * FROM task WHERE state = 'open' ORDER BY at LIMIT 3;
----
QUERY PLAN:text
Limit  (cost=0.00..13.00 rows=3 width=0)
  ->  Sort  (cost=0.00..10.00 rows=5 width=0)
        Sort Key: at
        ->  Index Scan using task_state on task  (cost=0.00..5.00 rows=5 width=0)
              Index Cond: (state = 'open'::text)
EXPLAIN

# Keys narrow it, though nearly all rows have them: what is read is what may conflict.
EXPLAIN SELECT * FROM task WHERE state = 'done';
----
QUERY PLAN:text
Seq Scan on task  (cost=0.00..5000.00 rows=5000 width=0)
  Filter: (state = 'done'::text)
EXPLAIN

# A parameter may be anything.
PREPARE p AS SELECT * FROM task WHERE state = $1 AND owner = $2;
EXPLAIN EXECUTE p('done', 7);
----
PREPARE
QUERY PLAN:text
Index Scan using task_owner on task  (cost=0.00..5.56 rows=6 width=0)
  Index Cond: (owner = $2)
  Filter: (state = $1)
EXPLAIN

# A list of keys is as long as it is; bounds hold the rows that are equal to them.
CREATE TABLE listed (id INT PRIMARY KEY, g INT, c INT); CREATE INDEX listed_g ON listed (g); CREATE INDEX listed_c ON listed (c);
----
CREATE TABLE
CREATE INDEX
CREATE INDEX

INSERT INTO listed SELECT i, i % 500, i % 100 FROM generate_series(1, 2000) i;
----
INSERT 0 2000

EXPLAIN SELECT * FROM listed WHERE g = ANY (ARRAY[1, 2, 3]) ORDER BY c LIMIT 2;
----
QUERY PLAN:text
Limit  (cost=0.00..3335.33 rows=2 width=0)
  ->  Index Scan using listed_c on listed  (cost=0.00..3333.33 rows=3333 width=0)
        Filter: (g = ANY ('{1,2,3}'::integer[]))
EXPLAIN

PREPARE by_ids (int[]) AS SELECT * FROM listed WHERE id = ANY ($1) AND c BETWEEN 1 AND 2;
----
PREPARE

EXPLAIN EXECUTE by_ids ('{1,2,3}');
----
QUERY PLAN:text
Point Lookup using listed_pkey on listed  (cost=0.00..4.00 rows=4 width=0)
  Index Cond: (id = ANY ($1))
  Filter: ((c >= 1) AND (c <= 2))
EXPLAIN

ANALYZE listed;
----
ANALYZE

EXPLAIN EXECUTE by_ids ('{1,2,3}');
----
QUERY PLAN:text
Point Lookup using listed_pkey on listed  (cost=0.00..4.00 rows=4 width=0)
  Index Cond: (id = ANY ($1))
  Filter: ((c >= 1) AND (c <= 2))
EXPLAIN

EXPLAIN SELECT * FROM listed WHERE id IN (1, 2, 3) AND c BETWEEN 1 AND 1;
----
QUERY PLAN:text
Point Lookup using listed_pkey on listed  (cost=0.00..3.00 rows=3 width=0)
  Index Cond: (id = ANY (ARRAY[1, 2, 3]))
  Filter: ((c >= 1) AND (c <= 1))
EXPLAIN

EXPLAIN SELECT * FROM listed WHERE g IN (1, 2, 3) AND c BETWEEN 1 AND 2;
----
QUERY PLAN:text
Index Scan using listed_g on listed  (cost=0.00..12.00 rows=12 width=0)
  Index Cond: (g = ANY (ARRAY[1, 2, 3]))
  Filter: ((c >= 1) AND (c <= 2))
EXPLAIN

EXPLAIN SELECT * FROM listed WHERE g = ANY (ARRAY[1, 2, 3]) AND c >= 1 AND c < 3;
----
QUERY PLAN:text
Index Scan using listed_g on listed  (cost=0.00..12.00 rows=12 width=0)
  Index Cond: (g = ANY ('{1,2,3}'::integer[]))
  Filter: ((c >= 1) AND (c < 3))
EXPLAIN

EXPLAIN SELECT * FROM listed WHERE c > 98;
----
QUERY PLAN:text
Index Scan using listed_c on listed  (cost=0.00..20.00 rows=20 width=0)
  Index Cond: (c > 98)
EXPLAIN

EXPLAIN SELECT * FROM listed WHERE id = ANY (ARRAY[1, 2, 3]) ORDER BY c LIMIT 2;
----
QUERY PLAN:text
Limit  (cost=0.00..8.00 rows=2 width=0)
  ->  Sort  (cost=0.00..6.00 rows=3 width=0)
        Sort Key: c
        ->  Point Lookup using listed_pkey on listed  (cost=0.00..3.00 rows=3 width=0)
              Index Cond: (id = ANY ('{1,2,3}'::integer[]))
EXPLAIN

EXPLAIN SELECT * FROM listed WHERE id IN (SELECT id FROM listed WHERE g = 5) AND c BETWEEN 1 AND 2;
----
QUERY PLAN:text
Point Lookup using listed_pkey on listed  (cost=0.00..8.00 rows=4 width=0)
  Index Cond: (id = ANY ($1))
  Filter: ((c >= 1) AND (c <= 2))
  InitPlan 1 (returns $1)
    ->  Index Only Scan using listed_g on listed  (cost=0.00..4.00 rows=4 width=0)
          Index Cond: (g = 5)
EXPLAIN

# What lies between two values that are not known yet is little: ten such ranges are not all of the table.
PREPARE ranges AS SELECT count(c) FROM listed WHERE c BETWEEN $1 AND $2 OR c BETWEEN $3 AND $4 OR c BETWEEN $5 AND $6 OR c BETWEEN $7 AND $8 OR c BETWEEN $9 AND $10 OR c BETWEEN $11 AND $12 OR c BETWEEN $13 AND $14 OR c BETWEEN $15 AND $16 OR c BETWEEN $17 AND $18 OR c BETWEEN $19 AND $20;
EXPLAIN EXECUTE ranges (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20);
EXECUTE ranges (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20);
----
PREPARE
QUERY PLAN:text
Aggregate  (cost=0.00..101.00 rows=1 width=0)
  ->  Index Only Scan using listed_c on listed  (cost=0.00..100.00 rows=100 width=0)
        Index Cond: (((c >= $1) AND (c <= $2)) OR ((c >= $3) AND (c <= $4)) OR ((c >= $5) AND (c <= $6)) OR ((c >= $7) AND (c <= $8)) OR ((c >= $9) AND (c <= $10)) OR ((c >= $11) AND (c <= $12)) OR ((c >= $13) AND (c <= $14)) OR ((c >= $15) AND (c <= $16)) OR ((c >= $17) AND (c <= $18)) OR ((c >= $19) AND (c <= $20)))
EXPLAIN
count:int8
400
SELECT 1

# One of the two bounds is known.
PREPARE above AS SELECT count(c) FROM listed WHERE c >= $1 AND c <= 3;
EXPLAIN EXECUTE above (1);
PREPARE outside AS SELECT count(c) FROM listed WHERE c < $1;
EXPLAIN EXECUTE outside (1);
----
PREPARE
QUERY PLAN:text
Aggregate  (cost=0.00..11.00 rows=1 width=0)
  ->  Index Only Scan using listed_c on listed  (cost=0.00..10.00 rows=10 width=0)
        Index Cond: ((c >= $1) AND (c <= 3))
EXPLAIN
PREPARE
QUERY PLAN:text
Aggregate  (cost=0.00..667.67 rows=1 width=0)
  ->  Index Only Scan using listed_c on listed  (cost=0.00..666.67 rows=667 width=0)
        Index Cond: (c < $1)
EXPLAIN

# A date beside a timestamp bounds it like a date: with a lower bound beside it a stretch, not a third of a half.
CREATE TABLE days (id int PRIMARY KEY, d date);
INSERT INTO days SELECT g, date '2000-01-01' + g FROM generate_series(1, 1000) g;
----
CREATE TABLE
INSERT 0 1000

ANALYZE days;
----
ANALYZE

EXPLAIN SELECT count(*) FROM people p JOIN days t ON t.id = p.age WHERE t.d >= date '2000-03-01' AND t.d < date '2000-03-01' + interval '1 month';
----
QUERY PLAN:text
Aggregate  (cost=0.00..9001.00 rows=1 width=0)
  ->  Lookup or Hash Join  (cost=0.00..9000.00 rows=4000 width=0)
        Hash Cond: (p.age = t.id)
        ->  Seq Scan on people p  (cost=0.00..4000.00 rows=4000 width=0)
        ->  Seq Scan on days t  (cost=0.00..1000.00 rows=40 width=0)
              Filter: ((t.d >= '2000-03-01'::date) AND (t.d < '2000-04-01 00:00:00'::timestamp without time zone))
        Lookup
          ->  Point Lookup using days_pkey on days t  (cost=0.00..1.00 rows=1 width=0)
                Index Cond: (id = p.age)
                Filter: ((t.d >= '2000-03-01'::date) AND (t.d < '2000-04-01 00:00:00'::timestamp without time zone))
EXPLAIN

# How many left rows are worth looking up in the right side's index is known before it is read. Beyond a hundred, the right side is asked first whether it is short: eight rows for each.
CREATE TABLE parent (id INT PRIMARY KEY, note TEXT); CREATE TABLE child (p INT, n INT, PRIMARY KEY (p, n));
INSERT INTO parent SELECT i, 'note' FROM generate_series(1, 5000) i; INSERT INTO child SELECT i / 4, i % 4 FROM generate_series(1, 20000) i;
----
CREATE TABLE
CREATE TABLE
INSERT 0 5000
INSERT 0 20000

ANALYZE parent; ANALYZE child;
----
ANALYZE
ANALYZE

# Of 20,000 rows, 300 times four: looked up, beside 2,400 rows that show that there are more.
EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, COSTS OFF) SELECT count(*), count(DISTINCT c.n) FROM parent p JOIN child c ON c.p = p.id WHERE p.id <= 300;
----
QUERY PLAN:text
Aggregate (actual rows=1 loops=1)
  ->  Lookup or Hash Join (actual rows=1200 loops=1)
        Hash Cond: (p.id = c.p)
        Batches: 1  Memory Usage: 44kB
        ->  Index Scan using parent_pkey on parent p (actual rows=300 loops=1)
              Index Cond: (id <= 300)
        ->  Seq Scan on child c (actual rows=2400 loops=1)
        Lookup
          ->  Index Scan using child_pkey on child c (actual rows=4 loops=300)
                Index Cond: (p = p.id)
Rows: 1
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN

# 1,000 times: only read.
EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, COSTS OFF) SELECT count(*), count(DISTINCT c.n) FROM parent p JOIN child c ON c.p = p.id WHERE p.id <= 1000;
SELECT count(*), count(DISTINCT c.n), sum(c.p) FROM parent p JOIN child c ON c.p = p.id WHERE p.id <= 300;
SELECT count(*), count(DISTINCT c.n), sum(c.p) FROM parent p JOIN child c ON c.p = p.id WHERE p.id <= 1000;
----
QUERY PLAN:text
Aggregate (actual rows=1 loops=1)
  ->  Lookup or Hash Join (actual rows=4000 loops=1)
        Hash Cond: (p.id = c.p)
        Batches: 1  Memory Usage: 242kB
        ->  Index Scan using parent_pkey on parent p (actual rows=1000 loops=1)
              Index Cond: (id <= 1000)
        ->  Seq Scan on child c (actual rows=20000 loops=1)
        Lookup
          ->  Index Scan using child_pkey on child c (never executed)
                Index Cond: (p = p.id)
Rows: 1
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
count:int8 | count:int8 | sum:int8
1200 | 4 | 180600
SELECT 1
count:int8 | count:int8 | sum:int8
4000 | 4 | 2002000
SELECT 1

# TRUNCATE: nothing is known of the table any more, in its own transaction and after it.
BEGIN; TRUNCATE child; INSERT INTO child SELECT i, 0 FROM generate_series(1, 10) i;
EXPLAIN SELECT * FROM child;
ROLLBACK;
TRUNCATE child;
----
BEGIN
TRUNCATE TABLE
INSERT 0 10
QUERY PLAN:text
Seq Scan on child  (cost=0.00..100000.00 rows=100000 width=0)
EXPLAIN
ROLLBACK
TRUNCATE TABLE

INSERT INTO child SELECT i / 4, i % 4 FROM generate_series(1, 20000) i;
EXPLAIN SELECT * FROM child;
----
INSERT 0 20000
QUERY PLAN:text
Seq Scan on child  (cost=0.00..100000.00 rows=100000 width=0)
EXPLAIN

# Statistics that are wrong: the right side is thought to have 20,000 rows, and has eleven. 400 left rows are not looked up one by one.
ANALYZE child;
----
ANALYZE

DELETE FROM child WHERE p > 2;
----
DELETE 19989

EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, COSTS OFF) SELECT count(*), count(DISTINCT c.n) FROM parent p JOIN child c ON c.p = p.id WHERE p.id <= 400;
SELECT count(*), count(DISTINCT c.n) FROM parent p JOIN child c ON c.p = p.id WHERE p.id <= 400;
SELECT count(*), count(DISTINCT c.n) FROM parent p LEFT JOIN child c ON c.p = p.id WHERE p.id <= 400;
----
QUERY PLAN:text
Aggregate (actual rows=1 loops=1)
  ->  Lookup or Hash Join (actual rows=8 loops=1)
        Hash Cond: (p.id = c.p)
        Batches: 1  Memory Usage: 31kB
        ->  Index Scan using parent_pkey on parent p (actual rows=400 loops=1)
              Index Cond: (id <= 400)
        ->  Seq Scan on child c (actual rows=11 loops=1)
        Lookup
          ->  Index Scan using child_pkey on child c (never executed)
                Index Cond: (p = p.id)
Rows: 1
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
count:int8 | count:int8
8 | 4
SELECT 1
count:int8 | count:int8
406 | 4
SELECT 1

# It is thought to have eleven, and has 20,000: they are not all read for 200 left rows. For 4,000 they are.
ANALYZE child;
----
ANALYZE

INSERT INTO child SELECT i / 4, i % 4 FROM generate_series(12, 20000) i;
----
INSERT 0 19989

EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, COSTS OFF) SELECT count(*), count(DISTINCT c.n) FROM parent p LEFT JOIN child c ON c.p = p.id WHERE p.id <= 200;
EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, COSTS OFF) SELECT count(*), count(DISTINCT c.n) FROM parent p LEFT JOIN child c ON c.p = p.id WHERE p.id <= 4000;
SELECT count(*), count(DISTINCT c.n) FROM parent p LEFT JOIN child c ON c.p = p.id WHERE p.id <= 200;
SELECT count(*), count(DISTINCT c.n) FROM parent p LEFT JOIN child c ON c.p = p.id WHERE p.id <= 4000;
----
QUERY PLAN:text
Aggregate (actual rows=1 loops=1)
  ->  Lookup or Hash Left Join (actual rows=800 loops=1)
        Hash Cond: (p.id = c.p)
        Batches: 1  Memory Usage: 126kB
        ->  Index Scan using parent_pkey on parent p (actual rows=200 loops=1)
              Index Cond: (id <= 200)
        ->  Seq Scan on child c (actual rows=3200 loops=1)
        Lookup
          ->  Index Scan using child_pkey on child c (actual rows=4 loops=200)
                Index Cond: (p = p.id)
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
  ->  Lookup or Hash Left Join (actual rows=16000 loops=1)
        Hash Cond: (p.id = c.p)
        Batches: 1  Memory Usage: 967kB
        ->  Index Scan using parent_pkey on parent p (actual rows=4000 loops=1)
              Index Cond: (id <= 4000)
        ->  Seq Scan on child c (actual rows=20000 loops=1)
        Lookup
          ->  Index Scan using child_pkey on child c (never executed)
                Index Cond: (p = p.id)
Rows: 1
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
count:int8 | count:int8
800 | 4
SELECT 1
count:int8 | count:int8
16000 | 4
SELECT 1

# Lookups that find far more than the table has: of 81 left rows each finds all 200 of a table that is thought to have 20,000.
CREATE TABLE held (id INT PRIMARY KEY, g INT, note TEXT); CREATE INDEX held_g ON held (g) INCLUDE (id); INSERT INTO held SELECT i, i % 100, '' FROM generate_series(1, 20000) i;
----
CREATE TABLE
CREATE INDEX
INSERT 0 20000

ANALYZE held;
----
ANALYZE

DELETE FROM held WHERE g <> 1;
----
DELETE 19800

EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, COSTS OFF) SELECT count(*), count(DISTINCT h.id) FROM parent p JOIN held h ON h.g = p.id / 1000 WHERE p.id BETWEEN 1000 AND 1080;
SELECT count(*), count(DISTINCT h.id) FROM parent p JOIN held h ON h.g = p.id / 1000 WHERE p.id BETWEEN 1000 AND 1080;
----
QUERY PLAN:text
Aggregate (actual rows=1 loops=1)
  ->  Lookup or Hash Join (actual rows=16200 loops=1)
        Hash Cond: ((p.id / 1000) = h.g)
        Batches: 1  Memory Usage: 1kB
        ->  Index Scan using parent_pkey on parent p (actual rows=81 loops=1)
              Index Cond: ((id >= 1000) AND (id <= 1080))
        ->  Seq Scan on held h (actual rows=200 loops=1)
        Lookup
          ->  Index Only Scan using held_g on held h (actual rows=194 loops=21)
                Index Cond: (g = (p.id / 1000))
Rows: 1
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN
count:int8 | count:int8
16200 | 200
SELECT 1
