-- Grouping, aggregates, windows.

CREATE TABLE s (id int PRIMARY KEY, g text, n int, b bigint, f float8, d numeric(10,2), t timestamp);
INSERT INTO s VALUES (1, 'a', 1, 10, 0.5, 1.10, '2024-01-01'), (2, 'a', 2, 20, 1.5, 2.20, '2024-01-02'), (3, 'b', NULL, 30, NULL, 3.30, '2024-02-01'), (4, 'b', 4, 40, 2.5, NULL, NULL), (5, NULL, 5, NULL, 3, 5.5, '2024-03-01');
SELECT count(*), count(n), sum(n), sum(b), avg(n), avg(b), avg(f), sum(d), avg(d), min(g), max(t) FROM s;
-- 5|4|12|100|3.0000000000000000|25.0000000000000000|1.875|12.10|3.0250000000000000|a|2024-03-01 00:00:00
SELECT g, count(*), sum(n), avg(n) FROM s GROUP BY g ORDER BY g;
-- a|2|3|1.5000000000000000
-- b|2|4|4.0000000000000000
-- NULL|1|5|5.0000000000000000
SELECT g, count(*) FROM s GROUP BY 1 HAVING count(*) > 1 ORDER BY 1;
-- a|2
-- b|2
SELECT upper(g) AS u, count(*) FROM s GROUP BY upper(g) ORDER BY u NULLS FIRST;
-- NULL|1
-- A|2
-- B|2
SELECT g || '!' AS x, sum(n) + 1 FROM s GROUP BY x ORDER BY x;
-- a!|4
-- b!|5
-- NULL|6
SELECT n, count(*) FROM s GROUP BY g;
-- ERROR 42803: column "s.n" must appear in the GROUP BY clause or be used in an aggregate function
SELECT sum(n) FROM s WHERE sum(n) > 1;
-- ERROR 42803: aggregate functions are not allowed in WHERE
SELECT sum(sum(n)) FROM s;
-- ERROR 42803: aggregate function calls cannot be nested
SELECT sum(g) FROM s;
-- ERROR 42883: function sum(text) does not exist
SELECT count(*) FROM s WHERE false;
-- 0
SELECT sum(n), max(g) FROM s WHERE false;
-- NULL|NULL
SELECT g, sum(n) FROM s WHERE false GROUP BY g;
SELECT count(DISTINCT g), sum(DISTINCT n % 2) FROM s;
-- 2|1
SELECT string_agg(g, ',' ORDER BY id DESC), array_agg(n ORDER BY id) FROM s;
-- b,b,a,a|{1,2,NULL,4,5}
SELECT count(*) FILTER (WHERE n > 1), bool_and(n > 0), bool_or(n > 4), every(n IS NOT NULL) FROM s;
-- 3|t|t|f
SELECT stddev(n), variance(n), stddev_pop(f), var_samp(d) FROM s;
-- 1.8257418583505537|3.3333333333333333|0.960143218483576|3.5291666666666667
SELECT json_agg(n ORDER BY id), jsonb_agg(g ORDER BY id) FROM s;
-- [1, 2, null, 4, 5]|["a", "a", "b", "b", null]
SELECT json_object_agg(id, g), jsonb_object_agg(id, n) FROM s WHERE id < 3;
-- { "1" : "a", "2" : "a" }|{"1": 1, "2": 2}
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n), percentile_disc(0.5) WITHIN GROUP (ORDER BY n), mode() WITHIN GROUP (ORDER BY g) FROM s;
-- 3|2|a
SELECT bit_and(n), bit_or(n) FROM s;
-- 0|7
SELECT id, s.g, s.n FROM s GROUP BY id ORDER BY id LIMIT 2;
-- 1|a|1
-- 2|a|2
SELECT g, n, sum(b) FROM s GROUP BY ROLLUP (g, n) ORDER BY g NULLS LAST, n NULLS LAST, 3;
-- a|1|10
-- a|2|20
-- a|NULL|30
-- b|4|40
-- b|NULL|30
-- b|NULL|70
-- NULL|5|NULL
-- NULL|NULL|100
-- NULL|NULL|NULL
SELECT g, count(*) FROM s GROUP BY GROUPING SETS ((g), ()) ORDER BY g NULLS LAST, 2;
-- a|2
-- b|2
-- NULL|1
-- NULL|5
SELECT count(*) FROM s GROUP BY CUBE (g) ORDER BY 1;
-- 1
-- 2
-- 2
-- 5
SELECT id, row_number() OVER (ORDER BY id DESC), rank() OVER (ORDER BY g), dense_rank() OVER (ORDER BY g) FROM s ORDER BY id;
-- 1|5|1|1
-- 2|4|1|1
-- 3|3|3|2
-- 4|2|3|2
-- 5|1|5|3
SELECT id, sum(n) OVER (PARTITION BY g ORDER BY id), avg(n) OVER () FROM s ORDER BY id;
-- 1|1|3.0000000000000000
-- 2|3|3.0000000000000000
-- 3|NULL|3.0000000000000000
-- 4|4|3.0000000000000000
-- 5|5|3.0000000000000000
SELECT id, lag(n) OVER (ORDER BY id), lead(n, 2, -1) OVER (ORDER BY id), first_value(id) OVER w, last_value(id) OVER w, nth_value(id, 2) OVER w FROM s WINDOW w AS (PARTITION BY g ORDER BY id) ORDER BY id;
-- 1|NULL|NULL|1|1|NULL
-- 2|1|4|1|2|2
-- 3|2|5|3|3|NULL
-- 4|NULL|-1|3|4|4
-- 5|4|-1|5|5|NULL
SELECT id, sum(n) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING), count(*) OVER (ORDER BY id ROWS 2 PRECEDING) FROM s ORDER BY id;
-- 1|3|1
-- 2|3|2
-- 3|6|3
-- 4|9|3
-- 5|9|3
SELECT id, sum(b) OVER (ORDER BY id RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM s ORDER BY id;
-- 1|10
-- 2|30
-- 3|50
-- 4|70
-- 5|40
SELECT id, ntile(2) OVER (ORDER BY id), percent_rank() OVER (ORDER BY id), cume_dist() OVER (ORDER BY id) FROM s ORDER BY id;
-- 1|1|0|0.2
-- 2|1|0.25|0.4
-- 3|1|0.5|0.6
-- 4|2|0.75|0.8
-- 5|2|1|1
SELECT g, sum(sum(n)) OVER (ORDER BY g) FROM s GROUP BY g ORDER BY g;
-- a|3
-- b|7
-- NULL|12
SELECT id FROM s WHERE row_number() OVER () = 1;
-- ERROR 42P20: window functions are not allowed in WHERE
SELECT max(n) - min(n) AS spread, count(*) * 2 FROM s;
-- 4|10
SELECT g, (SELECT count(*) FROM s AS i WHERE i.g = s.g) FROM s GROUP BY g ORDER BY g;
-- a|2
-- b|2
-- NULL|0
SELECT CASE WHEN n > 2 THEN 'big' ELSE 'small' END AS size, count(*) FROM s GROUP BY size ORDER BY size;
-- big|2
-- small|3
SELECT date_trunc('month', t) AS m, count(*) FROM s GROUP BY m ORDER BY m;
-- 2024-01-01 00:00:00|2
-- 2024-02-01 00:00:00|1
-- 2024-03-01 00:00:00|1
-- NULL|1
SELECT n / 2, n % 2, b / 3.0, f / 2 FROM s ORDER BY id;
-- 0|1|3.3333333333333333|0.25
-- 1|0|6.6666666666666667|0.75
-- NULL|NULL|10.0000000000000000|NULL
-- 2|0|13.3333333333333333|1.25
-- 2|1|NULL|1.5
SELECT 1 / (n - 1) FROM s;
-- ERROR 22012: division by zero
SELECT sum(n) / 0 FROM s;
-- ERROR 22012: division by zero
SELECT id FROM s ORDER BY g DESC, id;
-- 5
-- 3
-- 4
-- 1
-- 2
SELECT id FROM s ORDER BY n;
-- 1
-- 2
-- 4
-- 5
-- 3
SELECT 2147483647 + n FROM s WHERE id = 1;
-- ERROR 22003: integer out of range
SELECT g FROM s GROUP BY g HAVING max(id) > 3 ORDER BY max(id) DESC;
-- NULL
-- b
SELECT row_to_json(x) FROM (SELECT id, g FROM s WHERE id = 1) x;
-- {"id":1,"g":"a"}
SELECT array_agg(DISTINCT g ORDER BY g) FROM s;
-- {a,b,NULL}
SELECT count(*) c FROM (SELECT DISTINCT g, n IS NULL FROM s) q;
-- 4
SELECT avg(x) FROM (VALUES (1.5), (2)) v(x);
-- 1.7500000000000000
SELECT max(ARRAY[1, n]) FROM s;
-- {1,NULL}
SELECT sum(i) FROM (VALUES (interval '1 day'), (interval '2 hours')) v(i);
-- 1 day 02:00:00

CREATE TABLE floats (id int PRIMARY KEY, g int, f real, d double precision);
INSERT INTO floats VALUES (1, 1, 16777216, 1e100), (2, 1, 1, 1), (3, 1, 1, 1), (4, 2, 3e38, 1e308), (5, 2, 3e38, 1e308), (6, 3, 'inf', 'inf'), (7, 3, 1, 1e308), (8, 3, NULL, NULL);
SELECT sum(f), avg(f), sum(d), avg(d) FROM floats WHERE g = 1;
-- 1.6777216e+07|5592406|1e+100|3.333333333333333e+99
SELECT sum(f), avg(f), sum(d), avg(d) FROM (SELECT * FROM floats) x WHERE g = 1 GROUP BY g;
-- 1.6777216e+07|5592406|1e+100|3.333333333333333e+99
SELECT sum(f) FROM floats WHERE g = 2;
-- ERROR 22003: value out of range: overflow
SELECT sum(f) FROM (SELECT * FROM floats) x WHERE g = 2 GROUP BY g;
-- ERROR 22003: value out of range: overflow
SELECT avg(f) FROM floats WHERE g = 2;
-- 3.0000000054977558e+38
SELECT avg(f) FROM (SELECT * FROM floats) x WHERE g = 2 GROUP BY g;
-- 3.0000000054977558e+38
SELECT sum(d) FROM floats WHERE g = 2;
-- ERROR 22003: value out of range: overflow
SELECT sum(d) FROM (SELECT * FROM floats) x WHERE g = 2 GROUP BY g;
-- ERROR 22003: value out of range: overflow
SELECT avg(d) FROM floats WHERE g = 2;
-- ERROR 22003: value out of range: overflow
SELECT avg(d) FROM (SELECT * FROM floats) x WHERE g = 2 GROUP BY g;
-- ERROR 22003: value out of range: overflow
SELECT sum(f), avg(f), sum(d), avg(d), count(f) FROM floats WHERE g = 3;
-- Infinity|Infinity|Infinity|Infinity|2
SELECT sum(f), avg(f), sum(d), avg(d), count(f) FROM (SELECT * FROM floats) x WHERE g = 3 GROUP BY g;
-- Infinity|Infinity|Infinity|Infinity|2

--- DISTINCT within a call sorts.
CREATE TABLE w (id int PRIMARY KEY, v varchar(9), x text, n int, f float8, d numeric(6,2), c char(3), h date);
INSERT INTO w VALUES (1, 'pear', 'b', 3, 0.1, 2.50, 'z', '2024-03-01'), (2, 'fig', 'a', 1, 0.2, 1.5, 'y', '2024-01-01'), (3, 'pear', NULL, 3, 0.3, 2.5, 'z', NULL), (4, 'apple', 'c', NULL, 1e17, NULL, NULL, '2024-02-01'), (5, NULL, 'a', 2, -1e17, 1.5, 'a', '2024-01-01');
SELECT array_agg(DISTINCT n), array_agg(DISTINCT n ORDER BY n DESC), array_agg(DISTINCT n ORDER BY n NULLS FIRST) FROM w;
-- {1,2,3,NULL}|{NULL,3,2,1}|{NULL,1,2,3}
SELECT string_agg(DISTINCT x, ','), string_agg(DISTINCT x, ',' ORDER BY x DESC), string_agg(DISTINCT v, ',' ORDER BY v) FROM w;
-- a,b,c|c,b,a|apple,fig,pear
SELECT string_agg(DISTINCT x, v) FROM w;
-- aapearbapplec
SELECT string_agg(DISTINCT x, v ORDER BY v, x) FROM w;
-- cfigapearba
SELECT array_agg(DISTINCT c), array_agg(DISTINCT d), array_agg(DISTINCT h), array_agg(DISTINCT f) FROM w;
-- {"a  ","y  ","z  ",NULL}|{1.50,2.50,NULL}|{2024-01-01,2024-02-01,2024-03-01,NULL}|{-1e+17,0.1,0.2,0.3,1e+17}
SELECT json_agg(DISTINCT n), jsonb_agg(DISTINCT x ORDER BY x DESC), json_agg(DISTINCT h) FROM w;
-- [1, 2, 3, null]|[null, "c", "b", "a"]|["2024-01-01", "2024-02-01", "2024-03-01", null]
SELECT json_object_agg(DISTINCT id, x) FROM w WHERE id < 3;
-- { "1" : "b", "2" : "a" }
SELECT sum(DISTINCT f), sum(DISTINCT n), avg(DISTINCT d), count(DISTINCT x), max(DISTINCT v) FROM w;
-- 0|6|2.0000000000000000|3|pear
SELECT n % 2, array_agg(DISTINCT x), count(DISTINCT v) FILTER (WHERE id > 1) FROM w GROUP BY n % 2 ORDER BY 1;
-- 0|{a}|0
-- 1|{a,b,NULL}|2
-- NULL|{c}|1
SELECT array_agg(DISTINCT upper(x) ORDER BY upper(x) DESC) FROM w;
-- {NULL,C,B,A}
SELECT string_agg(DISTINCT x, ',' ORDER BY id) FROM w;
-- ERROR 42P10: in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list
SELECT string_agg(DISTINCT v::text, ',' ORDER BY v) FROM w;
-- ERROR 42P10: in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list
SELECT string_agg(DISTINCT v, ',' ORDER BY v::text) FROM w;
-- ERROR 42P10: in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list
SELECT string_agg(DISTINCT v::text, ',' ORDER BY v::text) FROM w;
-- apple,fig,pear
SELECT count(DISTINCT x ORDER BY n) FROM w;
-- ERROR 42P10: in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list
SELECT json_agg(DISTINCT to_json(n)) FROM w;
-- ERROR 42883: could not identify an equality operator for type json
SELECT count(DISTINCT x) OVER () FROM w;
-- ERROR 0A000: DISTINCT is not implemented for window functions
SELECT array_agg(x ORDER BY id) OVER () FROM w;
-- ERROR 0A000: aggregate ORDER BY is not implemented for window functions
