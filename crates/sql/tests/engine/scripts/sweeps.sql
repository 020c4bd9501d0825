-- Scans of so many rows that they are looked at in the bytes of their chunk.

CREATE TABLE many (a int NOT NULL, b int, t text, n numeric);
INSERT INTO many SELECT i, CASE WHEN i % 7 = 0 THEN NULL ELSE (i * 7919) % 6000 END, repeat(chr(97 + i % 26), i % 40), i / 4.0 FROM generate_series(1, 6000) i;
SELECT count(*), count(b), sum(a), min(t), max(t), sum(n) FROM many;
-- 6000|5143|18003000||zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz|4500750.00000000000000000000
SELECT count(*) FROM many WHERE a > 5990 AND t IS NOT NULL;
-- 10
SELECT a, b, t FROM many WHERE a % 1999 = 0 ORDER BY a;
-- 1999|2081|xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
-- 3998|4162|uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu
-- 5997|243|rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr
SELECT * FROM many WHERE a IN (5, 4095, 4096, 5999) ORDER BY a DESC;
-- 5999|NULL|ttttttttttttttttttttttttttttttttttttttt|1499.7500000000000000
-- 4096|224|oooooooooooooooo|1024.0000000000000000
-- 4095|NULL|nnnnnnnnnnnnnnn|1023.7500000000000000
-- 5|3595|fffff|1.2500000000000000
SELECT count(*), sum(x.b) FROM many x JOIN many y ON y.a = x.b WHERE y.a % 3 = 0;
-- 1714|5151255
