# A unique key of an open block that somebody else has inserted by the time it commits: 23505, as its INSERT would have said. (COPY locks no keys; INSERT and UPDATE wait.)

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
COPY 1

# Statements that come afterwards, with newer snapshots, change nothing about it.
SELECT count(*) FROM moved; COMMIT;
----
count:int8
2
SELECT 1
ERROR 23505: duplicate key value violates unique constraint "uq_k_key"
  detail: Key (k)=(a) already exists.
  constraint: uq_k_key

BEGIN ISOLATION LEVEL REPEATABLE READ; INSERT INTO uq (id, k) VALUES (2, 'other');
----
BEGIN
ERROR 23505: duplicate key value violates unique constraint "uq_pkey"
  detail: Key (id)=(2) already exists.
  constraint: uq_pkey
(failed)

COMMIT;
----
ROLLBACK

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
COPY 1

COMMIT;
----
ERROR 23505: duplicate key value violates unique constraint "uq_k_key"
  detail: Key (k)=(c) already exists.
  constraint: uq_k_key

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
COPY 1

COMMIT;
----
ERROR 23505: duplicate key value violates unique constraint "folded"
  detail: Key (lower(k), n)=(e, 1.50) already exists.
  constraint: folded

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
COPY 1

COMMIT;
----
ERROR 23505: duplicate key value violates unique constraint "moved_k_key"
  detail: Key (k)=(9) already exists.
  constraint: moved_k_key

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
COPY 1

COMMIT;
----
ERROR 23505: duplicate key value violates unique constraint "moved_pkey"
  detail: Key (id)=(7) already exists.
  constraint: moved_pkey

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
1 | 1
2 | 2
3 | 9
7 | 70
30 | 32
SELECT 5
