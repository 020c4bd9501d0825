-- What is no target is not read as one; numbers of reg-types within a statement; subscripts that a query computes; arguments of EXECUTE.
CREATE TABLE u (id int PRIMARY KEY, arr int[], x int);
CREATE TABLE f (id int PRIMARY KEY, fl boolean[], b boolean);
INSERT INTO u VALUES (1, '{10,20,30}', 0), (2, '{1,2}', 5);
INSERT INTO f VALUES (1, '{t}', false);
CREATE TABLE t (id int, x int);
INSERT INTO t (SELECT id, arr[1] FROM u);
INSERT INTO t VALUES (1, 10), (1, 20), (2, 1), (2, 2), (7, 8);
SELECT * FROM t ORDER BY id, x;
-- 1|10
-- 1|10
-- 1|20
-- 2|1
-- 2|1
-- 2|2
-- 7|8
UPDATE f SET fl = ARRAY[b, b] FROM u WHERE u.id = f.id;
UPDATE f SET fl = (SELECT ARRAY[arr[1] = 10, arr[2] = 7] FROM u WHERE u.id = f.id), b = fl[1];
SELECT * FROM f;
-- 1|{t,f}|f
CREATE TABLE q (set boolean, arr int[]);
INSERT INTO q VALUES (true, '{5}');
SELECT q.set, arr[1] = 5 FROM q;
-- t|t
SELECT set, arr[1] = 5 FROM q;
-- t|t
UPDATE q SET set = NOT set, arr[2] = 6;
WITH w AS (UPDATE q SET arr[3] = 7, set = arr[1] = 5 RETURNING set, arr[1] = 5 AS five) SELECT set, five FROM w;
-- t|t
SELECT * FROM q;
-- t|{5,6,7}
INSERT INTO u (id, arr[2], x) VALUES (3, 4, 5) ON CONFLICT (id) DO UPDATE SET arr[1] = 5, x = 1;
INSERT INTO u (id, arr[2], x) VALUES (3, 4, 5) ON CONFLICT (id) DO UPDATE SET x = 2, arr[1] = excluded.arr[2] + 1;
SELECT * FROM u WHERE id = 3;
-- 3|{5,4}|2

--- Subscripts that are none.
--- differs: the place of the error
UPDATE u SET arr[] = 5 WHERE id = 1;
-- ERROR 42601: syntax error at or near "["
--- differs: the place of the error
UPDATE u SET arr[1,2] = 5 WHERE id = 1;
-- ERROR 42601: syntax error at or near "["
--- differs: the place of the error
INSERT INTO u (id, arr[]) VALUES (4, 5);
-- ERROR 42601: syntax error at or near "["
UPDATE u SET arr[1][1][1][1][1][1][1] = 5 WHERE id = 1;
-- ERROR 54000: number of array dimensions (7) exceeds the maximum allowed (6)
INSERT INTO u (id, arr[1][1][1][1][1][1][1]) VALUES (4, 5);
-- ERROR 54000: number of array dimensions (7) exceeds the maximum allowed (6)
SELECT arr[1:2][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1] FROM u WHERE id = 1;
-- ERROR 54000: number of array dimensions (19) exceeds the maximum allowed (6)
UPDATE u SET arr[1:2][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1] = '{5}' WHERE id = 1;
-- ERROR 54000: number of array dimensions (18) exceeds the maximum allowed (6)
SELECT arr FROM u WHERE id = 1;
-- {10,20,30}

--- A query computes them.
UPDATE u SET arr[v.i] = v.x FROM (VALUES (1, 40)) v(i, x) WHERE id = 1;
UPDATE u SET arr[v.i:v.i + 1] = ARRAY[v.x, v.x] FROM (VALUES (2, 50)) v(i, x) WHERE id = 1;
UPDATE u SET arr[(SELECT max(t.id) FROM t WHERE t.id <= u.id)] = 60 WHERE id = 1;
UPDATE u SET arr[(SELECT count(*)::int FROM t WHERE t.id = u.id)] = 70, arr[v.i] = v.i FROM (VALUES (2)) v(i) WHERE u.id = 1;
SELECT arr FROM u WHERE id = 1;
-- {60,2,70}
UPDATE u SET arr[v.i] = 1 FROM (VALUES (NULL::int)) v(i) WHERE id = 1;
-- ERROR 22004: array subscript in assignment must not be null
UPDATE u SET arr[nowhere] = 1 WHERE id = 1;
-- ERROR 42703: column "nowhere" does not exist
INSERT INTO u (id, arr[length('it''s')]) VALUES (5, 1);
INSERT INTO u (id, arr[length('x'') , y')]) VALUES (6, 1);
INSERT INTO u (id, arr[length($$it's$$)], arr[length(E'\'\\')]) VALUES (7, 1, 2);
SELECT id, arr FROM u WHERE id > 4 ORDER BY id;
-- 5|[4:4]={1}
-- 6|[7:7]={1}
-- 7|[2:4]={2,NULL,1}
PREPARE pw (int, int) AS WITH w AS (INSERT INTO u (id, arr[$1]) VALUES ($2, 9) RETURNING arr) SELECT * FROM w;
EXECUTE pw (2, 8);
-- [2:2]={9}
PREPARE pu AS WITH w AS (INSERT INTO u (id, arr[$1]) VALUES ($2, 9) RETURNING arr) SELECT * FROM w;
EXECUTE pu (3, 9);
-- [3:3]={9}

