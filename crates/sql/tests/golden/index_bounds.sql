# Conditions that are compared in a wider type than the column's bound an index all the same: dates beside moments, reals beside double precision; and so do floats,
# intervals and what NOT negates.
CREATE TABLE day (id int PRIMARY KEY, d date, note text);
CREATE INDEX day_d ON day (d);
INSERT INTO day SELECT g, date '2020-01-01' + g, 'n' || g FROM generate_series(0, 999) g;
INSERT INTO day VALUES (1000, 'infinity', 'after'), (1001, '-infinity', 'before'), (1002, NULL, 'never');
----
CREATE TABLE
CREATE INDEX
INSERT 0 1000
INSERT 0 3

EXPLAIN (COSTS OFF) SELECT id FROM day WHERE d >= date '2020-01-02' AND d < date '2020-01-02' + interval '2 days';
EXPLAIN (COSTS OFF) SELECT id FROM day WHERE d = date '2020-01-01' + interval '3 days';
EXPLAIN (COSTS OFF) SELECT id FROM day WHERE d IN (timestamp '2020-01-05', timestamp '2020-01-06 00:00:01');
EXPLAIN (COSTS OFF) SELECT id FROM day WHERE d > timestamptz '2020-01-02' AND d < timestamptz '2020-01-04';
EXPLAIN (COSTS OFF) SELECT id FROM day WHERE d = timestamptz '2020-01-02';
----
QUERY PLAN:text
Index Only Scan using day_d on day
  Index Cond: ((d >= '2020-01-02'::date) AND (d < '2020-01-04 00:00:00'::timestamp without time zone))
  Filter: (d < '2020-01-04 00:00:00'::timestamp without time zone)
EXPLAIN
QUERY PLAN:text
Index Only Scan using day_d on day
  Index Cond: (d = '2020-01-04 00:00:00'::timestamp without time zone)
  Filter: (d = '2020-01-04 00:00:00'::timestamp without time zone)
EXPLAIN
QUERY PLAN:text
Index Only Scan using day_d on day
  Index Cond: (d = ANY (ARRAY['2020-01-05 00:00:00'::timestamp without time zone, '2020-01-06 00:00:01'::timestamp without time zone]))
  Filter: ((d)::timestamp without time zone = ANY (ARRAY['2020-01-05 00:00:00'::timestamp without time zone, '2020-01-06 00:00:01'::timestamp without time zone]))
EXPLAIN
QUERY PLAN:text
Index Only Scan using day_d on day
  Index Cond: ((d > ('2020-01-02'::text)::timestamp with time zone) AND (d < ('2020-01-04'::text)::timestamp with time zone))
  Filter: ((d > ('2020-01-02'::text)::timestamp with time zone) AND (d < ('2020-01-04'::text)::timestamp with time zone))
EXPLAIN
QUERY PLAN:text
Seq Scan on day
  Filter: (d = ('2020-01-02'::text)::timestamp with time zone)
EXPLAIN

# A moment within a day: the day is before it, the next one behind it.
SELECT id FROM day WHERE d >= date '2020-01-02' AND d < date '2020-01-02' + interval '2 days' ORDER BY id;
SELECT id FROM day WHERE d = date '2020-01-01' + interval '3 days';
SELECT id FROM day WHERE d = date '2020-01-01' + interval '3 days 1 second';
SELECT id FROM day WHERE d < timestamp '2020-01-03 12:00' AND id < 1000 ORDER BY id;
SELECT id FROM day WHERE d <= timestamp '2020-01-03 12:00' AND id < 1000 ORDER BY id;
SELECT id FROM day WHERE d < timestamp '2020-01-03' AND id < 1000 ORDER BY id;
SELECT id FROM day WHERE d > timestamp '2022-09-24 12:00' ORDER BY id;
SELECT id FROM day WHERE d >= timestamp '2022-09-24 12:00' ORDER BY id;
SELECT id FROM day WHERE d >= timestamp '2022-09-25' ORDER BY id;
SELECT id FROM day WHERE d IN (timestamp '2020-01-05', timestamp '2020-01-06 00:00:01') ORDER BY id;
SELECT id FROM day WHERE d = ANY (ARRAY[timestamp '2020-01-05', NULL, timestamp '2020-01-06 00:00:01']) ORDER BY id;
SELECT id FROM day WHERE d >= timestamp 'infinity' ORDER BY id;
SELECT id FROM day WHERE d > timestamp 'infinity' ORDER BY id;
SELECT id FROM day WHERE d <= timestamp '-infinity' ORDER BY id;
SELECT count(*) FROM day WHERE d < timestamp 'infinity';
SELECT count(*) FROM day WHERE d > timestamp '294276-12-31 23:59:59';
SELECT count(*) FROM day WHERE d BETWEEN timestamp '2020-01-01 00:00:01' AND timestamp '2020-01-09 23:00';
----
id:int4
1
2
SELECT 2
id:int4
3
SELECT 1
id:int4
SELECT 0
id:int4
0
1
2
SELECT 3
id:int4
0
1
2
SELECT 3
id:int4
0
1
SELECT 2
id:int4
998
999
1000
SELECT 3
id:int4
998
999
1000
SELECT 3
id:int4
998
999
1000
SELECT 3
id:int4
4
SELECT 1
id:int4
4
SELECT 1
id:int4
1000
SELECT 1
id:int4
SELECT 0
id:int4
1001
SELECT 1
count:int8
1001
SELECT 1
count:int8
1
SELECT 1
count:int8
8
SELECT 1

