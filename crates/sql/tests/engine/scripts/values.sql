-- Types and expressions through the engine.

CREATE TABLE v (id int PRIMARY KEY, u uuid, j jsonb, k json, a int[], b bytea, i interval, z timestamptz, d date, c char(5), n numeric, r real, o bool);
INSERT INTO v VALUES (1, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"b": 1, "a": [1, 2]}', '{"x": "y"}', '{1,2,3}', '\x00ff', '1 day 02:00', '2024-05-06 07:08:09+00', '2024-02-29', 'ab', 12.50, 1.5, true), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
SELECT * FROM (SELECT * FROM v) q ORDER BY id;
-- 1|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|{"a": [1, 2], "b": 1}|{"x": "y"}|{1,2,3}|\x00ff|1 day 02:00:00|2024-05-06 07:08:09+00|2024-02-29|ab   |12.50|1.5|t
-- 2|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL
SELECT x.u, count(*) FROM v x GROUP BY x.u ORDER BY 1;
-- a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|1
-- NULL|1
SELECT x.j -> 'a' -> 1, x.j ->> 'b', x.k ->> 'x' FROM (SELECT j, k FROM v WHERE id = 1) x;
-- 2|1|y
SELECT jsonb_array_elements(j -> 'a') FROM v;
-- 1
-- 2
SELECT key, value FROM v, jsonb_each(j) ORDER BY key;
-- a|[1, 2]
-- b|1
SELECT e FROM v, unnest(a) AS e ORDER BY e DESC;
-- 3
-- 2
-- 1
SELECT x.a[2], x.a[9], array_length(x.a, 1) FROM (SELECT a FROM v WHERE id = 1) x;
-- 2|NULL|3
SELECT x.z + x.i, x.d + 1, x.d - date '2024-01-01' FROM (SELECT z, i, d FROM v WHERE id = 1) x;
-- 2024-05-07 09:08:09+00|2024-03-01|59
SELECT extract(year FROM x.d), date_part('dow', x.d) FROM (SELECT d FROM v WHERE id = 1) x;
-- 2024|4
SELECT length(x.c), x.c = 'ab' FROM (SELECT c FROM v WHERE id = 1) x;
-- 2|t
SELECT x.n * 2, x.n / 3, round(x.n, 1), x.r * 2 FROM (SELECT n, r FROM v WHERE id = 1) x;
-- 25.00|4.1666666666666667|12.5|3
SELECT coalesce(x.o, false), x.o IS NOT TRUE FROM (SELECT o, id FROM v) x ORDER BY x.id;
-- t|f
-- f|t
SELECT a.id, b.id FROM v a, v b WHERE a.u = b.u;
-- 1|1
SELECT a.id, b.id FROM v a JOIN v b ON a.n = b.id + 11.5;
-- 1|1
SELECT a.id, b.id FROM v a JOIN v b ON a.r = b.id + 0.5;
-- 1|1
SELECT a.id, b.id FROM v a JOIN v b ON a.u IS NOT DISTINCT FROM b.u ORDER BY 1, 2;
-- 1|1
-- 2|2
SELECT d::timestamp + interval '1 hour' AS t FROM v GROUP BY d HAVING d IS NOT NULL;
-- 2024-02-29 01:00:00
SELECT g::date FROM generate_series(timestamp '2024-01-30', timestamp '2024-03-01', interval '15 days') g;
-- 2024-01-30
-- 2024-02-14
-- 2024-02-29
SELECT g FROM generate_series(1.0, 2.0, 0.5) g;
-- 1.0
-- 1.5
-- 2.0
SELECT g FROM generate_series(3, 1) g;
SELECT * FROM generate_series(1, 10, 0) g;
-- ERROR 22023: step size cannot equal zero
SELECT x FROM (SELECT 'lit' AS x, NULL AS y) q WHERE y IS NULL;
-- lit
SELECT max(x) FROM (VALUES ('a'), ('b')) q(x);
-- b
SELECT sum(x) FROM (VALUES (9223372036854775807), (1)) q(x);
-- 9223372036854775808
SELECT x::text || 'z' FROM (VALUES (1), (2)) q(x) ORDER BY x DESC;
-- 2z
-- 1z
SELECT string_to_table('a,b,c', ',');
-- a
-- b
-- c
SELECT regexp_split_to_table('a1b2c', '[0-9]');
-- a
-- b
-- c
SELECT * FROM regexp_matches('foobar', 'o+');
-- {oo}
SELECT count(*) FROM generate_series(1, 1000) a, generate_series(1, 10) b WHERE a % 7 = b;
-- 858
SELECT (SELECT sum(x) FROM generate_series(1, o.n) x) FROM (VALUES (3), (4)) o(n);
-- 6
-- 10
SELECT o.n, (SELECT count(*) FROM (VALUES (1), (2), (5)) i(m) WHERE i.m > o.n) FROM (VALUES (1), (4)) o(n);
-- 1|2
-- 4|1
WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS x FROM a) SELECT a.x, b.x FROM a, b;
-- 1|2
SELECT * FROM (SELECT 1 AS a, 2 AS a) q;
-- 1|2
SELECT q.a FROM (SELECT 1 AS a, 2 AS a) q;
-- ERROR 42702: column reference "a" is ambiguous
SELECT x FROM (SELECT generate_series(1, 3) AS x) q WHERE x > 1;
-- 2
-- 3
SELECT lower('ABC'), now() IS NOT NULL FROM v WHERE id IN (SELECT 1 UNION SELECT 3);
-- abc|t
SELECT nosuch(x) FROM (VALUES (1)) q(x);
-- ERROR 42883: function nosuch(integer) does not exist
SELECT x + 'a' FROM (VALUES (1)) q(x);
-- ERROR 22P02: invalid input syntax for type integer: "a"
SELECT x FROM (VALUES (1)) q(x) WHERE x;
-- ERROR 42804: argument of WHERE must be type boolean, not type integer
SELECT 1 FROM (VALUES (1)) q(x) HAVING x = 1;
-- ERROR 42803: column "q.x" must appear in the GROUP BY clause or be used in an aggregate function
SELECT 1 FROM (VALUES (1)) q(x) GROUP BY 2;
-- ERROR 42P10: GROUP BY position 2 is not in select list
SELECT CASE WHEN x > 1 THEN 1 / (x - 2) ELSE 0 END FROM (VALUES (1), (2)) q(x);
-- ERROR 22012: division by zero
SELECT DISTINCT ON (a) a, b FROM (VALUES (1, 2), (1, 1), (2, 3)) t(a, b) ORDER BY a, b;
-- 1|1
-- 2|3
SELECT a FROM (VALUES (1), (2), (3)) t(a) EXCEPT ALL SELECT a FROM (VALUES (2)) u(a) ORDER BY a;
-- 1
-- 3
SELECT bool_and(x) FROM (VALUES (true), (NULL)) q(x);
-- t
SELECT x, lag(x) OVER (ORDER BY x DESC) FROM (VALUES (1), (2)) q(x) ORDER BY x;
-- 1|2
-- 2|NULL
SELECT count(*) OVER (), x FROM (VALUES (1), (2)) q(x) ORDER BY x LIMIT 1;
-- 2|1
SELECT rank() OVER (ORDER BY sum(y) DESC), x FROM (VALUES (1, 5), (1, 6), (2, 20)) q(x, y) GROUP BY x ORDER BY 1;
-- 1|2
-- 2|1
SELECT w.x, w.y, w.a FROM v AS w(x, y) WHERE x = 1;
-- 1|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|{1,2,3}
SELECT count(w) FROM v w;
-- 2
SELECT w IS NULL FROM (SELECT 1) w;
-- f