--- The numbers of reg-types stay numbers within a statement.
CREATE TABLE x1 (id int PRIMARY KEY, c regclass);
CREATE TABLE y1 (id int PRIMARY KEY, c regclass);
INSERT INTO x1 VALUES (1, 'x1'), (2, 'y1');
INSERT INTO y1 SELECT * FROM x1;
SELECT * FROM y1 ORDER BY id;
-- 1|x1
-- 2|y1
SELECT y1.id, k.relname FROM y1 JOIN pg_class k ON k.oid = y1.c ORDER BY 1;
-- 1|x1
-- 2|y1
CREATE TABLE z1 AS SELECT * FROM x1;
SELECT * FROM z1 ORDER BY id;
-- 1|x1
-- 2|y1
SELECT count(*) FROM z1 JOIN x1 ON x1.c = z1.c;
-- 2
WITH w AS (UPDATE x1 SET id = id WHERE id = 1 RETURNING *) SELECT * FROM w JOIN x1 ON x1.c = w.c;
-- 1|x1|1|x1
WITH w AS (INSERT INTO x1 VALUES (3, 'u') RETURNING c) SELECT relname FROM w JOIN pg_class k ON k.oid = w.c;
-- u
WITH w AS (DELETE FROM x1 WHERE id = 3 RETURNING *) SELECT c = 'u'::regclass::oid, c FROM w;
-- t|u
WITH w AS (UPDATE x1 SET id = 4 WHERE id = 2 RETURNING *) INSERT INTO y1 SELECT * FROM w RETURNING *;
-- 4|y1
UPDATE y1 SET c = (SELECT x1.c FROM x1 WHERE x1.id <= y1.id ORDER BY x1.id DESC LIMIT 1) WHERE id = 4 RETURNING *;
-- 4|y1
UPDATE y1 SET c = (SELECT c FROM x1 WHERE id = 1) WHERE id = 2 RETURNING c;
-- x1
SELECT id FROM y1 WHERE c = (SELECT c FROM x1 WHERE id = 1) ORDER BY id;
-- 1
-- 2
SELECT id FROM y1 WHERE c IN (SELECT c FROM x1) ORDER BY id;
-- 1
-- 2
-- 4
INSERT INTO y1 VALUES (9, (SELECT c FROM x1 WHERE id = 4)) RETURNING *;
-- 9|y1
SELECT * FROM y1 ORDER BY id;
-- 1|x1
-- 2|x1
-- 4|y1
-- 9|y1
PREPARE pr (regclass) AS SELECT id FROM y1 WHERE c = $1 ORDER BY id;
EXECUTE pr ('y1');
-- 4
-- 9
PREPARE pn (int, regclass) AS INSERT INTO y1 VALUES ($1, $2) RETURNING c;
EXECUTE pn (10, 'u');
-- u
SELECT * FROM y1 WHERE id = 10;
-- 10|u

--- An argument is not cut.
CREATE TABLE ch (id int PRIMARY KEY, ch char(4), v varchar(3), chs char(3)[]);
INSERT INTO ch VALUES (1, 'v1', 'abc', '{ab,abc}'), (2, 'a', 'b', NULL);
PREPARE pc AS SELECT id FROM ch WHERE ch = $1;
EXECUTE pc ('v1');
-- 1
EXECUTE pc ('a');
-- 2
EXECUTE pc ('v1xxxx');
PREPARE pb (bpchar) AS SELECT id FROM ch WHERE ch = $1;
EXECUTE pb ('v1');
-- 1
PREPARE pv AS SELECT id FROM ch WHERE v = $1;
EXECUTE pv ('abcd');
PREPARE px AS UPDATE ch SET ch = $2 WHERE ch = $1 RETURNING id, ch;
EXECUTE px ('v1', 'v2');
-- 1|v2  
PREPARE pa AS SELECT id FROM ch WHERE chs = $1;
EXECUTE pa ('{ab,abc}');
-- 1
UPDATE ch SET chs = (SELECT d.chs FROM ch d WHERE d.id < ch.id) WHERE id = 2 RETURNING chs;
-- {"ab ",abc}

--- Views of a sequence hold it.
CREATE TABLE a1 (id int GENERATED ALWAYS AS IDENTITY, n int);
CREATE VIEW av AS SELECT last_value FROM a1_id_seq;
ALTER TABLE a1 ALTER id DROP IDENTITY;
-- ERROR 2BP01: cannot drop sequence a1_id_seq because other objects depend on it
ALTER TABLE a1 DROP id;
-- ERROR 2BP01: cannot drop column id of table a1 because other objects depend on it
DROP TABLE a1;
-- ERROR 2BP01: cannot drop table a1 because other objects depend on it
SELECT * FROM av;
-- 1
CREATE SEQUENCE s1;
CREATE VIEW sv AS SELECT last_value FROM s1;
DROP SEQUENCE s1;
-- ERROR 2BP01: cannot drop sequence s1 because other objects depend on it
SELECT * FROM sv;
-- 1
DROP SEQUENCE s1 CASCADE;
SELECT * FROM sv;
-- ERROR 42P01: relation "sv" does not exist
DROP VIEW av;
ALTER TABLE a1 ALTER id DROP IDENTITY;
DROP TABLE a1;
