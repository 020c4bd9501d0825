# IS [NOT] DISTINCT FROM ends before AND and OR, in queries, checks, views and defaults.

CREATE TABLE d (a int, b int, c bool, CHECK (a IS DISTINCT FROM 7 OR b = 7));
----
CREATE TABLE

INSERT INTO d VALUES (1, 1, true), (1, 2, false), (NULL, NULL, true), (2, NULL, NULL);
----
INSERT 0 4

SELECT a, b FROM d WHERE a IS DISTINCT FROM b AND a = 1;
----
a:int4 | b:int4
1 | 2
SELECT 1

SELECT a, b FROM d WHERE a IS NOT DISTINCT FROM b OR a = 2;
----
a:int4 | b:int4
1 | 1
NULL | NULL
2 | NULL
SELECT 3

SELECT a, b FROM d WHERE a = 1 AND a IS NOT DISTINCT FROM b OR a = 2;
----
a:int4 | b:int4
1 | 1
2 | NULL
SELECT 2

SELECT a, b FROM d WHERE NOT a IS DISTINCT FROM b AND a = 1;
----
a:int4 | b:int4
1 | 1
SELECT 1

SELECT a, b FROM d WHERE c IS DISTINCT FROM true AND a IS NOT DISTINCT FROM 1 OR b IS NOT DISTINCT FROM a AND c IS DISTINCT FROM false AND a = 1;
----
a:int4 | b:int4
1 | 1
1 | 2
SELECT 2

SELECT c IS DISTINCT FROM true AND false, c IS DISTINCT FROM (true AND false), CASE WHEN a IS DISTINCT FROM 1 AND c THEN 1 ELSE 2 END FROM d;
----
?column?:bool | ?column?:bool | case:int4
f | t | 2
f | f | 2
f | t | 1
f | t | 2
SELECT 4

SELECT x.a, y.b FROM d x JOIN d y ON x.a IS NOT DISTINCT FROM y.a AND x.b IS NOT DISTINCT FROM y.b AND x.c = y.c ORDER BY 1, 2;
----
a:int4 | b:int4
1 | 1
1 | 2
NULL | NULL
SELECT 3

CREATE VIEW v AS SELECT a, b FROM d WHERE a IS DISTINCT FROM b AND a IS DISTINCT FROM 2 OR b = 1;
----
CREATE VIEW

SELECT * FROM v ORDER BY b;
----
a:int4 | b:int4
1 | 1
1 | 2
SELECT 2

INSERT INTO d VALUES (7, 8, true);
----
ERROR 23514: new row for relation "d" violates check constraint "d_check"
  detail: Failing row contains (7, 8, t).
  constraint: d_check

INSERT INTO d VALUES (7, 7, true) RETURNING a;
----
a:int4
7
INSERT 0 1

UPDATE d SET b = 0 WHERE a IS DISTINCT FROM 1 AND a IS DISTINCT FROM 7 AND c RETURNING a, b;
----
a:int4 | b:int4
NULL | 0
UPDATE 1

DELETE FROM d WHERE a IS NOT DISTINCT FROM NULL AND c OR b IS DISTINCT FROM 0 AND a = 2 RETURNING a, b;
----
a:int4 | b:int4
NULL | 0
2 | NULL
DELETE 2
