-- What was found by statements that users write: fields of a relation's row, regressions, functions that were missing.

CREATE TABLE emp (id int PRIMARY KEY, name text, dept int, salary numeric(10, 2));
INSERT INTO emp VALUES (1, 'ann', 1, 1500), (2, 'bob', 1, 900), (3, 'cid', 2, 2500), (4, 'dee', NULL, NULL), (5, 'eve', 2, 2500);
CREATE VIEW rich AS SELECT id FROM emp WHERE salary > 1000;
CREATE SEQUENCE numbers;

SELECT (e).name, (e).id + 1 FROM emp e WHERE (e).id < 3 ORDER BY (e).id;
-- ann|2
-- bob|3
SELECT (emp).name FROM emp WHERE id = 1;
-- ann
SELECT (x).a FROM (SELECT id AS a FROM emp) x WHERE (x).a = 2;
-- 2
SELECT (e).nosuch FROM emp e;
-- ERROR 42703: column e.nosuch does not exist
--- differs: a key of GROUP BY is known by how it is written
SELECT (d).dept, count(*) FROM emp d GROUP BY (d).dept ORDER BY 1;
-- ERROR 42803: column "d.dept" must appear in the GROUP BY clause or be used in an aggregate function
SELECT (a).name, (b).name FROM emp a JOIN emp b ON (a).dept = (b).dept AND (a).id < (b).id ORDER BY 1;
-- ann|bob
-- cid|eve
SELECT (SELECT (e).name FROM emp i WHERE (i).id = (e).id + 1) FROM emp e ORDER BY (e).id;
-- ann
-- bob
-- cid
-- dee
-- NULL

SELECT corr(id, salary), covar_pop(id, salary), covar_samp(salary, id) FROM emp;
-- 0.7292848407276834|737.5|983.3333333333334
SELECT regr_slope(salary, id), regr_intercept(salary, id), regr_r2(salary, id), regr_count(salary, id) FROM emp;
-- 337.14285714285717|922.8571428571429|0.5318563789152025|4
SELECT regr_avgx(salary, id), regr_avgy(salary, id), regr_sxx(salary, id), regr_sxy(salary, id), regr_syy(salary, id) FROM emp;
-- 2.75|1850|8.75|2950|1869999.9999999998
SELECT corr(1, id), regr_r2(1, id), regr_slope(id, 1), regr_count(id, NULL::int), covar_samp(1, 2) FROM emp WHERE id = 1;
-- NULL|NULL|NULL|0|NULL
SELECT corr(id, id), covar_pop(id, id), regr_count(id, id) FROM emp WHERE id > 99;
-- NULL|NULL|0
SELECT dept, round(covar_pop(id, salary)::numeric, 6) FROM emp GROUP BY dept ORDER BY 1;
-- 1|-150.000000
-- 2|0.000000
-- NULL|NULL
SELECT id, round(regr_slope(salary, id) OVER (ORDER BY id)::numeric, 6) FROM emp ORDER BY id;
-- 1|NULL
-- 2|-600.000000
-- 3|500.000000
-- 4|500.000000
-- 5|337.142857
SELECT corr(x, y) FROM (VALUES ('infinity'::float8, 1.0), (1.0, 2.0)) v(x, y);
-- NaN
SELECT covar_pop(x, x) FROM (VALUES ('infinity'::float8)) v(x);
-- NaN
SELECT regr_slope(1e100 * g, g) > 9e99 FROM generate_series(1, 9) g;
-- t
SELECT corr(DISTINCT id, dept) FROM emp;
-- 0.8451542547285166
SELECT regr_slope(salary, id) FILTER (WHERE dept = 1) FROM emp;
-- -600
SELECT corr(name, id) FROM emp;
-- ERROR 42883: function corr(text, integer) does not exist

SELECT num_nonnulls(1, NULL, 'a', id), num_nulls(1, NULL, name, salary) FROM emp WHERE id IN (1, 4) ORDER BY id;
-- 3|1
-- 3|2
SELECT num_nonnulls(NULL), num_nulls(NULL, NULL);
-- 0|2
SELECT num_nulls();
-- ERROR 42883: function num_nulls() does not exist
SELECT pg_get_viewdef('rich') = pg_get_viewdef('rich'::regclass), pg_sequence_last_value('numbers');
-- t|NULL
SELECT pg_get_viewdef('nosuch');
-- ERROR 42P01: relation "nosuch" does not exist
SELECT name LIKE ALL (ARRAY['%n%', 'a%']), name NOT ILIKE ALL (ARRAY['X', '%Z']) FROM emp ORDER BY id;
-- t|t
-- f|t
-- f|t
-- f|t
-- f|t

