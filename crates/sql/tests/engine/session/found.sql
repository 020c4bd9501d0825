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
