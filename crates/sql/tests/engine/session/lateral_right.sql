-- RIGHT and FULL JOIN beside LATERAL; names of tables that stand under an alias; records of different types.

CREATE TABLE a (id int, v int);
CREATE TABLE b (id int, v int);
INSERT INTO a VALUES (1, 10), (2, 20);
INSERT INTO b VALUES (2, 20), (3, 30);

SELECT * FROM a RIGHT JOIN LATERAL (SELECT a.id) s ON true;
-- ERROR 42P10: invalid reference to FROM-clause entry for table "a"
SELECT * FROM a FULL JOIN LATERAL (SELECT a.id) s ON true;
-- ERROR 42P10: invalid reference to FROM-clause entry for table "a"
SELECT * FROM a RIGHT JOIN LATERAL generate_series(1, a.id) s ON true;
-- ERROR 42P10: invalid reference to FROM-clause entry for table "a"
SELECT * FROM b RIGHT JOIN a ON true CROSS JOIN LATERAL (SELECT a.id + coalesce(b.id, 0)) s ORDER BY 1, 2, 3, 4;
-- 2|20|1|10|3
-- 2|20|2|20|4
-- 3|30|1|10|4
-- 3|30|2|20|5
SELECT * FROM (b RIGHT JOIN a ON b.id = a.id), LATERAL (SELECT b.id, a.id) s ORDER BY 3;
-- NULL|NULL|1|10|NULL|1
-- 2|20|2|20|2|2
SELECT * FROM a x FULL JOIN b y ON x.id = y.id, LATERAL (SELECT x.id, y.id) s ORDER BY 1, 3;
-- 1|10|NULL|NULL|1|NULL
-- 2|20|2|20|2|2
-- NULL|NULL|3|30|NULL|3
--- differs: a RIGHT JOIN after a comma, of what names something before it
SELECT * FROM a x, LATERAL (SELECT x.id) l RIGHT JOIN b ON true ORDER BY 1, 4;
-- ERROR 0A000: LATERAL to what is not joined yet is not supported
--- differs: the same
SELECT * FROM a x, LATERAL (SELECT x.id) l RIGHT JOIN b ON l.id = b.id ORDER BY 1, 4;
-- ERROR 0A000: LATERAL to what is not joined yet is not supported
SELECT * FROM a x, b y RIGHT JOIN LATERAL (SELECT 1 AS z) l ON y.id = l.z ORDER BY 1;
-- 1|10|NULL|NULL|1
-- 2|20|NULL|NULL|1
SELECT * FROM a x, LATERAL (SELECT 5 AS z) l FULL JOIN b ON l.z = b.id ORDER BY 1, 3, 4;
-- 1|10|5|NULL|NULL
-- 1|10|NULL|2|20
-- 1|10|NULL|3|30
-- 2|20|5|NULL|NULL
-- 2|20|NULL|2|20
-- 2|20|NULL|3|30
--- differs: a FULL JOIN after a comma, of what names something before it
SELECT * FROM a x, LATERAL (SELECT x.id AS z) l FULL JOIN b ON l.z = b.id ORDER BY 1, 2, 3;
-- ERROR 0A000: LATERAL to what is not joined yet is not supported
SELECT * FROM a x CROSS JOIN LATERAL (SELECT x.id AS z) l FULL JOIN b ON l.z = b.id ORDER BY 1, 4;
-- 1|10|1|NULL|NULL
-- 2|20|2|2|20
-- NULL|NULL|NULL|3|30
SELECT * FROM a x CROSS JOIN LATERAL (SELECT x.id AS z) l RIGHT JOIN b ON l.z = b.id ORDER BY 1, 4;
-- 2|20|2|2|20
-- NULL|NULL|NULL|3|30
SELECT x.id, l.z, b.v, m.w FROM a x CROSS JOIN LATERAL (SELECT x.id AS z) l RIGHT JOIN b ON l.z = b.id CROSS JOIN LATERAL (SELECT b.v + coalesce(x.v, 0) AS w) m ORDER BY 3;
-- 2|2|20|40
-- NULL|NULL|30|30
SELECT * FROM a x LEFT JOIN (b JOIN LATERAL (SELECT b.id AS y) l ON l.y = b.id) ON b.id = x.id ORDER BY 1;
-- 1|10|NULL|NULL|NULL
-- 2|20|2|20|2
SELECT * FROM b RIGHT JOIN (a JOIN LATERAL (SELECT a.id AS z) l ON true) ON b.id = l.z ORDER BY 3;
-- NULL|NULL|1|10|1
-- 2|20|2|20|2
SELECT * FROM b FULL JOIN (a JOIN LATERAL (SELECT a.id AS z) l ON true) ON b.id = l.z ORDER BY 1, 3;
-- 2|20|2|20|2
-- 3|30|NULL|NULL|NULL
-- NULL|NULL|1|10|1
SELECT count(*), sum(l.z), sum(m.w) FROM b LEFT JOIN (a JOIN LATERAL (SELECT a.id AS z) l ON true) ON b.id = l.z CROSS JOIN LATERAL (SELECT b.id + coalesce(l.z, 0) AS w) m;
-- 2|2|7
SELECT * FROM b FULL JOIN LATERAL (SELECT 1 z) s ON b.id = s.z ORDER BY 1;
-- 2|20|NULL
-- 3|30|NULL
-- NULL|NULL|1
SELECT * FROM b RIGHT JOIN generate_series(1, 3) g ON b.id = g ORDER BY g;
-- NULL|NULL|1
-- 2|20|2
-- 3|30|3
--- differs: the same
SELECT * FROM a, generate_series(1, a.id) g RIGHT JOIN b ON b.id = g ORDER BY 1, 4;
-- ERROR 0A000: LATERAL to what is not joined yet is not supported
SELECT * FROM b FULL JOIN generate_series(1, 3) g ON b.id = g ORDER BY g;
-- NULL|NULL|1
-- 2|20|2
-- 3|30|3
SELECT * FROM b RIGHT JOIN LATERAL generate_series(1, 3) g ON b.id = g ORDER BY g;
-- NULL|NULL|1
-- 2|20|2
-- 3|30|3
SELECT * FROM b RIGHT JOIN unnest(ARRAY[1, 2]) g ON b.id = g ORDER BY g;
-- NULL|NULL|1
-- 2|20|2
--- differs: what is within parentheses names something before them
SELECT * FROM a x LEFT JOIN (LATERAL (SELECT x.id AS z) l JOIN b ON l.z = b.id) ON true;
-- ERROR 0A000: LATERAL to what is not joined yet is not supported

