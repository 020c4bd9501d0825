-- Rows that nobody asks for fail nothing: what is made once for all rows, or grouped before a join, meets more rows than the statement does.

CREATE TABLE tt (n int, parent int);
CREATE TABLE qq (pk int, n int, x numeric);
INSERT INTO tt VALUES (2, 1), (3, 2), (4, 3), (9, 8);
INSERT INTO qq VALUES (2, 5, 1.0), (3, 0, 2.00), (9, 0, 3);
SELECT n, (SELECT max(10 / q.n) FROM qq q WHERE q.pk = tt.n) FROM tt WHERE n = 2;
-- 2|2
SELECT n, (SELECT q.pk FROM qq q WHERE q.pk = tt.n AND 10 / q.n > 0) FROM tt WHERE n = 2;
-- 2|2
SELECT n FROM tt WHERE EXISTS (SELECT 1 FROM qq q WHERE q.pk = tt.n AND 10 / q.n > 0) AND n = 2;
-- 2
SELECT n FROM tt WHERE n < 4 AND EXISTS (SELECT 1 FROM qq q WHERE q.pk = tt.n AND 10 / q.n > 0);
-- ERROR 22012: division by zero
SELECT n, (SELECT max((SELECT a.pk FROM qq a WHERE a.n = q.n)) FROM qq q WHERE q.pk = tt.n) FROM tt WHERE n = 2;
-- 2|2
SELECT tt.n, count(10 / q.n) FROM tt JOIN qq q ON q.pk = tt.n AND tt.n = 2 GROUP BY tt.n;
-- 2|1
SELECT tt.n, count(10 / q.n) FROM tt LEFT JOIN qq q ON q.pk = tt.n AND tt.n = 2 WHERE tt.n < 3 GROUP BY tt.n;
-- 2|1

SELECT count(*) FROM (SELECT x FROM qq EXCEPT SELECT x FROM (VALUES (1.00), (2.0)) v(x)) s WHERE x::text IN ('1.0', '2.00', '3');
-- 1
SELECT count(*) FROM (SELECT x FROM qq EXCEPT ALL SELECT x FROM (VALUES (1.00), (2.0)) v(x)) s WHERE x::text IN ('1.0', '2.00', '3');
-- 1
SELECT * FROM (SELECT pk FROM qq EXCEPT SELECT n FROM tt WHERE n > 5) s WHERE pk > 2 ORDER BY pk;
-- 3
SELECT * FROM (SELECT pk FROM qq EXCEPT ALL SELECT n FROM tt WHERE n > 5) s WHERE pk > 2 ORDER BY pk;
-- 3

CREATE TABLE pairs (a int, b int, v int, PRIMARY KEY (a, b));
INSERT INTO pairs SELECT n / 10, n % 10, n FROM generate_series(0, 99) n;
SELECT v FROM pairs WHERE a IN (1, 2, 5) AND (b = 3 OR b BETWEEN 7 AND 8) ORDER BY v;
-- 13
-- 17
-- 18
-- 23
-- 27
-- 28
-- 53
-- 57
-- 58
SELECT v FROM pairs WHERE a = ANY (ARRAY[1, 2, 5]) AND (a, b) IN ((1, 2), (5, 9), (6, 1)) ORDER BY v;
-- 12
-- 59
SELECT v FROM pairs WHERE (a = 1 OR a = 4) AND (b = 1 OR b = 2) AND v < 42 ORDER BY v;
-- 11
-- 12
-- 41
