# Tables: CREATE, constraints, DROP; everything inside transactions too.

CREATE TABLE posts(
    id INTEGER PRIMARY KEY, title TEXT
);
----
CREATE TABLE

CREATE TABLE likes(
    id SERIAL PRIMARY KEY,
    post_id INTEGER,
    FOREIGN KEY (post_id) REFERENCES posts (id),
    INDEX (post_id)
);
----
CREATE TABLE

INSERT INTO posts VALUES (1, 'one'), (2, 'two');
----
INSERT 0 2

INSERT INTO likes (post_id) VALUES (1), (1), (2) RETURNING id;
----
id:int4
1
2
3
INSERT 0 3

INSERT INTO likes (post_id) VALUES (3);
----
ERROR 23503: insert or update on table "likes" violates foreign key constraint "likes_post_id_fkey"
  detail: Key (post_id)=(3) is not present in table "posts".
  constraint: likes_post_id_fkey

INSERT INTO posts VALUES (1, 'again');
----
ERROR 23505: duplicate key value violates unique constraint "posts_pkey"
  detail: Key (id)=(1) already exists.
  constraint: posts_pkey

SELECT * FROM likes WHERE post_id = 1;
----
id:int4 | post_id:int4
1 | 1
2 | 1
SELECT 2

CREATE TABLE posts (a int);
----
ERROR 42P07: relation "posts" already exists

CREATE TABLE IF NOT EXISTS posts (a int);
----
NOTICE: relation "posts" already exists, skipping
CREATE TABLE

CREATE TABLE bad (a int, a text);
----
ERROR 42701: column "a" specified more than once

CREATE TABLE bad (a nonsense);
----
ERROR 42704: type "nonsense" does not exist

CREATE TABLE bad (a int, FOREIGN KEY (a) REFERENCES nowhere (id));
----
ERROR 42P01: relation "nowhere" does not exist

CREATE TABLE bad (a text REFERENCES posts);
----
ERROR 42804: foreign key constraint "bad_a_fkey" cannot be implemented
  detail: Key columns "a" and "id" are of incompatible types: text and integer.

CREATE TABLE bad (a int REFERENCES posts (title));
----
ERROR 42830: there is no unique constraint matching given keys for referenced table "posts"

CREATE TABLE bad (a int CHECK (b > 0));
----
ERROR 42703: column "b" does not exist

CREATE TABLE bad (a int DEFAULT 'x');
----
ERROR 22P02: invalid input syntax for type integer: "x"

CREATE TABLE bad (a json PRIMARY KEY);
----
ERROR 42704: data type json has no default operator class for access method "btree"
  hint: Index a column of an ordered type that holds what is searched for.

CREATE TABLE bad (a int PRIMARY KEY, b int PRIMARY KEY);
----
ERROR 42P16: multiple primary keys for table "bad" are not allowed

# Checks, defaults, identity.
CREATE TABLE items (id bigint GENERATED ALWAYS AS IDENTITY, name varchar(10) NOT NULL DEFAULT 'none', price numeric(10,2) CHECK (price > 0), CONSTRAINT sane CHECK (price < 1000 OR name = 'gold'), UNIQUE (name, price));
----
CREATE TABLE

INSERT INTO items (name, price) VALUES ('a', 1.5), (DEFAULT, 2) RETURNING *;
----
id:int8 | name:varchar | price:numeric
1 | a | 1.50
2 | none | 2.00
INSERT 0 2

INSERT INTO items (price) VALUES (-1);
----
ERROR 23514: new row for relation "items" violates check constraint "items_price_check"
  detail: Failing row contains (3, none, -1.00).
  constraint: items_price_check

INSERT INTO items (price) VALUES (5000);
----
ERROR 23514: new row for relation "items" violates check constraint "sane"
  detail: Failing row contains (4, none, 5000.00).
  constraint: sane

INSERT INTO items (name) VALUES (NULL);
----
ERROR 23502: null value in column "name" of relation "items" violates not-null constraint
  detail: Failing row contains (5, null, null).

INSERT INTO items (name, price) VALUES ('a', 1.50);
----
ERROR 23505: duplicate key value violates unique constraint "items_name_price_key"
  detail: Key (name, price)=(a, 1.50) already exists.
  constraint: items_name_price_key

INSERT INTO items (id, name) VALUES (7, 'x');
----
ERROR 428C9: cannot insert a non-DEFAULT value into column "id"
  detail: Column "id" is an identity column defined as GENERATED ALWAYS.
  hint: Use OVERRIDING SYSTEM VALUE to override.

