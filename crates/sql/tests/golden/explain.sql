# What EXPLAIN shows: operators and conditions as PostgreSQL names them, estimates in rows.
CREATE TABLE author (id int PRIMARY KEY, name text, born int);
CREATE INDEX author_born ON author (born);
CREATE TABLE book (id int PRIMARY KEY, author_id int REFERENCES author, title text, year int);
CREATE INDEX book_author ON book (author_id, year);
INSERT INTO author SELECT g, 'author ' || g, 1900 + g % 100 FROM generate_series(1, 500) g;
INSERT INTO book SELECT g, g % 500 + 1, 'book ' || g, 1950 + g % 70 FROM generate_series(1, 3000) g;
----
CREATE TABLE
CREATE INDEX
CREATE TABLE
CREATE INDEX
INSERT 0 500
INSERT 0 3000

ANALYZE author, book;
----
ANALYZE

# Direct plans.
EXPLAIN SELECT * FROM author WHERE id = 5;
EXPLAIN (COSTS OFF) SELECT a.name, count(*) FROM author a JOIN book b ON b.author_id = a.id WHERE a.id < 10 AND b.year > 1960 AND b.title LIKE '%7' GROUP BY a.name HAVING count(*) > 1 ORDER BY 2 DESC LIMIT 3;
EXPLAIN (COSTS OFF) SELECT * FROM author x JOIN author y ON y.id = x.born WHERE x.id IN (1, 2, 3);
EXPLAIN (COSTS OFF) SELECT 1 FROM author WHERE born BETWEEN 1910 AND 1920 OR born = 1930 FOR UPDATE;
EXPLAIN (COSTS OFF) UPDATE author SET name = 'x' WHERE born = 1950 AND name <> 'y';
EXPLAIN (COSTS OFF) INSERT INTO author SELECT id + 1000, title, year FROM book WHERE year = 1999;
EXPLAIN (COSTS OFF) WITH gone AS (DELETE FROM book WHERE id = 1 RETURNING author_id) SELECT * FROM gone;
----
QUERY PLAN:text
Point Lookup using author_pkey on author  (cost=0.00..1.00 rows=1 width=0)
  Index Cond: (id = 5)
EXPLAIN
QUERY PLAN:text
Limit
  ->  Sort
        Sort Key: count(*) DESC
        ->  HashAggregate
              Group Key: a.name
              Filter: (count(*) > 1)
              ->  Nested Loop
                    ->  Index Scan using author_pkey on author a
                          Index Cond: (id < 10)
                    ->  Index Scan using book_author on book b
                          Index Cond: ((author_id = a.id) AND (year > 1960))
                          Filter: (b.title ~~ '%7'::text)
EXPLAIN
QUERY PLAN:text
Nested Loop
  ->  Point Lookup using author_pkey on author x
        Index Cond: (id = ANY (ARRAY[1, 2, 3]))
  ->  Point Lookup using author_pkey on author y
        Index Cond: (id = x.born)
EXPLAIN
QUERY PLAN:text
LockRows
  ->  Index Scan using author_born on author
        Index Cond: (((born >= 1910) AND (born <= 1920)) OR (born = 1930))
EXPLAIN
QUERY PLAN:text
Update on author
  ->  Index Scan using author_born on author
        Index Cond: (born = 1950)
        Filter: (name <> 'y'::text)
EXPLAIN
QUERY PLAN:text
Insert on author
  ->  Seq Scan on book
        Filter: (year = 1999)
EXPLAIN
QUERY PLAN:text
CTE Scan
  CTE gone
    ->  Delete on book
          ->  Point Lookup using book_pkey on book
                Index Cond: (id = 1)
                Locks rows
EXPLAIN

# Trees.
EXPLAIN SELECT b.year, max(a.born) FROM author a JOIN book b ON b.author_id = a.id GROUP BY b.year;
EXPLAIN (COSTS OFF, VERBOSE) SELECT a.id + 1, (SELECT max(year) FROM book b WHERE b.author_id = a.id) FROM author a WHERE born < 1910;
EXPLAIN (COSTS OFF) SELECT * FROM author a WHERE EXISTS (SELECT 1 FROM book b WHERE b.author_id = a.id AND b.year = 1999);
EXPLAIN (COSTS OFF) SELECT id FROM author UNION SELECT id FROM book UNION SELECT 1 ORDER BY 1 DESC LIMIT 2;
EXPLAIN (COSTS OFF) SELECT id, rank() OVER (PARTITION BY year ORDER BY id) FROM book EXCEPT ALL SELECT id, born FROM author;
EXPLAIN (COSTS OFF) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT * FROM n LEFT JOIN author ON id = i AND born > i;
----
QUERY PLAN:text
HashAggregate  (cost=0.00..6800.00 rows=300 width=0)
  Group Key: b.year
  ->  Lookup or Hash Join  (cost=0.00..6500.00 rows=3000 width=0)
        Hash Cond: (a.id = b.author_id)
        ->  Seq Scan on author a  (cost=0.00..500.00 rows=500 width=0)
        ->  Seq Scan on book b  (cost=0.00..3000.00 rows=3000 width=0)
        Lookup
          ->  Index Only Scan using book_author on book b  (cost=0.00..6.00 rows=6 width=0)
                Index Cond: (author_id = a.id)
