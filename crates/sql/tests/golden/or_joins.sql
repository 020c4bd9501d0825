# An equality of columns that each branch of an OR asks for joins by hash: TPC-H's query 19.

CREATE TABLE p (pk int PRIMARY KEY, brand text); CREATE TABLE l (lk int, qty int);
----
CREATE TABLE
CREATE TABLE

EXPLAIN SELECT count(*) FROM l, p WHERE (pk = lk AND brand = 'a' AND qty < 3) OR (pk = lk AND brand = 'b' AND qty > 7);
----
QUERY PLAN:text
Project
  ->  Aggregate
      ->  Lookup or Hash Join
        ->  Scan on l using l_rowid
        ->  Scan on p using p_pkey
EXPLAIN

EXPLAIN SELECT count(*) FROM l, p WHERE (pk = lk AND brand = 'a') OR (pk = lk + 1 AND brand = 'b');
----
QUERY PLAN:text
Project
  ->  Aggregate
      ->  Nested Loop
        ->  Scan on p using p_pkey
        ->  Scan on l using l_rowid
EXPLAIN
