-- A column that was dropped keeps its number.

CREATE TABLE a (id int PRIMARY KEY, x int, y int DEFAULT 7, z text);
ALTER TABLE a DROP COLUMN x;
ALTER TABLE a DROP COLUMN z;
SELECT attnum, attname, atttypid, attisdropped, attnotnull, atthasdef, attstattarget FROM pg_attribute WHERE attrelid = 'a'::regclass AND attnum > 0 ORDER BY attnum;
-- 1|id|23|f|t|f|-1
-- 2|........pg.dropped.2........|0|t|f|f|0
-- 3|y|23|f|f|t|-1
-- 4|........pg.dropped.4........|0|t|f|f|0
SELECT relnatts FROM pg_class WHERE oid = 'a'::regclass;
-- 4
SELECT attname FROM pg_attribute WHERE attrelid = 'a'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum;
-- id
-- y
SELECT column_name, ordinal_position, column_default FROM information_schema.columns WHERE table_name = 'a' ORDER BY ordinal_position;
-- id|1|NULL
-- y|3|7
SELECT adnum, pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'a'::regclass;
-- 3|7
ALTER TABLE a ADD COLUMN x int;
SELECT attnum, attname, attisdropped FROM pg_attribute WHERE attrelid = 'a'::regclass AND attnum > 0 ORDER BY attnum;
-- 1|id|f
-- 2|........pg.dropped.2........|t
-- 3|y|f
-- 4|........pg.dropped.4........|t
-- 5|x|f
SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = 'a'::regclass AND a.attnum > 0 ORDER BY a.attnum;
-- id|integer
-- y|integer
-- x|integer
INSERT INTO a VALUES (1, 2, 3);
SELECT * FROM a;
-- 1|2|3
ALTER TABLE a DROP COLUMN "........pg.dropped.2........";
-- ERROR 42703: column "........pg.dropped.2........" of relation "a" does not exist
SELECT "........pg.dropped.2........" FROM a;
-- ERROR 42703: column "........pg.dropped.2........" does not exist
