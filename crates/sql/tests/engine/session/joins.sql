-- USING, NATURAL and nested joins.

CREATE TABLE a (id int PRIMARY KEY, x int, k text);
CREATE TABLE b (id int PRIMARY KEY, y int, k text);
CREATE TABLE c (id int PRIMARY KEY, z int, k text);
INSERT INTO a VALUES (1, 10, 'p'), (2, 20, 'q'), (3, NULL, NULL);
INSERT INTO b VALUES (2, 200, 'q'), (3, 300, NULL), (4, 400, 's');
INSERT INTO c VALUES (1, 1000, 'p'), (4, 4000, 's'), (5, 5000, 't');

--- Chains.
SELECT * FROM a NATURAL FULL JOIN b NATURAL FULL JOIN c ORDER BY id, x, y, z;
-- 1|p|10|NULL|1000
-- 2|q|20|200|NULL
-- 3|NULL|NULL|300|NULL
-- 3|NULL|NULL|NULL|NULL
-- 4|s|NULL|400|4000
-- 5|t|NULL|NULL|5000
SELECT * FROM a FULL JOIN b USING (id) FULL JOIN c USING (id) ORDER BY 1;
-- 1|10|p|NULL|NULL|1000|p
-- 2|20|q|200|q|NULL|NULL
-- 3|NULL|NULL|300|NULL|NULL|NULL
-- 4|NULL|NULL|400|s|4000|s
-- 5|NULL|NULL|NULL|NULL|5000|t
SELECT id, x, y, z FROM a FULL JOIN b USING (id) FULL JOIN c USING (id) WHERE id > 1 ORDER BY id;
-- 2|20|200|NULL
-- 3|NULL|300|NULL
-- 4|NULL|400|4000
-- 5|NULL|NULL|5000
SELECT id, a.id, b.id, c.id FROM a FULL JOIN b USING (id) FULL JOIN c USING (id) ORDER BY 1;
-- 1|1|NULL|1
-- 2|2|2|NULL
-- 3|3|3|NULL
-- 4|NULL|4|4
-- 5|NULL|NULL|5
SELECT id, count(*) FROM a FULL JOIN b USING (id) FULL JOIN c USING (id) GROUP BY id ORDER BY id;
-- 1|1
-- 2|1
-- 3|1
-- 4|1
-- 5|1
SELECT * FROM a FULL JOIN b USING (id) LEFT JOIN c USING (id) ORDER BY 1;
-- 1|10|p|NULL|NULL|1000|p
-- 2|20|q|200|q|NULL|NULL
-- 3|NULL|NULL|300|NULL|NULL|NULL
-- 4|NULL|NULL|400|s|4000|s
SELECT * FROM a FULL JOIN b USING (id) RIGHT JOIN c USING (id) ORDER BY 1;
-- 1|10|p|NULL|NULL|1000|p
-- 4|NULL|NULL|400|s|4000|s
-- 5|NULL|NULL|NULL|NULL|5000|t
SELECT * FROM a FULL JOIN b USING (id) JOIN c USING (id) ORDER BY 1;
-- 1|10|p|NULL|NULL|1000|p
-- 4|NULL|NULL|400|s|4000|s
SELECT * FROM a LEFT JOIN b USING (id) FULL JOIN c USING (id) ORDER BY 1;
-- 1|10|p|NULL|NULL|1000|p
-- 2|20|q|200|q|NULL|NULL
-- 3|NULL|NULL|300|NULL|NULL|NULL
-- 4|NULL|NULL|NULL|NULL|4000|s
-- 5|NULL|NULL|NULL|NULL|5000|t
SELECT * FROM a RIGHT JOIN b USING (id) FULL JOIN c USING (id) ORDER BY 1;
-- 1|NULL|NULL|NULL|NULL|1000|p
-- 2|20|q|200|q|NULL|NULL
-- 3|NULL|NULL|300|NULL|NULL|NULL
-- 4|NULL|NULL|400|s|4000|s
-- 5|NULL|NULL|NULL|NULL|5000|t
SELECT * FROM a JOIN b USING (id) FULL JOIN c USING (id) ORDER BY 1;
-- 1|NULL|NULL|NULL|NULL|1000|p
-- 2|20|q|200|q|NULL|NULL
-- 3|NULL|NULL|300|NULL|NULL|NULL
-- 4|NULL|NULL|NULL|NULL|4000|s
-- 5|NULL|NULL|NULL|NULL|5000|t
SELECT * FROM a LEFT JOIN b USING (id) LEFT JOIN c USING (id) ORDER BY 1;
-- 1|10|p|NULL|NULL|1000|p
-- 2|20|q|200|q|NULL|NULL
-- 3|NULL|NULL|300|NULL|NULL|NULL
SELECT * FROM a RIGHT JOIN b USING (id) LEFT JOIN c USING (id) ORDER BY 1;
-- 2|20|q|200|q|NULL|NULL
-- 3|NULL|NULL|300|NULL|NULL|NULL
-- 4|NULL|NULL|400|s|4000|s
SELECT * FROM a LEFT JOIN b USING (id) RIGHT JOIN c USING (id) ORDER BY 1;
-- 1|10|p|NULL|NULL|1000|p
-- 4|NULL|NULL|NULL|NULL|4000|s
-- 5|NULL|NULL|NULL|NULL|5000|t
SELECT * FROM a NATURAL LEFT JOIN b NATURAL LEFT JOIN c ORDER BY 1, 2;
-- 1|p|10|NULL|1000
-- 2|q|20|200|NULL
-- 3|NULL|NULL|NULL|NULL
SELECT * FROM a NATURAL JOIN b;
-- 2|q|20|200
SELECT * FROM a NATURAL RIGHT JOIN b ORDER BY 1;
-- 2|q|20|200
-- 3|NULL|NULL|300
-- 4|s|NULL|400
SELECT * FROM a NATURAL FULL JOIN b ORDER BY 1, 2;
-- 1|p|10|NULL
-- 2|q|20|200
-- 3|NULL|NULL|NULL
-- 3|NULL|NULL|300
-- 4|s|NULL|400
SELECT * FROM c NATURAL FULL JOIN (a FULL JOIN b USING (id)) ORDER BY 1;
-- ERROR 42702: common column name "k" appears more than once in right table
SELECT * FROM c FULL JOIN (a FULL JOIN b USING (id, k)) USING (id, k) ORDER BY 1, 2, 3, 4, 5;
-- 1|p|1000|10|NULL
-- 2|q|NULL|20|200
-- 3|NULL|NULL|NULL|300
-- 3|NULL|NULL|NULL|NULL
-- 4|s|4000|NULL|400
-- 5|t|5000|NULL|NULL
SELECT * FROM (a FULL JOIN b USING (id, k)) FULL JOIN c USING (k) ORDER BY 1, 2, 3, 4, 5;
-- p|1|10|NULL|1|1000
-- q|2|20|200|NULL|NULL
-- s|4|NULL|400|4|4000
-- t|NULL|NULL|NULL|5|5000
-- NULL|3|NULL|300|NULL|NULL
-- NULL|3|NULL|NULL|NULL|NULL
SELECT * FROM (a JOIN b USING (k)) JOIN c USING (k) ORDER BY 1, 2, 3, 4, 5;
SELECT * FROM a CROSS JOIN b NATURAL JOIN c;
-- ERROR 42702: common column name "id" appears more than once in left table
SELECT a.*, id FROM a FULL JOIN b USING (id) ORDER BY id;
-- ERROR 42702: ORDER BY "id" is ambiguous
SELECT b.*, id FROM a FULL JOIN b USING (id) ORDER BY id;
-- ERROR 42702: ORDER BY "id" is ambiguous
SELECT max(id), min(id), count(id), count(a.id) FROM a FULL JOIN b USING (id) FULL JOIN c USING (id);
-- 5|1|5|3
SELECT id + 1, coalesce(x, y, z) FROM a FULL JOIN b USING (id) FULL JOIN c USING (id) ORDER BY id DESC LIMIT 2;
-- 6|5000
-- 5|400
SELECT a.id, b.id FROM a FULL JOIN b USING (id) WHERE id = 3;
-- 3|3
SELECT a.id, b.id FROM a FULL JOIN b USING (id) WHERE a.id IS NULL;
-- NULL|4

