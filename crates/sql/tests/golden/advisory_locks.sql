# Advisory locks, and what the others see of a session.

SELECT pg_advisory_lock(1), pg_advisory_lock(1), pg_advisory_lock(-1), pg_advisory_lock(-1, 2), pg_try_advisory_lock(1, 1);
----
pg_advisory_lock:void | pg_advisory_lock:void | pg_advisory_lock:void | pg_advisory_lock:void | pg_try_advisory_lock:bool
 |  |  |  | t
SELECT 1

[b] SELECT pg_try_advisory_lock(1), pg_try_advisory_lock(2), pg_try_advisory_lock_shared(1), pg_try_advisory_lock(-1, 2);
----
pg_try_advisory_lock:bool | pg_try_advisory_lock:bool | pg_try_advisory_lock_shared:bool | pg_try_advisory_lock:bool
f | t | f | f
SELECT 1

[b] SELECT classid, objid, objsubid, pid, mode, granted FROM pg_locks ORDER BY 1, 2, 3;
----
classid:oid | objid:oid | objsubid:int2 | pid:int4 | mode:text | granted:bool
0 | 1 | 1 | 100 | ExclusiveLock | t
0 | 2 | 1 | 101 | ExclusiveLock | t
1 | 1 | 2 | 100 | ExclusiveLock | t
4294967295 | 2 | 2 | 100 | ExclusiveLock | t
4294967295 | 4294967295 | 1 | 100 | ExclusiveLock | t
SELECT 5

SELECT pg_advisory_unlock(1);
----
pg_advisory_unlock:bool
t
SELECT 1

[b] SELECT pg_try_advisory_lock(1);
----
pg_try_advisory_lock:bool
f
SELECT 1

SELECT pg_advisory_unlock(1);
----
pg_advisory_unlock:bool
t
SELECT 1

[b] SELECT pg_try_advisory_lock(1);
----
pg_try_advisory_lock:bool
t
SELECT 1

SELECT pg_advisory_unlock(1);
----
pg_advisory_unlock:bool
f
WARNING: you don't own a lock of type ExclusiveLock
SELECT 1

SELECT pg_advisory_unlock_shared(1);
----
pg_advisory_unlock_shared:bool
f
WARNING: you don't own a lock of type ShareLock
SELECT 1

SELECT pg_advisory_unlock_all();
----
pg_advisory_unlock_all:void
SELECT 1

SELECT pid, classid, objid FROM pg_locks ORDER BY 1, 2, 3;
----
pid:int4 | classid:oid | objid:oid
101 | 0 | 1
101 | 0 | 2
SELECT 2

# Shared ones are held together.
[b] SELECT pg_advisory_unlock_all(), pg_advisory_lock_shared(7);
----
pg_advisory_unlock_all:void | pg_advisory_lock_shared:void
 | 
SELECT 1

SELECT pg_try_advisory_lock(7), pg_try_advisory_lock_shared(7), pg_advisory_unlock_shared(7);
----
pg_try_advisory_lock:bool | pg_try_advisory_lock_shared:bool | pg_advisory_unlock_shared:bool
f | t | t
SELECT 1

# A rollback gives up what the transaction took, not what the session took.
BEGIN; SELECT pg_advisory_xact_lock(10), pg_advisory_lock(11);
----
BEGIN
pg_advisory_xact_lock:void | pg_advisory_lock:void
 | 
SELECT 1
(in block)

SAVEPOINT s; SELECT pg_advisory_xact_lock(12); ROLLBACK TO s; SELECT objid FROM pg_locks WHERE pid = 100 ORDER BY 1;
----
SAVEPOINT
pg_advisory_xact_lock:void
SELECT 1
ROLLBACK
objid:oid
10
11
SELECT 2
(in block)

SELECT pg_advisory_unlock(10);
----
pg_advisory_unlock:bool
f
WARNING: you don't own a lock of type ExclusiveLock
SELECT 1
(in block)

ROLLBACK;
----
ROLLBACK

SELECT objid FROM pg_locks WHERE pid = 100 ORDER BY 1;
----
objid:oid
11
SELECT 1

SELECT pg_advisory_xact_lock_shared(13);
----
pg_advisory_xact_lock_shared:void
SELECT 1

BEGIN; SELECT pg_try_advisory_xact_lock(14), pg_try_advisory_xact_lock_shared(15), 1 / 0;
----
BEGIN
ERROR 22012: division by zero
(failed)

SELECT 1;
----
ERROR 25P02: current transaction is aborted, commands ignored until end of transaction block
(failed)

ROLLBACK; SELECT objid FROM pg_locks WHERE pid = 100 ORDER BY 1;
----
ROLLBACK
objid:oid
11
SELECT 1

DISCARD ALL;
----
DISCARD ALL

SELECT pg_advisory_lock(NULL);
----
pg_advisory_lock:void
NULL
SELECT 1

