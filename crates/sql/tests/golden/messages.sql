# What is told beside results: client_min_messages, and what goes along with what is dropped.

CREATE SCHEMA m; CREATE TABLE m.t (a int); CREATE VIEW m.v AS SELECT * FROM m.t; CREATE SEQUENCE m.s;
----
CREATE SCHEMA
CREATE TABLE
CREATE VIEW
CREATE SEQUENCE

DROP SCHEMA m;
----
ERROR 2BP01: cannot drop schema m because other objects depend on it
  detail: table m.t depends on schema m
  hint: Use DROP ... CASCADE to drop the dependent objects too.

DROP TABLE m.t CASCADE;
----
NOTICE: drop cascades to view v
DROP TABLE

CREATE TABLE m.t (a int);
----
CREATE TABLE

DROP SCHEMA m CASCADE;
----
NOTICE: drop cascades to 2 other objects
DROP SCHEMA

DROP TABLE IF EXISTS nosuch;
----
NOTICE: table "nosuch" does not exist, skipping
DROP TABLE

SET client_min_messages = warning; DROP TABLE IF EXISTS nosuch; CREATE SCHEMA m; CREATE TABLE m.t (a int);
----
SET
DROP TABLE
CREATE SCHEMA
CREATE TABLE

DROP SCHEMA m CASCADE; COMMIT;
----
DROP SCHEMA
WARNING: there is no transaction in progress
COMMIT

SET client_min_messages = error; COMMIT; DROP TABLE IF EXISTS nosuch;
----
SET
COMMIT
DROP TABLE

SET client_min_messages TO DEFAULT; COMMIT;
----
SET
WARNING: there is no transaction in progress
COMMIT

SET client_min_messages = nosuch;
----
ERROR 22023: invalid value for parameter "client_min_messages": "nosuch"
  hint: Available values: debug5, debug4, debug3, debug2, debug1, debug, log, notice, info, warning, error, fatal, panic.

SHOW datestyle; SHOW intervalstyle; SHOW timezone;
----
DateStyle:text
ISO, MDY
SHOW
IntervalStyle:text
postgres
SHOW
TimeZone:text
UTC
SHOW
