# A table may be kept for another time than the rest: its storage parameter retention.

CREATE TABLE t (a int PRIMARY KEY) WITH (retention = '1h', fillfactor = 70);
CREATE TABLE u (a int PRIMARY KEY);
ALTER TABLE u SET (retention = '7 days');
SELECT relname, reloptions FROM pg_class WHERE relname IN ('t', 'u', 't_pkey') ORDER BY relname;
----
CREATE TABLE
CREATE TABLE
ALTER TABLE
relname:name | reloptions:_text
t | {retention=1h}
t_pkey | NULL
u | {"retention=7 days"}
SELECT 3

# The last word counts; RESET takes it back, and changes nothing else.
ALTER TABLE t SET (fillfactor = 80, retention = 90);
ALTER TABLE u RESET (retention);
ALTER TABLE u RESET (fillfactor, retention);
SELECT relname, reloptions FROM pg_class WHERE relname IN ('t', 'u') ORDER BY relname;
----
ALTER TABLE
ALTER TABLE
ALTER TABLE
relname:name | reloptions:_text
t | {retention=90}
u | NULL
SELECT 2

# It stays with the table, whatever is done to its rows and indexes.
ALTER TABLE t ADD COLUMN b int;
CREATE INDEX ON t (b);
TRUNCATE t;
ALTER TABLE t RENAME TO s;
SELECT relname, reloptions FROM pg_class WHERE relname = 's';
----
ALTER TABLE
CREATE INDEX
TRUNCATE TABLE
ALTER TABLE
relname:name | reloptions:_text
s | {retention=90}
SELECT 1

# Whole seconds, at least one.
ALTER TABLE u SET (retention = '');
----
ERROR 22023: invalid value for "retention": ""
  hint: Write whole seconds, at least one and at most 36600 days, as an interval: '10s', '30 min', '1h', '7 days'.

ALTER TABLE u SET (retention);
----
ERROR 22023: invalid value for "retention": ""
  hint: Write whole seconds, at least one and at most 36600 days, as an interval: '10s', '30 min', '1h', '7 days'.

ALTER TABLE u SET (retention = '1 hour ago');
----
ERROR 22023: invalid value for "retention": "1 hour ago"
  hint: Write whole seconds, at least one and at most 36600 days, as an interval: '10s', '30 min', '1h', '7 days'.

ALTER TABLE u SET (retention = '1.5s');
----
ERROR 22023: invalid value for "retention": "1.5s"
  hint: Write whole seconds, at least one and at most 36600 days, as an interval: '10s', '30 min', '1h', '7 days'.

ALTER TABLE u SET (retention = '0');
----
ERROR 22023: invalid value for "retention": "0"
  hint: Write whole seconds, at least one and at most 36600 days, as an interval: '10s', '30 min', '1h', '7 days'.

ALTER TABLE u SET (retention = '200 years');
----
ERROR 22023: invalid value for "retention": "200 years"
  hint: Write whole seconds, at least one and at most 36600 days, as an interval: '10s', '30 min', '1h', '7 days'.

ALTER TABLE u SET (retention = '1h', retention = '2h');
----
ERROR 22023: parameter "retention" specified more than once

ALTER TABLE u RESET (retention = '1h');
----
ERROR 42601: RESET must not include values for parameters

ALTER TABLE u SET (unheard = 1);
----
ERROR 22023: unrecognized parameter "unheard"

# It belongs to a table.
CREATE INDEX ON u (a) WITH (retention = '1h');
----
ERROR 22023: unrecognized parameter "retention"
  hint: It is a parameter of tables: their indexes have it, too.

CREATE TABLE v (a int PRIMARY KEY WITH (retention = '1h'));
----
ERROR 22023: unrecognized parameter "retention"
  hint: It is a parameter of tables: their indexes have it, too.

CREATE TABLE v WITH (retention = '1h') AS SELECT 1 AS a;
----
ERROR 0A000: a retention in CREATE TABLE AS is not supported
  hint: Set it afterwards: ALTER TABLE .. SET (retention = ..).

# Of a block that is rolled back nothing stays.
BEGIN;
ALTER TABLE u SET (retention = '1h');
SELECT reloptions FROM pg_class WHERE relname = 'u';
ROLLBACK;
SELECT reloptions FROM pg_class WHERE relname = 'u';
----
BEGIN
ALTER TABLE
reloptions:_text
{retention=1h}
SELECT 1
ROLLBACK
reloptions:_text
NULL
SELECT 1
