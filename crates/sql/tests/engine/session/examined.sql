-- Differences that an independent examiner found beside PostgreSQL: what is dropped together, and what pretended.

SET client_min_messages = warning;
CREATE TABLE k (a int PRIMARY KEY, b int CONSTRAINT positive CHECK (b > 0));

--- Several at once: what goes with the others is no hindrance.
CREATE VIEW c1 AS SELECT 1 AS x;
CREATE VIEW c2 AS SELECT * FROM c1;
CREATE VIEW c3 AS SELECT * FROM c2;
DROP VIEW c1, c2;
-- ERROR 2BP01: cannot drop desired object(s) because other objects depend on them
DROP VIEW c1, c2, nosuch;
-- ERROR 42P01: view "nosuch" does not exist
SELECT count(*) FROM c3;
-- 1
DROP VIEW c1, c2 CASCADE;
SELECT count(*) FROM c3;
-- ERROR 42P01: relation "c3" does not exist
CREATE VIEW c1 AS SELECT 1 AS x;
CREATE VIEW c2 AS SELECT * FROM c1;
DROP VIEW c1, c2;
SELECT * FROM c1;
-- ERROR 42P01: relation "c1" does not exist
CREATE VIEW c1 AS SELECT 1 AS x;
CREATE VIEW c2 AS SELECT * FROM c1;
DROP VIEW c2, c1;
CREATE TABLE p (a int PRIMARY KEY);
CREATE TABLE ch (a int PRIMARY KEY REFERENCES p);
CREATE TABLE g (a int PRIMARY KEY REFERENCES ch);
DROP TABLE p, ch;
-- ERROR 2BP01: cannot drop desired object(s) because other objects depend on them
DROP TABLE p, ch, g;
SELECT * FROM g;
-- ERROR 42P01: relation "g" does not exist
CREATE TABLE p (a int PRIMARY KEY);
CREATE SCHEMA other;
CREATE TABLE other.ch (a int PRIMARY KEY REFERENCES p);
CREATE TABLE ch (a int PRIMARY KEY);
DROP TABLE p, ch;
-- ERROR 2BP01: cannot drop desired object(s) because other objects depend on them
SELECT * FROM p;
SELECT * FROM ch;

