# Where one of several conditions must hold, and each of them has an index, rows are those that any of these leads to (decision 237).
CREATE TABLE big (id int PRIMARY KEY, v int, w int, s text, n numeric, d date);
INSERT INTO big SELECT g, g % 1000, g % 7, 's' || g % 5000, g / 10.0, date '2020-01-01' + g % 3000 FROM generate_series(1, 20000) g;
CREATE INDEX big_v ON big (v, w);
CREATE UNIQUE INDEX big_s ON big (s, id);
CREATE INDEX big_d ON big (d) WHERE w = 3;
CREATE INDEX big_l ON big (lower(s));
ANALYZE big;
CREATE TABLE few (id int PRIMARY KEY, a int, b text);
INSERT INTO few VALUES (1, 5, 's17'), (2, 6, 's18'), (3, NULL, 's17'), (4, 7, NULL);
----
CREATE TABLE
INSERT 0 20000
CREATE INDEX
CREATE INDEX
CREATE INDEX
CREATE INDEX
ANALYZE
CREATE TABLE
INSERT 0 4

EXPLAIN (COSTS OFF) SELECT * FROM big WHERE id = 5 OR s = 's17';
EXPLAIN (COSTS OFF) SELECT count(*) FROM big WHERE id IN (5, 6) OR s = 's17' OR v = 3 OR id > 19990;
EXPLAIN (COSTS OFF) SELECT count(*) FROM big WHERE (id = 5 OR s = 's17') AND w = 3;
EXPLAIN (COSTS OFF) SELECT count(*) FROM big WHERE w = 3 AND (d = '2020-05-05' OR lower(s) = 's9');
EXPLAIN (COSTS OFF) SELECT count(*) FROM big WHERE id = 5 OR w = 3;
EXPLAIN (COSTS OFF) SELECT count(*) FROM big WHERE id < 15000 OR s = 's17';
EXPLAIN (COSTS OFF) SELECT * FROM big WHERE id = 5 OR s = 's17' ORDER BY id LIMIT 3;
EXPLAIN (COSTS OFF) SELECT * FROM big WHERE id > 500 OR s = 's17' ORDER BY id LIMIT 3;
EXPLAIN (COSTS OFF) SELECT * FROM big WHERE id = 5 OR s = 's17' FOR UPDATE SKIP LOCKED;
EXPLAIN (COSTS OFF) UPDATE big SET w = w WHERE id = 5 OR s = 's17';
EXPLAIN (COSTS OFF) SELECT count(*) FROM few f JOIN big b ON b.id = f.a OR b.s = f.b;
EXPLAIN (COSTS OFF) SELECT f.id FROM few f WHERE EXISTS (SELECT 1 FROM big b WHERE b.id = f.a OR b.s = f.b);
----
QUERY PLAN:text
Bitmap Heap Scan on big
  Filter: ((id = 5) OR (s = 's17'::text))
  ->  BitmapOr
        ->  Bitmap Index Scan on big_pkey
              Index Cond: (id = 5)
        ->  Bitmap Index Scan on big_s
              Index Cond: (s = 's17'::text)
EXPLAIN
QUERY PLAN:text
Aggregate
  ->  Bitmap Heap Scan on big
        Filter: ((id = ANY (ARRAY[5, 6])) OR (s = 's17'::text) OR (v = 3) OR (id > 19990))
        ->  BitmapOr
              ->  Bitmap Index Scan on big_pkey
                    Index Cond: ((id = ANY (ARRAY[5, 6])) OR (id > 19990))
              ->  Bitmap Index Scan on big_s
                    Index Cond: (s = 's17'::text)
              ->  Bitmap Index Scan on big_v
                    Index Cond: (v = 3)
EXPLAIN
QUERY PLAN:text
Aggregate
  ->  Bitmap Heap Scan on big
        Filter: (((id = 5) OR (s = 's17'::text)) AND (w = 3))
        ->  BitmapOr
              ->  Bitmap Index Scan on big_pkey
                    Index Cond: (id = 5)
              ->  Bitmap Index Scan on big_s
                    Index Cond: (s = 's17'::text)
EXPLAIN
QUERY PLAN:text
Aggregate
  ->  Bitmap Heap Scan on big
        Filter: ((w = 3) AND ((d = '2020-05-05'::date) OR (lower(s) = 's9'::text)))
        ->  BitmapOr
              ->  Bitmap Index Scan on big_d
                    Index Cond: (d = '2020-05-05'::date)
              ->  Bitmap Index Scan on big_l
                    Index Cond: (lower(s) = 's9'::text)
EXPLAIN
QUERY PLAN:text
Aggregate
  ->  Seq Scan on big
        Filter: ((id = 5) OR (w = 3))
EXPLAIN
QUERY PLAN:text
Aggregate
  ->  Seq Scan on big
        Filter: ((id < 15000) OR (s = 's17'::text))
