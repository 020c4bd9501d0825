# Who waited for an advisory lock sees what the one before did: nothing was read yet, so the snapshot moves. The first read settles it.

CREATE TABLE h (id int PRIMARY KEY);
----
CREATE TABLE

[a] BEGIN;
----
BEGIN
(in block)

[a] SELECT pg_try_advisory_xact_lock(7);
----
pg_try_advisory_xact_lock:bool
t
SELECT 1
(in block)

[b] INSERT INTO h VALUES (1);
----
INSERT 0 1

[b] CREATE TABLE made (id int PRIMARY KEY);
----
CREATE TABLE

[a] SELECT pg_try_advisory_xact_lock(8), 1 + 1;
----
pg_try_advisory_xact_lock:bool | ?column?:int4
t | 2
SELECT 1
(in block)

[a] SELECT count(*) FROM h;
----
count:int8
1
SELECT 1
(in block)

[a] SELECT count(*) FROM made;
----
count:int8
0
SELECT 1
(in block)

[b] INSERT INTO h VALUES (2);
----
INSERT 0 1

[a] SELECT count(*) FROM h;
----
count:int8
1
SELECT 1
(in block)

[a] SELECT pg_try_advisory_xact_lock(9);
----
pg_try_advisory_xact_lock:bool
t
SELECT 1
(in block)

[a] SELECT count(*) FROM h;
----
count:int8
1
SELECT 1
(in block)

[b] SELECT pg_try_advisory_xact_lock(7);
----
pg_try_advisory_xact_lock:bool
f
SELECT 1

[a] INSERT INTO made VALUES (1);
----
INSERT 0 1
(in block)

[a] COMMIT;
----
ERROR 40001: restart transaction: what was read or written was changed by a transaction that committed first
  detail: It is about the row (id)=(2) of table "h".
  hint: Run the transaction again from its start.

[b] SELECT pg_try_advisory_xact_lock(7);
----
pg_try_advisory_xact_lock:bool
t
SELECT 1

# A savepoint holds the snapshot, and what shows it settles it.
[a] BEGIN;
----
BEGIN
(in block)

[a] SELECT pg_try_advisory_xact_lock(7);
----
pg_try_advisory_xact_lock:bool
t
SELECT 1
(in block)

[a] SAVEPOINT s;
----
SAVEPOINT
(in block)

[b] INSERT INTO h VALUES (3);
----
INSERT 0 1

[a] SELECT count(*) FROM h;
----
count:int8
2
SELECT 1
(in block)

[a] ROLLBACK;
----
ROLLBACK