--- What does not exist.
ALTER TABLE k CLUSTER ON nosuch;
-- ERROR 42704: index "nosuch" for table "k" does not exist
ALTER TABLE k CLUSTER ON k_pkey;
ALTER TABLE k REPLICA IDENTITY USING INDEX nosuch;
-- ERROR 42704: index "nosuch" for table "k" does not exist
ALTER TABLE k SET TABLESPACE nosuch;
-- ERROR 42704: tablespace "nosuch" does not exist
ALTER TABLE k SET TABLESPACE pg_default;
CREATE TABLE k3 (a int) TABLESPACE nosuch;
-- ERROR 42704: tablespace "nosuch" does not exist
CREATE TABLE k3 (a int) TABLESPACE pg_global;
-- ERROR 22023: only shared relations can be placed in pg_global tablespace
CREATE TABLE k3 (a int, PRIMARY KEY (a) USING INDEX TABLESPACE nosuch);
-- ERROR 42704: tablespace "nosuch" does not exist
CREATE TABLE k3 TABLESPACE nosuch AS SELECT 1;
-- ERROR 42704: tablespace "nosuch" does not exist
CREATE INDEX ON k (b) TABLESPACE nosuch;
-- ERROR 42704: tablespace "nosuch" does not exist
ALTER INDEX k_pkey SET TABLESPACE nosuch;
-- ERROR 42704: tablespace "nosuch" does not exist
CREATE DATABASE z TABLESPACE nosuch;
-- ERROR 42704: tablespace "nosuch" does not exist
CREATE DATABASE z TEMPLATE nosuch;
-- ERROR 3D000: template database "nosuch" does not exist
SELECT datname FROM pg_database WHERE datname = 'z';
SET CONSTRAINTS nosuch DEFERRED;
-- ERROR 42704: constraint "nosuch" does not exist
BEGIN;
SET CONSTRAINTS nosuch DEFERRED;
-- ERROR 42704: constraint "nosuch" does not exist
ROLLBACK;
COMMENT ON CONSTRAINT nosuch ON k IS 'x';
-- ERROR 42704: constraint "nosuch" for table "k" does not exist
COMMENT ON CONSTRAINT positive ON k IS 'x';
COMMENT ON CONSTRAINT k_pkey ON k IS NULL;
COMMENT ON CONSTRAINT nosuch ON nosuch IS 'x';
-- ERROR 42P01: relation "nosuch" does not exist
COMMENT ON VIEW nosuch IS 'x';
-- ERROR 42P01: relation "nosuch" does not exist
COMMENT ON VIEW k IS 'x';
-- ERROR 42809: "k" is not a view
COMMENT ON INDEX k IS 'x';
-- ERROR 42809: "k" is not an index
COMMENT ON INDEX k_pkey IS 'x';
COMMENT ON SEQUENCE k IS 'x';
-- ERROR 42809: "k" is not a sequence
COMMENT ON TABLE k_pkey IS 'x';
-- ERROR 42809: "k_pkey" is not a table
COMMENT ON FUNCTION nosuch(int) IS 'x';
-- ERROR 42883: function nosuch(integer) does not exist
COMMENT ON FUNCTION nosuch(int, text) IS 'x';
-- ERROR 42883: function nosuch(integer, text) does not exist
COMMENT ON FUNCTION nosuch IS 'x';
-- ERROR 42883: could not find a function named "nosuch"
COMMENT ON PROCEDURE nosuch(int) IS 'x';
-- ERROR 42883: procedure nosuch(integer) does not exist
COMMENT ON AGGREGATE nosuch(int) IS 'x';
-- ERROR 42883: aggregate nosuch(integer) does not exist
COMMENT ON FUNCTION abs(int) IS 'x';
COMMENT ON TYPE nosuch IS 'x';
-- ERROR 42704: type "nosuch" does not exist
COMMENT ON TYPE int4 IS 'x';
COMMENT ON DOMAIN nosuch IS 'x';
-- ERROR 42704: type "nosuch" does not exist
COMMENT ON TRIGGER x ON k IS 'x';
-- ERROR 42704: trigger "x" for table "k" does not exist
COMMENT ON RULE x ON k IS 'x';
-- ERROR 42704: rule "x" for relation "k" does not exist
COMMENT ON POLICY x ON k IS 'x';
-- ERROR 42704: policy "x" for table "k" does not exist
COMMENT ON MATERIALIZED VIEW nosuch IS 'x';
-- ERROR 42P01: relation "nosuch" does not exist
COMMENT ON LANGUAGE nosuch IS 'x';
-- ERROR 42704: language "nosuch" does not exist
COMMENT ON TABLESPACE nosuch IS 'x';
-- ERROR 42704: tablespace "nosuch" does not exist
COMMENT ON PUBLICATION nosuch IS 'x';
-- ERROR 42704: publication "nosuch" does not exist
COMMENT ON SERVER nosuch IS 'x';
-- ERROR 42704: server "nosuch" does not exist
COMMENT ON EVENT TRIGGER nosuch IS 'x';
-- ERROR 42704: event trigger "nosuch" does not exist
COMMENT ON STATISTICS nosuch IS 'x';
-- ERROR 42704: statistics object "nosuch" does not exist
COMMENT ON LARGE OBJECT 1 IS 'x';
-- ERROR 42704: large object 1 does not exist
COMMENT ON NONSENSE x IS 'x';
-- ERROR 42601: syntax error at or near "NONSENSE"

