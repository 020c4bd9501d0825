# A left join that finds one row at most, of which nothing is read, is not made.
CREATE TABLE big (id int PRIMARY KEY, v int, s text);
CREATE TABLE small (id int PRIMARY KEY, a int, b int, name text, UNIQUE (a, b));
CREATE TABLE many (id int PRIMARY KEY, v bigint);
INSERT INTO big SELECT g, CASE WHEN g % 5 > 0 THEN g % 30 END, 's' || g % 7 FROM generate_series(1, 2000) g;
INSERT INTO small SELECT g, g, g % 3, 'n' || g FROM generate_series(1, 20) g;
INSERT INTO many SELECT g, g % 10 FROM generate_series(1, 40) g;
----
CREATE TABLE
CREATE TABLE
CREATE TABLE
INSERT 0 2000
INSERT 0 20
INSERT 0 40

# Read above, in a condition, by another join, by a subquery; no unique key; another kind of join.
EXPLAIN (COSTS OFF) SELECT b.s FROM big b LEFT JOIN small s ON s.id = b.v;
EXPLAIN (COSTS OFF) SELECT count(*) FROM big b LEFT JOIN small s ON s.id = b.v;
EXPLAIN (COSTS OFF) SELECT b.s, count(*) FROM big b LEFT JOIN small s ON s.id = b.v LEFT JOIN small t ON t.a = b.id AND t.b = b.v WHERE b.id < 1900 GROUP BY b.s;
EXPLAIN (COSTS OFF) SELECT b.s FROM many m LEFT JOIN big b ON b.id = m.v LEFT JOIN small s ON s.id = b.v;
EXPLAIN (COSTS OFF) SELECT b.s, s.name FROM big b LEFT JOIN small s ON s.id = b.v;
EXPLAIN (COSTS OFF) SELECT b.s FROM big b LEFT JOIN small s ON s.id = b.v WHERE s.name IS NULL;
EXPLAIN (COSTS OFF) SELECT b.s FROM big b LEFT JOIN small s ON s.id = b.v ORDER BY s.name;
EXPLAIN (COSTS OFF) SELECT b.s, t.name FROM big b LEFT JOIN small s ON s.id = b.v LEFT JOIN small t ON t.id = s.a;
EXPLAIN (COSTS OFF) SELECT b.s FROM big b LEFT JOIN many m ON m.v = b.v;
EXPLAIN (COSTS OFF) SELECT b.s FROM big b LEFT JOIN small s ON s.a = b.v;
EXPLAIN (COSTS OFF) SELECT b.s FROM big b JOIN small s ON s.id = b.v;
----
QUERY PLAN:text
Seq Scan on big b
EXPLAIN
QUERY PLAN:text
Aggregate
  ->  Seq Scan on big b
EXPLAIN
QUERY PLAN:text
HashAggregate
  Group Key: s
  ->  Index Scan using big_pkey on big b
        Index Cond: (id < 1900)
EXPLAIN
QUERY PLAN:text
Lookup or Hash Left Join
  Hash Cond: (m.v = b.id)
  ->  Seq Scan on many m
  ->  Seq Scan on big b
  Lookup
    ->  Point Lookup using big_pkey on big b
          Index Cond: (id = m.v)
EXPLAIN
QUERY PLAN:text
Lookup or Hash Left Join
  Hash Cond: (b.v = s.id)
  ->  Seq Scan on big b
  ->  Seq Scan on small s
  Lookup
    ->  Point Lookup using small_pkey on small s
          Index Cond: (id = b.v)
EXPLAIN
QUERY PLAN:text
Lookup or Hash Left Join
  Hash Cond: (b.v = s.id)
  Filter: (s.name IS NULL)
  ->  Seq Scan on big b
  ->  Seq Scan on small s
  Lookup
    ->  Point Lookup using small_pkey on small s
          Index Cond: (id = b.v)
