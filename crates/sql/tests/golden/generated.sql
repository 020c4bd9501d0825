# Generated columns.

CREATE TABLE boxes (id int PRIMARY KEY, w int, h int, area int GENERATED ALWAYS AS (w * h) STORED, name varchar(20), slug text GENERATED ALWAYS AS (lower(name)) STORED NOT NULL, CHECK (area < 1000));
----
CREATE TABLE

INSERT INTO boxes (id, w, h, name) VALUES (1, 2, 3, 'Ann'), (2, 4, 5, 'Bob') RETURNING *;
----
id:int4 | w:int4 | h:int4 | area:int4 | name:varchar | slug:text
1 | 2 | 3 | 6 | Ann | ann
2 | 4 | 5 | 20 | Bob | bob
INSERT 0 2

INSERT INTO boxes VALUES (3, 1, 1, DEFAULT, 'Cid') RETURNING area, slug;
----
area:int4 | slug:text
1 | cid
INSERT 0 1

INSERT INTO boxes VALUES (4, 1, 1, 7, 'Dan');
----
ERROR 428C9: cannot insert a non-DEFAULT value into column "area"
  detail: Column "area" is a generated column.

INSERT INTO boxes (id, area) SELECT 5, 5;
----
ERROR 428C9: cannot insert a non-DEFAULT value into column "area"
  detail: Column "area" is a generated column.

INSERT INTO boxes (id, w, h) VALUES (5, 1, 1);
----
ERROR 23502: null value in column "slug" of relation "boxes" violates not-null constraint
  detail: Failing row contains (5, 1, 1, 1, null, null).

INSERT INTO boxes (id, w, h, name) VALUES (5, 100, 100, 'x');
----
ERROR 23514: new row for relation "boxes" violates check constraint "boxes_area_check"
  detail: Failing row contains (5, 100, 100, 10000, x, x).
  constraint: boxes_area_check

UPDATE boxes SET w = 10 WHERE id = 1 RETURNING id, area;
----
id:int4 | area:int4
1 | 30
UPDATE 1

UPDATE boxes SET name = 'ANNA', h = h + 1 WHERE id IN (1, 2) RETURNING id, area, slug;
----
id:int4 | area:int4 | slug:text
1 | 40 | anna
2 | 24 | anna
UPDATE 2

UPDATE boxes SET area = 5 WHERE id = 1;
----
ERROR 428C9: column "area" can only be updated to DEFAULT
  detail: Column "area" is a generated column.

UPDATE boxes SET area = DEFAULT WHERE id = 1 RETURNING area;
----
area:int4
40
UPDATE 1

UPDATE boxes SET w = NULL WHERE id = 3 RETURNING area;
----
area:int4
NULL
UPDATE 1

INSERT INTO boxes (id, w, h, name) VALUES (1, 7, 7, 'again') ON CONFLICT (id) DO UPDATE SET w = excluded.w, h = excluded.area RETURNING area, slug;
----
area:int4 | slug:text
343 | anna
INSERT 0 1

CREATE UNIQUE INDEX boxes_slug ON boxes (slug) WHERE area > 0;
----
ERROR 23505: could not create unique index "boxes_slug"
  detail: Key (slug)=(anna) is duplicated.
  constraint: boxes_slug

UPDATE boxes SET name = 'Anna2' WHERE id = 1;
----
UPDATE 1

CREATE UNIQUE INDEX boxes_slug ON boxes (slug) WHERE area > 0;
----
CREATE INDEX

UPDATE boxes SET name = 'ANNA2' WHERE id = 2;
----
ERROR 23505: duplicate key value violates unique constraint "boxes_slug"
  detail: Key (slug)=(anna2) already exists.
  constraint: boxes_slug

SELECT id FROM boxes WHERE slug = 'anna2' AND area > 0;
----
id:int4
1
SELECT 1

SELECT attname, atthasdef, attgenerated, pg_get_expr(adbin, adrelid), pg_get_expr(adbin, adrelid, true) FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE attrelid = 'boxes'::regclass AND attnum > 0 ORDER BY attnum;
----
attname:name | atthasdef:bool | attgenerated:char | pg_get_expr:text | pg_get_expr:text
id | f |  | NULL | NULL
w | f |  | NULL | NULL
h | f |  | NULL | NULL
area | t | s | (w * h) | w * h
name | f |  | NULL | NULL
slug | t | s | lower((name)::text) | lower(name::text)
SELECT 6

SELECT column_name, column_default, is_generated, generation_expression FROM information_schema.columns WHERE table_name = 'boxes' ORDER BY ordinal_position;
----
column_name:name | column_default:varchar | is_generated:varchar | generation_expression:varchar
id | NULL | NEVER | NULL
w | NULL | NEVER | NULL
h | NULL | NEVER | NULL
area | NULL | ALWAYS | (w * h)
name | NULL | NEVER | NULL
slug | NULL | ALWAYS | lower((name)::text)
SELECT 6

ALTER TABLE boxes ADD COLUMN half numeric(6,2) GENERATED ALWAYS AS (w / 2.0) STORED;
----
ALTER TABLE

SELECT id, w, half FROM boxes ORDER BY id;
----
id:int4 | w:int4 | half:numeric
1 | 7 | 3.50
2 | 4 | 2.00
3 | NULL | NULL
SELECT 3