--- The order of columns.
CREATE TABLE t (v0 int, v1 int, v2 int);
CREATE TABLE u (v1 int, u1 int, v2 int);
CREATE TABLE w (v2 int, w1 int, v1 int);
INSERT INTO t VALUES (1, 2, 3), (4, 5, 6);
INSERT INTO u VALUES (2, 20, 33), (5, 50, 66);
INSERT INTO w VALUES (3, 300, 333), (6, 600, 666);
SELECT * FROM t JOIN (SELECT v1, u1 FROM u) u USING (v1) JOIN w USING (v2);
-- 3|2|1|20|300|333
-- 6|5|4|50|600|666
SELECT * FROM t JOIN (SELECT v1, u1 FROM u) u USING (v1) JOIN (SELECT v2, w1 FROM w) w USING (v2);
-- 3|2|1|20|300
-- 6|5|4|50|600
SELECT * FROM t JOIN w USING (v2) JOIN (SELECT v1, u1 FROM u) u ON u.u1 = 20;
-- 3|1|2|300|333|2|20
-- 6|4|5|600|666|2|20
SELECT * FROM t JOIN u USING (v2, v1);
SELECT * FROM t LEFT JOIN u USING (v2, v1) ORDER BY v0;
-- 3|2|1|NULL
-- 6|5|4|NULL
SELECT * FROM t RIGHT JOIN u USING (v2, v1) ORDER BY u1;
-- 33|2|NULL|20
-- 66|5|NULL|50
SELECT * FROM t FULL JOIN u USING (v2, v1) ORDER BY v0, u1;
-- 3|2|1|NULL
-- 6|5|4|NULL
-- 33|2|NULL|20
-- 66|5|NULL|50
SELECT * FROM t NATURAL JOIN u;
SELECT * FROM u NATURAL LEFT JOIN t ORDER BY u1;
-- 2|33|20|NULL
-- 5|66|50|NULL
SELECT * FROM u NATURAL RIGHT JOIN t ORDER BY v0;
-- 2|3|NULL|1
-- 5|6|NULL|4
SELECT * FROM t, u JOIN w USING (v2) ORDER BY 1, 2, 3;
SELECT * FROM t JOIN (u JOIN w USING (v2)) ON true ORDER BY 1;
SELECT * FROM (SELECT 1 AS p, 2 AS q) s1 JOIN (SELECT 2 AS q, 3 AS r) s2 USING (q) JOIN (SELECT 3 AS r, 4 AS s) s3 USING (r);
-- 3|2|1|4
SELECT * FROM (SELECT 1 AS p, 2 AS q) s1 LEFT JOIN (SELECT 2 AS q, 3 AS r) s2 USING (q) LEFT JOIN (SELECT 3 AS r, 4 AS s) s3 USING (r);
-- 3|2|1|4
SELECT * FROM (SELECT 1 AS p, 2 AS q) s1 FULL JOIN (SELECT 2 AS q, 3 AS r) s2 USING (q) FULL JOIN (SELECT 3 AS r, 4 AS s) s3 USING (r);
-- 3|2|1|4

