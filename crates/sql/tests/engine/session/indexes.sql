-- Where NULLs go in an index, columns that change their type, and what catalogs say of both.

CREATE TABLE n (id int PRIMARY KEY, a int, b text, c timestamptz);
INSERT INTO n SELECT g, CASE WHEN g % 3 = 0 THEN NULL ELSE g % 7 END, CASE WHEN g % 4 = 0 THEN NULL ELSE 'b' || g % 5 END FROM generate_series(1, 40) g;
CREATE INDEX n_a ON n (a NULLS FIRST);
CREATE INDEX n_ad ON n (a DESC NULLS LAST, b ASC NULLS FIRST);
CREATE INDEX n_b ON n (b DESC NULLS FIRST, a ASC NULLS LAST);
CREATE UNIQUE INDEX n_u ON n (b NULLS FIRST, id DESC NULLS LAST);
CREATE INDEX n_e ON n (lower(b) DESC NULLS LAST, (a + 1) NULLS FIRST) WHERE a IS NOT NULL;
SELECT '> ' || indexdef FROM pg_indexes WHERE tablename = 'n' ORDER BY indexname;
-- > CREATE INDEX n_a ON public.n USING btree (a NULLS FIRST)
-- > CREATE INDEX n_ad ON public.n USING btree (a DESC NULLS LAST, b NULLS FIRST)
-- > CREATE INDEX n_b ON public.n USING btree (b DESC, a)
-- > CREATE INDEX n_e ON public.n USING btree (lower(b) DESC NULLS LAST, ((a + 1)) NULLS FIRST) WHERE (a IS NOT NULL)
-- > CREATE UNIQUE INDEX n_pkey ON public.n USING btree (id)
-- > CREATE UNIQUE INDEX n_u ON public.n USING btree (b NULLS FIRST, id DESC NULLS LAST)
SELECT indexrelid::regclass::text, indoption::text FROM pg_index WHERE indrelid = 'n'::regclass ORDER BY 1;
-- n_a|2
-- n_ad|1 2
-- n_b|3 0
-- n_e|1 2
-- n_pkey|0
-- n_u|2 1
SELECT pg_get_indexdef('n_ad'::regclass, 1, true), pg_get_indexdef('n_ad'::regclass, 2, false);
-- a|b
SELECT a, id FROM n ORDER BY a NULLS FIRST, id LIMIT 16;
-- NULL|3
-- NULL|6
-- NULL|9
-- NULL|12
-- NULL|15
-- NULL|18
-- NULL|21
-- NULL|24
-- NULL|27
-- NULL|30
-- NULL|33
-- NULL|36
-- NULL|39
-- 0|7
-- 0|14
-- 0|28
SELECT a FROM n ORDER BY a NULLS FIRST LIMIT 16;
-- NULL
-- NULL
-- NULL
-- NULL
-- NULL
-- NULL
-- NULL
-- NULL
-- NULL
-- NULL
-- NULL
-- NULL
-- NULL
-- 0
-- 0
-- 0
SELECT a FROM n ORDER BY a DESC NULLS LAST LIMIT 5;
-- 6
-- 6
-- 6
-- 5
-- 5
SELECT a FROM n ORDER BY a DESC NULLS FIRST LIMIT 15;
-- NULL
-- NULL
-- NULL
-- NULL
-- NULL
-- NULL
-- NULL
-- NULL
-- NULL
-- NULL
-- NULL
-- NULL
-- NULL
-- 6
-- 6
SELECT a FROM n ORDER BY a LIMIT 3;
-- 0
-- 0
-- 0
SELECT a, b FROM n ORDER BY a DESC NULLS LAST, b NULLS FIRST LIMIT 8;
-- 6|NULL
-- 6|b3
-- 6|b4
-- 5|NULL
-- 5|b0
-- 5|b1
-- 5|b4
-- 4|NULL
SELECT a, b FROM n WHERE a = 4 ORDER BY b NULLS FIRST LIMIT 8;
-- 4|NULL
-- 4|NULL
-- 4|b0
-- 4|b1
SELECT a, b FROM n WHERE a = 4 ORDER BY b DESC NULLS LAST LIMIT 8;
-- 4|b1
-- 4|b0
-- 4|NULL
-- 4|NULL
SELECT count(*) FROM n WHERE a > 3;
-- 11
SELECT count(*) FROM n WHERE a < 3;
-- 12
SELECT count(*) FROM n WHERE a >= 0;
-- 27
SELECT count(*) FROM n WHERE a BETWEEN 2 AND 4;
-- 12
SELECT count(*) FROM n WHERE a IS NULL;
-- 13
SELECT count(*) FROM n WHERE a IS NOT NULL;
-- 27
SELECT count(*) FROM n WHERE b IS NULL AND a > 3;
-- 4
SELECT count(*) FROM n WHERE b = 'b1' AND id > 10;
-- 4
SELECT count(*) FROM n WHERE b = 'b1' AND id < 30;
-- 5
SELECT min(a), max(a), min(b), max(b) FROM n;
-- 0|6|b0|b4
SELECT id FROM n WHERE b IS NULL AND id <= 12 ORDER BY id DESC;
-- 12
-- 8
-- 4
SELECT count(*) FROM n x JOIN n y ON x.a = y.a;
-- 105
SELECT lower(b) FROM n WHERE a IS NOT NULL ORDER BY lower(b) DESC NULLS LAST LIMIT 3;
-- b4
-- b4
-- b4

