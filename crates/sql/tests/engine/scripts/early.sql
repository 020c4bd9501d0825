-- What is counted on the right side of a join is grouped by its join key first.

CREATE TABLE posts (id int PRIMARY KEY, title text, g int);
CREATE TABLE likes (id int PRIMARY KEY, post int, n numeric, f float8, b bigint, note text);
CREATE INDEX likes_post ON likes (post);
INSERT INTO posts SELECT i, 'title ' || i, i % 3 FROM generate_series(1, 120) i;
INSERT INTO posts VALUES (121, NULL, NULL);
INSERT INTO likes SELECT i, i * i % 110, i % 9, i % 9, i % 7, CASE WHEN i % 4 > 0 THEN 'n' || i % 6 END FROM generate_series(1, 400) i;
INSERT INTO likes VALUES (401, NULL, NULL, NULL, NULL, NULL), (402, 500, 5, 5, 5, 'lost');

SELECT posts.id, posts.title, count(*) FROM posts LEFT JOIN likes ON posts.id = likes.post GROUP BY posts.id ORDER BY count(*) DESC, posts.id LIMIT 8;
-- 4|title 4|15
-- 9|title 9|15
-- 26|title 26|15
-- 31|title 31|15
-- 56|title 56|15
-- 59|title 59|15
-- 64|title 64|15
-- 71|title 71|15
SELECT posts.id, count(likes.id), count(*), count(likes.note), min(likes.note), max(n) FROM posts LEFT JOIN likes ON posts.id = likes.post GROUP BY posts.id ORDER BY 2, 1 DESC LIMIT 6;
-- 121|0|1|0|NULL|NULL
-- 120|0|1|0|NULL|NULL
-- 119|0|1|0|NULL|NULL
-- 118|0|1|0|NULL|NULL
-- 117|0|1|0|NULL|NULL
-- 116|0|1|0|NULL|NULL
SELECT g, count(*), count(note), max(f), min(b) FROM posts JOIN likes ON post = posts.id GROUP BY g ORDER BY g;
-- 0|102|87|8|0
-- 1|141|106|8|0
-- 2|154|105|8|0
SELECT g, count(*) FROM posts LEFT JOIN likes ON post = posts.id GROUP BY g ORDER BY g;
-- 0|132
-- 1|169
-- 2|181
-- NULL|1
SELECT count(*), count(note), max(likes.id) FROM posts JOIN likes ON post = posts.id;
-- 397|298|400
SELECT count(*), count(note), max(likes.id) FROM posts LEFT JOIN likes ON post = posts.id;
-- 483|298|400
SELECT count(*), max(likes.id) FROM posts JOIN likes ON post = posts.id + 1000;
-- 0|NULL
SELECT g, count(*) FROM posts JOIN likes ON post = posts.id + 1000 GROUP BY g;
SELECT g, count(*), count(likes.id) FROM posts LEFT JOIN likes ON post = posts.id + 1000 GROUP BY g ORDER BY g;
-- 0|40|0
-- 1|40|0
-- 2|40|0
-- NULL|1|0
SELECT p.g, count(*) FROM likes l JOIN posts p ON p.id = l.b GROUP BY p.g ORDER BY 1;
-- 0|114
-- 1|115
-- 2|115
SELECT l.b, count(p.title) FROM likes l JOIN posts p ON p.g = l.b GROUP BY l.b ORDER BY 1;
-- 0|2280
-- 1|2320
-- 2|2280
SELECT l.n, count(*) FROM likes l JOIN posts p ON p.g = l.n GROUP BY l.n ORDER BY 1;
-- 0|1760
-- 1|1800
-- 2|1800
SELECT l.f, count(*) FROM posts p JOIN likes l ON l.f = p.g GROUP BY l.f ORDER BY 1;
-- 0|1760
-- 1|1800
-- 2|1800
SELECT p.g, count(*) FROM posts p JOIN likes l ON l.f = p.g GROUP BY p.g ORDER BY 1;
-- 0|1760
-- 1|1800
-- 2|1800
SELECT p.g, count(*) FROM posts p JOIN likes l ON l.n = p.g GROUP BY p.g ORDER BY 1;
-- 0|1760
-- 1|1800
-- 2|1800
SELECT p.g, count(DISTINCT l.note), count(*) FILTER (WHERE l.b > 3), sum(l.b) FROM posts p LEFT JOIN likes l ON l.post = p.id GROUP BY p.g ORDER BY 1;
-- 0|6|42|310
-- 1|6|60|425
-- 2|6|68|454
-- NULL|0|0|NULL
SELECT p.g, count(*) FROM posts p LEFT JOIN likes l ON l.post = p.id AND l.b > p.g GROUP BY p.g ORDER BY 1;
-- 0|118
-- 1|127
-- 2|109
-- NULL|1
SELECT p.g, count(*) FROM posts p LEFT JOIN likes l ON l.post = p.id AND l.b > 3 GROUP BY p.g ORDER BY 1;
-- 0|72
-- 1|88
-- 2|95
-- NULL|1
SELECT p.g, count(*) FROM posts p LEFT JOIN likes l ON l.post = p.id WHERE p.id < 50 GROUP BY p.g HAVING count(*) > 90 ORDER BY 1;
-- 1|103
SELECT p.g, p.id % 2, count(*), count(l.note) FROM posts p LEFT JOIN likes l ON l.post = p.id GROUP BY ROLLUP (p.g, p.id % 2) ORDER BY 1, 2, 3;
-- 0|0|47|15
-- 0|1|85|72
-- 0|NULL|132|87
-- 1|0|86|37
-- 1|1|83|69
-- 1|NULL|169|106
-- 2|0|107|46
-- 2|1|74|59
-- 2|NULL|181|105
-- NULL|1|1|0
-- NULL|NULL|1|0
-- NULL|NULL|483|298
SELECT p.g, count(*) FROM posts p FULL JOIN likes l ON l.post = p.id GROUP BY p.g ORDER BY 1;
-- 0|132
-- 1|169
-- 2|181
-- NULL|6
SELECT p.g, count(p.id), count(l.id + p.id) FROM posts p LEFT JOIN likes l ON l.post = p.id GROUP BY p.g ORDER BY 1;
-- 0|132|102
-- 1|169|141
-- 2|181|154
-- NULL|1|0
SELECT p.g, count(*) FROM posts p JOIN likes l ON l.post = p.id JOIN likes m ON m.post = p.id GROUP BY p.g ORDER BY 1;
-- 0|1152
-- 1|1847
-- 2|2002
SELECT p.g, count(*) FROM posts p LEFT JOIN (SELECT post, n FROM likes WHERE note IS NOT NULL) l ON l.post = p.id GROUP BY p.g ORDER BY 1;
-- 0|117
-- 1|134
-- 2|132
-- NULL|1
SELECT p.g, count(*) FROM posts p LEFT JOIN likes l ON l.post IS NOT DISTINCT FROM p.g GROUP BY p.g ORDER BY 1;
-- 0|120
-- 1|560
-- 2|40
-- NULL|1
SELECT x.id, (SELECT count(*) FROM posts p JOIN likes l ON l.post = p.id WHERE p.g = x.g) FROM posts x WHERE x.id < 4 ORDER BY 1;
-- 1|141
-- 2|154
-- 3|102
SELECT x.id, (SELECT count(*) + x.id FROM posts p JOIN likes l ON l.post = p.id AND l.b < x.id) FROM posts x WHERE x.id < 4 ORDER BY 1;
-- 1|58
-- 2|116
-- 3|174
SELECT g, count(*), rank() OVER (ORDER BY count(*) DESC) FROM posts JOIN likes ON post = posts.id GROUP BY g ORDER BY g;
-- 0|102|3
-- 1|141|2
-- 2|154|1

SELECT p.g, count(1), min(coalesce(l.note, 'none')), count(coalesce(l.b, 0)), max(least(l.n, 3)) FROM posts p LEFT JOIN likes l ON l.post = p.id GROUP BY p.g ORDER BY 1;
-- 0|132|n0|132|3
-- 1|169|n0|169|3
-- 2|181|n0|181|3
-- NULL|1|none|1|3
SELECT p.g, count(1), min(coalesce(l.note, 'none')), count(coalesce(l.b, 0)), max(least(l.n, 3)) FROM posts p JOIN likes l ON l.post = p.id GROUP BY p.g ORDER BY 1;
-- 0|102|n0|102|3
-- 1|141|n0|141|3
-- 2|154|n0|154|3
SELECT p.id, max(7), count(NULL) FROM posts p LEFT JOIN likes l ON l.post = p.id GROUP BY p.id ORDER BY 1 LIMIT 3;
-- 1|7|0
-- 2|7|0
-- 3|7|0
