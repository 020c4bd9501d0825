# An equality of columns that each branch of an OR asks for joins by hash: TPC-H's query 19.

CREATE TABLE p (pk int PRIMARY KEY, brand text); CREATE TABLE l (lk int, qty int);
----
CREATE TABLE
CREATE TABLE

EXPLAIN SELECT count(*) FROM l, p WHERE (pk = lk AND brand = 'a' AND qty < 3) OR (pk = lk AND brand = 'b' AND qty > 7);
----
QUERY PLAN:text
Aggregate  (cost=0.00..200002.00 rows=1 width=0)
  ->  Lookup or Hash Join  (cost=0.00..200001.00 rows=1 width=0)
        Hash Cond: (l.lk = p.pk)
        Join Filter: (((p.pk = l.lk) AND (p.brand = 'a'::text) AND (l.qty < 3)) OR ((p.pk = l.lk) AND (p.brand = 'b'::text) AND (l.qty > 7)))
        ->  Seq Scan on l  (cost=0.00..100000.00 rows=1000 width=0)
              Filter: ((l.qty < 3) OR (l.qty > 7))
        ->  Seq Scan on p  (cost=0.00..100000.00 rows=1000 width=0)
              Filter: ((p.brand = 'a'::text) OR (p.brand = 'b'::text))
        Lookup
          ->  Point Lookup using p_pkey on p  (cost=0.00..1.00 rows=1000 width=0)
                Index Cond: (pk = l.lk)
                Filter: (((p.brand = 'a'::text) OR (p.brand = 'b'::text)) AND (((p.pk = l.lk) AND (p.brand = 'a'::text) AND (l.qty < 3)) OR ((p.pk = l.lk) AND (p.brand = 'b'::text) AND (l.qty > 7))))
EXPLAIN

EXPLAIN SELECT count(*) FROM l, p WHERE (pk = lk AND brand = 'a') OR (pk = lk + 1 AND brand = 'b');
----
QUERY PLAN:text
Aggregate  (cost=0.00..200051.00 rows=1 width=0)
  ->  Nested Loop  (cost=0.00..200050.00 rows=50 width=0)
        Join Filter: (((p.pk = l.lk) AND (p.brand = 'a'::text)) OR ((p.pk = (l.lk + 1)) AND (p.brand = 'b'::text)))
        ->  Seq Scan on p  (cost=0.00..100000.00 rows=1000 width=0)
              Filter: ((p.brand = 'a'::text) OR (p.brand = 'b'::text))
        ->  Seq Scan on l  (cost=0.00..100000.00 rows=1000 width=0)
EXPLAIN
