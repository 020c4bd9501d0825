# A transaction relies on the descriptors that it used, and on no others (decision 103).

CREATE DATABASE other;
----
CREATE DATABASE

# An open change in one database keeps nobody in another one waiting.

BEGIN; CREATE TABLE mine (id int PRIMARY KEY, v int); INSERT INTO mine VALUES (1, 1);
----
BEGIN
CREATE TABLE
INSERT 0 1
(in block)

[b@other] CREATE TABLE mine (id int PRIMARY KEY); INSERT INTO mine VALUES (7); DROP TABLE mine; CREATE TABLE theirs (a int);
----
CREATE TABLE
INSERT 0 1
DROP TABLE
CREATE TABLE

# Nor in its own, unless it needs the same.

[c] CREATE TABLE third (id int PRIMARY KEY, v int); CREATE INDEX ON third (v); CREATE VIEW thirds AS SELECT v FROM third;
----
CREATE TABLE
CREATE INDEX
CREATE VIEW

[c] SET lock_timeout = '10ms'; CREATE TABLE mine (a int);
----
SET
ERROR 55P03: canceling statement due to lock timeout
  detail: It is about the name "mine".

INSERT INTO mine VALUES (2, 2); COMMIT;
----
INSERT 0 1
COMMIT

[c] CREATE TABLE mine (a int);
----
ERROR 42P07: relation "mine" already exists

[c] RESET lock_timeout; SELECT * FROM mine ORDER BY id;
----
RESET
id:int4 | v:int4
1 | 1
2 | 2
SELECT 2

# A writing block goes on when something else has changed, and ends when what it used has.

BEGIN; INSERT INTO third VALUES (1, 1);
----
BEGIN
INSERT 0 1
(in block)

[c] ALTER TABLE mine ADD COLUMN w int; CREATE SCHEMA s; CREATE TABLE s.t (a int);
----
ALTER TABLE
CREATE SCHEMA
CREATE TABLE

COMMIT;
----
COMMIT

BEGIN; INSERT INTO third VALUES (2, 2);
----
BEGIN
INSERT 0 1
(in block)

[c] ALTER TABLE third ADD COLUMN w int DEFAULT 5;
----
ALTER TABLE

COMMIT;
----
ERROR 40001: restart transaction: what was read or written was changed by a transaction that committed first
  detail: It is about the definition of "third".
  hint: Run the transaction again from its start.

SELECT * FROM third;
----
id:int4 | v:int4 | w:int4
1 | 1 | 5
SELECT 1

# At READ COMMITTED each statement goes by the catalog of its time.

BEGIN ISOLATION LEVEL READ COMMITTED; SELECT * FROM third;
----
BEGIN
id:int4 | v:int4 | w:int4
1 | 1 | 5
SELECT 1
(in block)

[c] ALTER TABLE third DROP COLUMN w CASCADE;
----
ALTER TABLE

SELECT * FROM third; INSERT INTO third VALUES (3, 3);
----
id:int4 | v:int4
1 | 1
SELECT 1
INSERT 0 1
(in block)

[c] CREATE TABLE fourth (a int); INSERT INTO fourth VALUES (4);
----
CREATE TABLE
INSERT 0 1

SELECT * FROM fourth; CREATE TABLE fifth (b int); COMMIT;
----
a:int4
4
SELECT 1
CREATE TABLE
COMMIT

# Its own changes lie over what others commit; what a savepoint takes back is gone.

BEGIN ISOLATION LEVEL READ COMMITTED; CREATE TABLE own (a int); SAVEPOINT p; ALTER TABLE own ADD COLUMN b int; DROP TABLE fifth;
----
BEGIN
CREATE TABLE
SAVEPOINT
ALTER TABLE
DROP TABLE
(in block)

[c] CREATE TABLE beside (a int);
----
CREATE TABLE

SELECT * FROM own, beside; ROLLBACK TO p;
----
a:int4 | b:int4 | a:int4
SELECT 0
ROLLBACK
(in block)

SELECT * FROM own, beside, fifth;
----
a:int4 | a:int4 | b:int4
SELECT 0
(in block)

COMMIT;
----
COMMIT

# Names that were looked up in vain count, too: the search path would lead elsewhere now.

SET search_path = s, public; BEGIN; INSERT INTO fourth VALUES (5);
----
SET
BEGIN
INSERT 0 1
(in block)

[c] CREATE TABLE s.fourth (a int);
----
CREATE TABLE

COMMIT;
----
ERROR 40001: restart transaction: what was read or written was changed by a transaction that committed first
  detail: It is about the name "fourth".
  hint: Run the transaction again from its start.

RESET search_path; SELECT * FROM fourth;
----
RESET
a:int4
4
SELECT 1

# What depends on an object keeps it, and whoever drops it hears of that.

BEGIN; CREATE VIEW fours AS SELECT a FROM fourth;
----
BEGIN
CREATE VIEW
(in block)

[c] DROP TABLE fourth;
----
DROP TABLE

COMMIT;
----
ERROR 40001: restart transaction: what was read or written was changed by a transaction that committed first
  detail: It is about the definition of "fourth".
  hint: Run the transaction again from its start.

BEGIN; DROP TABLE fifth;
----
BEGIN
DROP TABLE
(in block)

[c] CREATE VIEW fives AS SELECT b FROM fifth;
----
CREATE VIEW

COMMIT;
----
ERROR 40001: restart transaction: what was read or written was changed by a transaction that committed first
  detail: It is about the definition of "fifth".
  hint: Run the transaction again from its start.

[c] BEGIN; SELECT 1; DROP SCHEMA s CASCADE;
----
BEGIN
?column?:int4
1
SELECT 1
NOTICE: drop cascades to 2 other objects
DROP SCHEMA
(in block)

CREATE TABLE s.late (a int);
----
CREATE TABLE

[c] COMMIT;
----
ERROR 40001: restart transaction: what was read or written was changed by a transaction that committed first
  detail: It is about the catalog.
  hint: Run the transaction again from its start.

SELECT count(*) FROM s.late;
----
count:int8
0
SELECT 1
