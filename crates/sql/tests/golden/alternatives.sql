# Alternatives become keys of one index, and what its entries hold is read from them alone: sysbench's select_random_ranges, TPC-C's stock of many items.

CREATE TABLE stock (w int, i int, quantity int, PRIMARY KEY (w, i)); CREATE TABLE alt (id int PRIMARY KEY, k int, note text); CREATE INDEX alt_k ON alt (k);
----
CREATE TABLE
CREATE TABLE
CREATE INDEX

INSERT INTO stock SELECT 1, i, i * 10 FROM generate_series(1, 100) i; INSERT INTO alt SELECT i, i % 10, 'note' FROM generate_series(1, 100) i;
----
INSERT 0 100
INSERT 0 100

EXPLAIN SELECT count(k) FROM alt WHERE k BETWEEN 3 AND 5 OR k BETWEEN 4 AND 6 OR k > 90;
----
QUERY PLAN:text
Aggregate  (cost=0.00..30001.00 rows=1 width=0)
  ->  Index Only Scan using alt_k on alt  (cost=0.00..30000.00 rows=30000 width=0)
        Index Cond: (((k >= 3) AND (k <= 5)) OR ((k >= 4) AND (k <= 6)) OR (k > 90))
EXPLAIN

EXPLAIN SELECT note FROM alt WHERE k = 3 OR k IS NULL;
----
QUERY PLAN:text
Index Scan using alt_k on alt  (cost=0.00..2000.00 rows=2000 width=0)
  Index Cond: ((k = 3) OR (k IS NULL))
EXPLAIN

EXPLAIN SELECT id FROM alt WHERE k = 3 ORDER BY id;
----
QUERY PLAN:text
Sort  (cost=0.00..2000.00 rows=1000 width=0)
  Sort Key: id
  ->  Index Only Scan using alt_k on alt  (cost=0.00..1000.00 rows=1000 width=0)
        Index Cond: (k = 3)
EXPLAIN

EXPLAIN SELECT id FROM alt WHERE k = 3 OR note = 'note';
----
QUERY PLAN:text
Seq Scan on alt  (cost=0.00..100000.00 rows=100000 width=0)
  Filter: ((k = 3) OR (note = 'note'::text))
EXPLAIN

EXPLAIN SELECT id FROM alt WHERE k = 3 FOR UPDATE;
----
QUERY PLAN:text
LockRows  (cost=0.00..2000.00 rows=1000 width=0)
  ->  Index Scan using alt_k on alt  (cost=0.00..1000.00 rows=1000 width=0)
        Index Cond: (k = 3)
EXPLAIN

EXPLAIN UPDATE alt SET note = '' WHERE k = 3 OR k = 4;
----
QUERY PLAN:text
Update on alt  (cost=0.00..4000.00 rows=2000 width=0)
  ->  Index Scan using alt_k on alt  (cost=0.00..2000.00 rows=2000 width=0)
        Index Cond: ((k = 3) OR (k = 4))
EXPLAIN

EXPLAIN SELECT quantity FROM stock WHERE (w, i) IN ((1, 3), (1, 5), (1, 5)) FOR UPDATE;
----
QUERY PLAN:text
LockRows  (cost=0.00..6.00 rows=3 width=0)
  ->  Point Lookup using stock_pkey on stock  (cost=0.00..3.00 rows=3 width=0)
        Index Cond: (((w = 1) AND (i = 3)) OR ((w = 1) AND (i = 5)))
EXPLAIN

SELECT quantity FROM stock WHERE (w, i) IN ((1, 3), (1, 5), (1, 5), (2, 5)) FOR UPDATE;
----
quantity:int4
30
50
SELECT 2

EXPLAIN SELECT * FROM stock WHERE w = 1 AND (i < 3 OR i > 98) ORDER BY i;
----
QUERY PLAN:text
Index Scan using stock_pkey on stock  (cost=0.00..400.00 rows=400 width=0)
  Index Cond: (((w = 1) AND (i < 3)) OR ((w = 1) AND (i > 98)))
  Filter: (w = 1)
EXPLAIN

SELECT * FROM stock WHERE w = 1 AND (i < 3 OR i > 98) ORDER BY i DESC;
----
w:int4 | i:int4 | quantity:int4
1 | 100 | 1000
1 | 99 | 990
1 | 2 | 20
1 | 1 | 10
SELECT 4

BEGIN; INSERT INTO alt VALUES (2001, 3, 'new'); DELETE FROM alt WHERE id = 53;
----
BEGIN
INSERT 0 1
DELETE 1
(in block)

SELECT k, id FROM alt WHERE k = 3 AND (id < 60 OR id > 2000) ORDER BY id;
----
k:int4 | id:int4
3 | 3
3 | 13
3 | 23
3 | 33
3 | 43
3 | 2001
SELECT 6
(in block)

ROLLBACK;
----
ROLLBACK

PREPARE a (int, int, int) AS SELECT count(k) FROM alt WHERE k BETWEEN $1 AND $1 + 2 OR k BETWEEN $2 AND $3;
----
PREPARE

EXECUTE a (1, 2, 7); EXECUTE a (7, 9, 2); EXECUTE a (NULL, 2, 3);
----
count:int8
70
SELECT 1
count:int8
30
SELECT 1
count:int8
20
SELECT 1