# Midnight of a time zone.
SET TimeZone = 'Pacific/Kiritimati';
SELECT id FROM day WHERE d > timestamptz '2020-01-02 10:00Z' AND d <= timestamptz '2020-01-04 10:00Z' ORDER BY id;
SELECT id FROM day WHERE d = timestamptz '2020-01-02 10:00Z' ORDER BY id;
SET TimeZone = 'America/New_York';
SELECT id FROM day WHERE d >= timestamptz '2020-03-08 05:00Z' AND d <= timestamptz '2020-03-09 04:00Z' ORDER BY id;
SELECT id FROM day WHERE d < timestamptz '-infinity' OR d >= timestamptz 'infinity' ORDER BY id;
RESET TimeZone;
----
(TimeZone = Pacific/Kiritimati)
SET
id:int4
3
4
SELECT 2
id:int4
2
SELECT 1
(TimeZone = America/New_York)
SET
id:int4
67
68
SELECT 2
id:int4
1000
SELECT 1
(TimeZone = UTC)
RESET

\extended
SELECT id FROM day WHERE d >= $1::date AND d < $1::date + $2::interval ORDER BY id
2020-02-01
3 days
----
id:int4
31
32
33
SELECT 3

CREATE TABLE reals (f float8 PRIMARY KEY, r real, i interval);
CREATE INDEX reals_r ON reals (r);
CREATE INDEX reals_i ON reals (i);
INSERT INTO reals SELECT g / 8.0, g / 10.0, g * interval '1 hour' FROM generate_series(-400, 400) g;
INSERT INTO reals VALUES ('NaN', 'NaN', NULL), ('infinity', 'infinity', '1 month'), ('-infinity', '-infinity', '30 days'), (1e300, 1e30, '1 year'), (-1e-300, 1e-45, '-1 day');
----
CREATE TABLE
CREATE INDEX
CREATE INDEX
INSERT 0 801
INSERT 0 5

EXPLAIN (COSTS OFF) SELECT * FROM reals WHERE f = 5;
EXPLAIN (COSTS OFF) SELECT * FROM reals WHERE f BETWEEN 1 AND 1.25;
EXPLAIN (COSTS OFF) SELECT * FROM reals WHERE r = 0.5;
EXPLAIN (COSTS OFF) SELECT * FROM reals WHERE r = 0.5::real;
EXPLAIN (COSTS OFF) UPDATE reals SET r = r WHERE f = 5;
EXPLAIN (COSTS OFF) SELECT * FROM reals WHERE i = '3 hours';
----
QUERY PLAN:text
Point Lookup using reals_pkey on reals
  Index Cond: (f = '5'::double precision)
  Filter: (f = '5'::double precision)
EXPLAIN
QUERY PLAN:text
Index Scan using reals_pkey on reals
  Index Cond: ((f >= '1'::double precision) AND (f <= '1.25'::double precision))
  Filter: ((f >= '1'::double precision) AND (f <= '1.25'::double precision))
EXPLAIN
QUERY PLAN:text
Index Scan using reals_r on reals
  Index Cond: (r = '0.5'::double precision)
  Filter: ((r)::double precision = '0.5'::double precision)
EXPLAIN
QUERY PLAN:text
Index Scan using reals_r on reals
  Index Cond: (r = '0.5'::real)
  Filter: (r = '0.5'::real)
EXPLAIN
QUERY PLAN:text
Update on reals
  ->  Point Lookup using reals_pkey on reals
        Index Cond: (f = '5'::double precision)
        Filter: (f = '5'::double precision)
        Locks rows
EXPLAIN
QUERY PLAN:text
Index Scan using reals_i on reals
  Index Cond: (i = '03:00:00'::interval)
  Filter: (i = '03:00:00'::interval)
EXPLAIN