CREATE TABLE wanted (patterns text[], short varchar[], c char(4));
INSERT INTO wanted VALUES ('{a%,%b}', '{x%}', 'ab'), ('{}', NULL, 'x'), (NULL, '{a%}', 'a'), ('{z%,NULL}', '{NULL}', NULL);
SELECT 'ab' LIKE ANY (patterns), 'ab' LIKE ALL (patterns), 'AB' ILIKE ANY (patterns), 'AB' NOT ILIKE ALL (patterns) FROM wanted;
-- t|t|t|f
-- f|t|f|t
-- NULL|NULL|NULL|NULL
-- NULL|f|NULL|NULL
SELECT 'xyz' LIKE ANY (short), 'xyz' NOT LIKE ANY (short), c LIKE ANY (patterns), c ILIKE ALL (patterns) FROM wanted;
-- t|f|t|f
-- NULL|NULL|f|t
-- f|t|NULL|NULL
-- NULL|NULL|NULL|NULL
SELECT 'ab' ~ ANY (patterns), 'ab' !~ ALL (patterns), 'AB' ~* ANY ('{^a,^z}'), c ~ ANY ('{"b  $"}') FROM wanted;
-- f|t|t|t
-- f|t|t|f
-- NULL|NULL|t|f
-- NULL|NULL|t|NULL
SELECT name FROM emp WHERE name LIKE ANY (string_to_array('a%,%e', ',')) ORDER BY id;
-- ann
-- dee
-- eve
SELECT name FROM emp WHERE name ILIKE ANY ('{A%,%E}') ORDER BY id;
-- ann
-- dee
-- eve
SELECT name FROM emp WHERE name LIKE ANY (SELECT unnest(patterns) FROM wanted) ORDER BY id;
-- ann
-- bob
PREPARE matching AS SELECT name FROM emp WHERE name ILIKE ANY ($1) AND name !~ ALL ($2) ORDER BY id;
EXECUTE matching ('{%N%,%d%}', '{q,n$}');
-- cid
-- dee
SELECT 1 LIKE ANY ('{1}');
-- ERROR 42883: operator does not exist: integer ~~ unknown
SELECT 'a' LIKE ANY ('a');
-- ERROR 22P02: malformed array literal: "a"
SELECT 'a' ~ ANY ('{(}');
-- ERROR 2201B: invalid regular expression: parentheses () not balanced

