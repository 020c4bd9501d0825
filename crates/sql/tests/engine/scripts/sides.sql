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
