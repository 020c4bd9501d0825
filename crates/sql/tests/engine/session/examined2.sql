-- Wrong answers that an examiner found beside PostgreSQL: equal values that were not grouped, aggregates of other orders and arguments.

SET client_min_messages = warning;
CREATE TABLE j (id int, d jsonb);
INSERT INTO j VALUES (1, '1'), (2, '1.0'), (3, '{"a": 1}'), (4, '{"a": 1.00}'), (5, '"1.0"'), (6, '"1."'), (7, '[0.10, "\".0"]'), (8, '[0.1, "\".0"]'), (9, '-0.0'), (10, '0');

--- Equal jsonb are one wherever they are hashed.
SELECT min(id), count(*) FROM j GROUP BY d ORDER BY 1;
-- 1|2
-- 3|2
-- 5|1
-- 6|1
-- 7|2
-- 9|2
SELECT count(*) FROM (SELECT DISTINCT d FROM j) s;
-- 6
SELECT count(DISTINCT d), jsonb_array_length(jsonb_agg(DISTINCT d)) FROM j;
-- 6|6
SELECT a.id, b.id FROM j a JOIN j b ON a.d = b.d ORDER BY 1, 2;
-- 1|1
-- 1|2
-- 2|1
-- 2|2
-- 3|3
-- 3|4
-- 4|3
-- 4|4
-- 5|5
-- 6|6
-- 7|7
-- 7|8
-- 8|7
-- 8|8
-- 9|9
-- 9|10
-- 10|9
-- 10|10
SELECT count(*) FROM j a JOIN (SELECT d FROM j) b USING (d);
-- 18
SELECT id FROM j WHERE d IN (SELECT d FROM j WHERE id IN (2, 4)) ORDER BY id;
-- 1
-- 2
-- 3
-- 4
SELECT id FROM j WHERE d NOT IN (SELECT d FROM j WHERE id > 2) ORDER BY id;
-- 1
-- 2
SELECT count(*) FROM (SELECT d FROM j UNION SELECT d FROM j) s;
-- 6
SELECT count(*) FROM (SELECT d FROM j WHERE id = 1 INTERSECT SELECT d FROM j WHERE id = 2) s;
-- 1
SELECT count(*) FROM (SELECT d FROM j WHERE id = 1 EXCEPT SELECT d FROM j WHERE id = 2) s;
-- 0
SELECT id, count(*) OVER (PARTITION BY d) FROM j ORDER BY id;
-- 1|2
-- 2|2
-- 3|2
-- 4|2
-- 5|1
-- 6|1
-- 7|2
-- 8|2
-- 9|2
-- 10|2
SELECT count(DISTINCT array[d]) FROM j;
-- 6
SELECT count(*) FROM j a JOIN j b ON array[a.d] = array[b.d];
-- 18
SELECT DISTINCT ON (d) d FROM j WHERE id < 3;
-- 1
SELECT count(*) FROM (SELECT DISTINCT ROW(1, d) FROM j) s;
-- 6

--- So are numbers of other scales, signs of zero, and char(n), within arrays and rows.
SELECT count(*) FROM (SELECT a FROM (VALUES (array[1.0]), (array[1.00])) v(a) GROUP BY a) s;
-- 1
SELECT count(DISTINCT a) FROM (VALUES (array[1.0]), (array[1.00])) v(a);
-- 1
SELECT count(*) FROM (SELECT DISTINCT ROW(x) FROM (VALUES (1.0), (1.00)) v(x)) s;
-- 1
SELECT count(DISTINCT a) FROM (VALUES (array['0'::float8]), (array['-0'::float8])) v(a);
-- 1
SELECT count(*) FROM (VALUES (array['0'::float8])) v(a) JOIN (VALUES (array['-0'::float8])) w(a) USING (a);
-- 1
SELECT count(DISTINCT a) FROM (VALUES (array['a'::char(3)]), (array['a'::bpchar])) v(a);
-- 1
SELECT count(*) FROM (VALUES (array['a'::char(3)])) v(a) JOIN (VALUES (array['a'::char(5)])) w(a) USING (a);
-- 1
SELECT count(*) OVER (PARTITION BY c) FROM (SELECT 'a'::char(3)::bpchar AS c UNION ALL SELECT 'a'::char(5)) s;
-- 2
-- 2
