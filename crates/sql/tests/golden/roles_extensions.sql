# Extensions: those whose functions exist here can be created; PostgreSQL's own answers for the rest.

CREATE EXTENSION nosuch;
----
ERROR 0A000: extension "nosuch" is not available
  hint: Extensions are part of the server; there are pgcrypto and uuid-ossp.

CREATE EXTENSION IF NOT EXISTS postgis;
----
ERROR 0A000: extension "postgis" is not available
  hint: Extensions are part of the server; there are pgcrypto and uuid-ossp.

CREATE EXTENSION pgcrypto WITH SCHEMA public VERSION '1.3' CASCADE;
----
CREATE EXTENSION

CREATE EXTENSION pgcrypto;
----
ERROR 42710: extension "pgcrypto" already exists

CREATE EXTENSION IF NOT EXISTS "pgcrypto";
----
NOTICE: extension "pgcrypto" already exists, skipping
CREATE EXTENSION

CREATE EXTENSION "uuid-ossp" VERSION '9';
----
ERROR 22023: extension "uuid-ossp" has no installation script nor update path for version "9"
  hint: Its version is 1.1.

CREATE EXTENSION "uuid-ossp" SCHEMA nosuch;
----
ERROR 3F000: schema "nosuch" does not exist

SELECT name, default_version, installed_version FROM pg_available_extensions ORDER BY 1;
----
name:name | default_version:text | installed_version:text
pgcrypto | 1.3 | 1.3
uuid-ossp | 1.1 | NULL
SELECT 2

SELECT extname, extversion, extnamespace::regnamespace FROM pg_extension;
----
extname:name | extversion:text | extnamespace:regnamespace
plpgsql | 1.0 | pg_catalog
timeball | 1.0 | timeball_internal
pgcrypto | 1.3 | public
SELECT 3

ALTER EXTENSION pgcrypto UPDATE;
----
NOTICE: version "1.3" of extension "pgcrypto" is already installed
ALTER EXTENSION

ALTER EXTENSION nosuch UPDATE;
----
ERROR 42704: extension "nosuch" does not exist

COMMENT ON EXTENSION pgcrypto IS 'x';
----
NOTICE: only comments on tables and their columns are kept
COMMENT

COMMENT ON EXTENSION nosuch IS 'x';
----
ERROR 42704: extension "nosuch" does not exist

DROP EXTENSION nosuch;
----
ERROR 42704: extension "nosuch" does not exist

DROP EXTENSION IF EXISTS nosuch;
----
NOTICE: extension "nosuch" does not exist, skipping
DROP EXTENSION

DROP EXTENSION pgcrypto, "uuid-ossp";
----
ERROR 42704: extension "uuid-ossp" does not exist

DROP EXTENSION pgcrypto CASCADE;
----
NOTICE: the functions of extension "pgcrypto" stay: they are part of the server
DROP EXTENSION

# What every database of PostgreSQL has.
CREATE EXTENSION IF NOT EXISTS plpgsql;
----
NOTICE: extension "plpgsql" already exists, skipping
CREATE EXTENSION

SELECT extname FROM pg_extension;
----
extname:name
plpgsql
timeball
SELECT 2

# A rollback takes an extension back.
BEGIN; CREATE EXTENSION "uuid-ossp"; ROLLBACK; SELECT count(*) FROM pg_extension;
----
BEGIN
CREATE EXTENSION
ROLLBACK
count:int8
2
SELECT 1

# Roles: there is one, and what names it is true already.
CREATE TABLE t (a int);
----
CREATE TABLE

SET ROLE nosuch;
----
ERROR 22023: role "nosuch" does not exist
  hint: There is one role, "root", which may do everything.

SET ROLE none; SHOW role; SET ROLE root; SHOW role; RESET ROLE; SHOW role;
----
SET
role:text
none
SHOW
SET
role:text
root
SHOW
RESET
role:text
none
SHOW

SET SESSION AUTHORIZATION nosuch;
----
ERROR 22023: role "nosuch" does not exist
  hint: There is one role, "root", which may do everything.

SET SESSION AUTHORIZATION DEFAULT; SET SESSION AUTHORIZATION root; SHOW session_authorization;
----
SET
SET
session_authorization:text
root
SHOW

GRANT SELECT, INSERT (a) ON TABLE t TO root, PUBLIC, CURRENT_USER WITH GRANT OPTION;
----
GRANT

