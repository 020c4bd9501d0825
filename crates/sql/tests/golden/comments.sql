# COMMENT ON: kept for tables and their columns.

CREATE TABLE t (a int DEFAULT 3 NOT NULL, b text DEFAULT 'it''s' || '!' NOT NULL CHECK (b IS NOT NULL), c int DEFAULT (3) NOT NULL, d bool DEFAULT (1 IS NOT NULL) NOT NULL);
CREATE VIEW v AS SELECT a FROM t;
COMMENT ON TABLE t IS 'things';
COMMENT ON COLUMN t.b IS 'it''s';
COMMENT ON COLUMN public.t.c IS 'gone soon';
----
CREATE TABLE
CREATE VIEW
COMMENT
COMMENT
COMMENT

SELECT obj_description('t'::regclass), obj_description('t'::regclass, 'pg_class'), col_description('t'::regclass, 2), col_description('t'::regclass, 1);
----
obj_description:text | obj_description:text | col_description:text | col_description:text
things | things | it's | NULL
SELECT 1

SELECT objoid::regclass, classoid::regclass, objsubid, description FROM pg_description WHERE objoid = 't'::regclass ORDER BY objsubid;
----
objoid:regclass | classoid:regclass | objsubid:int4 | description:text
t | pg_class | 0 | things
t | pg_class | 2 | it's
t | pg_class | 3 | gone soon
SELECT 3

# They follow renames, and go with their column, or when they are empty.
ALTER TABLE t RENAME TO u;
ALTER TABLE u RENAME b TO bb;
ALTER TABLE u DROP COLUMN c;
SELECT objsubid, description FROM pg_description WHERE objoid = 'u'::regclass ORDER BY objsubid;
----
ALTER TABLE
ALTER TABLE
ALTER TABLE
objsubid:int4 | description:text
0 | things
2 | it's
SELECT 2

COMMENT ON TABLE u IS NULL; COMMENT ON COLUMN u.bb IS '';
SELECT count(*) FROM pg_description WHERE objoid = 'u'::regclass;
----
COMMENT
COMMENT
count:int8
0
SELECT 1

COMMENT ON COLUMN u.nothing IS 'x';
----
ERROR 42703: column "nothing" of relation "u" does not exist

COMMENT ON TABLE nothing IS 'x';
----
ERROR 42P01: relation "nothing" does not exist

COMMENT ON VIEW v IS 'x'; COMMENT ON INDEX i IS 'x';
----
NOTICE: only comments on tables and their columns are kept
COMMENT
ERROR 42P01: relation "i" does not exist

COMMENT ON TABLE v IS 'x';
----
ERROR 42809: "v" is not a table

# A DEFAULT ends where NOT NULL begins.
INSERT INTO u DEFAULT VALUES; SELECT * FROM u;
----
INSERT 0 1
a:int4 | bb:text | d:bool
3 | it's! | t
SELECT 1

ALTER TABLE u ADD COLUMN n integer DEFAULT 3 NOT NULL; SELECT n FROM u;
----
ALTER TABLE
n:int4
3
SELECT 1