CREATE TABLE taken (at timestamptz, d date, n float8);
INSERT INTO taken SELECT '2020-03-27 12:00+00'::timestamptz + i * interval '9 hours', date '2020-01-30' + i * 3, CASE WHEN i % 7 = 0 THEN 'nan' ELSE i * 1.5 END FROM generate_series(0, 20) i;
INSERT INTO taken VALUES (NULL, NULL, NULL), ('infinity', '-infinity', 'infinity');
SELECT d, count(*) OVER (ORDER BY d RANGE BETWEEN interval '10 days' PRECEDING AND interval '1 day' FOLLOWING) FROM taken ORDER BY d, 2;
-- -infinity|1
-- 2020-01-30|1
-- 2020-02-02|2
-- 2020-02-05|3
-- 2020-02-08|4
-- 2020-02-11|4
-- 2020-02-14|4
-- 2020-02-17|4
-- 2020-02-20|4
-- 2020-02-23|4
-- 2020-02-26|4
-- 2020-02-29|4
-- 2020-03-03|4
-- 2020-03-06|4
-- 2020-03-09|4
-- 2020-03-12|4
-- 2020-03-15|4
-- 2020-03-18|4
-- 2020-03-21|4
-- 2020-03-24|4
-- 2020-03-27|4
-- 2020-03-30|4
-- NULL|1
SELECT d, count(*) OVER (ORDER BY d DESC RANGE BETWEEN '1 month' PRECEDING AND '3 days' PRECEDING) FROM taken WHERE isfinite(d) ORDER BY d;
-- 2020-01-30|10
-- 2020-02-02|9
-- 2020-02-05|9
-- 2020-02-08|9
-- 2020-02-11|9
-- 2020-02-14|9
-- 2020-02-17|9
-- 2020-02-20|9
-- 2020-02-23|9
-- 2020-02-26|9
-- 2020-02-29|9
-- 2020-03-03|9
-- 2020-03-06|8
-- 2020-03-09|7
-- 2020-03-12|6
-- 2020-03-15|5
-- 2020-03-18|4
-- 2020-03-21|3
-- 2020-03-24|2
-- 2020-03-27|1
-- 2020-03-30|0
SET timezone = 'Europe/Berlin';
SELECT at, count(*) OVER (ORDER BY at RANGE '1 day' PRECEDING), min(at) OVER (ORDER BY at NULLS FIRST RANGE BETWEEN '12 hours' FOLLOWING AND UNBOUNDED FOLLOWING) FROM taken ORDER BY at;
-- 2020-03-27 13:00:00+01|1|2020-03-28 07:00:00+01
-- 2020-03-27 22:00:00+01|2|2020-03-28 16:00:00+01
-- 2020-03-28 07:00:00+01|3|2020-03-29 01:00:00+01
-- 2020-03-28 16:00:00+01|3|2020-03-29 11:00:00+02
-- 2020-03-29 01:00:00+01|3|2020-03-29 20:00:00+02
-- 2020-03-29 11:00:00+02|3|2020-03-30 05:00:00+02
-- 2020-03-29 20:00:00+02|3|2020-03-30 14:00:00+02
-- 2020-03-30 05:00:00+02|3|2020-03-30 23:00:00+02
-- 2020-03-30 14:00:00+02|3|2020-03-31 08:00:00+02
-- 2020-03-30 23:00:00+02|3|2020-03-31 17:00:00+02
-- 2020-03-31 08:00:00+02|3|2020-04-01 02:00:00+02
-- 2020-03-31 17:00:00+02|3|2020-04-01 11:00:00+02
-- 2020-04-01 02:00:00+02|3|2020-04-01 20:00:00+02
-- 2020-04-01 11:00:00+02|3|2020-04-02 05:00:00+02
-- 2020-04-01 20:00:00+02|3|2020-04-02 14:00:00+02
-- 2020-04-02 05:00:00+02|3|2020-04-02 23:00:00+02
-- 2020-04-02 14:00:00+02|3|2020-04-03 08:00:00+02
-- 2020-04-02 23:00:00+02|3|2020-04-03 17:00:00+02
-- 2020-04-03 08:00:00+02|3|2020-04-04 02:00:00+02
-- 2020-04-03 17:00:00+02|3|infinity
-- 2020-04-04 02:00:00+02|3|infinity
-- infinity|1|infinity
-- NULL|1|2020-03-27 13:00:00+01
SELECT at::timestamp, sum(n) OVER (ORDER BY at::timestamp RANGE BETWEEN '1 day' PRECEDING AND '1 day' FOLLOWING) FROM taken WHERE n <> 'nan' ORDER BY at;
-- 2020-03-27 22:00:00|9
-- 2020-03-28 07:00:00|15
-- 2020-03-28 16:00:00|22.5
-- 2020-03-29 01:00:00|30
-- 2020-03-29 11:00:00|27
-- 2020-03-29 20:00:00|34.5
-- 2020-03-30 14:00:00|49.5
-- 2020-03-30 23:00:00|57
-- 2020-03-31 08:00:00|75
-- 2020-03-31 17:00:00|82.5
-- 2020-04-01 02:00:00|69
-- 2020-04-01 11:00:00|76.5
-- 2020-04-02 05:00:00|91.5
-- 2020-04-02 14:00:00|99
-- 2020-04-02 23:00:00|127.5
-- 2020-04-03 08:00:00|135
-- 2020-04-03 17:00:00|111
-- 2020-04-04 02:00:00|85.5
-- infinity|Infinity
SELECT n, count(*) OVER (ORDER BY n RANGE BETWEEN 3 PRECEDING AND 1.5 FOLLOWING), count(*) OVER (ORDER BY n DESC RANGE 2 PRECEDING) FROM taken ORDER BY n, 2;
-- 1.5|2|2
-- 3|3|2
-- 4.5|4|2
-- 6|4|2
-- 7.5|4|2
-- 9|3|1
-- 12|3|2
-- 13.5|3|2
-- 15|4|2
-- 16.5|4|2
-- 18|4|2
-- 19.5|3|1
-- 22.5|3|2
-- 24|3|2
-- 25.5|4|2
-- 27|4|2
-- 28.5|4|2
-- 30|3|1
-- Infinity|1|1
-- NaN|3|3
-- NaN|3|3
-- NaN|3|3
-- NULL|1|1
SELECT d, count(*) OVER (ORDER BY d RANGE '-1 day' PRECEDING) FROM taken;
-- ERROR 22013: invalid preceding or following size in window function
RESET timezone;