GRANT ALL PRIVILEGES ON ALL TABLES IN SCHEMA public TO root;
----
GRANT

GRANT USAGE ON SCHEMA public TO nosuch;
----
ERROR 42704: role "nosuch" does not exist
  hint: There is one role, "root", which may do everything.

GRANT SELECT ON t TO nosuch;
----
ERROR 42704: role "nosuch" does not exist
  hint: There is one role, "root", which may do everything.

GRANT SELECT ON nosuch TO root;
----
ERROR 42P01: relation "nosuch" does not exist

GRANT USAGE ON SCHEMA nosuch TO root;
----
ERROR 3F000: schema "nosuch" does not exist

GRANT EXECUTE ON FUNCTION length(text) TO PUBLIC;
----
GRANT

GRANT CONNECT ON DATABASE nosuch TO root;
----
ERROR 3D000: database "nosuch" does not exist

GRANT nosuch TO root;
----
ERROR 42704: role "nosuch" does not exist
  hint: There is one role, "root", which may do everything.

REVOKE ALL ON SCHEMA public FROM PUBLIC;
----
NOTICE: privileges have no effect: every user may do everything
REVOKE

REVOKE GRANT OPTION FOR SELECT ON t FROM nosuch CASCADE;
----
ERROR 42704: role "nosuch" does not exist
  hint: There is one role, "root", which may do everything.

ALTER TABLE t OWNER TO nosuch;
----
ERROR 42704: role "nosuch" does not exist
  hint: There is one role, "root", which may do everything.

ALTER TABLE t OWNER TO root; ALTER TABLE t OWNER TO CURRENT_USER;
----
ALTER TABLE
ALTER TABLE

ALTER SEQUENCE nosuch OWNER TO root;
----
ERROR 42P01: relation "nosuch" does not exist

ALTER SCHEMA public OWNER TO nosuch;
----
ERROR 42704: role "nosuch" does not exist
  hint: There is one role, "root", which may do everything.

ALTER SCHEMA nosuch OWNER TO root;
----
ERROR 3F000: schema "nosuch" does not exist

ALTER DATABASE postgres OWNER TO root; ALTER DATABASE postgres RESET ALL;
----
ALTER DATABASE
ALTER DATABASE

ALTER DATABASE postgres SET search_path = 'x', public; ALTER DATABASE postgres SET TIME ZONE 'Asia/Tokyo'; ALTER DATABASE postgres SET "work_mem" TO '8MB';
----
ALTER DATABASE
ALTER DATABASE
ALTER DATABASE

ALTER DATABASE postgres SET nosuch = 1;
----
ERROR 42704: unrecognized configuration parameter "nosuch"

ALTER DATABASE postgres SET server_version = '9.6';
----
ERROR 55P02: parameter "server_version" cannot be changed

ALTER DATABASE postgres SET timeball.consistency = 'eventual';
----
ERROR 22023: invalid value for parameter "timeball.consistency": "eventual"
  hint: Available values: auto, strict, hybrid, token, none, stale.

ALTER DATABASE nosuch SET work_mem = '8MB';
----
ERROR 3D000: database "nosuch" does not exist

ALTER DATABASE postgres SET TABLESPACE pg_default;
----
ERROR 0A000: ALTER DATABASE .. SET is not supported
  hint: Leave it out: a database has an owner, a name and settings.

ALTER DATABASE nosuch OWNER TO root;
----
ERROR 3D000: database "nosuch" does not exist

ALTER ROLE root SET statement_timeout = '1min'; ALTER ROLE CURRENT_USER SET extra_float_digits FROM CURRENT; ALTER USER root IN DATABASE postgres SET lock_timeout = 1000;
----
ALTER ROLE
ALTER ROLE
ALTER ROLE

ALTER ROLE ALL SET timeball.uncertainty = 'static'; ALTER SYSTEM SET timeball.max_offset = '250ms';
----
ALTER ROLE
ERROR 25001: ALTER SYSTEM cannot run inside a transaction block

ALTER ROLE ALL SET timeball.uncertainty = 'static';
----
ALTER ROLE

ALTER SYSTEM SET timeball.max_offset = '250ms';
----
ALTER SYSTEM

ALTER ROLE nosuch SET statement_timeout = '1min';
----
ERROR 42704: role "nosuch" does not exist
  hint: There is one role, "root", which may do everything.

