--- Subqueries in branches that are not taken: they neither run nor fail.
CREATE TABLE t (i int PRIMARY KEY, k int);
INSERT INTO t VALUES (1, 1), (2, 1), (3, 2);
SELECT i, CASE WHEN i = 3 THEN (SELECT u.i FROM t u WHERE u.k = t.k) END FROM t ORDER BY i;
-- 1|NULL
-- 2|NULL
-- 3|3
SELECT i, CASE WHEN i = 1 THEN (SELECT u.i FROM t u WHERE u.k = t.k) END FROM t ORDER BY i;
-- ERROR 21000: more than one row returned by a subquery used as an expression
SELECT i, CASE t.k WHEN 2 THEN (SELECT u.i FROM t u WHERE u.k = t.k) ELSE -1 END + 1 FROM t ORDER BY i;
-- 1|0
-- 2|0
-- 3|4
SELECT i, CASE k WHEN (SELECT max(u.k) FROM t u WHERE u.i >= t.i) THEN 'max' WHEN 1 THEN 'one' END FROM t ORDER BY i;
-- 1|one
-- 2|one
-- 3|max
SELECT i, coalesce(nullif(k, 2), (SELECT u.i FROM t u WHERE u.k = t.k)) FROM t ORDER BY i;
-- 1|1
-- 2|1
-- 3|3
SELECT i FROM t WHERE k = 1 OR (SELECT u.i FROM t u WHERE u.k = t.k) = 3 ORDER BY i;
-- 1
-- 2
-- 3
SELECT i, NOT (k = 2 AND (SELECT u.i FROM t u WHERE u.k = t.k) = 3) FROM t ORDER BY i;
-- 1|t
-- 2|t
-- 3|f
SELECT i, CASE WHEN k = 2 THEN CASE WHEN EXISTS (SELECT FROM t u WHERE u.k > t.k) THEN 1 ELSE (SELECT u.i FROM t u WHERE u.k = t.k) END ELSE 0 END FROM t ORDER BY i;
-- 1|0
-- 2|0
-- 3|3
SELECT i, coalesce(CASE WHEN i > 2 THEN (SELECT 1/(u.k - 1) FROM t u WHERE u.i = t.i) END, (SELECT count(*) FROM t u WHERE u.k = t.k)) FROM t ORDER BY i;
-- 1|2
-- 2|2
-- 3|1
SELECT count(*) FROM (SELECT CASE WHEN random() < 2 THEN (SELECT 1) ELSE (SELECT 2) END AS x FROM t) v WHERE x = 1;
-- 3
SELECT i, i IN (SELECT CASE WHEN u.k = 1 THEN u.i ELSE (SELECT 1/(v.k - 2) FROM t v WHERE v.i = u.i AND u.k = 1) END FROM t u) FROM t ORDER BY i;
-- 1|t
-- 2|t
-- 3|NULL
--- An equality that each branch of an OR asks for joins.
CREATE TABLE p (pk int PRIMARY KEY, brand text);
CREATE TABLE l (lk int, qty int);
INSERT INTO p SELECT i, CASE WHEN i % 2 = 0 THEN 'even' ELSE 'odd' END FROM generate_series(1, 500) i;
INSERT INTO l SELECT i % 700, i % 10 FROM generate_series(1, 3000) i;
SELECT count(*), sum(qty) FROM l, p WHERE (pk = lk AND brand = 'even' AND qty < 3) OR (pk = lk AND brand = 'odd' AND qty > 7) OR (brand = 'odd' AND (pk = lk) AND qty = 5);
-- 880|3520
SELECT count(*) FROM l LEFT JOIN p ON (pk = lk AND qty = 1) OR (pk = lk AND qty = 2) WHERE pk IS NULL;
-- 2560
SELECT count(*) FROM l JOIN p ON (pk = lk AND qty = 1) OR (pk = lk + 1 AND qty = 2);
-- 440
SELECT count(*) FROM p a JOIN p b ON (a.pk = b.pk AND a.brand = 'odd') OR (a.pk = b.pk AND NULL) OR (b.pk = a.pk AND a.brand = 'even' AND b.pk < 10);
-- 254