--- Types that differ.
SELECT id, pg_typeof(id) FROM (VALUES (1), (2)) v(id) FULL JOIN (VALUES (2::bigint), (3)) w(id) USING (id) ORDER BY id;
-- 1|bigint
-- 2|bigint
-- 3|bigint
SELECT id, pg_typeof(id) FROM (VALUES (1), (2)) v(id) JOIN (VALUES (2::bigint), (3)) w(id) USING (id) ORDER BY id;
-- 2|bigint
SELECT id, pg_typeof(id) FROM (VALUES (1), (2)) v(id) RIGHT JOIN (VALUES (2::bigint), (3)) w(id) USING (id) ORDER BY id;
-- 2|bigint
-- 3|bigint
SELECT id, pg_typeof(id) FROM (VALUES (1), (2)) v(id) LEFT JOIN (VALUES (2::numeric), (3)) w(id) USING (id) ORDER BY id;
-- 1|numeric
-- 2|numeric

--- Errors.
SELECT * FROM a JOIN b USING (nope);
-- ERROR 42703: column "nope" specified in USING clause does not exist in left table
SELECT * FROM a JOIN b USING (x);
-- ERROR 42703: column "x" specified in USING clause does not exist in right table
SELECT * FROM a JOIN b USING (id, id);
-- ERROR 42701: column name "id" appears more than once in USING clause
SELECT * FROM a JOIN b ON true JOIN c USING (id);
-- ERROR 42702: common column name "id" appears more than once in left table
SELECT id FROM a JOIN b ON true;
-- ERROR 42702: column reference "id" is ambiguous
SELECT * FROM a JOIN b USING (id) JOIN c USING (k);
-- ERROR 42702: common column name "k" appears more than once in left table
SELECT k FROM a JOIN b USING (id);
-- ERROR 42702: column reference "k" is ambiguous
SELECT * FROM a LEFT JOIN b ON a.id = (SELECT c.id LIMIT 1) LEFT JOIN c ON true;
-- ERROR 42P01: missing FROM-clause entry for table "c"
SELECT * FROM a LEFT JOIN b ON a.id = (SELECT z LIMIT 1) LEFT JOIN c ON true;
-- ERROR 42703: column "z" does not exist
SELECT * FROM c, a LEFT JOIN b ON EXISTS (SELECT 1 WHERE c.id = b.id);
-- ERROR 42P01: invalid reference to FROM-clause entry for table "c"
SELECT * FROM a, b LEFT JOIN c ON EXISTS (SELECT 1 WHERE x = c.id);
-- ERROR 42703: column "x" does not exist
SELECT count(*) FROM c CROSS JOIN a LEFT JOIN b ON EXISTS (SELECT 1 WHERE c.id = b.id AND x > 5);
-- 9
SELECT count(*) FROM a LEFT JOIN b ON EXISTS (SELECT 1 FROM c WHERE c.id = b.id AND x > 5);
-- 3
SELECT (SELECT count(*) FROM b LEFT JOIN c ON b.id = c.id AND a.id = 1) FROM a ORDER BY id;
-- 3
-- 3
-- 3
SELECT * FROM a a1 JOIN a a1 ON true;
-- ERROR 42712: table name "a1" specified more than once
SELECT a.nope FROM a;
-- ERROR 42703: column a.nope does not exist
SELECT nope.id FROM a;
-- ERROR 42P01: missing FROM-clause entry for table "nope"