--- A unique index with another place of NULLs keeps unique, and is found by its columns.
CREATE TABLE u (k text, v int);
CREATE UNIQUE INDEX u_k ON u (k DESC NULLS LAST);
INSERT INTO u VALUES (NULL, 1), (NULL, 2), ('x', 3);
INSERT INTO u VALUES ('x', 4);
-- ERROR 23505: duplicate key value violates unique constraint "u_k"
INSERT INTO u VALUES ('x', 5), ('y', 6) ON CONFLICT (k) DO UPDATE SET v = excluded.v RETURNING *;
-- x|5
-- y|6
SELECT * FROM u ORDER BY k DESC NULLS LAST, v;
-- y|6
-- x|5
-- NULL|1
-- NULL|2
SELECT * FROM u WHERE k > 'a' ORDER BY k DESC NULLS LAST;
-- y|6
-- x|5
SELECT * FROM u WHERE k < 'z' ORDER BY k NULLS FIRST;
-- x|5
-- y|6
SELECT v FROM u WHERE k IS NULL ORDER BY v;
-- 1
-- 2
UPDATE u SET k = NULL WHERE k = 'y' RETURNING v;
-- 6
SELECT v FROM u WHERE k IS NULL ORDER BY v;
-- 1
-- 2
-- 6
DELETE FROM u WHERE k IS NULL RETURNING v;
-- 1
-- 2
-- 6
SELECT * FROM u;
-- x|5

--- A column that changes its type keeps its number, its comment, its place.
CREATE TABLE w (a int PRIMARY KEY, b int DEFAULT 3, c text);
COMMENT ON COLUMN w.b IS 'kept';
CREATE INDEX w_b ON w (b, c);
ALTER TABLE w ADD COLUMN d int DEFAULT 9;
INSERT INTO w VALUES (1, 2, 'x'), (2, NULL, 'y');
ALTER TABLE w ALTER COLUMN b TYPE text USING 'n' || b;
ALTER TABLE w ALTER COLUMN d TYPE numeric(6,2);
INSERT INTO w VALUES (3, '5', 'z');
SELECT * FROM w ORDER BY a;
-- 1|n2|x|9.00
-- 2|NULL|y|9.00
-- 3|5|z|9.00
SELECT attname, attnum, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'w'::regclass AND attnum > 0 ORDER BY attnum;
-- a|1|integer
-- b|2|text
-- c|3|text
-- d|4|numeric(6,2)
SELECT col_description('w'::regclass, 2);
-- kept
SELECT column_name, ordinal_position FROM information_schema.columns WHERE table_name = 'w' ORDER BY ordinal_position;
-- a|1
-- b|2
-- c|3
-- d|4
SELECT a FROM w WHERE b = 'n2';
-- 1
ALTER TABLE w ADD COLUMN e int;
SELECT attnum FROM pg_attribute WHERE attrelid = 'w'::regclass AND attname = 'e';
-- 5
