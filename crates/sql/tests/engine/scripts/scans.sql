-- Columns that are read without being named, columns that only some rows need, and keys of every kind in groups, joins, sets and sorts.

CREATE TABLE wide (id int PRIMARY KEY, a int, b text, "C d" int, "Quoted" text, f float8, n numeric, d date);
INSERT INTO wide VALUES (1, 10, 'one', 100, 'Q1', 1.5, 1.0, '2026-01-01'), (2, 20, 'two', 200, 'Q2', '-0', 1.00, '2026-01-02'), (3, NULL, NULL, NULL, NULL, 0, NULL, NULL), (4, 10, 'one ', 100, 'Q1', 'NaN', 'NaN', '2025-12-31'), (5, 20, 'a longer text 1', 5, 'a longer text 2', '-Infinity', -7, '2026-01-01');
CREATE TABLE other (id int PRIMARY KEY, a int, z text);
INSERT INTO other VALUES (1, 10, 'x'), (2, 10, 'y'), (3, NULL, 'z'), (9, 20, 'w');
SELECT * FROM (SELECT * FROM wide OFFSET 0) x ORDER BY id;
-- 1|10|one|100|Q1|1.5|1.0|2026-01-01
-- 2|20|two|200|Q2|-0|1.00|2026-01-02
-- 3|NULL|NULL|NULL|NULL|0|NULL|NULL
-- 4|10|one |100|Q1|NaN|NaN|2025-12-31
-- 5|20|a longer text 1|5|a longer text 2|-Infinity|-7|2026-01-01
SELECT x FROM (SELECT * FROM wide OFFSET 0) x WHERE id = 1;
-- (1,10,one,100,Q1,1.5,1.0,2026-01-01)
SELECT x.* FROM wide x, other y WHERE y.id = x.id AND y.z = 'y' OFFSET 0;
-- 2|20|two|200|Q2|-0|1.00|2026-01-02
SELECT count(*), max("C d"), min("Quoted") FROM (SELECT * FROM wide OFFSET 0) x;
-- 5|200|Q1
SELECT "Quoted", "C d" FROM wide WHERE b = 'two' UNION ALL SELECT 'a "quote" in it', 1;
-- Q2|200
-- a "quote" in it|1
SELECT a * 2, "Quoted" FROM wide WHERE id * 2 = 4 UNION ALL SELECT 1, '*';
-- 40|Q2
-- 1|*
SELECT id FROM (wide NATURAL JOIN other) WHERE z <> 'q' ORDER BY id DESC OFFSET 0;
-- 1
SELECT * FROM wide NATURAL FULL JOIN other ORDER BY id, z;
-- 1|10|one|100|Q1|1.5|1.0|2026-01-01|x
-- 2|10|NULL|NULL|NULL|NULL|NULL|NULL|y
-- 2|20|two|200|Q2|-0|1.00|2026-01-02|NULL
-- 3|NULL|NULL|NULL|NULL|NULL|NULL|NULL|z
-- 3|NULL|NULL|NULL|NULL|0|NULL|NULL|NULL
-- 4|10|one |100|Q1|NaN|NaN|2025-12-31|NULL
-- 5|20|a longer text 1|5|a longer text 2|-Infinity|-7|2026-01-01|NULL
-- 9|20|NULL|NULL|NULL|NULL|NULL|NULL|w
SELECT q FROM (SELECT w.id FROM wide w(id, p, q) OFFSET 0) x RIGHT JOIN wide w(id, p, q) ON w.id = x.id ORDER BY w.id;
-- one
-- two
-- NULL
-- one 
-- a longer text 1
SELECT row_to_json(y) FROM (SELECT * FROM other OFFSET 0) y ORDER BY id LIMIT 1;
-- {"id":1,"a":10,"z":"x"}
SELECT y IS NULL, y FROM wide x JOIN other y ON y.id = x.id + 6 ORDER BY x.id LIMIT 3;
-- f|(9,20,w)
SELECT id FROM wide w WHERE EXISTS (SELECT * FROM other o WHERE o.a = w.a) ORDER BY id;
-- 1
-- 2
-- 4
-- 5
WITH c(k, l) AS (SELECT id, b FROM wide) SELECT l, z FROM c JOIN other ON k = id ORDER BY k;
-- one|x
-- two|y
-- NULL|z
SELECT * FROM other UNION SELECT * FROM other ORDER BY id;
-- 1|10|x
-- 2|10|y
-- 3|NULL|z
-- 9|20|w
SELECT f, count(*) FILTER (WHERE id > 0) FROM wide GROUP BY f ORDER BY f DESC;
-- NaN|1
-- 1.5|1
-- -0|2
-- -Infinity|1
SELECT n, count(*) FILTER (WHERE id > 0) FROM wide GROUP BY n ORDER BY n NULLS FIRST;
-- NULL|1
-- -7|1
-- 1.0|2
-- NaN|1
SELECT b, d FROM (SELECT * FROM wide OFFSET 0) x ORDER BY b DESC NULLS LAST, d;
-- two|2026-01-02
-- one |2025-12-31
-- one|2026-01-01
-- a longer text 1|2026-01-01
-- NULL|NULL
SELECT id FROM (SELECT * FROM wide OFFSET 0) x ORDER BY f, id;
-- 5
-- 2
-- 3
-- 1
-- 4
SELECT id FROM (SELECT * FROM wide OFFSET 0) x ORDER BY f DESC NULLS LAST, id;
-- 4
-- 1
-- 2
-- 3
-- 5
SELECT id FROM (SELECT * FROM wide OFFSET 0) x ORDER BY d NULLS FIRST, a + id DESC;
-- 3
-- 4
-- 5
-- 1
-- 2
SELECT id FROM (SELECT * FROM wide OFFSET 0) x ORDER BY "Quoted" DESC, id LIMIT 2;
-- 3
-- 5
SELECT v FROM (VALUES (9223372036854775807), (-9223372036854775808), (0), (NULL), (-1), (4611686018427387904), (2305843009213693952), (2305843009213693951)) x(v) ORDER BY v DESC;
-- NULL
-- 9223372036854775807
-- 4611686018427387904
-- 2305843009213693952
-- 2305843009213693951
-- 0
-- -1
-- -9223372036854775808
SELECT v FROM (VALUES ('abcdefgh'), ('abcdefghi'), ('abcdefgg'), (''), ('abcdefg'), (NULL)) x(v) ORDER BY v NULLS FIRST;
-- NULL
-- 
-- abcdefg
-- abcdefgg
-- abcdefgh
-- abcdefghi
SELECT v FROM (VALUES ('a  '::char(3)), ('a'), ('ab'), ('')) x(v) GROUP BY v ORDER BY v;
-- 
-- a  
-- ab
SELECT x.id, y.id FROM (SELECT * FROM wide OFFSET 0) x FULL JOIN (SELECT * FROM other OFFSET 0) y ON x.a = y.a ORDER BY 1, 2;
-- 1|1
-- 1|2
-- 2|9
-- 3|NULL
-- 4|1
-- 4|2
-- 5|9
-- NULL|3
SELECT x.id, y.id FROM (SELECT * FROM wide OFFSET 0) x LEFT JOIN (SELECT * FROM other OFFSET 0) y ON x.a = y.a AND y.z > 'x' ORDER BY 1, 2;
-- 1|2
-- 2|NULL
-- 3|NULL
-- 4|2
-- 5|NULL
SELECT x.id, y.id FROM (SELECT * FROM wide OFFSET 0) x LEFT JOIN (SELECT * FROM other OFFSET 0) y ON x.a < y.a ORDER BY 1, 2;
-- 1|9
-- 2|NULL
-- 3|NULL
-- 4|9
-- 5|NULL
SELECT x.id, (SELECT string_agg(y.z, ',' ORDER BY y.z DESC) FROM other y JOIN (SELECT * FROM other OFFSET 0) w ON w.a = y.a AND w.id <> x.id) FROM wide x ORDER BY 1;
-- 1|y,x,w
-- 2|y,x,w
-- 3|y,y,x,x,w
-- 4|y,y,x,x,w
-- 5|y,y,x,x,w
SELECT a FROM wide EXCEPT ALL SELECT a FROM other ORDER BY 1;
-- 20
SELECT a FROM wide INTERSECT SELECT a FROM other ORDER BY 1;
-- 10
-- 20
-- NULL
SELECT a, count(DISTINCT b), array_agg(DISTINCT "Quoted" ORDER BY "Quoted"), sum(DISTINCT id) FROM wide GROUP BY GROUPING SETS ((a), ()) ORDER BY a NULLS FIRST, 4;
-- NULL|0|{NULL}|3
-- NULL|4|{Q1,Q2,"a longer text 2",NULL}|15
-- 10|2|{Q1}|5
-- 20|2|{Q2,"a longer text 2"}|7
SELECT id, rank() OVER (PARTITION BY a ORDER BY d DESC), sum(id) OVER (ORDER BY f, n) FROM wide ORDER BY id;
-- 1|1|11
-- 2|1|7
-- 3|1|10
-- 4|2|15
-- 5|2|5
SELECT id, count(*) OVER (ORDER BY id RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM wide ORDER BY id;
-- 1|2
-- 2|3
-- 3|3
-- 4|3
-- 5|2
SELECT variance(v), var_pop(v) FROM (VALUES (9223372036854775807), (-9223372036854775808), (9223372036854775807), (5), (NULL)) x(v);
-- 77981375752715064526780498802213126152|58486031814536298395085374101659844614
SELECT variance(v), var_pop(v), stddev(v) FROM (VALUES (1.50), (2), (-7.25)) x(v);
-- 27.0625000000000000|18.0416666666666667|5.2021630116712029