SELECT a.id FROM a x;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "a"
SELECT a.* FROM a x;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "a"
SELECT x.id FROM a x JOIN b ON a.id = b.id;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "a"
SELECT zz.id FROM a x;
-- ERROR 42P01: missing FROM-clause entry for table "zz"
SELECT x.nosuch FROM a x;
-- ERROR 42703: column x.nosuch does not exist
SELECT (SELECT a.id FROM b) FROM a x;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "a"
SELECT count(*) FROM a x GROUP BY a.id;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "a"
SELECT x.id FROM a x ORDER BY a.id;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "a"
DELETE FROM a x WHERE a.id = 1;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "a"
UPDATE a x SET v = 1 WHERE a.id = 1;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "a"
SELECT * FROM a x, (SELECT x.id) s;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "x"
SELECT * FROM a x, (SELECT b.id FROM b WHERE x.id = b.id) s;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "x"
SELECT * FROM a x JOIN b y ON y.id = z.id JOIN b z ON true;
-- ERROR 42P01: missing FROM-clause entry for table "z"
SELECT * FROM a x, b y JOIN b z ON x.id = z.id;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "x"

SELECT ROW(1, 10) = ROW(1, 10.0), ROW(1, 10) IN (ROW(1, 10.0)), (1, 10) IN (SELECT 1, 10.0);
-- t|t|t
--- differs: records of different types are told apart by a hash, or sorted
SELECT * FROM (VALUES (ROW(1, 10))) x(r) JOIN (VALUES (ROW(1, 10.0))) y(r) ON x.r = y.r;
SELECT x.r = y.r FROM (VALUES (ROW(1, 10))) x(r), (VALUES (ROW(1, 10.0))) y(r);
-- ERROR 42804: cannot compare dissimilar column types integer and numeric at record column 2
SELECT x.r < y.r FROM (VALUES (ROW(1, 10))) x(r), (VALUES (ROW(1, 10.0))) y(r);
-- ERROR 42804: cannot compare dissimilar column types integer and numeric at record column 2
SELECT x.r = y.r FROM (VALUES (ROW(1, 10))) x(r), (VALUES (ROW(1, 10))) y(r);
-- t
SELECT x.r = y.r FROM (VALUES (ROW(1, 10))) x(r), (VALUES (ROW(1, 10, 3))) y(r);
-- ERROR 42804: cannot compare record types with different numbers of columns
--- differs: texts of all kinds are the same values
SELECT x.r = y.r FROM (VALUES (ROW(1, 'a'::text))) x(r), (VALUES (ROW(1, 'a'::varchar))) y(r);
-- t
--- differs: records of different types are told apart by a hash, or sorted
SELECT * FROM (SELECT ROW(1, 10) r) x JOIN (SELECT ROW(1, 10.0) r) y USING (r);
--- differs: records of different types are told apart by a hash, or sorted
SELECT ROW(1, 10) UNION SELECT ROW(1, 10.0);
-- (1,10)
-- (1,10.0)
--- differs: records of different types are told apart by a hash, or sorted
SELECT ROW(1, 10) INTERSECT SELECT ROW(1, 10.0);
SELECT ROW(1, 10) UNION ALL SELECT ROW(1, 10.0);
-- (1,10)
-- (1,10.0)
--- differs: records of different types are told apart by a hash, or sorted
SELECT r FROM (VALUES (ROW(1, 10)), (ROW(1, 10.0))) v(r) ORDER BY r;
-- (1,10)
-- (1,10.0)
--- differs: records of different types are told apart by a hash, or sorted
SELECT DISTINCT r FROM (VALUES (ROW(1, 10)), (ROW(1, 10.0))) v(r);
-- (1,10)
-- (1,10.0)
SELECT a = b FROM a, b ORDER BY 1;
-- f
-- f
-- f
-- t
SELECT count(*) FROM a JOIN b ON a = b;
-- 1
