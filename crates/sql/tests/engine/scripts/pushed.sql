-- Conditions go down to where rows come from, and correlated subqueries become tables to look into.

CREATE TABLE p (id int PRIMARY KEY, k int, g text, n numeric, f float8, note text);
CREATE INDEX p_k ON p (k);
INSERT INTO p SELECT i, i % 13, 'g' || i % 4, i % 6, i % 6, CASE WHEN i % 5 > 0 THEN 'note' || i % 5 END FROM generate_series(1, 300) i;
INSERT INTO p VALUES (301, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE q (id int PRIMARY KEY, pk int, k bigint, g varchar(5), n numeric(6, 2), note text);
INSERT INTO q SELECT i, i * 2, i % 9, 'g' || i % 6, (i % 4) + 0.00, CASE WHEN i % 3 > 0 THEN 'note' || i % 7 END FROM generate_series(1, 90) i;
INSERT INTO q VALUES (91, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE none (id int, k int);


SELECT * FROM (SELECT k, g, count(*) AS c, sum(n) AS s FROM p GROUP BY k, g) pg WHERE k = 3 ORDER BY g;
-- 3|g0|6|12
-- 3|g1|6|18
-- 3|g2|5|10
-- 3|g3|6|18
SELECT * FROM (SELECT k, g, count(*) AS c, sum(n) AS s FROM p GROUP BY k, g) pg WHERE k = 3 AND c > 6 ORDER BY g;
SELECT * FROM (SELECT k, g, count(*) AS c, sum(n) AS s FROM p GROUP BY k, g) pg WHERE k IS NULL;
-- NULL|NULL|1|NULL
SELECT k FROM (SELECT k, g, count(*) AS c, sum(n) AS s FROM p GROUP BY k, g) pg WHERE g = 'g1' AND k + 1 > 12;
-- 12
SELECT * FROM (SELECT id, k, g, row_number() OVER (PARTITION BY k ORDER BY id) AS r, count(*) OVER (PARTITION BY g, k) AS c FROM p) pw WHERE k = 3 AND r < 3 ORDER BY id;
-- 3|3|g3|1|6
-- 16|3|g0|2|6
SELECT * FROM (SELECT id, k, g, row_number() OVER (PARTITION BY k ORDER BY id) AS r, count(*) OVER (PARTITION BY g, k) AS c FROM p) pw WHERE id = 16;
-- 16|3|g0|2|6
SELECT count(*) FROM (SELECT id, k, g, row_number() OVER (PARTITION BY k ORDER BY id) AS r, count(*) OVER (PARTITION BY g, k) AS c FROM p) pw WHERE g = 'g1';
-- 75
SELECT * FROM (SELECT id, k, g, row_number() OVER (PARTITION BY k ORDER BY id) AS r, count(*) OVER (PARTITION BY g, k) AS c FROM p) pw WHERE g = 'g1' AND k = 3 AND r = 2;
SELECT * FROM (SELECT id, k, g FROM p UNION ALL SELECT id, k, g FROM q) pu WHERE id = 5 ORDER BY k;
-- 5|5|g1
-- 5|5|g5
SELECT count(*), sum(id) FROM (SELECT id, k, g FROM p UNION ALL SELECT id, k, g FROM q) pu WHERE g = 'g5' OR id < 3;
-- 19|711
SELECT * FROM (SELECT p.id, p.k, q.id AS qid, q.k AS qk, upper(p.g) AS big FROM p LEFT JOIN q ON q.pk = p.id) pj WHERE id = 8;
-- 8|8|4|4|G0
SELECT * FROM (SELECT p.id, p.k, q.id AS qid, q.k AS qk, upper(p.g) AS big FROM p LEFT JOIN q ON q.pk = p.id) pj WHERE qid = 4;
-- 8|8|4|4|G0
SELECT count(*) FROM (SELECT p.id, p.k, q.id AS qid, q.k AS qk, upper(p.g) AS big FROM p LEFT JOIN q ON q.pk = p.id) pj WHERE qid IS NULL;
-- 211
SELECT count(*) FROM (SELECT p.id, p.k, q.id AS qid, q.k AS qk, upper(p.g) AS big FROM p LEFT JOIN q ON q.pk = p.id) pj WHERE big = 'G1' AND qk > 3;
-- 0
SELECT * FROM (SELECT DISTINCT k, g FROM p) pd WHERE k = 12 ORDER BY g;
-- 12|g0
-- 12|g1
-- 12|g2
-- 12|g3
SELECT * FROM (SELECT DISTINCT ON (k) k, g, id FROM p ORDER BY k, id) po WHERE g = 'g3' ORDER BY k;
-- 3|g3|3
-- 7|g3|7
-- 11|g3|11
SELECT * FROM (SELECT DISTINCT ON (k) k, g, id FROM p ORDER BY k, id) po WHERE k = 3;
-- 3|g3|3
SELECT * FROM (SELECT id, k FROM p ORDER BY id LIMIT 5) pl WHERE k = 5;
-- 5|5
SELECT * FROM (SELECT id, k + 1 AS k1, lower(g) AS small, generate_series(1, 2) AS s FROM p) pe WHERE k1 = 4 AND s = 2 ORDER BY id LIMIT 3;
-- 3|4|g3|2
-- 16|4|g0|2
-- 29|4|g1|2
SELECT count(*) FROM (SELECT id, k + 1 AS k1, lower(g) AS small, generate_series(1, 2) AS s FROM p) pe WHERE small = 'g2';
-- 150
WITH c AS (SELECT * FROM p) SELECT count(*) FROM c WHERE id BETWEEN 50 AND 60;
-- 11
WITH c AS (SELECT k, count(*) AS n FROM p GROUP BY k) SELECT a.n FROM c a JOIN c b ON a.k = b.k WHERE a.k = 2;
-- 23
WITH c AS MATERIALIZED (SELECT * FROM p) SELECT count(*) FROM c WHERE k = 4;
-- 23
WITH c AS NOT MATERIALIZED (SELECT * FROM p) SELECT a.id FROM c a JOIN c b ON a.id = b.id + 1 WHERE b.id = 9;
-- 10
WITH a AS (SELECT id, k FROM p), b AS (SELECT id + 1 AS id, k FROM a WHERE k > 3) SELECT * FROM b WHERE id < 8 ORDER BY id;
-- 5|4
-- 6|5
-- 7|6
WITH c AS (SELECT id, random() AS r FROM p WHERE id < 20) SELECT count(*) FROM c a JOIN c b ON a.id = b.id AND a.r = b.r;
-- 19
SELECT * FROM (SELECT k, max(id) AS m FROM p GROUP BY k HAVING count(*) > 23) s WHERE k IN (1, 2) ORDER BY k;
-- 1|300
SELECT * FROM (SELECT k, g, sum(n) FROM p GROUP BY GROUPING SETS ((k), (g))) s WHERE k = 1 OR g = 'g1' ORDER BY 1, 2;
-- 1|NULL|60
-- NULL|g1|225
SELECT * FROM (SELECT k, count(*) FROM p GROUP BY ROLLUP (k)) s WHERE k IS NULL ORDER BY 2;
-- NULL|1
-- NULL|301
SELECT * FROM (SELECT id, k FROM p INTERSECT SELECT id, k FROM q) s WHERE id < 30 ORDER BY id;
-- 1|1
-- 2|2
-- 3|3
-- 4|4
-- 5|5
-- 6|6
-- 7|7
-- 8|8
SELECT * FROM (SELECT k FROM p EXCEPT SELECT k FROM q) s WHERE k > 10 ORDER BY k;
-- 11
-- 12
SELECT * FROM (SELECT id FROM p ORDER BY n, id DESC) s WHERE id > 295;
-- 300
-- 296
-- 297
-- 298
-- 299
-- 301
SELECT * FROM (SELECT id FROM p ORDER BY id LIMIT 3 OFFSET 2) s WHERE id > 3;
-- 4
-- 5
SELECT x.id, y.id FROM (SELECT * FROM p WHERE k = 1) x JOIN (SELECT * FROM q) y ON y.pk = x.id WHERE y.id < 12 AND x.id > 3 ORDER BY 1;
-- 14|7
SELECT a.id, s.m FROM q a LEFT JOIN (SELECT k, max(id) AS m FROM p GROUP BY k) s ON s.k = a.k WHERE a.id < 4 ORDER BY 1;
-- 1|300
-- 2|288
-- 3|289
SELECT a.id, s.m FROM q a, LATERAL (SELECT max(id) AS m FROM p WHERE p.k = a.k) s WHERE a.id < 4 AND s.m > 290 ORDER BY 1;
-- 1|300

SELECT count(*) FROM p WHERE EXISTS (SELECT 1 FROM q WHERE q.pk = p.id);
-- 90
SELECT count(*) FROM p WHERE NOT EXISTS (SELECT 1 FROM q WHERE q.pk = p.id);
-- 211
SELECT count(*) FROM p WHERE EXISTS (SELECT 1 FROM q WHERE q.k = p.k AND q.g = p.g);
-- 71
SELECT count(*) FROM p WHERE EXISTS (SELECT 1 FROM q WHERE q.k = p.k AND q.id <> p.id AND q.g > p.g);
-- 190
SELECT count(*) FROM p WHERE EXISTS (SELECT * FROM q WHERE q.note = p.note LIMIT 1) AND NOT EXISTS (SELECT FROM q WHERE q.n = p.f);
-- 80
SELECT count(*) FROM p WHERE EXISTS (SELECT * FROM q WHERE q.note = p.note LIMIT 0);
-- 0
SELECT count(*) FROM p WHERE EXISTS (SELECT DISTINCT g FROM q WHERE q.n = p.n ORDER BY g);
-- 200
SELECT count(*) FROM p WHERE k = 3 OR EXISTS (SELECT 1 FROM q WHERE q.pk = p.id AND q.k = 2);
-- 32
SELECT id, EXISTS (SELECT 1 FROM q WHERE q.pk = p.id + 1), CASE WHEN EXISTS (SELECT 1 FROM q WHERE q.k = p.k) THEN 'in' ELSE 'out' END FROM p WHERE id IN (1, 2, 11, 301) ORDER BY id;
-- 1|t|in
-- 2|f|in
-- 11|t|out
-- 301|f|out
SELECT count(*) FROM p WHERE EXISTS (SELECT 1 FROM q JOIN p b ON b.id = q.pk WHERE q.k = p.k AND b.g = p.g);
-- 104
SELECT count(*) FROM p WHERE EXISTS (SELECT 1 FROM q LEFT JOIN none ON none.id = q.id WHERE q.k = p.k AND none.id IS NULL AND q.id > p.id);
-- 62
SELECT count(*) FROM p WHERE EXISTS (SELECT 1 FROM q LEFT JOIN none ON none.id = q.id AND none.k = p.k WHERE q.k = p.k);
-- 208
SELECT count(*) FROM p WHERE EXISTS (SELECT 1 FROM (SELECT k, count(*) c FROM q GROUP BY k) s WHERE s.k = p.k AND s.c > 9);
-- 208
SELECT count(*) FROM p WHERE EXISTS (SELECT 1 FROM q WHERE q.k = p.k AND EXISTS (SELECT 1 FROM p b WHERE b.id = q.pk AND b.g = p.g));
-- 104
SELECT count(*) FROM p WHERE EXISTS (SELECT count(*) FROM q WHERE q.k = p.k);
-- 301
SELECT count(*) FROM p WHERE EXISTS (SELECT k FROM q WHERE q.g = p.g GROUP BY k HAVING count(*) > 2);
-- 300
SELECT count(*) FROM p WHERE EXISTS (SELECT 1 FROM none WHERE none.k = p.k);
-- 0
SELECT count(*) FROM q WHERE EXISTS (SELECT 1 FROM p WHERE p.id = q.pk AND p.k = 3);
-- 7
SELECT count(*) FROM q WHERE EXISTS (SELECT 1 FROM p WHERE p.k = q.k) AND EXISTS (SELECT 1 FROM p WHERE p.k = q.k AND p.g = q.g);
-- 60

SELECT id, (SELECT max(id) FROM q WHERE q.k = p.k), (SELECT count(*) FROM q WHERE q.k = p.k AND q.n > 1) FROM p WHERE id < 15 OR id = 301 ORDER BY id;
-- 1|82|5
-- 2|83|6
-- 3|84|5
-- 4|85|4
-- 5|86|5
-- 6|87|6
-- 7|88|5
-- 8|89|4
-- 9|NULL|0
-- 10|NULL|0
-- 11|NULL|0
-- 12|NULL|0
-- 13|90|5
-- 14|82|5
-- 301|NULL|0
SELECT id, (SELECT sum(q.n) + p.id FROM q WHERE q.k = p.k) FROM p WHERE id BETWEEN 8 AND 14 ORDER BY id;
-- 8|21.00
-- 9|NULL
-- 10|NULL
-- 11|NULL
-- 12|NULL
-- 13|28.00
-- 14|29.00
SELECT id, (SELECT count(*) * 10 + p.id FROM q WHERE q.pk = p.id) FROM p WHERE id BETWEEN 178 AND 183 ORDER BY id;
-- 178|188
-- 179|179
-- 180|190
-- 181|181
-- 182|182
-- 183|183
SELECT id, (SELECT string_agg(q.id::text, ',' ORDER BY q.id DESC) FROM q WHERE q.g = p.g AND q.id < 20) FROM p WHERE id < 5 ORDER BY id;
-- 1|19,13,7,1
-- 2|14,8,2
-- 3|15,9,3
-- 4|18,12,6
SELECT id, (SELECT max(q.id) FROM q WHERE q.k = p.k HAVING count(*) > p.id) FROM p WHERE id BETWEEN 8 AND 12 ORDER BY id;
-- 8|89
-- 9|NULL
-- 10|NULL
-- 11|NULL
-- 12|NULL
SELECT id, (SELECT q.note FROM q WHERE q.pk = p.id) FROM p WHERE id < 7 ORDER BY id;
-- 1|NULL
-- 2|note1
-- 3|NULL
-- 4|note2
-- 5|NULL
-- 6|NULL
SELECT id, (SELECT q.note FROM q WHERE q.pk = p.id AND q.k > p.k) FROM p WHERE id < 9 ORDER BY id;
-- 1|NULL
-- 2|NULL
-- 3|NULL
-- 4|NULL
-- 5|NULL
-- 6|NULL
-- 7|NULL
-- 8|NULL
SELECT id FROM p WHERE (SELECT q.id FROM q WHERE q.k = p.k) > 0;
-- ERROR 21000: more than one row returned by a subquery used as an expression
SELECT count(*) FROM p WHERE (SELECT max(n) FROM q WHERE q.note = p.note) > p.n;
-- 120
SELECT count(*) FROM p WHERE n > (SELECT avg(b.n) FROM p b WHERE b.g = p.g);
-- 100
SELECT count(*) FROM p WHERE f = (SELECT max(q.n) FROM q WHERE q.n = p.f);
-- 200
SELECT count(*) FROM p WHERE (SELECT count(*) FROM q WHERE q.n = p.n AND q.g = p.g) = 0;
-- 101
SELECT (SELECT (SELECT count(*) FROM q c WHERE c.k = b.k AND c.g = a.g) FROM q b WHERE b.pk = a.id) FROM p a WHERE a.id IN (2, 4, 5) ORDER BY a.id;
-- 0
-- 0
-- NULL
UPDATE q SET note = 'known' WHERE EXISTS (SELECT 1 FROM p WHERE p.k = q.k AND p.id = q.pk);
SELECT count(*) FROM q WHERE note = 'known';
-- 6
DELETE FROM p WHERE NOT EXISTS (SELECT 1 FROM q WHERE q.pk = p.id) AND (SELECT count(*) FROM q WHERE q.k = p.k) > 9;
SELECT count(*), sum(id) FROM p;
-- 155|19953
SELECT count(*) FROM generate_series(1, 700) x WHERE EXISTS (SELECT 1 FROM q WHERE q.id = x % 100);
-- 637
SELECT count(*), sum((SELECT q.pk FROM q WHERE q.id = x % 100)) FROM generate_series(1, 700) x;
-- 700|57330
SELECT sum((SELECT max(q.pk) FROM q WHERE q.id = x % 100 AND q.k < 7)) FROM generate_series(1, 700) x;
-- 43890
SELECT id FROM q WHERE id = ANY(ARRAY(SELECT pk FROM q ORDER BY pk LIMIT 5)) ORDER BY id;
-- 2
-- 4
-- 6
-- 8
-- 10
SELECT count(*) FROM q WHERE k = ANY (SELECT k FROM p WHERE id < 4);
-- 10
SELECT count(*) FROM q WHERE NOT k = ANY (SELECT k FROM p);
-- 0
SELECT count(*) FROM q WHERE k = ANY (SELECT k FROM p WHERE id < 0);
-- 0
SELECT count(*) FROM q WHERE k = SOME (SELECT max(k) FROM p);
-- 0
SELECT count(*) FROM q WHERE (k, g) = ANY (SELECT k, g FROM p);
-- 30
SELECT count(*) FROM q WHERE k <> ALL (SELECT k FROM p WHERE k IS NOT NULL);
-- 0
SELECT ARRAY(SELECT id FROM q WHERE id < 4 ORDER BY id DESC), ARRAY(SELECT note FROM q WHERE id < 0);
-- {3,2,1}|{}
SELECT ARRAY(SELECT ARRAY[id, pk] FROM q WHERE id < 3 ORDER BY id);
-- {{1,2},{2,4}}
SELECT ARRAY(SELECT 'x'), cardinality(ARRAY(SELECT id FROM q));
-- {x}|91
SELECT id, ARRAY(SELECT b.id FROM q b WHERE b.k = q.k AND b.id < 20 ORDER BY 1) FROM q WHERE id < 3 ORDER BY id;
-- 1|{1,10,19}
-- 2|{2,11}
UPDATE q SET note = 'last' WHERE id = ANY(ARRAY(SELECT id FROM q ORDER BY id DESC NULLS LAST LIMIT 3));
SELECT count(*) FROM q WHERE note = 'last';
-- 3
SELECT count(*) FROM p WHERE n IN (SELECT k FROM q);
-- 154
SELECT count(*) FROM p WHERE f NOT IN (SELECT n FROM q WHERE n IS NOT NULL);
-- 50
SELECT count(*) FROM p WHERE f NOT IN (SELECT n FROM q);
-- 0
SELECT count(*) FROM p WHERE note IN (SELECT note FROM q);
-- 123
SELECT count(*), count(note = ANY(ARRAY(SELECT note FROM q WHERE note IS NOT NULL))), count(note = ANY(ARRAY(SELECT note FROM q))) FROM p;
-- 155|123|123
SELECT count(*) FROM p WHERE k <> ALL(ARRAY(SELECT x FROM generate_series(3, 40) x));
-- 20
SELECT count(*) FROM p WHERE k <> ALL(ARRAY(SELECT NULLIF(x, 20) FROM generate_series(3, 40) x));
-- 0
SELECT count(*) FROM p WHERE k < ANY(ARRAY(SELECT x FROM generate_series(-30, 3) x));
-- 20
SELECT count(*) FROM (SELECT * FROM p) s WHERE id BETWEEN 20 AND 30 AND k BETWEEN SYMMETRIC 9 AND 2;
-- 4
SELECT count(*) FROM p a JOIN q b ON b.id = a.id WHERE a.id BETWEEN 20 AND 30 AND NOT b.k BETWEEN 2 AND 5;
-- 4