--- Settings that nothing here reads are checked all the same.
SET work_mem = '1 apple';
-- ERROR 22023: invalid value for parameter "work_mem": "1 apple"
SET work_mem = -5;
-- ERROR 22023: -5 kB is outside the valid range for parameter "work_mem" (64 .. 2147483647)
SET work_mem = '2000';
SHOW work_mem;
-- 2000kB
SET work_mem = '1.5GB';
SHOW work_mem;
-- 1536MB
SET work_mem = '10000000000000';
-- ERROR 22023: invalid value for parameter "work_mem": "10000000000000"
SET work_mem = '0x40';
SHOW work_mem;
-- 64kB
RESET work_mem;
SHOW work_mem;
-- 4MB
SET random_page_cost = 'x';
-- ERROR 22023: invalid value for parameter "random_page_cost": "x"
SET random_page_cost = -1;
-- ERROR 22023: -1 is outside the valid range for parameter "random_page_cost" (0 .. 1.79769e+308)
SET random_page_cost = '1 ms';
-- ERROR 22023: invalid value for parameter "random_page_cost": "1 ms"
SET random_page_cost = 1.10;
SHOW random_page_cost;
-- 1.1
SET synchronous_commit = 'perhaps';
-- ERROR 22023: invalid value for parameter "synchronous_commit": "perhaps"
SET synchronous_commit = 'yes';
SHOW synchronous_commit;
-- on
SET synchronous_commit = 0;
SHOW synchronous_commit;
-- off
SET synchronous_commit = 'remote_write';
SHOW synchronous_commit;
-- remote_write
SET xmloption = 'x';
-- ERROR 22023: invalid value for parameter "xmloption": "x"
SET xmloption = content;
SET max_parallel_workers_per_gather = 'many';
-- ERROR 22023: invalid value for parameter "max_parallel_workers_per_gather": "many"
SET max_parallel_workers_per_gather = 3.7;
SHOW max_parallel_workers_per_gather;
-- 4
SET vacuum_cost_delay = -4;
-- ERROR 22023: -4 ms is outside the valid range for parameter "vacuum_cost_delay" (0 .. 100)
SET vacuum_cost_delay = '1500us';
SHOW vacuum_cost_delay;
-- 1500us
SET vacuum_cost_delay = '1 GB';
-- ERROR 22023: invalid value for parameter "vacuum_cost_delay": "1 GB"
SET lc_messages = 'nosuch';
-- ERROR 22023: invalid value for parameter "lc_messages": "nosuch"
SET lc_messages = 'C';
SET default_tablespace = 'nosuch';
-- ERROR 22023: invalid value for parameter "default_tablespace": "nosuch"
SET default_tablespace = 'pg_default';
SET default_tablespace = '';
SET temp_tablespaces = 'nosuch';
-- ERROR 42704: tablespace "nosuch" does not exist
SET default_table_access_method = 'nosuch';
-- ERROR 22023: invalid value for parameter "default_table_access_method": "nosuch"
SET default_table_access_method = heap;
SET default_text_search_config = 'nosuch';
-- ERROR 22023: invalid value for parameter "default_text_search_config": "nosuch"
SET default_text_search_config = 'english';
SHOW default_text_search_config;
-- pg_catalog.english
SET session_replication_role = 'x';
-- ERROR 22023: invalid value for parameter "session_replication_role": "x"
SET effective_cache_size = 100;
SHOW effective_cache_size;
-- 800kB
SET password_encryption = 'x';
-- ERROR 22023: invalid value for parameter "password_encryption": "x"
SET geqo_effort = 11;
-- ERROR 22023: 11 is outside the valid range for parameter "geqo_effort" (1 .. 10)
SET jit_above_cost = -2;
-- ERROR 22023: -2 is outside the valid range for parameter "jit_above_cost" (-1 .. 1.79769e+308)
SET wal_skip_threshold = '1MB';
SHOW wal_skip_threshold;
-- 1MB
SET temp_buffers = '8MB';
SHOW temp_buffers;
-- 8MB
SELECT set_config('work_mem', '1 apple', false);
-- ERROR 22023: invalid value for parameter "work_mem": "1 apple"

--- DEFERRABLE is read back.
BEGIN READ ONLY DEFERRABLE;
SHOW transaction_deferrable;
-- on
COMMIT;
SHOW transaction_deferrable;
-- off
SET default_transaction_deferrable = on;
SHOW default_transaction_deferrable;
-- on
BEGIN;
SHOW transaction_deferrable;
-- on
SET TRANSACTION NOT DEFERRABLE;
SHOW transaction_deferrable;
-- off
ROLLBACK;
BEGIN NOT DEFERRABLE;
SET transaction_deferrable = on;
SHOW transaction_deferrable;
-- on
ROLLBACK;
SET SESSION CHARACTERISTICS AS TRANSACTION NOT DEFERRABLE;
SHOW default_transaction_deferrable;
-- off
BEGIN;
SELECT 1;
-- 1
SET TRANSACTION DEFERRABLE;
-- ERROR 25001: SET TRANSACTION [NOT] DEFERRABLE must be called before any query
ROLLBACK;

--- The language that every database begins with.
CREATE EXTENSION IF NOT EXISTS plpgsql;
CREATE EXTENSION plpgsql;
-- ERROR 42710: extension "plpgsql" already exists
COMMENT ON EXTENSION plpgsql IS 'PL/pgSQL procedural language';
DROP EXTENSION nosuch;
-- ERROR 42704: extension "nosuch" does not exist

--- The names of columns.
CREATE VIEW named AS SELECT N'x', N'a' || 'b' AS b, pg_typeof(N'x');
SELECT attname FROM pg_attribute WHERE attrelid = 'named'::regclass AND attnum > 0 ORDER BY attnum;
-- bpchar
-- b
-- pg_typeof
