# Foreign keys that are checked before the commit, SET CONSTRAINTS.

CREATE TABLE p (id int PRIMARY KEY);
CREATE TABLE c (id int PRIMARY KEY, p int CONSTRAINT later REFERENCES p DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE d (id int PRIMARY KEY, p int CONSTRAINT now REFERENCES p DEFERRABLE);
CREATE TABLE e (id int PRIMARY KEY, p int, CONSTRAINT always FOREIGN KEY (p) REFERENCES p (id));
----
CREATE TABLE
CREATE TABLE
CREATE TABLE
CREATE TABLE

# A row may come before the one that it points at.
BEGIN; INSERT INTO c VALUES (1, 1); INSERT INTO p VALUES (1); COMMIT;
----
BEGIN
INSERT 0 1
INSERT 0 1
COMMIT

BEGIN; INSERT INTO c VALUES (2, 2);
----
BEGIN
INSERT 0 1
(in block)

COMMIT;
----
ERROR 23503: insert or update on table "c" violates foreign key constraint "later"
  detail: Key (p)=(2) is not present in table "p".
  constraint: later

# A lone statement is its own transaction.
INSERT INTO c VALUES (2, 2);
----
ERROR 23503: insert or update on table "c" violates foreign key constraint "later"
  detail: Key (p)=(2) is not present in table "p".
  constraint: later

SELECT * FROM c;
----
id:int4 | p:int4
1 | 1
SELECT 1

# What was pointed at may come back, and what points may go.
BEGIN; DELETE FROM p WHERE id = 1; INSERT INTO p VALUES (1); COMMIT;
----
BEGIN
DELETE 1
INSERT 0 1
COMMIT

BEGIN; DELETE FROM p WHERE id = 1; COMMIT;
----
BEGIN
DELETE 1
ERROR 23503: update or delete on table "p" violates foreign key constraint "later" on table "c"
  detail: Key (id)=(1) is still referenced from table "c".
  constraint: later

BEGIN; UPDATE p SET id = 7 WHERE id = 1; UPDATE c SET p = 7 WHERE id = 1; COMMIT;
----
BEGIN
UPDATE 1
UPDATE 1
COMMIT

BEGIN; INSERT INTO c VALUES (2, 2); DELETE FROM c WHERE id = 2; COMMIT;
----
BEGIN
INSERT 0 1
DELETE 1
COMMIT

BEGIN; INSERT INTO c VALUES (2, 2); UPDATE c SET p = 7 WHERE id = 2; COMMIT;
----
BEGIN
INSERT 0 1
UPDATE 1
COMMIT

BEGIN; INSERT INTO c VALUES (3, 3); UPDATE c SET p = 4 WHERE id = 3; INSERT INTO p VALUES (3); COMMIT;
----
BEGIN
INSERT 0 1
UPDATE 1
INSERT 0 1
ERROR 23503: insert or update on table "c" violates foreign key constraint "later"
  detail: Key (p)=(4) is not present in table "p".
  constraint: later

# Savepoints: the row that mended it is taken back; the row that broke it is.
BEGIN; INSERT INTO c VALUES (3, 3); SAVEPOINT a; INSERT INTO p VALUES (3); ROLLBACK TO a; COMMIT;
----
BEGIN
INSERT 0 1
SAVEPOINT
INSERT 0 1
ROLLBACK
ERROR 23503: insert or update on table "c" violates foreign key constraint "later"
  detail: Key (p)=(3) is not present in table "p".
  constraint: later

BEGIN; SAVEPOINT a; INSERT INTO c VALUES (3, 3); ROLLBACK TO a; COMMIT;
----
BEGIN
SAVEPOINT
INSERT 0 1
ROLLBACK
COMMIT

BEGIN; INSERT INTO p VALUES (3); SAVEPOINT a; INSERT INTO c VALUES (3, 3); DELETE FROM p WHERE id = 3; ROLLBACK TO a; INSERT INTO c VALUES (4, 3); COMMIT;
----
BEGIN
INSERT 0 1
SAVEPOINT
INSERT 0 1
DELETE 1
ROLLBACK
INSERT 0 1
COMMIT

# SET CONSTRAINTS IMMEDIATE looks at once, and the savepoint brings the old way back.
BEGIN; INSERT INTO c VALUES (5, 5); SET CONSTRAINTS later IMMEDIATE;
----
BEGIN
INSERT 0 1
ERROR 23503: insert or update on table "c" violates foreign key constraint "later"
  detail: Key (p)=(5) is not present in table "p".
  constraint: later
(failed)

ROLLBACK; BEGIN; SAVEPOINT a; SET CONSTRAINTS ALL IMMEDIATE; INSERT INTO c VALUES (5, 5);
----
ROLLBACK
BEGIN
SAVEPOINT
SET CONSTRAINTS
ERROR 23503: insert or update on table "c" violates foreign key constraint "later"
  detail: Key (p)=(5) is not present in table "p".
  constraint: later
(failed)

ROLLBACK TO a; INSERT INTO c VALUES (5, 5); INSERT INTO p VALUES (5); COMMIT;
----
ROLLBACK
INSERT 0 1
INSERT 0 1
COMMIT

BEGIN; INSERT INTO d VALUES (6, 6);
----
BEGIN
ERROR 23503: insert or update on table "d" violates foreign key constraint "now"
  detail: Key (p)=(6) is not present in table "p".
  constraint: now
(failed)

ROLLBACK; BEGIN; SET CONSTRAINTS public.now, later DEFERRED; INSERT INTO d VALUES (6, 6); INSERT INTO p VALUES (6); COMMIT;
----
ROLLBACK
BEGIN
SET CONSTRAINTS
INSERT 0 1
INSERT 0 1
COMMIT

# It ends with its transaction.
INSERT INTO d VALUES (8, 8);
----
ERROR 23503: insert or update on table "d" violates foreign key constraint "now"
  detail: Key (p)=(8) is not present in table "p".
  constraint: now

# A key that is not deferrable never waits, also where another waits for the same row.
BEGIN; SET CONSTRAINTS ALL DEFERRED; INSERT INTO d VALUES (8, 8); INSERT INTO e VALUES (8, 8);
----
BEGIN
SET CONSTRAINTS
INSERT 0 1
ERROR 23503: insert or update on table "e" violates foreign key constraint "always"
  detail: Key (p)=(8) is not present in table "p".
  constraint: always
(failed)

ROLLBACK; BEGIN; SET CONSTRAINTS always DEFERRED;
----
ROLLBACK
BEGIN
ERROR 42809: constraint "always" is not deferrable
(failed)

ROLLBACK; BEGIN; SET CONSTRAINTS nothing DEFERRED;
----
ROLLBACK
BEGIN
ERROR 42704: constraint "nothing" does not exist
(failed)

ROLLBACK; SET CONSTRAINTS ALL DEFERRED;
----
ROLLBACK
WARNING: SET CONSTRAINTS can only be used in transaction blocks
SET CONSTRAINTS

# RELEASE of cockroach_restart commits, and so checks.
BEGIN; SAVEPOINT cockroach_restart; INSERT INTO c VALUES (9, 9); RELEASE cockroach_restart;
----
BEGIN
SAVEPOINT
INSERT 0 1
ERROR 23503: insert or update on table "c" violates foreign key constraint "later"
  detail: Key (p)=(9) is not present in table "p".
  constraint: later
(failed)

ROLLBACK; BEGIN ISOLATION LEVEL READ COMMITTED; INSERT INTO c VALUES (9, 9); INSERT INTO p VALUES (9); COMMIT;
----
ROLLBACK
BEGIN
INSERT 0 1
INSERT 0 1
COMMIT

# A change of the schema waits for what is held.
BEGIN; INSERT INTO c VALUES (10, 10); ALTER TABLE c ADD COLUMN x int;
----
BEGIN
INSERT 0 1
ERROR 55006: cannot change the schema because the transaction has pending foreign key checks
  hint: Write the referenced rows and release the savepoints first, or commit.
(failed)

ROLLBACK; BEGIN; INSERT INTO c VALUES (10, 10); INSERT INTO p VALUES (10); ALTER TABLE c ADD COLUMN x int; COMMIT;
----
ROLLBACK
BEGIN
INSERT 0 1
INSERT 0 1
ALTER TABLE
COMMIT

SELECT conname, condeferrable, condeferred, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f' ORDER BY 1;
----
conname:name | condeferrable:bool | condeferred:bool | pg_get_constraintdef:text
always | f | f | FOREIGN KEY (p) REFERENCES p(id)
later | t | t | FOREIGN KEY (p) REFERENCES p(id) DEFERRABLE INITIALLY DEFERRED
now | t | f | FOREIGN KEY (p) REFERENCES p(id) DEFERRABLE
SELECT 3

SELECT constraint_name, is_deferrable, initially_deferred FROM information_schema.table_constraints WHERE constraint_type = 'FOREIGN KEY' ORDER BY 1;
----
constraint_name:name | is_deferrable:varchar | initially_deferred:varchar
always | NO | NO
later | YES | YES
now | YES | NO
SELECT 3

CREATE TABLE x (id int UNIQUE DEFERRABLE);
----
ERROR 0A000: a deferrable constraint that is not a foreign key is not supported
  hint: Leave DEFERRABLE out: the constraint is checked by each statement.

CREATE TABLE x (id int REFERENCES p NOT DEFERRABLE INITIALLY DEFERRED);
----
ERROR 42601: constraint declared INITIALLY DEFERRED must be DEFERRABLE

CREATE TABLE x (id int REFERENCES p DEFERRABLE NOT DEFERRABLE);
----
ERROR 42601: syntax error at or near "NOT"
  position: 48
