--- Types of times with a precision, and intervals with fields, as types of columns.
CREATE TABLE t (id int PRIMARY KEY, t0 time(0), t3 time(3) without time zone, s0 timestamp(0), s3 timestamp(3) without time zone, s6 timestamp(6), z2 timestamptz(2), z6 timestamp(6) with time zone, i0 interval(0), i2 interval(2), ym interval year to month, dh interval day to hour, ds interval day to second(1), m interval minute, a timestamp(1)[]);
SELECT attname, format_type(atttypid, atttypmod), atttypmod FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 ORDER BY attnum;
-- id|integer|-1
-- t0|time(0) without time zone|0
-- t3|time(3) without time zone|3
-- s0|timestamp(0) without time zone|0
-- s3|timestamp(3) without time zone|3
-- s6|timestamp(6) without time zone|6
-- z2|timestamp(2) with time zone|2
-- z6|timestamp(6) with time zone|6
-- i0|interval(0)|2147418112
-- i2|interval(2)|2147418114
-- ym|interval year to month|458751
-- dh|interval day to hour|67698687
-- ds|interval day to second(1)|470286337
-- m|interval minute|134283263
-- a|timestamp(1) without time zone[]|1
SELECT column_name, data_type, datetime_precision, udt_name FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position;
-- id|integer|NULL|int4
-- t0|time without time zone|0|time
-- t3|time without time zone|3|time
-- s0|timestamp without time zone|0|timestamp
-- s3|timestamp without time zone|3|timestamp
-- s6|timestamp without time zone|6|timestamp
-- z2|timestamp with time zone|2|timestamptz
-- z6|timestamp with time zone|6|timestamptz
-- i0|interval|0|interval
-- i2|interval|2|interval
-- ym|interval|6|interval
-- dh|interval|6|interval
-- ds|interval|1|interval
-- m|interval|6|interval
-- a|ARRAY|NULL|_timestamp
SET timezone = 'UTC';
INSERT INTO t VALUES (1, '12:34:56.5', '12:34:56.78949', '2020-01-02 03:04:05.5', '2020-01-02 03:04:05.67891', '2020-01-02 03:04:05.1234567', '2020-01-02 03:04:05.675+00', '2020-01-02 03:04:05.1234567+00', '1 day 02:03:04.5', '1.005 seconds', '1 year 2 months 3 days', '3 days 04:05:06', '3 days 04:05:06.78', '01:02:03', '{2020-01-02 03:04:05.67,NULL}');
SELECT t0, t3, s0, s3, s6, z2, z6 FROM t;
-- 12:34:57|12:34:56.789|2020-01-02 03:04:06|2020-01-02 03:04:05.679|2020-01-02 03:04:05.123457|2020-01-02 03:04:05.68+00|2020-01-02 03:04:05.123457+00
SELECT i0, i2, ym, dh, ds, m, a FROM t;
-- 1 day 02:03:05|00:00:01.01|1 year 2 mons|3 days 04:00:00|3 days 04:05:06.8|01:02:00|{"2020-01-02 03:04:05.7",NULL}
INSERT INTO t (id, t0, s0, s3) VALUES (2, '23:59:59.5', '1999-12-31 23:59:59.5', 'infinity'), (3, '00:00:00.4999', '1960-01-01 00:00:00.5', '-infinity'), (4, '24:00:00', '2000-01-01 00:00:00.4999', NULL);
SELECT id, t0, s0, s3 FROM t WHERE id > 1 ORDER BY id;
-- 2|24:00:00|1999-12-31 23:59:59|infinity
-- 3|00:00:00|1960-01-01 00:00:00|-infinity
-- 4|24:00:00|2000-01-01 00:00:00|NULL
INSERT INTO t (id, t3, s3, z2, i2, ds) SELECT 5, '01:02:03.123456'::time, '2020-01-01 00:00:00.123456'::timestamp, '2020-01-01 00:00:00.123456+00'::timestamptz, '1.23456 s'::interval, '1 day 1.26 s'::interval;
UPDATE t SET s0 = s6 + interval '0.9 seconds', s3 = s6, z2 = s6, t3 = s6::time WHERE id = 1;
SELECT id, s0, t3, s3, z2, i2, ds FROM t WHERE id IN (1, 5) ORDER BY id;
-- 1|2020-01-02 03:04:06|03:04:05.123|2020-01-02 03:04:05.123|2020-01-02 03:04:05.12+00|00:00:01.01|3 days 04:05:06.8
-- 5|NULL|01:02:03.123|2020-01-01 00:00:00.123|2020-01-01 00:00:00.12+00|00:00:01.23|1 day 00:00:01.3
SELECT id FROM t WHERE s3 = '2020-01-01 00:00:00.123';
-- 5
CREATE INDEX t_s3 ON t (s3);
SELECT id FROM t WHERE s3 = '2020-01-01 00:00:00.123'::timestamp;
-- 5
SELECT id FROM t WHERE s3 = timestamp(3) '2020-01-01 00:00:00.1234';
-- 5
SELECT id FROM t WHERE s3 = '2020-01-01 00:00:00.123456'::timestamp;
SELECT '2020-01-01 00:00:00.5678'::timestamp(2), '2020-01-01 00:00:00.5678'::timestamp::timestamp(0), '10:11:12.999999'::time(3), '1 day 1.5678 s'::interval(1), '2020-01-01 00:00:00.5678+00'::timestamptz(1);
-- 2020-01-01 00:00:00.57|2020-01-01 00:00:01|10:11:13|1 day 00:00:01.6|2020-01-01 00:00:00.6+00
SELECT interval '1 day 02:03:04.5678' day to minute, '1 day 02:03:04.5678'::interval day to second(2), '100'::interval hour, '1-2'::interval year to month, '5'::interval minute to second;
-- 1 day 02:03:00|1 day 02:03:04.57|100:00:00|1 year 2 mons|00:00:05
SELECT pg_typeof(s3), pg_typeof(s3 + '1 s'), pg_typeof(z2 - z2), pg_typeof(coalesce(s3, s6)) FROM t WHERE id = 1;
-- timestamp without time zone|timestamp without time zone|interval|timestamp without time zone
SELECT max(s3) = max(s6), count(DISTINCT s0), min(t0) FROM t;
-- f|4|00:00:00
SELECT s3 AS x FROM t WHERE id = 1 UNION SELECT s6 FROM t WHERE id = 1 ORDER BY 1;
-- 2020-01-02 03:04:05.123
-- 2020-01-02 03:04:05.123457
SELECT greatest(s0, s3, s6), CASE WHEN id = 1 THEN s0 ELSE s3 END FROM t WHERE id = 1;
-- 2020-01-02 03:04:06|2020-01-02 03:04:06
SELECT extract(second FROM s3), date_trunc('second', s3), s3 - s0, s3 < s6, z2 = s3, to_char(s3, 'MS US') FROM t WHERE id = 1;
-- 5.123000|2020-01-02 03:04:05|-00:00:00.877|t|f|123 123000
CREATE TABLE u AS SELECT id, s3, i2, '12:00:01.55'::time(1) AS t1, s3 + '1 s'::interval AS plain FROM t;
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'u'::regclass AND attnum > 0 ORDER BY attnum;
-- id|integer
-- s3|timestamp(3) without time zone
-- i2|interval(2)
-- t1|time(1) without time zone
-- plain|timestamp without time zone
CREATE VIEW v AS SELECT s3, s3::timestamp(0) AS s0, now()::timestamptz(0) AS n FROM t;
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'v'::regclass AND attnum > 0 ORDER BY attnum;
-- s3|timestamp(3) without time zone
-- s0|timestamp(0) without time zone
-- n|timestamp(0) with time zone
SELECT s3, s0 FROM v WHERE s3 > '2000-01-01' AND s3 < 'infinity' ORDER BY 1;
-- 2020-01-01 00:00:00.123|2020-01-01 00:00:00
-- 2020-01-02 03:04:05.123|2020-01-02 03:04:05
ALTER TABLE t ALTER COLUMN s6 TYPE timestamp(1), ALTER COLUMN i2 TYPE interval second(0), ADD COLUMN n time(2) DEFAULT '01:02:03.456';
SELECT s6, i2, n FROM t WHERE id IN (1, 5) ORDER BY id;
-- 2020-01-02 03:04:05.1|00:00:01|01:02:03.46
-- NULL|00:00:01|01:02:03.46
SELECT format_type(1083, 0), format_type(1114, 3), format_type(1184, 6), format_type(1186, 470286338), format_type(1186, 2147418115), format_type(1186, -1), format_type(1115, 3);
-- time(0) without time zone|timestamp(3) without time zone|timestamp(6) with time zone|interval day to second(2)|interval(3)|interval|timestamp(3) without time zone[]
PREPARE p(timestamp(1), interval(0)) AS SELECT $1, $2;
EXECUTE p('2020-01-01 00:00:00.16', '1.6 s');
-- 2020-01-01 00:00:00.16|00:00:01.6
CREATE TABLE d (k timestamp(0) PRIMARY KEY DEFAULT '2020-01-01 00:00:00.7', g timestamp(0) GENERATED ALWAYS AS (k + interval '0.6 s') STORED, CHECK (k > '2000-01-01'::timestamp(0)));
INSERT INTO d DEFAULT VALUES RETURNING *;
-- 2020-01-01 00:00:01|2020-01-01 00:00:02
INSERT INTO d VALUES ('2020-01-01 00:00:01.2');
-- ERROR 23505: duplicate key value violates unique constraint "d_pkey"
INSERT INTO d VALUES ('2020-01-01 00:00:02.2') ON CONFLICT DO NOTHING RETURNING k;
-- 2020-01-01 00:00:02
SELECT column_name, column_default, generation_expression FROM information_schema.columns WHERE table_name = 'd' ORDER BY 1;
-- g|NULL|(k + '00:00:00.6'::interval)
-- k|'2020-01-01 00:00:00.7'::timestamp without time zone|NULL
SELECT '2020-01-01'::timestamp(-1);
-- ERROR 42601: syntax error at or near "-"
DROP VIEW v;
DROP TABLE t, u, d;
SELECT oidvectortypes('23 25 1184'), oidvectortypes(''), oidvectortypes(NULL);
-- integer, text, timestamp with time zone||NULL
