-- What Timeball once answered otherwise than PostgreSQL.

CREATE TABLE e (id int PRIMARY KEY, g int, name text, info json, tags text[]);
INSERT INTO e VALUES (1, 1, 'ada', '{"x":1}', '{a,b}'), (2, 1, 'bob', NULL, '{{x,y},{z,w}}'), (3, NULL, NULL, '[]', NULL);

--- IN with rows that hold NULLs.
SELECT (1, 2) IN (SELECT 3, NULL::int), (1, 2) NOT IN (SELECT 3, NULL::int), (1, 2) IN (SELECT 1, NULL::int);
-- f|t|NULL
SELECT (1, NULL::int) IN (SELECT 2, 3), (1, NULL::int) IN (SELECT 1, 3), (NULL::int, NULL::int) IN (SELECT 1, 2);
-- f|NULL|NULL
SELECT (NULL::int, 1) IN (SELECT 1, 2 WHERE false), 3 IN (SELECT g FROM e), 1 IN (SELECT g FROM e), NULL IN (SELECT g FROM e), NULL IN (SELECT 1 WHERE false);
-- f|NULL|t|NULL|f
SELECT id FROM e WHERE (id, g) NOT IN (SELECT 2, NULL::int) ORDER BY id;
-- 1
-- 3
SELECT (1.0, 'a') IN (SELECT 1, 'a'::char(3)), (1.5, NULL) IN (SELECT 1, 'a'), (1.0, NULL) IN (SELECT 1, 'a');
-- t|f|NULL

--- A minus belongs to the base of a power.
SELECT -2 ^ 2, -2.0 ^ 2, - 2 ^ 3 ^ 2, -(2 ^ 2), 1 - 2 ^ 2, -2 * 2 ^ 2;
-- 4|4.0000000000000000|64|-4|-3|-8

--- Slices of arrays with several dimensions.
SELECT tags[1:1], tags[2:], tags[5:6] FROM e ORDER BY id;
-- {a}|{b}|{}
-- {{x,y}}|{{z,w}}|{}
-- NULL|NULL|NULL
SELECT ('{{1,2},{3,4},{5,6}}'::int[])[2:3], ('[2:4]={1,2,3}'::int[])[3:4], ('{1,2,3}'::int[])[:2];
-- {{3,4},{5,6}}|{2,3}|{1,2}

--- Text and formats.
SELECT to_char(date '2024-08-01', 'RM|FMRM|rm'), to_char(date '2024-01-01', 'RM|FMRM|rm|');
-- VIII|VIII|viii|I   |I|i   |
--- differs: the scripts' answers are of the locale C, in which only ASCII has cases. In others each character becomes one, too.
SELECT upper('straße'), initcap('élan VITAL'), lower('ÀB');
-- STRAßE|Élan Vital|àb

SELECT json_agg(e2 ORDER BY id) FROM (SELECT id, g FROM e) e2;
-- [{"id":1,"g":1}, 
--  {"id":2,"g":1}, 
--  {"id":3,"g":null}]
SELECT json_agg(tags) FROM e;
-- [["a","b"], 
--  [["x","y"],["z","w"]], null]
SELECT json_agg(id ORDER BY id) FROM e;
-- [1, 2, 3]

--- json has no equality and no order.
SELECT DISTINCT info FROM e;
-- ERROR 42883: could not identify an equality operator for type json
SELECT DISTINCT x.info FROM e x JOIN e y ON x.id = y.id;
-- ERROR 42883: could not identify an equality operator for type json
SELECT DISTINCT ON (info) id FROM e;
-- ERROR 42883: could not identify an equality operator for type json
SELECT count(*) FROM e GROUP BY info;
-- ERROR 42883: could not identify an equality operator for type json
SELECT string_agg(name, ',') FROM e GROUP BY info;
-- ERROR 42883: could not identify an equality operator for type json
SELECT info FROM e UNION SELECT info FROM e;
-- ERROR 42883: could not identify an equality operator for type json
SELECT info FROM e UNION ALL SELECT info FROM e WHERE id = 1;
-- {"x":1}
-- NULL
-- []
-- {"x":1}
SELECT id FROM e ORDER BY info;
-- ERROR 42883: could not identify an ordering operator for type json
SELECT x.id FROM e x JOIN e y ON x.id = y.id ORDER BY x.info;
-- ERROR 42883: could not identify an ordering operator for type json
SELECT rank() OVER (ORDER BY info) FROM e;
-- ERROR 42883: could not identify an ordering operator for type json
SELECT array_agg(id ORDER BY info) FROM e;
-- ERROR 42883: could not identify an ordering operator for type json

