# A unique key of an open block is waited for, by COPY, too: whoever inserts it then hears of it, and the block commits.

[b] SET lock_timeout = '5ms';
----
SET

CREATE TABLE uq (id serial PRIMARY KEY, k text UNIQUE, n numeric(6,2));
CREATE UNIQUE INDEX folded ON uq (lower(k), n);
CREATE TABLE moved (id int PRIMARY KEY, k int UNIQUE, n int);
INSERT INTO moved VALUES (1, 1), (2, 2);
----
CREATE TABLE
CREATE INDEX
CREATE TABLE
INSERT 0 2

BEGIN ISOLATION LEVEL READ COMMITTED; INSERT INTO uq (k) VALUES ('a');
----
BEGIN
INSERT 0 1
(in block)

[b] \copy
COPY uq (k) FROM STDIN
a
----
(copy in, 1 columns)
ERROR 55P03: canceling statement due to lock timeout
  detail: It is about the row (k)=(a) of index "uq_k_key" of table "uq".

# Statements that come afterwards, with newer snapshots, change nothing about it.
SELECT count(*) FROM moved; COMMIT;
----
count:int8
2
SELECT 1
COMMIT

BEGIN ISOLATION LEVEL REPEATABLE READ; INSERT INTO uq (id, k) VALUES (2, 'other');
----
BEGIN
INSERT 0 1
(in block)

COMMIT;
----
COMMIT

BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT * FROM uq WHERE k = 'c'; INSERT INTO uq (k) VALUES ('c');
----
BEGIN
id:int4 | k:text | n:numeric
SELECT 0
INSERT 0 1
(in block)

[b] \copy
COPY uq (k) FROM STDIN
c
----
(copy in, 1 columns)
ERROR 55P03: canceling statement due to lock timeout
  detail: It is about the row (k)=(c) of index "uq_k_key" of table "uq".

COMMIT;
----
COMMIT

# Not yet committed when it is looked for: the newest value counts, though the snapshot is older.
BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM uq WHERE k = 'd';
----
BEGIN
count:int8
0
SELECT 1
(in block)

[b] INSERT INTO uq (k) VALUES ('d');
----
INSERT 0 1

INSERT INTO uq (k) VALUES ('d');
----
ERROR 23505: duplicate key value violates unique constraint "uq_k_key"
  detail: Key (k)=(d) already exists.
  constraint: uq_k_key
(failed)

ROLLBACK;
----
ROLLBACK

# Two columns, one of them an expression.
BEGIN; INSERT INTO uq (k, n) VALUES ('E', 1.5);
----
BEGIN
INSERT 0 1
(in block)

[b] \copy
COPY uq (k, n) FROM STDIN
e	1.50
----
(copy in, 2 columns)
ERROR 55P03: canceling statement due to lock timeout
  detail: It is about rows of index "folded" of table "uq".

COMMIT;
----
COMMIT

# An update that takes a key.
BEGIN; UPDATE moved SET k = 9 WHERE id = 1;
----
BEGIN
UPDATE 1
(in block)

[b] \copy
COPY moved (id, k) FROM STDIN
3	9
----
(copy in, 2 columns)
ERROR 55P03: canceling statement due to lock timeout
  detail: It is about the row (k)=(9) of index "moved_k_key" of table "moved".

COMMIT;
----
COMMIT

BEGIN; UPDATE moved SET id = 7 WHERE id = 1;
----
BEGIN
UPDATE 1
(in block)

[b] \copy
COPY moved (id, k) FROM STDIN
7	70
----
(copy in, 2 columns)
ERROR 55P03: canceling statement due to lock timeout
  detail: It is about the row (id)=(7) of table "moved".

COMMIT;
----
COMMIT

# The key was given up: nobody has a duplicate, only what was read has changed.
BEGIN; SAVEPOINT s; INSERT INTO moved VALUES (30, 30); ROLLBACK TO s; INSERT INTO moved VALUES (31, 31);
----
BEGIN
SAVEPOINT
INSERT 0 1
ROLLBACK
INSERT 0 1
(in block)

[b] \copy
COPY moved (id, k) FROM STDIN
30	32
----
(copy in, 2 columns)
COPY 1

COMMIT;
----
ERROR 40001: restart transaction: what was read or written was changed by a transaction that committed first
  detail: It is about the row (id)=(30) of table "moved".
  hint: Run the transaction again from its start.

# A row that is there and has changed is no duplicate.
BEGIN ISOLATION LEVEL SERIALIZABLE; INSERT INTO moved VALUES (2, 50) ON CONFLICT DO NOTHING; INSERT INTO moved VALUES (51, 51);
----
BEGIN
INSERT 0 0
INSERT 0 1
(in block)

[b] UPDATE moved SET n = 52 WHERE id = 2;
----
UPDATE 1

COMMIT;
----
ERROR 40001: restart transaction: what was read or written was changed by a transaction that committed first
  detail: It is about the row (id)=(2) of table "moved".
  hint: Run the transaction again from its start.

# A lone statement is repeated by itself, and finds the row.
[b] INSERT INTO moved VALUES (2, 60);
----
ERROR 23505: duplicate key value violates unique constraint "moved_pkey"
  detail: Key (id)=(2) already exists.
  constraint: moved_pkey

SELECT id, k FROM moved ORDER BY id;
----
id:int4 | k:int4
2 | 2
7 | 9
30 | 32
SELECT 3
