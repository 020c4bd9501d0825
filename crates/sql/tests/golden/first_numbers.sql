# A window that numbers all rows need see no more than the first where only the first numbers are let through.
CREATE TABLE big (id int PRIMARY KEY, v int, s text);
INSERT INTO big SELECT g, (g * 7919) % 1009, 's' || g FROM generate_series(1, 1000) g;
----
CREATE TABLE
INSERT 0 1000

EXPLAIN (COSTS OFF) SELECT * FROM (SELECT id, v, row_number() OVER (ORDER BY v) rn FROM big) x WHERE rn <= 3;
EXPLAIN (COSTS OFF) SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY s ORDER BY v) rn FROM big) x WHERE rn <= 3;
EXPLAIN (COSTS OFF) SELECT * FROM (SELECT id, row_number() OVER (ORDER BY v) rn, count(*) OVER () FROM big) x WHERE rn <= 3;
EXPLAIN (COSTS OFF) SELECT * FROM (SELECT id, row_number() OVER (ORDER BY v) rn FROM big) x WHERE rn >= 3;
----
QUERY PLAN:text
WindowAgg
  Filter: (row_number() OVER (?) <= 3)
  ->  Sort
        Sort Key: v
        Sort Method: top-N heapsort
        ->  Seq Scan on big
EXPLAIN
QUERY PLAN:text
WindowAgg
  Filter: (row_number() OVER (?) <= 3)
  ->  Seq Scan on big
EXPLAIN
QUERY PLAN:text
WindowAgg
  Filter: (row_number() OVER (?) <= 3)
  ->  Seq Scan on big
EXPLAIN
QUERY PLAN:text
WindowAgg
  Filter: (row_number() OVER (?) >= 3)
  ->  Seq Scan on big
EXPLAIN

SELECT * FROM (SELECT id, v, row_number() OVER (ORDER BY v) rn FROM big) x WHERE rn <= 3 ORDER BY rn;
SELECT * FROM (SELECT id, v, row_number() OVER (ORDER BY v DESC) rn FROM big) x WHERE 3 > rn ORDER BY rn;
SELECT * FROM (SELECT id, v, row_number() OVER (ORDER BY v DESC) rn FROM big) x WHERE rn = 3 AND v > 5;
SELECT * FROM (SELECT id, v, row_number() OVER (ORDER BY v DESC) rn FROM big) x WHERE rn < 4 AND rn > 1 AND id > 0 ORDER BY rn;
SELECT count(*) FROM (SELECT id, v, row_number() OVER (ORDER BY v) rn FROM big) x WHERE rn <= 0;
SELECT count(*) FROM (SELECT id, v, row_number() OVER (ORDER BY v) rn FROM big) x WHERE rn < -5;
SELECT count(*) FROM (SELECT id, row_number() OVER (ORDER BY v) rn FROM big) x WHERE rn >= 3;
SELECT count(*), sum(rn) FROM (SELECT id, row_number() OVER (PARTITION BY id % 10 ORDER BY v) rn FROM big) x WHERE rn <= 3;
SELECT * FROM (SELECT id, v, row_number() OVER (ORDER BY v) rn FROM big WHERE id % 2 = 0) x WHERE rn <= 2 ORDER BY rn;
----
id:int4 | v:int4 | rn:int8
244 | 1 | 1
488 | 2 | 2
732 | 3 | 3
SELECT 3
id:int4 | v:int4 | rn:int8
765 | 1008 | 1
521 | 1007 | 2
SELECT 2
id:int4 | v:int4 | rn:int8
277 | 1006 | 3
SELECT 1
id:int4 | v:int4 | rn:int8
521 | 1007 | 2
277 | 1006 | 3
SELECT 2
count:int8
0
SELECT 1
count:int8
0
SELECT 1
count:int8
998
SELECT 1
count:int8 | sum:numeric
30 | 60
SELECT 1
id:int4 | v:int4 | rn:int8
244 | 1 | 1
488 | 2 | 2
SELECT 2