INSERT INTO items (id, name) OVERRIDING SYSTEM VALUE VALUES (70, 'x') RETURNING id;
----
id:int8
70
INSERT 0 1

# DROP refuses what others need.
DROP TABLE posts;
----
ERROR 2BP01: cannot drop table posts because other objects depend on it
  detail: constraint likes_post_id_fkey on table likes depends on table posts
  hint: Use DROP ... CASCADE to drop the dependent objects too.

DROP TABLE nothing;
----
ERROR 42P01: table "nothing" does not exist

DROP TABLE IF EXISTS nothing;
----
NOTICE: table "nothing" does not exist, skipping
DROP TABLE

DROP INDEX likes_post_id_idx;
----
DROP INDEX

DROP INDEX likes_pkey;
----
ERROR 2BP01: cannot drop index likes_pkey because constraint likes_pkey on table likes requires it
  hint: You can drop constraint likes_pkey on table likes instead.

DROP SEQUENCE likes_id_seq;
----
ERROR 2BP01: cannot drop sequence likes_id_seq because other objects depend on it
  detail: default value for column id of table likes depends on sequence likes_id_seq
  hint: Use DROP ... CASCADE to drop the dependent objects too.

DROP VIEW posts;
----
ERROR 42809: "posts" is not a view
  hint: Use DROP TABLE to remove a table.

DROP TABLE posts CASCADE;
----
NOTICE: drop cascades to constraint likes_post_id_fkey on table likes
DROP TABLE

INSERT INTO likes (post_id) VALUES (300) RETURNING id;
----
id:int4
5
INSERT 0 1

# A rollback takes everything back.
BEGIN; DROP TABLE likes; CREATE TABLE likes (a text); INSERT INTO likes VALUES ('new'); SELECT * FROM likes;
----
BEGIN
DROP TABLE
CREATE TABLE
INSERT 0 1
a:text
new
SELECT 1
(in block)

ROLLBACK;
----
ROLLBACK

SELECT id, post_id FROM likes WHERE id = 3;
----
id:int4 | post_id:int4
3 | 2
SELECT 1

BEGIN; SAVEPOINT s; CREATE TABLE inner_one (a int); ROLLBACK TO s;
----
BEGIN
SAVEPOINT
CREATE TABLE
ROLLBACK
(in block)

SELECT * FROM inner_one;
----
ERROR 42P01: relation "inner_one" does not exist
  position: 15
(failed)

ROLLBACK;
----
ROLLBACK

# Another session sees a table only once it is committed.
BEGIN; CREATE TABLE later (a int);
----
BEGIN
CREATE TABLE
(in block)

[b] SELECT * FROM later;
----
ERROR 42P01: relation "later" does not exist
  position: 15

COMMIT;
----
COMMIT

[b] SELECT * FROM later;
----
a:int4
SELECT 0

# Schemas and databases.
CREATE SCHEMA app;
----
CREATE SCHEMA

CREATE TABLE app.t (a int);
----
CREATE TABLE

CREATE SCHEMA app;
----
ERROR 42P06: schema "app" already exists

DROP SCHEMA app;
----
ERROR 2BP01: cannot drop schema app because other objects depend on it
  detail: table app.t depends on schema app
  hint: Use DROP ... CASCADE to drop the dependent objects too.

SET search_path = app; INSERT INTO t VALUES (1); SELECT * FROM t;
----
SET
INSERT 0 1
a:int4
1
SELECT 1

DROP SCHEMA app CASCADE;
----
NOTICE: drop cascades to table t
DROP SCHEMA

CREATE TABLE t (a int);
----
ERROR 3F000: no schema has been selected to create in
  hint: Name the schema, or SET search_path.

RESET search_path;
----
RESET

CREATE DATABASE demo;
----
CREATE DATABASE

CREATE DATABASE demo;
----
ERROR 42P04: database "demo" already exists

DROP DATABASE postgres;
----
ERROR 55006: cannot drop the currently open database
  hint: Connect to another database first.

DROP DATABASE demo;
----
DROP DATABASE

# TRUNCATE
CREATE TABLE parent (id serial PRIMARY KEY); CREATE TABLE child (p int REFERENCES parent); INSERT INTO parent DEFAULT VALUES; INSERT INTO child VALUES (1);
----
CREATE TABLE
CREATE TABLE
INSERT 0 1
INSERT 0 1

TRUNCATE parent;
----
ERROR 0A000: cannot truncate a table referenced in a foreign key constraint
  detail: Table "child" references "parent".
  hint: Truncate table "child" at the same time, or use TRUNCATE ... CASCADE.