--- Several ONs after several joins.
SELECT a.id, b.id, c.id FROM a LEFT JOIN b JOIN c ON b.id = c.id ON a.id = b.id - 1 ORDER BY 1;
-- 1|NULL|NULL
-- 2|NULL|NULL
-- 3|4|4
SELECT a.id, b.id, c.id FROM a JOIN b JOIN c ON b.id = c.id ON a.id < b.id ORDER BY 1;
-- 1|4|4
-- 2|4|4
-- 3|4|4
SELECT a.id, b.id, c.id FROM a JOIN b LEFT JOIN c ON b.id = c.id ON a.id = b.id ORDER BY 1;
-- 2|2|NULL
-- 3|3|NULL
SELECT a.id, b.id, c.id FROM a LEFT JOIN b INNER JOIN c USING (id) ON a.k = b.k ORDER BY 1;
-- 1|NULL|NULL
-- 2|NULL|NULL
-- 3|NULL|NULL
SELECT * FROM a LEFT JOIN (b JOIN c ON b.id = c.id) ON a.id = b.id ORDER BY 1;
-- 1|10|p|NULL|NULL|NULL|NULL|NULL|NULL
-- 2|20|q|NULL|NULL|NULL|NULL|NULL|NULL
-- 3|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL
SELECT j.x, j.y FROM (a JOIN b USING (id)) AS j ORDER BY 1;
-- 20|200
-- NULL|300
SELECT j.id, j.* FROM (a JOIN b USING (id)) AS j ORDER BY 1;
-- 2|2|20|q|200|q
-- 3|3|NULL|NULL|300|NULL
SELECT * FROM (a JOIN b USING (id)) AS j (i1, i2) ORDER BY 1;
-- 2|20|q|200|q
-- 3|NULL|NULL|300|NULL

--- Whole rows.
SELECT a FROM a LEFT JOIN b USING (id) ORDER BY a.id;
-- (1,10,p)
-- (2,20,q)
-- (3,,)
SELECT b FROM a LEFT JOIN b USING (id) ORDER BY a.id;
-- NULL
-- (2,200,q)
-- (3,300,)
SELECT a, b FROM a FULL JOIN b USING (id) ORDER BY id;
-- (1,10,p)|NULL
-- (2,20,q)|(2,200,q)
-- (3,,)|(3,300,)
-- NULL|(4,400,s)
SELECT count(b), count(*) FROM a LEFT JOIN b USING (id);
-- 2|3