ALTER ROLE root IN DATABASE nosuch SET statement_timeout = '1min';
----
ERROR 3D000: database "nosuch" does not exist

SELECT coalesce(datname, '*') AS database, coalesce(rolname, '*') AS role, setconfig FROM pg_db_role_setting LEFT JOIN pg_database d ON d.oid = setdatabase LEFT JOIN pg_roles r ON r.oid = setrole ORDER BY setdatabase, setrole;
----
database:name | role:name | setconfig:_text
* | * | {timeball.max_offset=250ms,timeball.uncertainty=static}
* | root | {extra_float_digits=1,statement_timeout=1min}
postgres | * | {"search_path=x, public",timezone=Asia/Tokyo,work_mem=8MB}
postgres | root | {lock_timeout=1000}
SELECT 4

SHOW statement_timeout;
----
statement_timeout:text
0
SHOW

ALTER DATABASE postgres RESET work_mem; ALTER DATABASE postgres SET timezone TO DEFAULT; ALTER ROLE root RESET ALL; ALTER ROLE root IN DATABASE postgres RESET lock_timeout; ALTER ROLE ALL RESET ALL;
----
ALTER DATABASE
ALTER DATABASE
ALTER ROLE
ALTER ROLE
ALTER ROLE

SELECT setdatabase, setrole, unnest(setconfig) FROM pg_db_role_setting;
----
setdatabase:oid | setrole:oid | unnest:text
5 | 0 | search_path=x, public
SELECT 1

ALTER DATABASE postgres RESET ALL;
----
ALTER DATABASE

ALTER USER root PASSWORD 'SCRAM-SHA-256$4096:x';
----
ERROR 0A000: ALTER USER is not supported
  hint: There is one role, and nobody is asked for a password: none is kept. It has settings: SET, RESET.

ALTER DEFAULT PRIVILEGES FOR ROLE root IN SCHEMA public GRANT ALL ON TABLES TO root;
----
ALTER DEFAULT PRIVILEGES

ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON TABLES TO nosuch;
----
ERROR 42704: role "nosuch" does not exist
  hint: There is one role, "root", which may do everything.

ALTER DEFAULT PRIVILEGES REVOKE ALL ON FUNCTIONS FROM PUBLIC;
----
NOTICE: privileges have no effect: every user may do everything
ALTER DEFAULT PRIVILEGES

CREATE ROLE nosuch;
----
ERROR 0A000: CREATE ROLE is not supported
  hint: There is one role, which may do everything: users come with passwords, in a later version.

DROP ROLE nosuch;
----
ERROR 42704: role "nosuch" does not exist
  hint: There is one role, "root", which may do everything.

DROP USER IF EXISTS nosuch;
----
NOTICE: role "nosuch" does not exist, skipping
DROP ROLE

DROP ROLE root;
----
ERROR 2BP01: cannot drop role root
  detail: It is the one role that there is, and everything is its own.

DROP OWNED BY nosuch;
----
ERROR 42704: role "nosuch" does not exist
  hint: There is one role, "root", which may do everything.

REASSIGN OWNED BY nosuch TO root;
----
ERROR 42704: role "nosuch" does not exist
  hint: There is one role, "root", which may do everything.

REASSIGN OWNED BY root TO root;
----
ERROR 2BP01: cannot reassign ownership of objects owned by role root
  detail: It is the one role that there is, and everything is its own.

CREATE SCHEMA AUTHORIZATION nosuch;
----
ERROR 42704: role "nosuch" does not exist
  hint: There is one role, "root", which may do everything.

CREATE SCHEMA s AUTHORIZATION root;
----
CREATE SCHEMA

CREATE DATABASE d OWNER nosuch;
----
ERROR 42704: role "nosuch" does not exist
  hint: There is one role, "root", which may do everything.

SECURITY LABEL ON TABLE t IS 'x';
----
ERROR 22023: no security label providers have been loaded

# Upkeep is not needed, of what there is.
ANALYZE nosuch;
----
ERROR 42P01: relation "nosuch" does not exist

ANALYZE t (a); REINDEX TABLE t; VACUUM (ANALYZE) t;
----
ANALYZE
REINDEX
VACUUM

VACUUM (ANALYZE) t;
----
VACUUM

VACUUM;
----
VACUUM

CLUSTER nosuch;
----
ERROR 42P01: relation "nosuch" does not exist