# lock_timeout ends the wait.
[b] SELECT pg_advisory_lock(20);
----
pg_advisory_lock:void
SELECT 1

SET lock_timeout = '1ms'; SELECT pg_advisory_lock(20);
----
SET
pg_advisory_lock:void
ERROR 55P03: canceling statement due to lock timeout
  detail: Process 100 waited for ExclusiveLock on advisory lock [5,0,20,1].

SET lock_timeout = 0; SET statement_timeout = '1ms'; SELECT pg_advisory_lock_shared(20);
----
SET
SET
pg_advisory_lock_shared:void
ERROR 57014: canceling statement due to statement timeout

SET statement_timeout = 0;
----
SET

# Sessions.
[b] SET application_name = 'other';
----
(application_name = other)
SET

[b] BEGIN; SELECT 1 AS one;
----
BEGIN
one:int4
1
SELECT 1
(in block)

SELECT pid, datname, usename, application_name, state, query, wait_event_type, wait_event, xact_start IS NULL AS x, query_start <= state_change AS q, backend_start <= query_start AS b, backend_type, client_addr, client_port FROM pg_stat_activity ORDER BY pid;
----
pid:int4 | datname:name | usename:name | application_name:text | state:text | query:text | wait_event_type:text | wait_event:text | x:bool | q:bool | b:bool | backend_type:text | client_addr:text | client_port:int4
100 | postgres | root |  | active | SELECT pid, datname, usename, application_name, state, query, wait_event_type, wait_event, xact_start IS NULL AS x, query_start <= state_change AS q, backend_start <= query_start AS b, backend_type, client_addr, client_port FROM pg_stat_activity ORDER BY pid | NULL | NULL | f | t | t | client backend | NULL | NULL
101 | postgres | root | other | idle in transaction | SELECT 1 AS one | Client | ClientRead | f | t | t | client backend | NULL | NULL
SELECT 2

[b] SELECT nosuch;
----
ERROR 42703: column "nosuch" does not exist
  position: 8
(failed)

SELECT pid, state FROM pg_stat_activity ORDER BY pid;
----
pid:int4 | state:text
100 | active
101 | idle in transaction (aborted)
SELECT 2

[b] ROLLBACK;
----
ROLLBACK

SELECT pid, state, xact_start IS NULL AS x FROM pg_stat_activity ORDER BY pid;
----
pid:int4 | state:text | x:bool
100 | active | f
101 | idle | t
SELECT 2

SELECT pg_cancel_backend(101), pg_cancel_backend(999), pg_terminate_backend(998), pg_terminate_backend(998, 5);
----
pg_cancel_backend:bool | pg_cancel_backend:bool | pg_terminate_backend:bool | pg_terminate_backend:bool
t | f | f | f
WARNING: PID 999 is not a PostgreSQL backend process
WARNING: PID 998 is not a PostgreSQL backend process
WARNING: PID 998 is not a PostgreSQL backend process
SELECT 1

SELECT pg_terminate_backend(998, -1);
----
pg_terminate_backend:bool
ERROR 22003: "timeout" must not be negative

SELECT pg_postmaster_start_time() <= now() AS started, pg_postmaster_start_time() = pg_conf_load_time() AS loaded;
----
started:bool | loaded:bool
t | t
SELECT 1

SELECT count(*) FROM pg_stat_activity WHERE pid = pg_backend_pid();
----
count:int8
1
SELECT 1

SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(60);
----
pg_cancel_backend:bool | pg_sleep:void
ERROR 57014: canceling statement due to user request

# Statistics: what is not counted is empty or 0, and every view is there.
SELECT datname, numbackends, xact_commit FROM pg_stat_database;
----
datname:name | numbackends:int4 | xact_commit:int8
postgres | 2 | 0
SELECT 1

SELECT (SELECT count(*) FROM pg_statio_all_tables) + (SELECT count(*) FROM pg_stat_bgwriter) + (SELECT count(*) FROM pg_stat_replication) + (SELECT count(*) FROM pg_stat_ssl) + (SELECT count(*) FROM pg_stat_progress_vacuum) AS none;
----
none:int8
0
SELECT 1

CREATE TABLE sized (id int PRIMARY KEY); SELECT pg_relation_size('sized'), pg_total_relation_size('sized'), pg_table_size('sized'), pg_indexes_size('sized'), pg_database_size('postgres'), pg_size_pretty(10240::bigint);
----
CREATE TABLE
pg_relation_size:int8 | pg_total_relation_size:int8 | pg_table_size:int8 | pg_indexes_size:int8 | pg_database_size:int8 | pg_size_pretty:text
0 | 0 | 0 | 0 | 0 | 10 kB
SELECT 1

SELECT relname, n_live_tup, seq_scan, last_vacuum FROM pg_stat_user_tables;
----
relname:name | n_live_tup:int8 | seq_scan:int8 | last_vacuum:timestamptz
sized | 0 | 0 | NULL
SELECT 1