EXPLAIN
QUERY PLAN:text
Limit
  ->  Sort
        Sort Key: id
        ->  Bitmap Heap Scan on big
              Filter: ((id = 5) OR (s = 's17'::text))
              ->  BitmapOr
                    ->  Bitmap Index Scan on big_pkey
                          Index Cond: (id = 5)
                    ->  Bitmap Index Scan on big_s
                          Index Cond: (s = 's17'::text)
EXPLAIN
QUERY PLAN:text
Limit
  ->  Seq Scan on big
        Filter: ((id > 500) OR (s = 's17'::text))
EXPLAIN
QUERY PLAN:text
LockRows
  ->  Seq Scan on big
        Filter: ((id = 5) OR (s = 's17'::text))
EXPLAIN
QUERY PLAN:text
Update on big
  ->  Bitmap Heap Scan on big
        Filter: ((id = 5) OR (s = 's17'::text))
        ->  BitmapOr
              ->  Bitmap Index Scan on big_pkey
                    Index Cond: (id = 5)
              ->  Bitmap Index Scan on big_s
                    Index Cond: (s = 's17'::text)
EXPLAIN
QUERY PLAN:text
Aggregate
  ->  Nested Loop
        Join Filter: ((b.id = f.a) OR (b.s = f.b))
        ->  Seq Scan on few f
        ->  Seq Scan on big b
EXPLAIN
QUERY PLAN:text
Seq Scan on few f
  Filter: EXISTS(SubPlan 1)
  SubPlan 1
    ->  Bitmap Heap Scan on big b
          Filter: ((b.id = f.a) OR (b.s = f.b))
          ->  BitmapOr
                ->  Bitmap Index Scan on big_pkey
                      Index Cond: (id = f.a)
                ->  Bitmap Index Scan on big_s
                      Index Cond: (s = f.b)
EXPLAIN

SELECT id FROM big WHERE id = 5 OR s = 's17' ORDER BY id;
SELECT id FROM big WHERE id = 5 OR s = 's17' ORDER BY id DESC LIMIT 3;
SELECT id FROM big WHERE id = 17 OR s = 's17' OR v = 17 AND w = 3 ORDER BY id;
SELECT count(*), sum(id) FROM big WHERE id IN (5, 6) OR s = 's17' OR v = 3 OR id > 19990;
SELECT count(*), sum(id) FROM big WHERE (id = 5 OR s = 's17') AND w = 3;
SELECT count(*), sum(id) FROM big WHERE w = 3 AND (d = '2020-05-05' OR lower(s) = 's9');
SELECT f.id, count(*), sum(b.id) FROM few f JOIN big b ON b.id = f.a OR b.s = f.b GROUP BY f.id ORDER BY 1;
SELECT f.id, count(b.id) FROM few f LEFT JOIN big b ON b.id = f.a OR b.s = f.b GROUP BY f.id ORDER BY 1;
SELECT f.id FROM few f WHERE EXISTS (SELECT 1 FROM big b WHERE b.id = f.a OR b.s = f.b) ORDER BY 1;
SELECT f.id FROM few f WHERE NOT EXISTS (SELECT 1 FROM big b WHERE b.id = f.a AND b.w = 6 OR b.s = f.b AND b.w = 1) ORDER BY 1;
BEGIN;
UPDATE big SET id = id + 100000, s = 'x' WHERE id = 5 OR s = 's17' RETURNING id;
SELECT id FROM big WHERE id = 100005 OR s = 's17' OR v = 17 AND s = 'x' ORDER BY id;
DELETE FROM big WHERE id = 6 OR s = 'x' OR v = 8 AND w = 1 RETURNING id;
SELECT count(*) FROM big WHERE id = 6 OR s = 'x';
ROLLBACK;
SELECT id FROM big WHERE id = 5 OR s = 's17' ORDER BY id FOR UPDATE;
----
id:int4
5
17
5017
10017
15017
SELECT 5
id:int4
15017
10017
5017
SELECT 3
id:int4
17
5017
7017
10017
14017
15017
SELECT 6
count:int8 | sum:int8
36 | 420094
SELECT 1
count:int8 | sum:int8
1 | 17
SELECT 1
count:int8 | sum:int8
1 | 3125
SELECT 1
id:int4 | count:int8 | sum:int8
1 | 5 | 30073
2 | 5 | 30078
3 | 4 | 30068
4 | 1 | 7
SELECT 4
id:int4 | count:int8
1 | 5
2 | 5
3 | 4
4 | 1
SELECT 4
id:int4
1
2
3
4
SELECT 4
id:int4
1
3
4
SELECT 3
BEGIN
id:int4
100005
100017
105017
110017
115017
UPDATE 5
id:int4
100005
100017
105017
110017
115017
SELECT 5
id:int4
6
8
7008
14008
100005
100017
105017
110017
115017
DELETE 9
count:int8
0
SELECT 1
ROLLBACK
id:int4
5
17
5017
10017
15017
SELECT 5
