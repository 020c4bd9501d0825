-- Joins whose sides are of many lengths: whichever side ends first is kept, or the rows of one are looked up in the other's index.

CREATE TABLE l (id int PRIMARY KEY, k int, t text);
CREATE TABLE r (id int PRIMARY KEY, k int, t text);
CREATE INDEX r_k ON r (k);
CREATE TABLE s (id int, k int, t text);
INSERT INTO l SELECT i, CASE WHEN i % 10 > 0 THEN i % 280 END, 'l' || i % 50 FROM generate_series(1, 600) i;
INSERT INTO r SELECT i, CASE WHEN i % 7 > 0 THEN i % 1200 END, 'r' || i % 50 FROM generate_series(1, 6000) i;
INSERT INTO s SELECT * FROM r;

SELECT count(*), sum(l.id), sum(r.id), min(r.t) FROM l JOIN r ON r.k = l.id;
-- 2571|772543|6940543|r0
SELECT count(*), sum(l.id), sum(r.id), min(r.t) FROM l JOIN s r ON r.k = l.id;
-- 2571|772543|6940543|r0
SELECT count(*), sum(l.id), sum(r.id), count(r.t) FROM l LEFT JOIN r ON r.k = l.k;
-- 2373|712333|5858353|2313
SELECT count(*), sum(l.id), sum(r.id), count(r.t) FROM l LEFT JOIN s r ON r.k = l.k;
-- 2373|712333|5858353|2313
SELECT count(*), sum(l.id), sum(r.id), count(r.t) FROM l LEFT JOIN s r ON r.k = l.k AND r.id > l.id;
-- 1910|573398|5797258|1850
SELECT count(*), sum(l.id), sum(r.id), count(r.t) FROM l LEFT JOIN r ON r.k = l.k AND r.id > l.id;
-- 1910|573398|5797258|1850
SELECT count(*), sum(l.id), sum(r.id), count(r.t) FROM s r LEFT JOIN l ON r.k = l.k AND r.id > l.id;
-- 6986|555098|21087058|6986
SELECT count(*), sum(l.id), sum(r.id), count(r.t) FROM l RIGHT JOIN s r ON r.k = l.k;
-- 7233|694033|21117913|7233
SELECT count(*), sum(l.id), sum(r.id), count(r.t) FROM l FULL JOIN s r ON r.k = l.k AND r.t = l.t;
-- 6600|180300|18003000|6000
SELECT count(*), sum(l.id), sum(r.id), count(r.t) FROM l LEFT JOIN s r ON r.k IS NOT DISTINCT FROM l.k AND r.id < 20 WHERE l.id < 40;
-- 42|840|222|22
SELECT l.id, r.id FROM l JOIN r ON r.k = l.id WHERE l.id < 102 AND r.id > 5000 ORDER BY 1, 2 LIMIT 5;
SELECT l.id, r.id FROM l JOIN r ON r.k = l.id WHERE l.id < 150 AND r.id > 5000 ORDER BY 1, 2 LIMIT 5;
SELECT l.id, r.id, r.t FROM l LEFT JOIN r ON r.k = l.k AND r.id < 200 WHERE l.id BETWEEN 60 AND 190 ORDER BY 1, 2 LIMIT 9 OFFSET 100;
-- 160|NULL|NULL
-- 161|NULL|NULL
-- 162|162|r12
-- 163|163|r13
-- 164|164|r14
-- 165|165|r15
-- 166|166|r16
-- 167|167|r17
-- 168|NULL|NULL
SELECT count(*) FROM l, r, s WHERE r.k = l.id AND s.id = r.id AND s.k < 560;
-- 2396
SELECT count(*) FROM l WHERE (SELECT count(*) FROM r JOIN s ON s.id = r.id WHERE r.k = l.id AND s.k + l.id > 0) > 9;
-- 0
SELECT count(*), sum(x), sum(n) FROM (SELECT id AS x FROM l ORDER BY id) a JOIN generate_series(1, 3000) n ON n = x;
-- 600|180300|180300
SELECT count(*) FROM generate_series(1, 3000) a JOIN generate_series(1, 2500) b ON a = b JOIN generate_series(1, 2000) c ON c = b;
-- 2000
SELECT count(*), sum(l.id), sum(r.id), count(r.t) FROM l LEFT JOIN r ON r.k = l.k WHERE l.id <= 150;
-- 593|44629|1428229|578
SELECT count(*), sum(l.id), sum(r.id), count(r.t) FROM l JOIN r ON r.k = l.k AND r.t <> l.t WHERE l.id <= 150;
-- 578|43429|1428229|578

CREATE TABLE few (id int PRIMARY KEY, v int, w int);
CREATE TABLE skewed (id int PRIMARY KEY, v int, w int);
CREATE INDEX skewed_v ON skewed (v);
INSERT INTO few SELECT i, i % 3, i * 5 FROM generate_series(1, 60) i;
INSERT INTO skewed SELECT i, CASE WHEN i % 50 > 0 THEN i % 4 ELSE i END, i FROM generate_series(1, 5000) i;
SELECT count(*), sum(few.id), sum(skewed.id) FROM few JOIN skewed ON few.v = skewed.v;
-- 73000|2225500|182475000
SELECT count(*), sum(few.id), sum(skewed.id) FROM few JOIN skewed ON few.v = skewed.v AND skewed.w > 4000;
-- 14600|445100|65695000
SELECT count(*), sum(few.id), sum(skewed.id) FROM few LEFT JOIN skewed ON few.v = skewed.v AND few.w = skewed.w;
-- 60|1830|1625
SELECT count(*), sum(few.id), count(skewed.id) FROM few LEFT JOIN skewed ON few.w * 10 = skewed.v;
-- 60|1830|60
SELECT few.id, skewed.id FROM few LEFT JOIN skewed ON few.v = skewed.v AND skewed.w < few.w - 290 ORDER BY 1, 2;
-- 1|NULL
-- 2|NULL
-- 3|NULL
-- 4|NULL
-- 5|NULL
-- 6|NULL
-- 7|NULL
-- 8|NULL
-- 9|NULL
-- 10|NULL
-- 11|NULL
-- 12|NULL
-- 13|NULL
-- 14|NULL
-- 15|NULL
-- 16|NULL
-- 17|NULL
-- 18|NULL
-- 19|NULL
-- 20|NULL
-- 21|NULL
-- 22|NULL
-- 23|NULL
-- 24|NULL
-- 25|NULL
-- 26|NULL
-- 27|NULL
-- 28|NULL
-- 29|NULL
-- 30|NULL
-- 31|NULL
-- 32|NULL
-- 33|NULL
-- 34|NULL
-- 35|NULL
-- 36|NULL
-- 37|NULL
-- 38|NULL
-- 39|NULL
-- 40|NULL
-- 41|NULL
-- 42|NULL
-- 43|NULL
-- 44|NULL
-- 45|NULL
-- 46|NULL
-- 47|NULL
-- 48|NULL
-- 49|NULL
-- 50|NULL
-- 51|NULL
-- 52|NULL
-- 53|NULL
-- 54|NULL
-- 55|NULL
-- 56|NULL
-- 57|NULL
-- 58|NULL
-- 59|2
-- 60|4
-- 60|8
SELECT count(*), sum(s.id) FROM few, LATERAL (SELECT max(x.id) id FROM few y JOIN skewed x ON x.v = y.v WHERE y.id <= few.id) s;
-- 60|299879
