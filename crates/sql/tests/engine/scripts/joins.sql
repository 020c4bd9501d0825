-- Joins of every kind, subqueries, set operations.

CREATE TABLE posts (id int PRIMARY KEY, title text, author int);
CREATE TABLE likes (post_id int, user_id int, weight numeric(6,2), PRIMARY KEY (post_id, user_id));
CREATE TABLE authors (id int PRIMARY KEY, name text NOT NULL);
INSERT INTO posts VALUES (1, 'one', 10), (2, 'two', 20), (3, 'three', NULL), (4, 'four', 10);
INSERT INTO likes VALUES (1, 1, 1.50), (1, 2, 2.25), (2, 1, 3), (9, 9, NULL);
INSERT INTO authors VALUES (10, 'ann'), (20, 'bob'), (30, 'cyd');
SELECT posts.id, posts.title, COUNT(*) FROM posts LEFT JOIN likes ON posts.id = likes.post_id GROUP BY posts.id ORDER BY COUNT(*) DESC, posts.id LIMIT 3;
-- 1|one|2
-- 2|two|1
-- 3|three|1
SELECT p.title, a.name FROM posts p JOIN authors a ON p.author = a.id ORDER BY p.id;
-- one|ann
-- two|bob
-- four|ann
SELECT p.title, a.name FROM posts p LEFT JOIN authors a ON p.author = a.id ORDER BY p.id;
-- one|ann
-- two|bob
-- three|NULL
-- four|ann
SELECT p.title, a.name FROM posts p RIGHT JOIN authors a ON p.author = a.id ORDER BY a.id, p.id;
-- one|ann
-- four|ann
-- two|bob
-- NULL|cyd
SELECT p.title, l.user_id FROM posts p FULL JOIN likes l ON p.id = l.post_id ORDER BY p.id NULLS LAST, l.user_id;
-- one|1
-- one|2
-- two|1
-- three|NULL
-- four|NULL
-- NULL|9
SELECT count(*) FROM posts, authors;
-- 12
SELECT * FROM posts p CROSS JOIN authors a WHERE p.author = a.id AND a.name = 'ann' ORDER BY p.id;
-- 1|one|10|10|ann
-- 4|four|10|10|ann
SELECT p.id, x.n FROM posts p, LATERAL (SELECT count(*) AS n FROM likes l WHERE l.post_id = p.id) x ORDER BY p.id;
-- 1|2
-- 2|1
-- 3|0
-- 4|0
SELECT p.id, x.user_id FROM posts p LEFT JOIN LATERAL (SELECT user_id FROM likes l WHERE l.post_id = p.id ORDER BY user_id DESC LIMIT 1) x ON true ORDER BY p.id;
-- 1|2
-- 2|1
-- 3|NULL
-- 4|NULL
SELECT id, (SELECT max(user_id) FROM likes WHERE post_id = posts.id) AS m FROM posts ORDER BY id;
-- 1|2
-- 2|1
-- 3|NULL
-- 4|NULL
SELECT id FROM posts p WHERE EXISTS (SELECT 1 FROM likes l WHERE l.post_id = p.id) ORDER BY id;
-- 1
-- 2
SELECT id FROM posts p WHERE NOT EXISTS (SELECT 1 FROM likes l WHERE l.post_id = p.id) ORDER BY id;
-- 3
-- 4
SELECT id FROM posts WHERE id IN (SELECT post_id FROM likes) ORDER BY id;
-- 1
-- 2
SELECT id FROM posts WHERE author NOT IN (SELECT id FROM authors WHERE id > 10) ORDER BY id;
-- 1
-- 4
SELECT id FROM posts WHERE author NOT IN (SELECT NULL::int) ORDER BY id;
SELECT id FROM posts WHERE (id, author) IN (SELECT 1, 10) ORDER BY id;
-- 1
SELECT id FROM posts WHERE id > ALL (SELECT user_id FROM likes WHERE user_id < 3) ORDER BY id;
-- 3
-- 4
SELECT id FROM posts WHERE id = ANY (SELECT post_id + 1 FROM likes) ORDER BY id;
-- 2
-- 3
SELECT (SELECT id FROM posts);
-- ERROR 21000: more than one row returned by a subquery used as an expression
SELECT (SELECT id, title FROM posts LIMIT 1);
-- ERROR 42601: subquery must return only one column
SELECT id FROM posts UNION SELECT id FROM authors ORDER BY 1;
-- 1
-- 2
-- 3
-- 4
-- 10
-- 20
-- 30
SELECT 1 AS a UNION ALL SELECT 1 UNION ALL SELECT 2 ORDER BY a;
-- 1
-- 1
-- 2
SELECT id FROM posts INTERSECT SELECT user_id FROM likes ORDER BY id;
-- 1
-- 2
SELECT id FROM posts EXCEPT SELECT user_id FROM likes ORDER BY id;
-- 3
-- 4
SELECT 1 UNION SELECT 2.5 ORDER BY 1;
-- 1
-- 2.5
SELECT 'a' UNION SELECT 1;
-- ERROR 22P02: invalid input syntax for type integer: "a"
SELECT 1, 2 UNION SELECT 1;
-- ERROR 42601: each UNION query must have the same number of columns
VALUES (1, 'a'), (2, NULL) ORDER BY 1 DESC;
-- 2|NULL
-- 1|a
SELECT * FROM (VALUES (1, 'x'), (2, 'y')) AS v(n, s) WHERE n > 1;
-- 2|y
WITH liked AS (SELECT post_id, count(*) AS n FROM likes GROUP BY post_id) SELECT p.title, liked.n FROM posts p JOIN liked ON liked.post_id = p.id ORDER BY 1;
-- one|2
-- two|1
WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT sum(n), count(*) FROM t;
-- 15|5
WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT n % 3 + 1 FROM t) SELECT n FROM t ORDER BY n;
-- 1
-- 2
-- 3
SELECT a.id, b.id FROM authors a JOIN authors b USING (id) WHERE a.name <> 'bob' ORDER BY 1;
-- 10|10
-- 30|30
SELECT * FROM posts NATURAL JOIN (SELECT id, name FROM authors) a;
SELECT * FROM posts p JOIN (SELECT id AS author, name FROM authors) a USING (author) ORDER BY p.id;
-- 10|1|one|ann
-- 20|2|two|bob
-- 10|4|four|ann
SELECT coalesce(x.a, 0), a FROM (VALUES (1), (2)) x(a) FULL JOIN (VALUES (2), (3)) y(a) USING (a) ORDER BY 2;
-- 1|1
-- 2|2
-- 0|3
SELECT p.* FROM posts p WHERE p.id = 2;
-- 2|two|20
SELECT nope FROM posts;
-- ERROR 42703: column "nope" does not exist
SELECT x.id FROM posts;
-- ERROR 42P01: missing FROM-clause entry for table "x"
SELECT posts.nope FROM posts;
-- ERROR 42703: column posts.nope does not exist
SELECT id FROM posts, authors;
-- ERROR 42702: column reference "id" is ambiguous
SELECT * FROM nope;
-- ERROR 42P01: relation "nope" does not exist
SELECT * FROM nope.nope;
-- ERROR 42P01: relation "nope.nope" does not exist
SELECT * FROM posts, posts;
-- ERROR 42712: table name "posts" specified more than once
SELECT DISTINCT author FROM posts ORDER BY author;
-- 10
-- 20
-- NULL
SELECT DISTINCT ON (author) author, id FROM posts ORDER BY author, id DESC;
-- 10|4
-- 20|2
-- NULL|3
SELECT DISTINCT author FROM posts ORDER BY id;
-- ERROR 42P10: for SELECT DISTINCT, ORDER BY expressions must appear in select list
SELECT id FROM posts ORDER BY title DESC OFFSET 1 LIMIT 2;
-- 3
-- 1
SELECT id FROM posts ORDER BY author, id FETCH FIRST 2 ROWS ONLY;
-- 1
-- 4
SELECT author FROM posts ORDER BY author FETCH FIRST 1 ROWS WITH TIES;
-- 10
-- 10
SELECT id FROM posts LIMIT -1;
-- ERROR 2201W: LIMIT must not be negative
SELECT id FROM posts ORDER BY 9;
-- ERROR 42P10: ORDER BY position 9 is not in select list
SELECT s, s * 2 FROM generate_series(1, 3) s;
-- 1|2
-- 2|4
-- 3|6
SELECT * FROM generate_series(5, 1, -2) WITH ORDINALITY;
-- 5|1
-- 3|2
-- 1|3
SELECT generate_series(1, 3), id FROM authors WHERE id = 10;
-- 1|10
-- 2|10
-- 3|10
SELECT unnest(ARRAY[1, 2, 3]) AS u, unnest(ARRAY['a', 'b']) AS v;
-- 1|a
-- 2|b
-- 3|NULL
SELECT p.id, g FROM posts p, generate_series(1, p.id) g WHERE p.id < 3 ORDER BY 1, 2;
-- 1|1
-- 2|1
-- 2|2
SELECT ARRAY(SELECT id FROM posts ORDER BY id DESC);
-- {4,3,2,1}
SELECT p.id FROM posts p JOIN likes l ON p.id = l.post_id AND l.weight > 2 ORDER BY 1;
-- 1
-- 2
SELECT a.name, count(p.id) FROM authors a LEFT JOIN posts p ON p.author = a.id AND p.id < 4 GROUP BY a.name ORDER BY 2 DESC, 1;
-- ann|1
-- bob|1
-- cyd|0
SELECT sum(x) FROM (SELECT 1 AS x UNION ALL SELECT 2 AS x UNION ALL SELECT 3 AS x UNION ALL SELECT 4 AS x UNION ALL SELECT 5 AS x UNION ALL SELECT 6 AS x UNION ALL SELECT 7 AS x UNION ALL SELECT 8 AS x UNION ALL SELECT 9 AS x UNION ALL SELECT 10 AS x UNION ALL SELECT 11 AS x UNION ALL SELECT 12 AS x UNION ALL SELECT 13 AS x UNION ALL SELECT 14 AS x UNION ALL SELECT 15 AS x UNION ALL SELECT 16 AS x UNION ALL SELECT 17 AS x UNION ALL SELECT 18 AS x UNION ALL SELECT 19 AS x UNION ALL SELECT 20 AS x UNION ALL SELECT 21 AS x UNION ALL SELECT 22 AS x UNION ALL SELECT 23 AS x UNION ALL SELECT 24 AS x UNION ALL SELECT 25 AS x UNION ALL SELECT 26 AS x UNION ALL SELECT 27 AS x UNION ALL SELECT 28 AS x UNION ALL SELECT 29 AS x UNION ALL SELECT 30 AS x UNION ALL SELECT 31 AS x UNION ALL SELECT 32 AS x UNION ALL SELECT 33 AS x UNION ALL SELECT 34 AS x UNION ALL SELECT 35 AS x UNION ALL SELECT 36 AS x UNION ALL SELECT 37 AS x UNION ALL SELECT 38 AS x UNION ALL SELECT 39 AS x UNION ALL SELECT 40 AS x UNION ALL SELECT 41 AS x UNION ALL SELECT 42 AS x UNION ALL SELECT 43 AS x UNION ALL SELECT 44 AS x UNION ALL SELECT 45 AS x UNION ALL SELECT 46 AS x UNION ALL SELECT 47 AS x UNION ALL SELECT 48 AS x UNION ALL SELECT 49 AS x UNION ALL SELECT 50 AS x UNION ALL SELECT 51 AS x UNION ALL SELECT 52 AS x UNION ALL SELECT 53 AS x UNION ALL SELECT 54 AS x UNION ALL SELECT 55 AS x UNION ALL SELECT 56 AS x UNION ALL SELECT 57 AS x UNION ALL SELECT 58 AS x UNION ALL SELECT 59 AS x UNION ALL SELECT 60 AS x UNION ALL SELECT 61 AS x UNION ALL SELECT 62 AS x UNION ALL SELECT 63 AS x UNION ALL SELECT 64 AS x UNION ALL SELECT 65 AS x UNION ALL SELECT 66 AS x UNION ALL SELECT 67 AS x UNION ALL SELECT 68 AS x UNION ALL SELECT 69 AS x UNION ALL SELECT 70 AS x UNION ALL SELECT 71 AS x UNION ALL SELECT 72 AS x UNION ALL SELECT 73 AS x UNION ALL SELECT 74 AS x UNION ALL SELECT 75 AS x UNION ALL SELECT 76 AS x UNION ALL SELECT 77 AS x UNION ALL SELECT 78 AS x UNION ALL SELECT 79 AS x UNION ALL SELECT 80 AS x UNION ALL SELECT 81 AS x UNION ALL SELECT 82 AS x UNION ALL SELECT 83 AS x UNION ALL SELECT 84 AS x UNION ALL SELECT 85 AS x UNION ALL SELECT 86 AS x UNION ALL SELECT 87 AS x UNION ALL SELECT 88 AS x UNION ALL SELECT 89 AS x UNION ALL SELECT 90 AS x UNION ALL SELECT 91 AS x UNION ALL SELECT 92 AS x UNION ALL SELECT 93 AS x UNION ALL SELECT 94 AS x UNION ALL SELECT 95 AS x UNION ALL SELECT 96 AS x UNION ALL SELECT 97 AS x UNION ALL SELECT 98 AS x UNION ALL SELECT 99 AS x UNION ALL SELECT 100 AS x) q;
-- 5050
SELECT EXISTS (SELECT 1 FROM posts WHERE id > 3), EXISTS (SELECT 1 FROM posts WHERE id > 4);
-- t|f

