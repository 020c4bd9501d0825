# How a transaction goes is said by BEGIN, by what is set in its block before the first query, or by the defaults as it begins.
# What is set later is for the next ones.

CREATE TABLE t (a int); CREATE SEQUENCE s;
----
CREATE TABLE
CREATE SEQUENCE

BEGIN CONSISTENCY stale; SHOW timeball.consistency; SHOW transaction_read_only; SELECT current_setting('timeball.consistency'), current_setting('transaction_read_only'); SELECT name, setting FROM pg_settings WHERE name IN ('timeball.consistency', 'transaction_read_only') ORDER BY 1;
----
BEGIN
timeball.consistency:text
stale
SHOW
transaction_read_only:text
on
SHOW
current_setting:text | current_setting:text
stale | on
SELECT 1
name:text | setting:text
timeball.consistency | stale
transaction_read_only | on
SELECT 2
(in block)

SELECT nextval('s');
----
nextval:int8
ERROR 25006: cannot execute nextval() in a read-only transaction
  hint: timeball.consistency is stale, which reads the past: BEGIN CONSISTENCY auto to write.
(failed)

ROLLBACK; BEGIN CONSISTENCY stale; CREATE TABLE u (a int);
----
ROLLBACK
BEGIN
ERROR 25006: cannot execute CREATE TABLE in a read-only transaction
  hint: timeball.consistency is stale, which reads the past: BEGIN CONSISTENCY auto to write.
(failed)

ROLLBACK; BEGIN CONSISTENCY stale; INSERT INTO t VALUES (1);
----
ROLLBACK
BEGIN
ERROR 25006: cannot execute INSERT in a read-only transaction
  hint: timeball.consistency is stale, which reads the past: BEGIN CONSISTENCY auto to write.
(failed)

ROLLBACK; BEGIN CONSISTENCY stale; COPY t FROM STDIN;
----
ROLLBACK
BEGIN
ERROR 25006: cannot execute COPY FROM in a read-only transaction
  hint: timeball.consistency is stale, which reads the past: BEGIN CONSISTENCY auto to write.
(failed)

ROLLBACK; BEGIN CONSISTENCY stale; TRUNCATE t;
----
ROLLBACK
BEGIN
ERROR 25006: cannot execute TRUNCATE TABLE in a read-only transaction
  hint: timeball.consistency is stale, which reads the past: BEGIN CONSISTENCY auto to write.
(failed)

# A block that has begun goes on as it began.

ROLLBACK; BEGIN; SELECT 1 AS x; SET timeball.consistency = 'stale'; SHOW timeball.consistency; INSERT INTO t VALUES (1); COMMIT; SHOW timeball.consistency;
----
ROLLBACK
BEGIN
x:int4
1
SELECT 1
SET
timeball.consistency:text
auto
SHOW
INSERT 0 1
COMMIT
timeball.consistency:text
stale
SHOW

INSERT INTO t VALUES (1);
----
ERROR 25006: cannot execute INSERT in a read-only transaction
  hint: timeball.consistency is stale, which reads the past: BEGIN CONSISTENCY auto to write.

BEGIN CONSISTENCY auto; SELECT 1 AS x; RESET timeball.consistency; INSERT INTO t VALUES (2); SET timeball.consistency = 'stale'; INSERT INTO t VALUES (3); COMMIT;
----
BEGIN
x:int4
1
SELECT 1
RESET
INSERT 0 1
SET
INSERT 0 1
COMMIT

RESET timeball.consistency; BEGIN; SET timeball.consistency = 'stale'; SHOW transaction_read_only; INSERT INTO t VALUES (4);
----
RESET
BEGIN
SET
transaction_read_only:text
on
SHOW
ERROR 25006: cannot execute INSERT in a read-only transaction
  hint: timeball.consistency is stale, which reads the past: BEGIN CONSISTENCY auto to write.
(failed)

ROLLBACK; SHOW timeball.consistency; SHOW transaction_read_only;
----
ROLLBACK
timeball.consistency:text
auto
SHOW
transaction_read_only:text
off
SHOW

BEGIN; SELECT 1 AS x; SET TRANSACTION CONSISTENCY stale;
----
BEGIN
x:int4
1
SELECT 1
ERROR 25001: SET TRANSACTION must be called before any query
  hint: It says how a transaction begins: say it first, or SET SESSION for the next ones.
(failed)

ROLLBACK; BEGIN; SELECT 1 AS x; SET LOCAL timeball.consistency = 'stale';
----
ROLLBACK
BEGIN
x:int4
1
SELECT 1
ERROR 25001: SET LOCAL timeball.consistency must be called before any query
  hint: It says how a transaction begins: say it first, or SET SESSION for the next ones.
(failed)

ROLLBACK; BEGIN; SELECT 1 AS x; SET TRANSACTION AS OF SYSTEM TIME follower_read_timestamp();
----
ROLLBACK
BEGIN
x:int4
1
SELECT 1
ERROR 25001: SET TRANSACTION must be called before any query
  hint: It says how a transaction begins: say it first.
(failed)

ROLLBACK; BEGIN; SAVEPOINT p; SET TRANSACTION CONSISTENCY stale;
----
ROLLBACK
BEGIN
SAVEPOINT
ERROR 25001: SET TRANSACTION must not be called in a subtransaction
(failed)

ROLLBACK; BEGIN; SET default_transaction_isolation = 'read committed'; SELECT pg_advisory_xact_lock(1) IS NULL AS x; SHOW transaction_isolation; SELECT count(*) FROM t; SHOW transaction_isolation; COMMIT; SHOW transaction_isolation;
----
ROLLBACK
BEGIN
SET
x:bool
f
SELECT 1
transaction_isolation:text
serializable
SHOW
count:int8
3
SELECT 1
transaction_isolation:text
serializable
SHOW
COMMIT
transaction_isolation:text
read committed
SHOW

# COMMIT AND CHAIN keeps how the transaction went.

RESET ALL; BEGIN CONSISTENCY strict; SELECT 1 AS x; SET timeball.consistency = 'hybrid'; COMMIT AND CHAIN; SHOW timeball.consistency; COMMIT; SHOW timeball.consistency;
----
RESET
BEGIN
x:int4
1
SELECT 1
SET
COMMIT
timeball.consistency:text
strict
SHOW
COMMIT
timeball.consistency:text
hybrid
SHOW
