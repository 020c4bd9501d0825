# Transaction blocks: their states, warnings, savepoints.

BEGIN;
----
BEGIN
(in block)

BEGIN;
----
WARNING: there is already a transaction in progress
BEGIN
(in block)

COMMIT;
----
COMMIT

COMMIT;
----
WARNING: there is no transaction in progress
COMMIT

ROLLBACK;
----
WARNING: there is no transaction in progress
ROLLBACK

# After an error nothing runs until the block ends.
BEGIN; SELEKT 1;
----
ERROR 42601: syntax error at or near "SELEKT"
  position: 8

BEGIN;
----
BEGIN
(in block)

SAVEPOINT a;
----
SAVEPOINT
(in block)

RELEASE nothing;
----
ERROR 3B001: savepoint "nothing" does not exist
(failed)

SHOW timezone;
----
ERROR 25P02: current transaction is aborted, commands ignored until end of transaction block
(failed)

ROLLBACK TO a;
----
ROLLBACK
(in block)

SHOW timezone;
----
TimeZone:text
UTC
SHOW
(in block)

RELEASE a;
----
RELEASE
(in block)

COMMIT;
----
COMMIT

# COMMIT of a failed block rolls back, and says so.
BEGIN; RELEASE nothing;
----
BEGIN
ERROR 3B001: savepoint "nothing" does not exist
(failed)

COMMIT;
----
ROLLBACK

BEGIN ISOLATION LEVEL READ COMMITTED, READ ONLY;
----
BEGIN
(in block)

SHOW transaction_isolation; SHOW transaction_read_only;
----
transaction_isolation:text
read committed
SHOW
transaction_read_only:text
on
SHOW
(in block)

COMMIT AND CHAIN;
----
COMMIT
(in block)

SHOW transaction_isolation;
----
transaction_isolation:text
read committed
SHOW
(in block)

ROLLBACK;
----
ROLLBACK

SAVEPOINT a;
----
ERROR 25P01: SAVEPOINT can only be used in transaction blocks

VACUUM;
----
VACUUM

BEGIN; VACUUM;
----
BEGIN
ERROR 25001: VACUUM cannot run inside a transaction block
(failed)

ROLLBACK;
----
ROLLBACK

# CockroachDB's retry protocol: RELEASE commits.
BEGIN; SAVEPOINT cockroach_restart;
----
BEGIN
SAVEPOINT
(in block)

RELEASE SAVEPOINT cockroach_restart;
----
RELEASE
(in block)

SHOW timezone;
----
ERROR 25000: current transaction is committed, commands ignored until end of transaction block
(in block)

COMMIT;
----
COMMIT

FETCH 1 FROM nothing;
----
ERROR 34000: cursor "nothing" does not exist

EXECUTE nothing;
----
ERROR 26000: prepared statement "nothing" does not exist

;
----
(empty)

LISTEN x;
----
ERROR 0A000: LISTEN (asynchronous notification) is not supported
  hint: Poll a table, or use a message broker.

GRANT ALL ON t TO root;
----
ERROR 42P01: relation "t" does not exist

# A read-only transaction refuses what may write, also where it would find nothing to write.
CREATE TABLE readable (id int PRIMARY KEY);
----
CREATE TABLE

BEGIN READ ONLY; DELETE FROM readable;
----
BEGIN
ERROR 25006: cannot execute DELETE in a read-only transaction
(failed)

ROLLBACK; BEGIN READ ONLY; UPDATE readable SET id = 1;
----
ROLLBACK
BEGIN
ERROR 25006: cannot execute UPDATE in a read-only transaction
(failed)

ROLLBACK; BEGIN READ ONLY; INSERT INTO readable SELECT 1 WHERE false;
----
ROLLBACK
BEGIN
ERROR 25006: cannot execute INSERT in a read-only transaction
(failed)

ROLLBACK; BEGIN READ ONLY; SELECT * FROM readable;
----
ROLLBACK
BEGIN
id:int4
SELECT 0
(in block)

ROLLBACK;
----
ROLLBACK

DROP TABLE readable;
----
DROP TABLE