--- LATERAL after a RIGHT JOIN, whose rows lie the other way round.
CREATE TABLE la (id int PRIMARY KEY, a int);
CREATE TABLE lb (id int PRIMARY KEY, a int, b text);
INSERT INTO la VALUES (1, 10), (2, 20), (3, NULL);
INSERT INTO lb VALUES (7, 1, 'x'), (8, 2, 'y'), (9, 5, 'z');
SELECT la.id, lb.id, l.s FROM la RIGHT JOIN lb ON la.id = lb.a CROSS JOIN LATERAL (SELECT la.a + lb.id AS s) l ORDER BY 2;
-- 1|7|17
-- 2|8|28
-- NULL|9|NULL
SELECT la.id, lb.id, l.s FROM la RIGHT JOIN lb ON la.id = lb.a, LATERAL (SELECT lb.b || coalesce(la.a, 0) AS s) l ORDER BY 2;
-- 1|7|x10
-- 2|8|y20
-- NULL|9|z0
SELECT la.id, lb.id, g FROM la RIGHT JOIN lb ON la.id = lb.a LEFT JOIN LATERAL generate_series(1, la.id) g ON g > 1 ORDER BY 2, 3;
-- 1|7|NULL
-- 2|8|2
-- NULL|9|NULL
SELECT * FROM la RIGHT JOIN lb ON la.id = lb.a CROSS JOIN LATERAL (SELECT la.a + lb.id AS s) l ORDER BY 3;
-- 1|10|7|1|x|17
-- 2|20|8|2|y|28
-- NULL|NULL|9|5|z|NULL
SELECT la, lb.id, l FROM la RIGHT JOIN lb ON la.id = lb.a LEFT JOIN LATERAL (SELECT la.a + lb.id AS s, la IS NULL AS n) l ON l.s > 20 ORDER BY 2;
-- (1,10)|7|NULL
-- (2,20)|8|(28,f)
-- NULL|9|NULL
SELECT la.id, x.id, lb.id, l.s FROM la JOIN (la x RIGHT JOIN lb ON x.id = lb.a) ON la.id < lb.id CROSS JOIN LATERAL (SELECT la.a + lb.id + coalesce(x.a, 0) AS s) l ORDER BY 1, 3;
-- 1|1|7|27
-- 1|2|8|38
-- 1|NULL|9|19
-- 2|1|7|37
-- 2|2|8|48
-- 2|NULL|9|29
-- 3|1|7|NULL
-- 3|2|8|NULL
-- 3|NULL|9|NULL
SELECT la.id, lb.id, l.s FROM la FULL JOIN lb ON la.id = lb.a CROSS JOIN LATERAL (SELECT coalesce(la.a, lb.id) AS s) l ORDER BY 1, 2;
-- 1|7|10
-- 2|8|20
-- 3|NULL|NULL
-- NULL|9|9
SELECT la.id, lb.id, l.s FROM la LEFT JOIN (lb CROSS JOIN LATERAL (SELECT lb.a * 2 AS s) l) ON la.id = lb.a ORDER BY 1;
-- 1|7|2
-- 2|8|4
-- 3|NULL|NULL