ALTER TABLE boxes RENAME COLUMN w TO width;
----
ALTER TABLE

UPDATE boxes SET width = 1 RETURNING id, area, half;
----
id:int4 | area:int4 | half:numeric
1 | 49 | 0.50
2 | 6 | 0.50
3 | 1 | 0.50
UPDATE 3

ALTER TABLE boxes ALTER COLUMN width TYPE bigint;
----
ERROR 0A000: cannot alter type of a column used by a generated column
  detail: Column "width" is used by generated column "area".

ALTER TABLE boxes DROP COLUMN width;
----
ERROR 2BP01: cannot drop column width of table boxes because other objects depend on it
  detail: column area of table boxes depends on column width of table boxes
column half of table boxes depends on column width of table boxes
  hint: Use DROP ... CASCADE to drop the dependent objects too.

ALTER TABLE boxes ALTER COLUMN half DROP EXPRESSION;
----
ALTER TABLE

UPDATE boxes SET half = 2.25 WHERE id = 1 RETURNING half;
----
half:numeric
2.25
UPDATE 1

ALTER TABLE boxes ALTER COLUMN slug SET DEFAULT 'x';
----
ERROR 42601: column "slug" of relation "boxes" is a generated column

ALTER TABLE boxes ALTER COLUMN slug DROP DEFAULT;
----
ERROR 42601: column "slug" of relation "boxes" is a generated column
  hint: Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead.

ALTER TABLE boxes DROP COLUMN width CASCADE;
----
NOTICE: drop cascades to column area of table boxes
ALTER TABLE

SELECT * FROM boxes ORDER BY id;
----
id:int4 | h:int4 | name:varchar | slug:text | half:numeric
1 | 49 | Anna2 | anna2 | 2.25
2 | 6 | ANNA | anna | 0.50
3 | 1 | Cid | cid | 0.50
SELECT 3

COPY boxes TO STDOUT;
----
(copy out, 4 columns)
1	49	Anna2	2.25
2	6	ANNA	0.50
3	1	Cid	0.50
(copy done)
COPY 3

COPY boxes (id, slug) TO STDOUT;
----
ERROR 42P10: column "slug" is a generated column
  detail: Generated columns cannot be used in COPY.

# What PostgreSQL refuses.

CREATE TABLE bad (a int, b int GENERATED ALWAYS AS (a * 2) STORED, c int GENERATED ALWAYS AS (b * 2) STORED);
----
ERROR 42P17: cannot use generated column "b" in column generation expression
  detail: A generated column cannot reference another generated column.

CREATE TABLE bad (a int GENERATED ALWAYS AS (a * 2) STORED);
----
ERROR 42P17: cannot use generated column "a" in column generation expression
  detail: A generated column cannot reference another generated column.

CREATE TABLE bad (a timestamptz GENERATED ALWAYS AS (now()) STORED);
----
ERROR 42P17: generation expression is not immutable

CREATE TABLE bad (a int, b int GENERATED ALWAYS AS ((SELECT 1)) STORED);
----
ERROR 0A000: cannot use subquery in column generation expression

CREATE TABLE bad (a int, b int GENERATED ALWAYS AS (sum(a)) STORED);
----
ERROR 42803: aggregate functions are not allowed in column generation expressions

CREATE TABLE bad (a int, b int GENERATED ALWAYS AS (nothing) STORED);
----
ERROR 42703: column "nothing" does not exist

CREATE TABLE bad (a int, b int GENERATED BY DEFAULT AS (a) STORED);
----
ERROR 42601: for a generated column, GENERATED ALWAYS must be specified

CREATE TABLE bad (a int, b int DEFAULT 1 GENERATED ALWAYS AS (a) STORED);
----
ERROR 42601: both default and generation expression specified for column "b" of table "bad"

CREATE TABLE bad (a int, b int GENERATED ALWAYS AS IDENTITY GENERATED ALWAYS AS (a) STORED);
----
ERROR 42601: both identity and generation expression specified for column "b" of table "bad"

CREATE TABLE bad (a int, b date GENERATED ALWAYS AS (a) STORED);
----
ERROR 42804: column "b" is of type date but default expression is of type integer
  hint: You will need to rewrite or cast the expression.

CREATE TABLE keyed (a int, b int GENERATED ALWAYS AS (a % 10) STORED PRIMARY KEY);
----
CREATE TABLE

INSERT INTO keyed (a) VALUES (11), (22) RETURNING b;
----
b:int4
1
2
INSERT 0 2

INSERT INTO keyed (a) VALUES (31);
----
ERROR 23505: duplicate key value violates unique constraint "keyed_pkey"
  detail: Key (b)=(1) already exists.
  constraint: keyed_pkey

UPDATE keyed SET a = 33 WHERE a = 11 RETURNING a, b;
----
a:int4 | b:int4
33 | 3
UPDATE 1

UPDATE keyed SET a = 43 WHERE a = 22;
----
ERROR 23505: duplicate key value violates unique constraint "keyed_pkey"
  detail: Key (b)=(3) already exists.
  constraint: keyed_pkey

SELECT a FROM keyed WHERE b = 3;
----
a:int4
33
SELECT 1
