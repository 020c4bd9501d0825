# COPY, both ways; prepared statements and cursors.

CREATE TABLE t (a int, b text, c numeric);
----
CREATE TABLE

\copy
COPY t FROM STDIN
1	one	1.50
2	\N	\N
3	tab\there	-3
----
(copy in, 3 columns)
COPY 3

COPY t TO STDOUT;
----
(copy out, 3 columns)
1	one	1.50
2	\N	\N
3	tab\there	-3
(copy done)
COPY 3

COPY t (b, a) TO STDOUT WITH (FORMAT csv, HEADER);
----
(copy out, 2 columns)
b,a
one,1
,2
tab	here,3
(copy done)
COPY 3

COPY (SELECT a FROM t WHERE a > 1 ORDER BY a) TO STDOUT;
----
(copy out, 1 columns)
2
3
(copy done)
COPY 2

\copy
COPY t (a, b) FROM STDIN WITH CSV HEADER
a,b
10,"x, y"
11,
----
(copy in, 2 columns)
COPY 2

SELECT a, b FROM t WHERE a >= 10 ORDER BY a;
----
a:int4 | b:text
10 | x, y
11 | NULL
SELECT 2

\copy
COPY t FROM STDIN
5	five
----
(copy in, 3 columns)
ERROR 22P04: missing data for column "c"
  detail: COPY t, line 1, column c.

\copy
COPY t FROM STDIN
x	five	1
----
(copy in, 3 columns)
ERROR 22P02: invalid input syntax for type integer: "x"
  detail: COPY t, line 1, column a.

SELECT a FROM t WHERE a = 5;
----
a:int4
SELECT 0

COPY nothing FROM STDIN;
----
ERROR 42P01: relation "nothing" does not exist

COPY t (nothing) FROM STDIN;
----
ERROR 42703: column "nothing" of relation "t" does not exist

COPY t FROM '/tmp/x';
----
ERROR 0A000: COPY with a file or a program of the server is not supported
  hint: Use COPY .. FROM STDIN, or psql's \copy.

# A table that the transaction has created is loaded in chunks; here the load is small.
BEGIN; CREATE TABLE fresh (a int);
----
BEGIN
CREATE TABLE
(in block)

\copy
COPY fresh FROM STDIN WITH (FREEZE ON)
1
2
----
(copy in, 1 columns)
COPY 2
(in block)

SELECT * FROM fresh ORDER BY a;
----
a:int4
1
2
SELECT 2
(in block)

ROLLBACK;
----
ROLLBACK

# Prepared statements.
PREPARE p (int) AS SELECT a, b FROM t WHERE a = $1;
----
PREPARE

EXECUTE p (1);
----
a:int4 | b:text
1 | one
SELECT 1

EXECUTE p (1, 2);
----
ERROR 42601: wrong number of parameters for prepared statement "p"
  detail: Expected 1 parameters but got 2.

PREPARE p AS SELECT 1;
----
ERROR 42P05: prepared statement "p" already exists

ALTER TABLE t ADD COLUMN d int; EXECUTE p (2);
----
ALTER TABLE
a:int4 | b:text
2 | NULL
SELECT 1

DEALLOCATE p;
----
DEALLOCATE

EXECUTE p (1);
----
ERROR 26000: prepared statement "p" does not exist

\extended
SELECT a, b FROM t WHERE a = $1
1
----
a:int4 | b:text
1 | one
SELECT 1

\extended
INSERT INTO t (a, b) VALUES ($1, $2)
77
\N
----
(no data)
INSERT 0 1

\extended
SHOW timezone
----
TimeZone:text
UTC
SHOW

\extended
SELECT a FROM t WHERE a = $1
x
----
ERROR 22P02: invalid input syntax for type integer: "x"

SELECT $1;
----
ERROR 42P02: there is no parameter $1

# Cursors.
BEGIN; DECLARE c CURSOR FOR SELECT a FROM t ORDER BY a;
----
BEGIN
DECLARE CURSOR
(in block)

FETCH 2 FROM c; MOVE 1 IN c; FETCH ALL FROM c; FETCH c;
----
a:int4
1
2
FETCH 2
MOVE 1
a:int4
10
11
77
FETCH 3
a:int4
FETCH 0
(in block)

CLOSE c; CLOSE c;
----
CLOSE CURSOR
ERROR 34000: cursor "c" does not exist
(failed)

ROLLBACK;
----
ROLLBACK

DECLARE c CURSOR FOR SELECT 1;
----
ERROR 25P01: DECLARE CURSOR can only be used in transaction blocks

BEGIN; DECLARE h CURSOR WITH HOLD FOR SELECT a FROM t WHERE a < 4 ORDER BY a; FETCH h; COMMIT;
----
BEGIN
DECLARE CURSOR
a:int4
1
FETCH 1
COMMIT

FETCH ALL FROM h; CLOSE ALL;
----
a:int4
2
3
FETCH 2
CLOSE CURSOR ALL

SELECT set_config('timezone', 'Asia/Tokyo', false);
----
set_config:text
Asia/Tokyo
(TimeZone = Asia/Tokyo)
SELECT 1

SELECT current_setting('timezone'), current_setting('nothing', true);
----
current_setting:text | current_setting:text
Asia/Tokyo | NULL
SELECT 1

EXPLAIN SELECT a FROM t;
----
QUERY PLAN:text
Seq Scan on t  (cost=0.00..100000.00 rows=100000 width=0)
EXPLAIN

EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF) SELECT a FROM t WHERE a < 3;
----
QUERY PLAN:text
Seq Scan on t  (cost=0.00..100000.00 rows=100000 width=0) (actual rows=2 loops=1)
  Filter: (a < 3)
  Rows Removed by Filter: 4
Rows: 2
Consistency: auto
Clock bound at start: 0.000000 ms
Uncertainty restarts: 0
Snapshot refreshes: 0
Lock wait: 0.000 ms
Commit wait hidden by replication: 0.000 ms
Commit wait beyond replication: 0.000 ms
EXPLAIN

EXPLAIN (FORMAT JSON) SELECT 1;
----
QUERY PLAN:json
[
  {
    "Plan": {
      "Node Type": "Result",
      "Parallel Aware": false,
      "Async Capable": false,
      "Startup Cost": 0.00,
      "Total Cost": 1.00,
      "Plan Rows": 1,
      "Plan Width": 0
    }
  }
]
EXPLAIN

CREATE TABLE options (a int) WITH (fillfactor = 70, autovacuum_enabled = off) TABLESPACE pg_default;
----
CREATE TABLE

CREATE TABLE options2 (a int) WITH (replication = 'clock-rsm');
----
ERROR 0A000: replication = 'clock-rsm' on one node is not supported
  hint: Leave it out, or use replication = 'single'.

CREATE TABLE options2 (a int) WITH (nonsense = 1);
----
ERROR 22023: unrecognized parameter "nonsense"