EXPLAIN
QUERY PLAN:text
Sort
  Sort Key: s.name
  ->  Lookup or Hash Left Join
        Hash Cond: (b.v = s.id)
        ->  Seq Scan on big b
        ->  Seq Scan on small s
        Lookup
          ->  Point Lookup using small_pkey on small s
                Index Cond: (id = b.v)
EXPLAIN
QUERY PLAN:text
Lookup or Hash Left Join
  Hash Cond: (s.a = t.id)
  ->  Lookup or Hash Left Join
        Hash Cond: (b.v = s.id)
        ->  Seq Scan on big b
        ->  Seq Scan on small s
        Lookup
          ->  Point Lookup using small_pkey on small s
                Index Cond: (id = b.v)
  ->  Seq Scan on small t
  Lookup
    ->  Point Lookup using small_pkey on small t
          Index Cond: (id = s.a)
EXPLAIN
QUERY PLAN:text
Hash Left Join
  Hash Cond: (b.v = m.v)
  ->  Seq Scan on big b
  ->  Seq Scan on many m
EXPLAIN
QUERY PLAN:text
Lookup or Hash Left Join
  Hash Cond: (b.v = s.a)
  ->  Seq Scan on big b
  ->  Seq Scan on small s
  Lookup
    ->  Index Only Scan using small_a_b_key on small s
          Index Cond: (a = b.v)
EXPLAIN
QUERY PLAN:text
Lookup or Hash Join
  Hash Cond: (b.v = s.id)
  ->  Seq Scan on big b
  ->  Seq Scan on small s
  Lookup
    ->  Point Lookup using small_pkey on small s
          Index Cond: (id = b.v)
EXPLAIN

SELECT count(*), min(b.s) FROM big b LEFT JOIN small s ON s.id = b.v;
SELECT b.s, count(*) FROM big b LEFT JOIN small s ON s.id = b.v LEFT JOIN small t ON t.a = b.id AND t.b = b.v WHERE b.id < 1900 GROUP BY b.s ORDER BY b.s;
SELECT count(*) FROM many m LEFT JOIN big b ON b.id = m.v LEFT JOIN small s ON s.id = b.v;
SELECT count(*) FROM (SELECT b.id, (SELECT max(name) FROM small x WHERE x.id = s.id) FROM big b LEFT JOIN small s ON s.id = b.v) y;
SELECT count(*) FROM big b LEFT JOIN many m ON m.v = b.v;
SELECT count(*) FROM big b LEFT JOIN small s ON s.a = b.v;
SELECT count(*) FROM big b LEFT JOIN small s ON s.id = b.v AND s.name = 'n3';
SELECT x.s FROM (SELECT b.id, b.s, s.name FROM big b LEFT JOIN small s ON s.id = b.v) x WHERE x.id < 4 ORDER BY x.s;
SELECT b.s FROM big b LEFT JOIN small s ON s.id = b.v WHERE b.id < 4 ORDER BY b.id LIMIT 2;
----
count:int8 | min:text
2000 | s0
SELECT 1
s:text | count:int8
s0 | 271
s1 | 272
s2 | 272
s3 | 271
s4 | 271
s5 | 271
s6 | 271
SELECT 7
count:int8
40
SELECT 1
count:int8
2000
SELECT 1
count:int8
3608
SELECT 1
count:int8
2000
SELECT 1
count:int8
2000
SELECT 1
s:text
s1
s2
s3
SELECT 3
s:text
s1
s2
SELECT 2

CREATE VIEW wide AS SELECT b.id, b.s, s.name, t.name AS other FROM big b LEFT JOIN small s ON s.id = b.v LEFT JOIN small t ON t.id = b.id;
EXPLAIN (COSTS OFF) SELECT count(id) FROM wide;
SELECT count(s), count(name) FROM wide;
SELECT count(id) FROM wide;
----
CREATE VIEW
QUERY PLAN:text
Aggregate
  ->  Seq Scan on big b
EXPLAIN
count:int8 | count:int8
2000 | 1072
SELECT 1
count:int8
2000
SELECT 1