--- Sort keys of DISTINCT ON, and names that mean two outputs.
SELECT DISTINCT ON (g) g, id FROM e ORDER BY g DESC NULLS LAST, id DESC;
-- 1|2
-- NULL|3
SELECT DISTINCT ON (g) g, id FROM e ORDER BY id;
-- ERROR 42P10: SELECT DISTINCT ON expressions must match initial ORDER BY expressions
SELECT DISTINCT ON (g, name) g, id FROM e ORDER BY name, g, id;
-- 1|1
-- 1|2
-- NULL|3
SELECT DISTINCT ON (g, name) g, id FROM e ORDER BY name, id, g;
-- ERROR 42P10: SELECT DISTINCT ON expressions must match initial ORDER BY expressions
SELECT DISTINCT ON (g, name) g, id FROM e ORDER BY name;
-- 1|1
-- 1|2
-- NULL|3
SELECT x.id, y.id FROM e x FULL JOIN e y ON x.id = y.id ORDER BY id;
-- ERROR 42702: ORDER BY "id" is ambiguous
SELECT id, x.id FROM e x FULL JOIN e y USING (id) ORDER BY id;
-- ERROR 42702: ORDER BY "id" is ambiguous

--- Windows.
SELECT sum(id) OVER (w ORDER BY id) FROM e WINDOW w AS (ORDER BY id);
-- ERROR 42P20: cannot override ORDER BY clause of window "w"
SELECT sum(id) OVER (w PARTITION BY g) FROM e WINDOW w AS (ORDER BY id);
-- ERROR 42P20: cannot override PARTITION BY clause of window "w"
SELECT sum(id) OVER (w) FROM e WINDOW w AS (ORDER BY id ROWS 1 PRECEDING);
-- ERROR 42P20: cannot copy window "w" because it has a frame clause
SELECT id, sum(id) OVER w, sum(id) OVER (v ROWS 1 PRECEDING) FROM e WINDOW w AS (ORDER BY id ROWS 1 PRECEDING), v AS (ORDER BY id) ORDER BY id;
-- 1|1|1
-- 2|3|3
-- 3|5|5
SELECT sum(id) OVER (ROWS UNBOUNDED FOLLOWING) FROM e;
-- ERROR 42P20: frame start cannot be UNBOUNDED FOLLOWING
SELECT sum(id) OVER (ROWS BETWEEN CURRENT ROW AND UNBOUNDED PRECEDING) FROM e;
-- ERROR 42P20: frame end cannot be UNBOUNDED PRECEDING
SELECT sum(id) OVER (ROWS 2 FOLLOWING) FROM e;
-- ERROR 42P20: frame starting from following row cannot end with current row
SELECT sum(id) OVER (ROWS BETWEEN CURRENT ROW AND 1 PRECEDING) FROM e;
-- ERROR 42P20: frame starting from current row cannot have preceding rows
SELECT sum(id) OVER (ROWS BETWEEN 1 FOLLOWING AND CURRENT ROW) FROM e;
-- ERROR 42P20: frame starting from following row cannot have preceding rows
SELECT percentile_cont(DISTINCT 0.5) WITHIN GROUP (ORDER BY id) FROM e;
-- ERROR 42601: cannot use DISTINCT with WITHIN GROUP

--- A grouping key that begins with a column.
SELECT id % 2, string_agg(name, ',') FROM e GROUP BY id % 2 ORDER BY 1;
-- 0|bob
-- 1|ada
SELECT g + 1, array_agg(id ORDER BY id) FROM e GROUP BY g + 1 HAVING g + 1 > 1 ORDER BY g + 1;
-- 2|{1,2}
