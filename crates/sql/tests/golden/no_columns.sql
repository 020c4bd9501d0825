# Rows of no columns are rows: they have a shape, and are counted.

CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1), (2)
----
CREATE TABLE
INSERT 0 2

SELECT FROM t
----
(no columns)
()
()
SELECT 2

SELECT
----
(no columns)
()
SELECT 1

SELECT FROM t WHERE a > 2
----
(no columns)
SELECT 0

\extended
SELECT FROM t WHERE a = $1
2
----
(no columns)
()
SELECT 1

\extended
INSERT INTO t VALUES ($1)
3
----
(no data)
INSERT 0 1

PREPARE p AS SELECT FROM t
----
PREPARE

\extended
EXECUTE p
----
(no columns)
()
()
()
SELECT 3