--- ON sees the tables up to its own, whatever names those behind have.
CREATE TABLE ja (x int, p int);
CREATE TABLE jb (y int, q int);
CREATE TABLE jc (x int, y int, r int);
INSERT INTO ja VALUES (1, 1), (2, 2);
INSERT INTO jb VALUES (1, 10), (2, 20);
INSERT INTO jc VALUES (1, 1, 100), (5, 5, 500);
SELECT p, q, r FROM ja JOIN jb ON x = y JOIN jc ON r = 100 ORDER BY p;
-- 1|10|100
-- 2|20|100
SELECT p, q, r FROM ja LEFT JOIN jb ON x = y LEFT JOIN jc ON r = 100 ORDER BY p;
-- 1|10|100
-- 2|20|100
SELECT p FROM ja JOIN jb ON r = 1 JOIN jc ON true;
-- ERROR 42703: column "r" does not exist
SELECT x FROM ja JOIN jb ON x = y JOIN jc ON true;
-- ERROR 42702: column reference "x" is ambiguous
SELECT median(p) FROM ja;
-- ERROR 42883: function median(integer) does not exist
SELECT p FROM ja OFFSET true;
-- ERROR 42804: argument of OFFSET must be type bigint, not type boolean
SELECT max(count(*)) FROM ja;
-- ERROR 42803: aggregate function calls cannot be nested