EXPLAIN
QUERY PLAN:text
Index Only Scan using author_born on author a
  Index Cond: (born < 1910)
  Output: (a.id + 1), (SubPlan 1)
  SubPlan 1
    ->  Aggregate
          Output: max(b.year)
          ->  Index Only Scan using book_author on book b
                Index Cond: (author_id = a.id)
EXPLAIN
QUERY PLAN:text
Seq Scan on author a
  Filter: EXISTS(SubPlan 1)
  SubPlan 1
    ->  Index Only Scan using book_author on book b
          Index Cond: ((author_id = a.id) AND (year = 1999))
EXPLAIN
QUERY PLAN:text
Limit
  ->  Sort
        Sort Key: author.id DESC
        Sort Method: top-N heapsort
        ->  Unique
              ->  Append
                    ->  Seq Scan on author
                    ->  Seq Scan on book
                    ->  Result
EXPLAIN
QUERY PLAN:text
HashSetOp Except All
  ->  WindowAgg
        ->  Seq Scan on book
  ->  Seq Scan on author
EXPLAIN
QUERY PLAN:text
Lookup or Hash Left Join
  Hash Cond: (n.i = author.id)
  Join Filter: (author.born > n.i)
  CTE n
    ->  Recursive Union
          ->  Result
          ->  WorkTable Scan
                Filter: (column1 < 3)
  ->  CTE Scan on n
  ->  Seq Scan on author
  Lookup
    ->  Point Lookup using author_pkey on author
          Index Cond: (id = n.i)
          Filter: (author.born > n.i)
EXPLAIN

EXPLAIN (FORMAT JSON) SELECT name FROM author WHERE born = 1950 ORDER BY name;
EXPLAIN (COSTS FALSE, FORMAT JSON) SELECT count(*) FROM author a LEFT JOIN book b USING (id) WHERE b.id IS NULL;
----
QUERY PLAN:json
[
  {
    "Plan": {
      "Node Type": "Sort",
      "Parallel Aware": false,
      "Async Capable": false,
      "Startup Cost": 0.00,
      "Total Cost": 10.00,
      "Plan Rows": 5,
      "Plan Width": 0,
      "Sort Key": [
        "name"
      ],
      "Plans": [
        {
          "Node Type": "Index Scan",
          "Parent Relationship": "Outer",
          "Parallel Aware": false,
          "Async Capable": false,
          "Scan Direction": "Forward",
          "Index Name": "author_born",
          "Relation Name": "author",
          "Alias": "author",
          "Startup Cost": 0.00,
          "Total Cost": 5.00,
          "Plan Rows": 5,
          "Plan Width": 0,
          "Index Cond": "(born = 1950)"
        }
      ]
    }
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
      "Plans": [
        {
          "Node Type": "Hash Join",
          "Parent Relationship": "Outer",
          "Parallel Aware": false,
          "Async Capable": false,
          "Join Type": "Left",
          "Hash Cond": "(a.id = b.id)",
          "Filter": "(b.id IS NULL)",
          "Plans": [
            {
              "Node Type": "Seq Scan",
              "Parent Relationship": "Outer",
              "Parallel Aware": false,
              "Async Capable": false,
              "Relation Name": "author",
              "Alias": "a"
            },
            {
              "Node Type": "Seq Scan",
              "Parent Relationship": "Inner",
              "Parallel Aware": false,
              "Async Capable": false,
              "Relation Name": "book",
              "Alias": "b"
            },
            {
              "Node Type": "Index Scan",
              "Parent Relationship": "SubPlan",
              "Subplan Name": "Lookup",
              "Parallel Aware": false,
              "Async Capable": false,
              "Scan Direction": "Forward",
              "Index Name": "book_pkey",
              "Relation Name": "book",
              "Alias": "b",
              "Index Cond": "(id = a.id)"
            }
          ]
        }
      ]
    }
  }
]
EXPLAIN

PREPARE of_author(int) AS SELECT title FROM book WHERE author_id = $1 AND year > 1960;
EXPLAIN (COSTS OFF) EXECUTE of_author(3);
----
PREPARE
QUERY PLAN:text
Index Scan using book_author on book
  Index Cond: ((author_id = $1) AND (year > 1960))
EXPLAIN

EXPLAIN (FORMAT XML) SELECT 1;
----
ERROR 0A000: EXPLAIN (FORMAT XML) is not supported
  hint: The plan comes as TEXT or JSON.
