-- Small gaps that an examiner met with psql: encodings, extensions, passwords, what functions take, templates.

SET client_min_messages = warning;

--- Encodings by their numbers and names.
SELECT string_agg(pg_encoding_to_char(n), ' ' ORDER BY n) FROM generate_series(-1, 43) AS n;
--  SQL_ASCII EUC_JP EUC_CN EUC_KR EUC_TW EUC_JIS_2004 UTF8 MULE_INTERNAL LATIN1 LATIN2 LATIN3 LATIN4 LATIN5 LATIN6 LATIN7 LATIN8 LATIN9 LATIN10 WIN1256 WIN1258 WIN866 WIN874 KOI8R WIN1251 WIN1252 ISO_8859_5 ISO_8859_6 ISO_8859_7 ISO_8859_8 WIN1250 WIN1253 WIN1254 WIN1255 WIN1257 KOI8U SJIS BIG5 GBK UHC GB18030 JOHAB SHIFT_JIS_2004  
SELECT name, pg_char_to_encoding(name), pg_encoding_to_char(pg_char_to_encoding(name))
  FROM unnest(ARRAY['utf-8', 'Unicode', 'latin-1', 'ISO 8859-15', 'windows1252', 'WIN', 'windows', 'windows932', 'koi8', 'tcvn', 'sjis', 'nosuch', 'default', '']) AS name;
-- utf-8|6|UTF8
-- Unicode|6|UTF8
-- latin-1|8|LATIN1
-- ISO 8859-15|16|LATIN9
-- windows1252|24|WIN1252
-- WIN|23|WIN1251
-- windows|-1|
-- windows932|35|SJIS
-- koi8|22|KOI8R
-- tcvn|19|WIN1258
-- sjis|35|SJIS
-- nosuch|-1|
-- default|-1|
-- |-1|
SET client_encoding = 'nosuch';
-- ERROR 22023: invalid value for parameter "client_encoding": "nosuch"
SET NAMES 'default';
-- ERROR 22023: invalid value for parameter "client_encoding": "default"
SET client_encoding TO "sql-ascii";
SHOW client_encoding;
-- SQL_ASCII
SELECT pg_client_encoding();
-- SQL_ASCII
SET client_encoding TO UNICODE;
SELECT pg_client_encoding(), current_setting('client_encoding');
-- UTF8|UTF8
SET NAMES DEFAULT;
SHOW client_encoding;
-- UTF8
--- differs: nothing is converted here (decision 135)
SET client_encoding = 'latin1';
-- ERROR 0A000: invalid value for parameter "client_encoding": "latin1"
--- differs: nothing is converted here (decision 135)
SET NAMES 'WIN1252';
-- ERROR 0A000: invalid value for parameter "client_encoding": "WIN1252"

--- The extension that every database has.
SELECT extname, extversion, extnamespace::regnamespace, extrelocatable FROM pg_extension WHERE extname <> 'timeball';
-- plpgsql|1.0|pg_catalog|f
ALTER EXTENSION plpgsql UPDATE;
ALTER EXTENSION plpgsql UPDATE TO '2.0';
-- ERROR 22023: extension "plpgsql" has no update path from version "1.0" to version "2.0"
CREATE EXTENSION plpgsql;
-- ERROR 42710: extension "plpgsql" already exists
--- differs: it would still count as created
DROP EXTENSION plpgsql;
-- ERROR 0A000: extension "plpgsql" cannot be dropped
--- differs: it would still count as created
DROP EXTENSION IF EXISTS plpgsql CASCADE;
-- ERROR 0A000: extension "plpgsql" cannot be dropped

--- differs: it is of this program, and owns what a dump leaves out (decision 159)
CREATE EXTENSION IF NOT EXISTS timeball;
--- differs: it is of this program, and owns what a dump leaves out (decision 159)
DROP EXTENSION timeball;
-- ERROR 0A000: extension "timeball" cannot be dropped

--- There is one role, and nobody is asked for a password: what psql's \password sends.
--- differs: nobody is asked for a password
ALTER USER CURRENT_USER PASSWORD 'SCRAM-SHA-256$4096:c2FsdA==$c3RvcmVk:c2VydmVy';
-- ERROR 0A000: ALTER USER is not supported
--- differs: nobody is asked for a password
ALTER USER CURRENT_USER PASSWORD NULL;
-- ERROR 0A000: ALTER USER is not supported

--- What functions take and give, as psql's \df asks.
SELECT proname, pg_get_function_arguments(oid), pg_get_function_result(oid) FROM pg_proc
  WHERE proname IN ('abs', 'concat', 'format', 'generate_series', 'make_interval', 'make_date', 'jsonb_set', 'rank', 'array_agg', 'count', 'now')
    AND pronamespace = 'pg_catalog'::regnamespace ORDER BY proname, oid;
