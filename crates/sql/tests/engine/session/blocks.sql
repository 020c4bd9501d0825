-- Transaction blocks: what may stand in one, and what outlives a savepoint.

CREATE TABLE t (id int PRIMARY KEY);
INSERT INTO t SELECT generate_series(1, 9);
--- differs: no number beyond 65535 is a parameter's
PREPARE p AS SELECT $99999999999::int;
-- ERROR 42P02: there is no parameter $99999999999
--- differs: no number beyond 65535 is a parameter's
PREPARE p AS INSERT INTO t VALUES ($99999999);
-- ERROR 42P02: there is no parameter $99999999
--- differs: no number beyond 65535 is a parameter's
PREPARE p AS WITH a AS (DELETE FROM t WHERE id = $77777777 RETURNING id) SELECT * FROM a;
-- ERROR 42P02: there is no parameter $77777777
BEGIN;
BEGIN READ ONLY;
INSERT INTO t VALUES (10);
-- ERROR 25006: cannot execute INSERT in a read-only transaction
ROLLBACK;
BEGIN;
SELECT count(*) FROM t;
-- 9
BEGIN READ ONLY;
SHOW transaction_read_only;
-- on
INSERT INTO t VALUES (10);
-- ERROR 25006: cannot execute INSERT in a read-only transaction
ROLLBACK;
BEGIN;
SELECT count(*) FROM t;
-- 9
BEGIN ISOLATION LEVEL REPEATABLE READ;
-- ERROR 25001: SET TRANSACTION ISOLATION LEVEL must be called before any query
ROLLBACK;
BEGIN;
SELECT count(*) FROM t;
-- 9
SET TRANSACTION READ ONLY;
INSERT INTO t VALUES (10);
-- ERROR 25006: cannot execute INSERT in a read-only transaction
ROLLBACK;
BEGIN;
BEGIN;
INSERT INTO t VALUES (10);
ROLLBACK;
COMMIT AND CHAIN;
-- ERROR 25P01: COMMIT AND CHAIN can only be used in transaction blocks
ROLLBACK AND CHAIN;
-- ERROR 25P01: ROLLBACK AND CHAIN can only be used in transaction blocks
BEGIN;
CREATE DATABASE zz;
-- ERROR 25001: CREATE DATABASE cannot run inside a transaction block
ROLLBACK;
BEGIN;
DROP DATABASE zz;
-- ERROR 25001: DROP DATABASE cannot run inside a transaction block
ROLLBACK;
BEGIN;
CREATE INDEX CONCURRENTLY t_id ON t (id);
-- ERROR 25001: CREATE INDEX CONCURRENTLY cannot run inside a transaction block
ROLLBACK;
BEGIN;
VACUUM t;
-- ERROR 25001: VACUUM cannot run inside a transaction block
ROLLBACK;
BEGIN;
DECLARE before CURSOR FOR SELECT id FROM t ORDER BY id;
FETCH 1 FROM before;
-- 1
SAVEPOINT s;
DECLARE behind CURSOR FOR SELECT id FROM t ORDER BY id;
FETCH 1 FROM behind;
-- 1
FETCH 1 FROM before;
-- 2
ROLLBACK TO s;
FETCH 1 FROM before;
-- 3
SAVEPOINT again;
FETCH 1 FROM behind;
-- ERROR 34000: cursor "behind" does not exist
ROLLBACK TO again;
FETCH 1 FROM before;
-- 4
RELEASE again;
SAVEPOINT u;
DECLARE kept CURSOR FOR SELECT id FROM t ORDER BY id DESC;
RELEASE u;
SAVEPOINT w;
SELECT 1 / 0;
-- ERROR 22012: division by zero
ROLLBACK TO w;
FETCH 2 FROM kept;
-- 9
-- 8
FETCH 1 FROM before;
-- 5
ROLLBACK TO s;
FETCH 1 FROM kept;
-- ERROR 34000: cursor "kept" does not exist
ROLLBACK TO s;
FETCH 1 FROM before;
-- 6
COMMIT;
BEGIN;
DECLARE held CURSOR WITH HOLD FOR SELECT id FROM t ORDER BY id;
COMMIT;
BEGIN;
SAVEPOINT s;
ROLLBACK TO s;
FETCH 2 FROM held;
-- 1
-- 2
COMMIT;
CLOSE held;
DROP TABLE t;
