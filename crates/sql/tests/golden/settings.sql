# Settings: SET, SHOW, RESET, and what a rollback takes back.

SHOW timezone;
----
TimeZone:text
UTC
SHOW

SET TIME ZONE 'Europe/Berlin'; SHOW timezone;
----
(TimeZone = Europe/Berlin)
SET
TimeZone:text
Europe/Berlin
SHOW

SET timeball.consistency = 'strict'; SHOW timeball.consistency;
----
SET
timeball.consistency:text
strict
SHOW

SET timeball.consistency = 'fast';
----
ERROR 22023: invalid value for parameter "timeball.consistency": "fast"
  hint: Available values: auto, strict, hybrid, token, none, stale.

SET nonsense = 1;
----
ERROR 42704: unrecognized configuration parameter "nonsense"

SET myapp.user = 'x'; SHOW myapp.user;
----
SET
myapp.user:text
x
SHOW

SET statement_timeout = '5s'; SHOW statement_timeout;
----
SET
statement_timeout:text
5s
SHOW

SET statement_timeout TO DEFAULT; SHOW statement_timeout;
----
SET
statement_timeout:text
0
SHOW

# A rollback takes a SET back.
BEGIN; SET application_name = 'one'; SET LOCAL timezone = 'UTC';
----
BEGIN
(application_name = one)
SET
(TimeZone = UTC)
SET
(in block)

SHOW application_name;
----
application_name:text
one
SHOW
(in block)

ROLLBACK;
----
(application_name = )
(TimeZone = Europe/Berlin)
ROLLBACK

SHOW application_name;
----
application_name:text
SHOW

# SET LOCAL ends with the transaction, SET does not.
BEGIN; SET application_name = 'two'; SET LOCAL timezone = 'UTC'; SHOW timezone; COMMIT;
----
BEGIN
(application_name = two)
SET
(TimeZone = UTC)
SET
TimeZone:text
UTC
SHOW
(TimeZone = Europe/Berlin)
COMMIT

SHOW timezone; SHOW application_name;
----
TimeZone:text
Europe/Berlin
SHOW
application_name:text
two
SHOW

RESET ALL;
----
(application_name = )
(TimeZone = UTC)
RESET

SET server_version = '99';
----
ERROR 55P02: parameter "server_version" cannot be changed

SET client_encoding = 'LATIN1';
----
ERROR 0A000: invalid value for parameter "client_encoding": "LATIN1"
  detail: Conversion between LATIN1 and UTF8 is not supported.
  hint: Set client_encoding to UTF8: in the connection's options, or as PGCLIENTENCODING in the environment.

SET search_path TO app, "Mixed", public; SHOW search_path;
----
SET
search_path:text
app, "Mixed", public
SHOW

SHOW server_version_num;
----
server_version_num:text
150010
SHOW

SHOW TRANSACTION ISOLATION LEVEL;
----
transaction_isolation:text
serializable
SHOW

DISCARD ALL;
----
DISCARD ALL

SHOW CLOCKS;
----
ERROR 42P01: relation "timeball_internal.clocks" does not exist
  position: 15
