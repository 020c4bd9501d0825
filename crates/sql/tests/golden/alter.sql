# ALTER TABLE: columns, constraints, types; rows that exist are looked at, or written anew.

CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, NULL);
----
CREATE TABLE
INSERT 0 3

ALTER TABLE t ADD COLUMN c int DEFAULT 7;
----
ALTER TABLE

SELECT * FROM t WHERE a = 1;
----
a:int4 | b:text | c:int4
1 | x | 7
SELECT 1

ALTER TABLE t ADD COLUMN d int NOT NULL;
----
ERROR 23502: column "d" of relation "t" contains null values

ALTER TABLE t ADD COLUMN d serial;
----
ALTER TABLE

SELECT * FROM t ORDER BY a;
----
a:int4 | b:text | c:int4 | d:int4
1 | x | 7 | 1
2 | y | 7 | 2
3 | NULL | 7 | 3
SELECT 3

ALTER TABLE t ADD COLUMN c text;
----
ERROR 42701: column "c" of relation "t" already exists

ALTER TABLE t ADD COLUMN IF NOT EXISTS c text;
----
NOTICE: column "c" of relation "t" already exists, skipping
ALTER TABLE

ALTER TABLE t ADD PRIMARY KEY (a);
----
ALTER TABLE

INSERT INTO t (a) VALUES (1);
----
ERROR 23505: duplicate key value violates unique constraint "t_pkey"
  detail: Key (a)=(1) already exists.
  constraint: t_pkey

SELECT * FROM t WHERE a = 2;
----
a:int4 | b:text | c:int4 | d:int4
2 | y | 7 | 2
SELECT 1

ALTER TABLE t ADD PRIMARY KEY (b);
----
ERROR 42P16: multiple primary keys for table "t" are not allowed

ALTER TABLE t ALTER COLUMN b SET NOT NULL;
----
ERROR 23502: column "b" of relation "t" contains null values

UPDATE t SET b = 'z' WHERE a = 3;
----
UPDATE 1

ALTER TABLE t ALTER COLUMN b SET NOT NULL, ALTER COLUMN b SET DEFAULT 'dflt';
----
ALTER TABLE

INSERT INTO t (a) VALUES (4) RETURNING *;
----
a:int4 | b:text | c:int4 | d:int4
4 | dflt | 7 | 5
INSERT 0 1

ALTER TABLE t ALTER COLUMN a DROP NOT NULL;
----
ERROR 42P16: column "a" is in a primary key

ALTER TABLE t ADD CONSTRAINT positive CHECK (a > 1);
----
ERROR 23514: check constraint "positive" of relation "t" is violated by some row
  constraint: positive

ALTER TABLE t ADD CONSTRAINT positive CHECK (a > 0);
----
ALTER TABLE

ALTER TABLE t RENAME COLUMN a TO id;
----
ALTER TABLE

INSERT INTO t (id) VALUES (0);
----
ERROR 23514: new row for relation "t" violates check constraint "positive"
  detail: Failing row contains (0, dflt, 7, 6).
  constraint: positive

ALTER TABLE t ADD CONSTRAINT only_c UNIQUE (c);
----
ERROR 23505: could not create unique index "only_c"
  detail: Key (c)=(7) is duplicated.
  constraint: only_c

ALTER TABLE t ADD UNIQUE (b, id);
----
ALTER TABLE

CREATE UNIQUE INDEX t_c ON t (c);
----
ERROR 23505: could not create unique index "t_c"
  detail: Key (c)=(7) is duplicated.
  constraint: t_c

CREATE INDEX t_c ON t (c DESC, id);
----
CREATE INDEX

SELECT id FROM t WHERE c = 7 ORDER BY id;
----
id:int4
1
2
3
4
SELECT 4

ALTER TABLE t ALTER COLUMN b TYPE varchar(20);
----
ALTER TABLE

ALTER TABLE t ALTER COLUMN c TYPE bigint;
----
ALTER TABLE

SELECT id, c FROM t WHERE c = 7 ORDER BY id;
----
id:int4 | c:int8
1 | 7
2 | 7
3 | 7
4 | 7
SELECT 4

ALTER TABLE t ALTER COLUMN b TYPE int;
----
ERROR 42804: column "b" cannot be cast automatically to type integer
  hint: You might need to specify "USING b::integer".

ALTER TABLE t ALTER COLUMN c TYPE text USING 'c' || c;
----
ALTER TABLE

SELECT id, c FROM t WHERE id = 1;
----
id:int4 | c:text
1 | c7
SELECT 1

CREATE TABLE u (t_id int); INSERT INTO u VALUES (1), (99);
----
CREATE TABLE
INSERT 0 2

ALTER TABLE u ADD FOREIGN KEY (t_id) REFERENCES t;
----
ERROR 23503: insert or update on table "u" violates foreign key constraint "u_t_id_fkey"
  detail: Key (t_id)=(99) is not present in table "t".
  constraint: u_t_id_fkey