-- abs|real|real
-- abs|double precision|double precision
-- abs|bigint|bigint
-- abs|integer|integer
-- abs|smallint|smallint
-- abs|numeric|numeric
-- array_agg|anynonarray|anyarray
-- array_agg|anyarray|anyarray
-- concat|VARIADIC "any"|text
-- count|"any"|bigint
-- count||bigint
-- format|text, VARIADIC "any"|text
-- format|text|text
-- generate_series|timestamp without time zone, timestamp without time zone, interval|SETOF timestamp without time zone
-- generate_series|timestamp with time zone, timestamp with time zone, interval|SETOF timestamp with time zone
-- generate_series|integer, integer, integer|SETOF integer
-- generate_series|integer, integer|SETOF integer
-- generate_series|bigint, bigint, bigint|SETOF bigint
-- generate_series|bigint, bigint|SETOF bigint
-- generate_series|numeric, numeric, numeric|SETOF numeric
-- generate_series|numeric, numeric|SETOF numeric
-- jsonb_set|jsonb_in jsonb, path text[], replacement jsonb, create_if_missing boolean DEFAULT true|jsonb
-- make_date|year integer, month integer, day integer|date
-- make_interval|years integer DEFAULT 0, months integer DEFAULT 0, weeks integer DEFAULT 0, days integer DEFAULT 0, hours integer DEFAULT 0, mins integer DEFAULT 0, secs double precision DEFAULT 0.0|interval
-- now||timestamp with time zone
-- rank||bigint
-- rank|VARIADIC "any" ORDER BY VARIADIC "any"|bigint
SELECT pg_get_function_identity_arguments(oid) FROM pg_proc WHERE proname IN ('make_interval', 'jsonb_set', 'concat', 'now') ORDER BY proname;
-- VARIADIC "any"
-- jsonb_in jsonb, path text[], replacement jsonb, create_if_missing boolean
-- years integer, months integer, weeks integer, days integer, hours integer, mins integer, secs double precision
-- 
SELECT pg_get_function_arguments(1), pg_get_function_result(1);
-- NULL|NULL
SELECT format_type(2276, NULL), format_type(2776, NULL), format_type(1, NULL), oid::regprocedure FROM pg_proc WHERE proname = 'concat';
-- "any"|anynonarray|???|concat("any")

--- Templates that are empty, and one that may not be.
CREATE DATABASE gaps_a TEMPLATE template0;
CREATE DATABASE gaps_b WITH TEMPLATE = template1 ENCODING 'UTF8';
--- differs: databases are not copied
CREATE DATABASE gaps_c TEMPLATE gaps_a;
-- ERROR 0A000: a copy of the database "gaps_a" is not supported
CREATE DATABASE gaps_c TEMPLATE nosuch;
-- ERROR 3D000: template database "nosuch" does not exist
DROP DATABASE IF EXISTS gaps_c;
DROP DATABASE gaps_b;
DROP DATABASE gaps_a;

--- Types that have no values, by name; several locking clauses before LIMIT; a day of a year behind a point.
SELECT '"any"'::regtype, 'anyelement'::regtype, 'pg_catalog.anyarray'::regtype, 'concat("any")'::regprocedure, to_regtype('"any"');
-- "any"|anyelement|anyarray|concat("any")|"any"
SELECT '"ANY"'::regtype;
-- ERROR 42704: type "ANY" does not exist
SELECT '_int4'::regtype, 'pg_catalog."char"'::regtype, '"char"'::regtype, 'char'::regtype, '"pg_catalog"."int4"[]'::regtype;
-- integer[]|"char"|"char"|character|integer[]
CREATE TABLE locked (id int PRIMARY KEY, a int);
INSERT INTO locked VALUES (1, 1), (2, 2);
SELECT id FROM locked ORDER BY id FOR UPDATE FOR SHARE LIMIT 1;
-- 1
SELECT id FROM locked ORDER BY id FOR NO KEY UPDATE OF locked FOR KEY SHARE FOR SHARE SKIP LOCKED OFFSET 1 FETCH FIRST ROW ONLY;
-- 2
DROP TABLE locked;
SELECT '1999.008'::date, '1999.008 BC'::date, '1999.008 10:00'::timestamp, '12345.008'::date, '1999.366'::date, '1999-366'::date;
-- 1999-01-08|1999-01-08 BC|1999-01-08 10:00:00|12345-01-08|2000-01-01|2000-01-01
SELECT '1999.8'::date;
-- ERROR 22007: invalid input syntax for type date: "1999.8"
SELECT '99.008'::date;
-- ERROR 22007: invalid input syntax for type date: "99.008"
SELECT '1999.367'::date;
-- ERROR 22007: invalid input syntax for type date: "1999.367"
SELECT '8.1.1999'::date, '1999.01.08'::date;
-- 1999-08-01|1999-01-08

--- Arrays have at most six dimensions.
SELECT '{{{{{{{1}}}}}}}'::int[];
-- ERROR 54000: number of array dimensions (7) exceeds the maximum allowed (6)
SELECT array_fill(1, ARRAY[1,1,1,1,1,1,1]);
-- ERROR 54000: number of array dimensions (7) exceeds the maximum allowed (6)
SELECT ARRAY[array_fill(1, ARRAY[1,1,1,1,1,1])];
-- ERROR 54000: number of array dimensions (7) exceeds the maximum allowed (6)
SELECT array_agg(array_fill(1, ARRAY[1,1,1,1,1,1]));
-- ERROR 54000: number of array dimensions (7) exceeds the maximum allowed (6)
SELECT ARRAY[[[[[[[1]]]]]]];
-- ERROR 54000: number of array dimensions (7) exceeds the maximum allowed (6)
SELECT ARRAY[[[[[[1]]]]]], array_dims(array_fill(1, ARRAY[1,1,1,1,1,1]));
-- {{{{{{1}}}}}}|[1:1][1:1][1:1][1:1][1:1][1:1]