TRUNCATE parent RESTART IDENTITY CASCADE;
----
NOTICE: truncate cascades to table "child"
TRUNCATE TABLE

SELECT * FROM child;
----
p:int4
SELECT 0

INSERT INTO parent DEFAULT VALUES RETURNING id;
----
id:int4
1
INSERT 0 1

# names that are long, or words to the library that reads queries but not to PostgreSQL
CREATE TABLE words (id int PRIMARY KEY, top int, "unnest" int, "normalize" text, "a$b" int, abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz int);
----
CREATE TABLE

INSERT INTO words (id, top, abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz) VALUES (1, 2, 3);
----
INSERT 0 1

SELECT top, abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz FROM words;
----
top:int4 | abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz_abcdefghi:int4
2 | 3
SELECT 1

SELECT top.top, max(top.abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz) FROM words top GROUP BY 1;
----
top:int4 | max:int4
2 | 3
SELECT 1

UPDATE words AS top SET top = top.top + x.d FROM (SELECT 1 AS d GROUP BY 1) x WHERE top.id = x.d RETURNING top.top;
----
top:int4
3
UPDATE 1

CREATE INDEX words_i ON words ("normalize", "a$b", top);
----
CREATE INDEX

SELECT pg_get_indexdef('words_i'::regclass), quote_ident('a$b'), to_regclass('"words_i"');
----
pg_get_indexdef:text | quote_ident:text | to_regclass:regclass
CREATE INDEX words_i ON public.words USING btree ("normalize", "a$b", top) | "a$b" | words_i
SELECT 1

COPY words (top, "unnest", "normalize") TO STDOUT;
----
(copy out, 3 columns)
3	\N	\N
(copy done)
COPY 1

SELECT word, catcode, barelabel FROM pg_get_keywords() WHERE word IN ('abort', 'between', 'day', 'full', 'isnull', 'precision', 'table', 'union') ORDER BY 1;
----
word:text | catcode:char | barelabel:bool
abort | U | t
between | C | t
day | U | f
full | T | t
isnull | T | f
precision | C | f
table | R | t
union | R | f
SELECT 8

SELECT catcode, barelabel, catdesc, baredesc, count(*) FROM pg_get_keywords() GROUP BY 1, 2, 3, 4 ORDER BY 1, 2;
----
catcode:char | barelabel:bool | catdesc:text | baredesc:text | count:int8
C | f | unreserved (cannot be function or type name) | requires AS | 3
C | t | unreserved (cannot be function or type name) | can be bare label | 48
R | f | reserved | requires AS | 22
R | t | reserved | can be bare label | 55
T | f | reserved (can be function or type name) | requires AS | 3
T | t | reserved (can be function or type name) | can be bare label | 20
U | f | unreserved | requires AS | 11
U | t | unreserved | can be bare label | 298
SELECT 8

SELECT 'no such'::regclass;
----
ERROR 42602: invalid name syntax

DROP TABLE words;
----
DROP TABLE

# what asks the catalogs answers the same in a write, which the engine does not see, as in a query
CREATE SCHEMA s;
----
CREATE SCHEMA

CREATE TABLE s.hidden (id int PRIMARY KEY, n serial);
----
CREATE TABLE

CREATE TABLE notes (id int PRIMARY KEY, a text, b text, c text, d text, e bool, f bool, g text);
----
CREATE TABLE

INSERT INTO notes VALUES (1, 's.hidden'::regclass::text, 'information_schema.tables'::regclass::text, to_regclass('hidden')::text, pg_get_userbyid(99), pg_table_is_visible('s.hidden'::regclass), pg_table_is_visible(99999), pg_get_serial_sequence('s.hidden', 'n'));
----
INSERT 0 1

INSERT INTO notes SELECT 2, 's.hidden'::regclass::text, 'information_schema.tables'::regclass::text, to_regclass('hidden')::text, pg_get_userbyid(99), pg_table_is_visible('s.hidden'::regclass), pg_table_is_visible(99999), pg_get_serial_sequence('s.hidden', 'n') FROM (VALUES (1)) one (x) GROUP BY 1;
----
INSERT 0 1

TABLE notes;
----
id:int4 | a:text | b:text | c:text | d:text | e:bool | f:bool | g:text
1 | s.hidden | information_schema.tables | NULL | unknown (OID=99) | f | NULL | s.hidden_n_seq
2 | s.hidden | information_schema.tables | NULL | unknown (OID=99) | f | NULL | s.hidden_n_seq
SELECT 2

DROP TABLE notes, s.hidden;
----
DROP TABLE

DROP SCHEMA s;
----
DROP SCHEMA