DELETE FROM u WHERE t_id = 99; ALTER TABLE u ADD FOREIGN KEY (t_id) REFERENCES t ON DELETE CASCADE;
----
DELETE 1
ALTER TABLE

ALTER TABLE t DROP CONSTRAINT t_pkey;
----
ERROR 2BP01: cannot drop constraint t_pkey on table t because other objects depend on it
  detail: constraint u_t_id_fkey on table u depends on index t_pkey
  hint: Use DROP ... CASCADE to drop the dependent objects too.

ALTER TABLE t DROP CONSTRAINT t_pkey CASCADE;
----
NOTICE: drop cascades to constraint u_t_id_fkey on table u
ALTER TABLE

SELECT id FROM t ORDER BY id;
----
id:int4
1
2
3
4
SELECT 4

ALTER TABLE t DROP COLUMN c, DROP COLUMN IF EXISTS nothing;
----
NOTICE: column "nothing" of relation "t" does not exist, skipping
ALTER TABLE

ALTER TABLE t DROP COLUMN nothing;
----
ERROR 42703: column "nothing" of relation "t" does not exist

SELECT * FROM t ORDER BY id;
----
id:int4 | b:varchar | d:int4
1 | x | 1
2 | y | 2
3 | z | 3
4 | dflt | 5
SELECT 4

ALTER TABLE t RENAME TO t2; SELECT id FROM t2 WHERE id = 1;
----
ALTER TABLE
id:int4
1
SELECT 1

ALTER TABLE t2 RENAME CONSTRAINT positive TO above; ALTER TABLE t2 DROP CONSTRAINT above;
----
ALTER TABLE
ALTER TABLE

ALTER TABLE t2 DROP CONSTRAINT nothing;
----
ERROR 42704: constraint "nothing" of relation "t2" does not exist

ALTER TABLE IF EXISTS nothing ADD COLUMN a int;
----
NOTICE: relation "nothing" does not exist, skipping
ALTER TABLE

ALTER TABLE t2 OWNER TO root;
----
ALTER TABLE

CREATE SCHEMA s; ALTER TABLE t2 SET SCHEMA s; SELECT id FROM s.t2 WHERE id = 1;
----
CREATE SCHEMA
ALTER TABLE
id:int4
1
SELECT 1

INSERT INTO s.t2 (id) VALUES (50) RETURNING d;
----
d:int4
7
INSERT 0 1

CREATE TABLE k (a int PRIMARY KEY); ALTER TABLE k SPLIT AT VALUES (10), (20);
----
CREATE TABLE
ALTER TABLE

ALTER TABLE k SPLIT AT VALUES (1, 2);
----
ERROR 42601: SPLIT AT gives 2 values, but the primary key of "k" has 1 columns

CREATE TABLE ki (a int PRIMARY KEY, b int, c text); CREATE INDEX ki_b ON ki (b DESC, c); CREATE INDEX ki_e ON ki ((b + 1)); INSERT INTO ki SELECT g, g % 10, 'c' FROM generate_series(1, 30) g;
ALTER INDEX ki_b SPLIT AT VALUES (7), (3, 'b'); ALTER INDEX ki_pkey SPLIT AT VALUES (10); SELECT count(*) FROM ki WHERE b BETWEEN 2 AND 8; SELECT a FROM ki WHERE b = 3 ORDER BY a;
----
CREATE TABLE
CREATE INDEX
CREATE INDEX
INSERT 0 30
ALTER INDEX
ALTER INDEX
count:int8
21
SELECT 1
a:int4
3
13
23
SELECT 3

ALTER INDEX ki_b SPLIT AT VALUES (1, 'x', 2);
----
ERROR 42601: SPLIT AT gives 3 values, but the index "ki_b" has 2 columns

ALTER INDEX ki_b SPLIT AT VALUES (NULL);
----
ERROR 22023: SPLIT AT gives NULL for b: a boundary lies at a value

ALTER INDEX ki_e SPLIT AT VALUES (1);
----
ERROR 0A000: SPLIT AT by an expression (the index "ki_e" has one) is not supported
  hint: Give values of the columns before it, or split another index.

ALTER INDEX ki SPLIT AT VALUES (1);
----
ERROR 42809: "ki" is not an index

ALTER INDEX IF EXISTS ki_none SPLIT AT VALUES (1); DROP TABLE ki;
----
NOTICE: relation "ki_none" does not exist, skipping
ALTER INDEX
DROP TABLE

BEGIN; CREATE TABLE big (a int, b int); INSERT INTO big SELECT 1, 2; ALTER TABLE big ADD PRIMARY KEY (a); SELECT * FROM big WHERE a = 1; COMMIT;
----
BEGIN
CREATE TABLE
INSERT 0 1
ALTER TABLE
a:int4 | b:int4
1 | 2
SELECT 1
COMMIT