# 0.1 is no real: as double precision it lies beside the one that is written so.
SELECT f, r, i FROM reals WHERE f = 5;
SELECT f, r FROM reals WHERE f = -0.0::float8;
SELECT f, r FROM reals WHERE f BETWEEN 1 AND 1.25 ORDER BY f;
SELECT f, r FROM reals WHERE f = 'NaN';
SELECT f, r FROM reals WHERE f > 50 ORDER BY f;
SELECT f, r FROM reals WHERE f < -50 ORDER BY f;
SELECT r FROM reals WHERE r = 0.1;
SELECT r FROM reals WHERE r = 0.1::real;
SELECT r FROM reals WHERE r = 0.5;
SELECT r FROM reals WHERE r > 0.1 AND r < 0.4 ORDER BY r;
SELECT r FROM reals WHERE r >= 0.1::real AND r <= 0.4::real ORDER BY r;
SELECT r FROM reals WHERE r > 1e-300 AND r < 0.05 ORDER BY r;
SELECT r FROM reals WHERE r > 1e200 ORDER BY r;
SELECT r FROM reals WHERE r >= 'NaN'::float8;
SELECT r FROM reals WHERE r IN (0.1::float8, 0.5::float8, 1.5::float8) ORDER BY r;
SELECT r FROM reals WHERE r = ANY (ARRAY[0.1, 0.5, 1.5]::real[]) ORDER BY r;
SELECT a.f, b.r FROM reals a JOIN reals b ON b.r = a.f WHERE a.f BETWEEN 1 AND 3 ORDER BY a.f;
SELECT f FROM reals WHERE i = '30 days' ORDER BY f;
SELECT i FROM reals WHERE i > '16 days 15 hours' ORDER BY i, f;
SELECT i FROM reals WHERE i < '-16 days -15 hours' ORDER BY i;
----
f:float8 | r:float4 | i:interval
5 | 4 | 40:00:00
SELECT 1
f:float8 | r:float4
0 | 0
SELECT 1
f:float8 | r:float4
1 | 0.8
1.125 | 0.9
1.25 | 1
SELECT 3
f:float8 | r:float4
NaN | NaN
SELECT 1
f:float8 | r:float4
1e+300 | 1e+30
Infinity | Infinity
NaN | NaN
SELECT 3
f:float8 | r:float4
-Infinity | -Infinity
SELECT 1
r:float4
SELECT 0
r:float4
0.1
SELECT 1
r:float4
0.5
SELECT 1
r:float4
0.1
0.2
0.3
SELECT 3
r:float4
0.1
0.2
0.3
0.4
SELECT 4
r:float4
1e-45
SELECT 1
r:float4
Infinity
NaN
SELECT 2
r:float4
NaN
SELECT 1
r:float4
0.5
1.5
SELECT 2
r:float4
0.1
0.5
1.5
SELECT 3
f:float8 | r:float4
1 | 1
1.5 | 1.5
2 | 2
2.5 | 2.5
3 | 3
SELECT 5
f:float8
-Infinity
Infinity
SELECT 2
i:interval
400:00:00
30 days
1 mon
1 year
SELECT 4
i:interval
-400:00:00
SELECT 1

# NOT of a comparison is the opposite one.
EXPLAIN (COSTS OFF) SELECT id FROM day WHERE NOT id > 2;
EXPLAIN (COSTS OFF) SELECT id FROM day WHERE NOT (id BETWEEN 3 AND 998) AND NOT (note = 'n1');
SELECT id FROM day WHERE NOT id > 2 ORDER BY id;
SELECT id FROM day WHERE NOT (id BETWEEN 3 AND 998) AND NOT (note = 'n1') ORDER BY id;
SELECT count(*) FROM day WHERE NOT d > '2020-01-05';
SELECT count(*) FROM day WHERE NOT (NOT (NOT d > '2020-01-05'));
SELECT count(*) FROM day WHERE NOT (d > '2020-01-05' OR note = 'n1');
SELECT count(*) FROM day WHERE NOT (d > '2020-01-05' AND note <> 'n7');
----
QUERY PLAN:text
Index Scan using day_pkey on day
  Index Cond: (id <= 2)
EXPLAIN
QUERY PLAN:text
Index Scan using day_pkey on day
  Index Cond: ((id < 3) OR (id > 998))
  Filter: (note <> 'n1'::text)
EXPLAIN
id:int4
0
1
2
SELECT 3
id:int4
0
2
999
1000
1001
1002
SELECT 6
count:int8
6
SELECT 1
count:int8
6
SELECT 1
count:int8
5
SELECT 1
count:int8
7
SELECT 1

# A partial index whose predicate is negated is found by what it was written as.
CREATE TABLE task (id int PRIMARY KEY, size int, owner int);
CREATE INDEX task_small ON task (owner) WHERE NOT (size > 10);
EXPLAIN (COSTS OFF) SELECT id FROM task WHERE owner = 1 AND NOT (size > 10);
EXPLAIN (COSTS OFF) SELECT id FROM task WHERE owner = 1 AND size <= 10;
EXPLAIN (COSTS OFF) SELECT id FROM task WHERE owner = 1;
----
CREATE TABLE
CREATE INDEX
QUERY PLAN:text
Index Scan using task_small on task
  Index Cond: (owner = 1)
  Filter: (size <= 10)
EXPLAIN
QUERY PLAN:text
Index Scan using task_small on task
  Index Cond: (owner = 1)
  Filter: (size <= 10)
EXPLAIN
QUERY PLAN:text
Seq Scan on task
  Filter: (owner = 1)
EXPLAIN
