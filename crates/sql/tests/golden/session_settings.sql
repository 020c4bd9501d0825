# Settings that clients send, and functions that set them.

SET client_encoding = '''utf-8'''; SHOW client_encoding;
----
SET
client_encoding:text
UTF8
SHOW

SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE; SHOW timezone;
----
(TimeZone = <+00>-00)
SET
TimeZone:text
<+00>-00
SHOW

SET TIME ZONE INTERVAL '+05:30' HOUR TO MINUTE; SELECT timestamptz '2024-01-01 00:00+00'; SHOW timezone;
----
(TimeZone = <+05:30>-05:30)
SET
timestamptz:timestamptz
2024-01-01 05:30:00+05:30
SELECT 1
TimeZone:text
<+05:30>-05:30
SHOW

SET timezone = '+00:00'; SELECT timestamptz '2024-01-01 00:00+00';
----
(TimeZone = +00:00)
SET
timestamptz:timestamptz
2024-01-01 00:00:00+00
SELECT 1

SET timezone = '+05:30'; SELECT timestamptz '2024-01-01 00:00+00', '2024-01-01 00:00'::timestamptz;
----
(TimeZone = +05:30)
SET
timestamptz:timestamptz | timestamptz:timestamptz
2023-12-31 18:30:00-05:30 | 2024-01-01 00:00:00-05:30
SELECT 1

SET TIME ZONE -3.5; SELECT timestamptz '2024-01-01 00:00+00';
----
(TimeZone = <-03:30>+03:30)
SET
timestamptz:timestamptz
2023-12-31 20:30:00-03:30
SELECT 1

SET TIME ZONE 'nowhere';
----
ERROR 22023: invalid value for parameter "TimeZone": "nowhere"

RESET timezone;
----
(TimeZone = UTC)
RESET

SET datestyle = 'ISO, foo';
----
ERROR 22023: invalid value for parameter "DateStyle": "ISO, foo"
  detail: Unrecognized key word: "foo".

SET datestyle = 'ISO, SQL';
----
ERROR 22023: invalid value for parameter "DateStyle": "ISO, SQL"
  detail: Conflicting "datestyle" specifications.

SET datestyle = 'German';
----
(DateStyle = German, DMY)
SET

SET intervalstyle = 'iso_8601';
----
(IntervalStyle = iso_8601)
SET

SET intervalstyle = 'foo';
----
ERROR 22023: invalid value for parameter "intervalstyle": "foo"
  hint: Available values: postgres, postgres_verbose, sql_standard, iso_8601.

# What PostgreSQL knows and nothing here reads is taken.
SET enable_bitmapscan = 'no'; SHOW enable_bitmapscan; SET random_page_cost = 1.1; SHOW random_page_cost;
----
SET
enable_bitmapscan:text
off
SHOW
SET
random_page_cost:text
1.1
SHOW

SET constraint_exclusion = 'sometimes';
----
ERROR 22023: invalid value for parameter "constraint_exclusion": "sometimes"
  hint: Available values: partition, on, off.

SHOW work_mem; SELECT setting FROM pg_settings WHERE name = 'work_mem';
----
work_mem:text
4MB
SHOW
setting:text
4MB
SELECT 1

SET statement_timeout = '5s'; SELECT setting, unit FROM pg_settings WHERE name = 'statement_timeout'; RESET statement_timeout;
----
SET
setting:text | unit:text
5000 | ms
SELECT 1
RESET

# READ UNCOMMITTED behaves as READ COMMITTED and reads back as it was set.
BEGIN ISOLATION LEVEL READ UNCOMMITTED; SHOW transaction_isolation; SELECT current_setting('transaction_isolation'); ROLLBACK;
----
BEGIN
transaction_isolation:text
read uncommitted
SHOW
current_setting:text
read uncommitted
SELECT 1
ROLLBACK

BEGIN; SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED; SHOW transaction_isolation; SET TRANSACTION READ ONLY; SHOW transaction_isolation; ROLLBACK;
----
BEGIN
SET
transaction_isolation:text
read uncommitted
SHOW
SET
transaction_isolation:text
read uncommitted
SHOW
ROLLBACK

SET default_transaction_isolation = 'read uncommitted'; SHOW default_transaction_isolation; SHOW transaction_isolation;
----
SET
default_transaction_isolation:text
read uncommitted
SHOW
transaction_isolation:text
read uncommitted
SHOW

SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED; SHOW transaction_isolation;
----
SET
transaction_isolation:text
read committed
SHOW

SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ UNCOMMITTED; SHOW transaction_isolation; RESET default_transaction_isolation;
----
SET
transaction_isolation:text
read uncommitted
SHOW
RESET

# set_config, with parameters and NULL too.
\extended
SELECT set_config('search_path', $1, false)
app, public
----
set_config:text
app, public
SELECT 1

SHOW search_path;
----
search_path:text
app, public
SHOW

\extended
SELECT set_config('search_path', $1, false)
\N
----
set_config:text
"$user", public
SELECT 1

SHOW search_path;
----
search_path:text
"$user", public
SHOW

SELECT set_config('my.x', 'one', false), current_setting('my.x');
----
set_config:text | current_setting:text
one | one
SELECT 1

SHOW my.x;
----
my.x:text
one
SHOW

BEGIN; SELECT set_config('my.x', 'two', true); SELECT current_setting('my.x'); COMMIT; SELECT current_setting('my.x');
----
BEGIN
set_config:text
two
SELECT 1
current_setting:text
two
SELECT 1
COMMIT
current_setting:text
one
SELECT 1

BEGIN; SELECT set_config('my.x', 'three', false); ROLLBACK; SELECT current_setting('my.x');
----
BEGIN
set_config:text
three
SELECT 1
ROLLBACK
current_setting:text
one
SELECT 1

SELECT set_config('my.x', 'four', true); SELECT current_setting('my.x');
----
set_config:text
four
SELECT 1
current_setting:text
one
SELECT 1

SELECT set_config(name, 'five', false) FROM (VALUES ('my.x'), ('my.y')) v(name); SHOW my.y;
----
set_config:text
five
five
SELECT 2
my.y:text
five
SHOW

# A statement that fails sets nothing.
SELECT set_config('my.x', 'six', false), 1 / (current_setting('my.x') <> '')::int / 0;
----
set_config:text | ?column?:int4
ERROR 22012: division by zero

SHOW my.x;
----
my.x:text
five
SHOW

SELECT set_config('statement_timeout', 'soon', false);
----
set_config:text
ERROR 22023: invalid value for parameter "statement_timeout": "soon"
  hint: Valid units for this parameter are "us", "ms", "s", "min", "h", and "d".

SELECT set_config('nosuch', 'x', false);
----
set_config:text
ERROR 42704: unrecognized configuration parameter "nosuch"

SELECT set_config(NULL, 'x', false);
----
set_config:text
ERROR 22004: SET requires parameter name

SELECT set_config('transaction_isolation', 'serializable', false);
----
set_config:text
ERROR 25001: SET TRANSACTION ISOLATION LEVEL must be called before any query
  hint: Use SET TRANSACTION.

SELECT current_setting('nosuch.x');
----
current_setting:text
ERROR 42704: unrecognized configuration parameter "nosuch.x"

SELECT current_setting('nosuch.x', true), current_setting(NULL);
----
current_setting:text | current_setting:text
NULL | NULL
SELECT 1

PREPARE p AS SELECT set_config('my.x', $1, false); SHOW my.x; EXECUTE p('seven'); SHOW my.x;
----
PREPARE
my.x:text
five
SHOW
set_config:text
seven
SELECT 1
my.x:text
seven
SHOW