--- Lateral.
SELECT a.id, l.n FROM a, LATERAL (SELECT count(*) AS n FROM b WHERE b.id > a.id) l ORDER BY 1;
-- 1|3
-- 2|2
-- 3|1
SELECT a.id, l.n FROM a LEFT JOIN LATERAL (SELECT y AS n FROM b WHERE b.id = a.id) l ON true ORDER BY 1;
-- 1|NULL
-- 2|200
-- 3|300
SELECT a.id, l.n FROM a JOIN LATERAL (SELECT y AS n FROM b WHERE b.id >= a.id ORDER BY b.id LIMIT 1) l ON l.n > 200 ORDER BY 1;
-- 3|300
SELECT a.id, g FROM a, generate_series(1, a.id) g ORDER BY 1, 2;
-- 1|1
-- 2|1
-- 2|2
-- 3|1
-- 3|2
-- 3|3
SELECT a.id, g FROM a LEFT JOIN generate_series(2, a.id) g ON g > 2 ORDER BY 1, 2;
-- 1|NULL
-- 2|NULL
-- 3|3
SELECT a.id, l.* FROM a CROSS JOIN LATERAL (VALUES (a.id, a.x), (a.id * 2, NULL)) l(p, q) ORDER BY 1, 2;
-- 1|1|10
-- 1|2|NULL
-- 2|2|20
-- 2|4|NULL
-- 3|3|NULL
-- 3|6|NULL
SELECT id, n FROM a JOIN LATERAL (SELECT a.id, a.x * 2 AS n) l USING (id) ORDER BY 1;
-- 1|20
-- 2|40
-- 3|NULL
SELECT * FROM a LEFT JOIN LATERAL (SELECT a.x + b.y AS s FROM b WHERE b.id = a.id) l ON l.s > 100 ORDER BY 1;
-- 1|10|p|NULL
-- 2|20|q|220
-- 3|NULL|NULL|NULL
SELECT a.id, l1.v, l2.w FROM a, LATERAL (SELECT a.id + 1 AS v) l1, LATERAL (SELECT l1.v * 2 AS w) l2 ORDER BY 1;
-- 1|2|4
-- 2|3|6
-- 3|4|8
SELECT * FROM (VALUES (1, 'one'), (2, 'two')) v(n, s) NATURAL JOIN (VALUES (2, 'zwei')) w(n, t);
-- 2|two|zwei

--- More than 60 items.
SELECT count(*), min(t64.i) FROM (SELECT 0 AS i) t0, (SELECT 1 AS i) t1, (SELECT 2 AS i) t2, (SELECT 3 AS i) t3, (SELECT 4 AS i) t4, (SELECT 5 AS i) t5, (SELECT 6 AS i) t6, (SELECT 7 AS i) t7, (SELECT 8 AS i) t8, (SELECT 9 AS i) t9, (SELECT 10 AS i) t10, (SELECT 11 AS i) t11, (SELECT 12 AS i) t12, (SELECT 13 AS i) t13, (SELECT 14 AS i) t14, (SELECT 15 AS i) t15, (SELECT 16 AS i) t16, (SELECT 17 AS i) t17, (SELECT 18 AS i) t18, (SELECT 19 AS i) t19, (SELECT 20 AS i) t20, (SELECT 21 AS i) t21, (SELECT 22 AS i) t22, (SELECT 23 AS i) t23, (SELECT 24 AS i) t24, (SELECT 25 AS i) t25, (SELECT 26 AS i) t26, (SELECT 27 AS i) t27, (SELECT 28 AS i) t28, (SELECT 29 AS i) t29, (SELECT 30 AS i) t30, (SELECT 31 AS i) t31, (SELECT 32 AS i) t32, (SELECT 33 AS i) t33, (SELECT 34 AS i) t34, (SELECT 35 AS i) t35, (SELECT 36 AS i) t36, (SELECT 37 AS i) t37, (SELECT 38 AS i) t38, (SELECT 39 AS i) t39, (SELECT 40 AS i) t40, (SELECT 41 AS i) t41, (SELECT 42 AS i) t42, (SELECT 43 AS i) t43, (SELECT 44 AS i) t44, (SELECT 45 AS i) t45, (SELECT 46 AS i) t46, (SELECT 47 AS i) t47, (SELECT 48 AS i) t48, (SELECT 49 AS i) t49, (SELECT 50 AS i) t50, (SELECT 51 AS i) t51, (SELECT 52 AS i) t52, (SELECT 53 AS i) t53, (SELECT 54 AS i) t54, (SELECT 55 AS i) t55, (SELECT 56 AS i) t56, (SELECT 57 AS i) t57, (SELECT 58 AS i) t58, (SELECT 59 AS i) t59, (SELECT 60 AS i) t60, (SELECT 61 AS i) t61, (SELECT 62 AS i) t62, (SELECT 63 AS i) t63, (SELECT 64 AS i) t64 WHERE t64.i = t1.i + 63 AND t63.i = t62.i + t1.i;
-- 1|64
