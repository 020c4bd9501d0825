--- time with time zone: read, written, computed with, compared, stored, kept in indexes.
CREATE TABLE z (id int PRIMARY KEY, a timetz, b time(2) with time zone, c timetz(0)[], d timetz NOT NULL DEFAULT '12:00-03:30', CHECK (a < '23:30-12'));
SELECT attname, format_type(atttypid, atttypmod), atttypmod, attlen, attalign FROM pg_attribute WHERE attrelid = 'z'::regclass AND attnum > 0 ORDER BY attnum;
-- id|integer|-1|4|i
-- a|time with time zone|-1|12|d
-- b|time(2) with time zone|2|12|d
-- c|time(0) with time zone[]|0|-1|d
-- d|time with time zone|-1|12|d
SELECT column_name, data_type, datetime_precision, udt_name, column_default FROM information_schema.columns WHERE table_name = 'z' ORDER BY ordinal_position;
-- id|integer|NULL|int4|NULL
-- a|time with time zone|6|timetz|NULL
-- b|time with time zone|2|timetz|NULL
-- c|ARRAY|NULL|_timetz|NULL
-- d|time with time zone|6|timetz|'12:00:00-03:30'::time with time zone
SELECT oid, typname, typlen, typcategory, typarray, typelem, format_type(oid, NULL) FROM pg_type WHERE typname IN ('timetz', '_timetz') ORDER BY 1;
-- 1266|timetz|12|D|1270|0|time with time zone
-- 1270|_timetz|-1|A|0|1266|time with time zone[]
SELECT 'timetz'::regtype, 'time with time zone'::regtype::oid, 'timetz[]'::regtype, to_regtype('time(3) with time zone');
-- time with time zone|1266|time with time zone[]|time with time zone
INSERT INTO z VALUES (1, '12:00+02', '12:00:01.559-07', '{12:00:01.5+02,NULL}'), (2, '11:00+01', '24:00+00', NULL), (3, '10:00+00', '00:00-12', '{}'), (4, NULL, NULL, NULL), (5, '12:00+02', '01:02:03+05:30:15', NULL), (6, '00:00+14', NULL, NULL);
INSERT INTO z VALUES (7, '23:30-12');
-- ERROR 23514: new row for relation "z" violates check constraint "z_a_check"
INSERT INTO z VALUES (7, 'yesterday');
-- ERROR 22007: invalid input syntax for type time with time zone: "yesterday"
INSERT INTO z (id, a) SELECT 8, '10:00:00.000001+00'::timestamptz::time;
-- ERROR 22007: invalid input syntax for type timestamp with time zone: "10:00:00.000001+00"
SELECT * FROM z WHERE id < 8 ORDER BY a, id;
-- 6|00:00:00+14|NULL|NULL|12:00:00-03:30
-- 1|12:00:00+02|12:00:01.56-07|{12:00:02+02,NULL}|12:00:00-03:30
-- 5|12:00:00+02|01:02:03+05:30:15|NULL|12:00:00-03:30
-- 2|11:00:00+01|24:00:00+00|NULL|12:00:00-03:30
-- 3|10:00:00+00|00:00:00-12|{}|12:00:00-03:30
-- 4|NULL|NULL|NULL|12:00:00-03:30
SELECT a, count(*), min(b), max(b) FROM z GROUP BY a ORDER BY a DESC NULLS LAST;
-- 10:00:00+00|1|00:00:00-12|00:00:00-12
-- 11:00:00+01|1|24:00:00+00|24:00:00+00
-- 12:00:00+02|2|01:02:03+05:30:15|12:00:01.56-07
-- 00:00:00+14|1|NULL|NULL
-- NULL|1|NULL|NULL
SELECT DISTINCT a FROM z WHERE id < 8 ORDER BY 1;
-- 00:00:00+14
-- 12:00:00+02
-- 11:00:00+01
-- 10:00:00+00
-- NULL
CREATE INDEX za ON z (a);
CREATE INDEX zd ON z (b DESC, a);
SELECT id, a FROM z WHERE a = '11:00+01' ORDER BY id;
-- 2|11:00:00+01
SELECT id, a FROM z WHERE a >= '11:00+01' AND id < 8 ORDER BY a DESC, id;
-- 3|10:00:00+00
-- 2|11:00:00+01
SELECT id, a FROM z WHERE a BETWEEN '12:00+02' AND '10:00+00' ORDER BY a, id;
-- 1|12:00:00+02
-- 5|12:00:00+02
-- 2|11:00:00+01
-- 3|10:00:00+00
SELECT id, b FROM z WHERE b IS NOT NULL ORDER BY b DESC;
-- 2|24:00:00+00
-- 1|12:00:01.56-07
-- 3|00:00:00-12
-- 5|01:02:03+05:30:15
SELECT x.id, y.id FROM z x JOIN z y ON x.a = y.a AND x.id < y.id ORDER BY 1, 2;
-- 1|5
SELECT id FROM z WHERE a IN ('10:00+00', '12:00+02') ORDER BY id;
-- 1
-- 3
-- 5
SELECT indclass, pg_get_indexdef(indexrelid) FROM pg_index WHERE indexrelid = 'zd'::regclass;
-- 10041 10041|CREATE INDEX zd ON public.z USING btree (b DESC, a)
UPDATE z SET a = a + interval '1 hour', b = b - interval '1 hour' WHERE id < 3 RETURNING id, a, b, d;
-- 1|13:00:00+02|11:00:01.56-07|12:00:00-03:30
-- 2|12:00:00+01|23:00:00+00|12:00:00-03:30
CREATE TABLE zk (k timetz PRIMARY KEY, v int);
INSERT INTO zk VALUES ('12:00+02', 1), ('11:00+01', 2);
INSERT INTO zk VALUES ('12:00+02', 3);
-- ERROR 23505: duplicate key value violates unique constraint "zk_pkey"
INSERT INTO zk VALUES ('12:00:00+02:00', 3) ON CONFLICT (k) DO UPDATE SET v = excluded.v RETURNING *;
-- 12:00:00+02|3
SELECT * FROM zk ORDER BY k;
-- 12:00:00+02|3
-- 11:00:00+01|2
DELETE FROM zk WHERE k = '11:00+01' RETURNING *;
-- 11:00:00+01|2
CREATE TABLE zu (a timetz, b time with time zone UNIQUE);
ALTER TABLE zu ALTER a TYPE time;
ALTER TABLE zu ALTER a TYPE timetz(3);
CREATE INDEX ON zu ((a::time));
CREATE INDEX ON zu ((a::text));
CREATE INDEX ON zu (('12:00'::time::timetz));
-- ERROR 42P17: functions in index expression must be marked IMMUTABLE
PREPARE p (timetz, timetz[]) AS SELECT $1, $2, $1 = ANY ($2);
EXECUTE p ('12:00+02', '{12:00+02,13:00-01}');
-- 12:00:00+02|{12:00:00+02,13:00:00-01}|t
set timezone='Europe/Berlin';
select '15:36 MSK'::timetz;
-- 15:36:00+03
select '15:36 PST'::timetz, '15:36 PDT'::timetz, '15:36 CEST'::timetz, '15:36 Z'::timetz;
-- 15:36:00-08|15:36:00-07|15:36:00+02|15:36:00+00
select '15:36:39 America/New_York'::timetz;
-- ERROR 22007: invalid input syntax for type time with time zone: "15:36:39 America/New_York"
select '15:36:39 America/New_York'::time;
-- ERROR 22007: invalid input syntax for type time: "15:36:39 America/New_York"
select '2003-03-07 15:36:39 America/New_York'::timetz,'2003-07-07 15:36:39 America/New_York'::timetz;
-- 15:36:39-05|15:36:39-04
select '2003-07-07 15:36:39'::timetz;
-- 15:36:39+02
select '15:36:39 m2'::timetz;
-- ERROR 22007: invalid input syntax for type time with time zone: "15:36:39 m2"
select '15:36:39 MSK m2'::timetz;
-- ERROR 22007: invalid input syntax for type time with time zone: "15:36:39 MSK m2"
select '04:05:06.789-8'::timetz, '04:05:06-08:00'::timetz, '04:05-08:00'::timetz, '040506-08'::timetz, '040506+07:30:00'::timetz, '040506+07:30:15'::timetz;
-- 04:05:06.789-08|04:05:06-08|04:05:00-08|04:05:06-08|04:05:06+07:30|04:05:06+07:30:15
select 'now'::timetz = current_time, 'allballs'::timetz;
-- t|00:00:00+00
select '24:00-05'::timetz, '23:59:60+02'::timetz, '25:00+02'::timetz;
-- ERROR 22008: date/time field value out of range: "25:00+02"
select 'today'::timetz;
-- ERROR 22007: invalid input syntax for type time with time zone: "today"
select 'noon'::timetz;
-- ERROR 22007: invalid input syntax for type time with time zone: "noon"
select 'infinity'::timetz;
-- ERROR 22007: invalid input syntax for type time with time zone: "infinity"
select ''::timetz;
-- ERROR 22007: invalid input syntax for type time with time zone: ""
select '12:00+16'::timetz;
-- ERROR 22009: time zone displacement out of range: "12:00+16"
select '12:00+15:59:59'::timetz;
-- 12:00:00+15:59:59
select '12:00+15:60'::timetz;
-- ERROR 22009: time zone displacement out of range: "12:00+15:60"
select 'x'::timetz;
-- ERROR 22007: invalid input syntax for type time with time zone: "x"
select '2000-01-01'::timetz;
-- ERROR 22007: invalid input syntax for type time with time zone: "2000-01-01"
select timetz '01:02:03.4567891+02', timetz(3) '01:02:03.4567+02', '01:02:03.4567+02'::time(1) with time zone, time with time zone '1:2+3';
-- 01:02:03.456789+02|01:02:03.457+02|01:02:03.5+02|01:02:00+03
select pg_typeof(current_time), pg_typeof(current_time(2)), pg_typeof(localtime(1)), pg_typeof(localtimestamp(1)), pg_typeof(current_timestamp(0));
-- time with time zone|time with time zone|time without time zone|timestamp without time zone|timestamp with time zone
select '12:00+02'::timetz at time zone interval '1 day';
-- ERROR 22023: interval time zone "1 day" must not include months or days
select now() at time zone interval '1 day';
-- ERROR 22023: interval time zone "1 day" must not include months or days
select '2020-01-01'::timestamp at time zone interval '1 mon';
-- ERROR 22023: interval time zone "1 mon" must not include months or days
select '2020-01-01'::timestamp at time zone 'PST', '2020-01-01 0:00+0'::timestamptz at time zone 'msk', '2020-01-01 0:00+0'::timestamptz at time zone 'PST8PDT', '2020-01-01 0:00+0'::timestamptz at time zone 'FOO3', '2020-01-01 0:00+0'::timestamptz at time zone '<ABC>-3';
-- 2020-01-01 09:00:00+01|2020-01-01 03:00:00|2019-12-31 16:00:00|2019-12-31 21:00:00|2020-01-01 03:00:00
select '2020-01-01'::timestamp at time zone 'nosuch';
-- ERROR 22023: time zone "nosuch" not recognized
select '12:00+02'::timetz at time zone 'nosuch';
-- ERROR 22023: time zone "nosuch" not recognized
select extract(timezone from '12:00-02:30'::timetz), extract(timezone_hour from '12:00-02:30'::timetz), extract(timezone_minute from '12:00-02:30'::timetz), extract(epoch from '12:00-02:30'::timetz), extract(second from '12:00:01.5-02:30'::timetz), date_part('epoch','12:00:01.5-02:30'::timetz), extract(millisecond from '12:00:01.5-02:30'::timetz), extract(microseconds from '12:00:01.5-02:30'::timetz), extract(hour from '12:00:01.5-02:30'::timetz);
-- -9000|-2|-30|52200.000000|1.500000|52201.5|1500.000|1500000|12
select extract(day from '12:00-02:30'::timetz);
-- ERROR 0A000: unit "day" not supported for type time with time zone
select extract(foo from '12:00-02:30'::timetz);
-- ERROR 22023: unit "foo" not recognized for type time with time zone
select extract(timezone from '12:00'::time);
-- ERROR 0A000: unit "timezone" not supported for type time without time zone
select extract(timezone_h from '12:00-02:30'::timetz);
-- -2
select '12:00+02'::timetz + interval '13 hours', interval '1 day 1 sec' + '12:00+02'::timetz, '1:00+02'::timetz - interval '2 hours', '12:00+02'::timetz + interval '1 mon';
-- 01:00:00+02|12:00:01+02|23:00:00+02|12:00:00+02
select '2020-02-03'::date + '12:00+02'::timetz, '12:00+02'::timetz + '2020-02-03'::date, 'infinity'::date + '12:00+02'::timetz;
-- 2020-02-03 11:00:00+01|2020-02-03 11:00:00+01|infinity
select '12:00+02'::timetz - '12:00+02'::timetz;
-- ERROR 42883: operator does not exist: time with time zone - time with time zone
select '12:00+02'::timetz + 1;
-- ERROR 42883: operator does not exist: time with time zone + integer
select to_char('12:00+02'::timetz, 'HH24');
-- ERROR 42883: function to_char(time with time zone, unknown) does not exist
select '12:00+02'::timetz::time, '12:00+02'::timetz::time(0), '2020-07-01 12:00'::timestamptz::timetz, '2020-01-01 12:00'::timestamptz::timetz, 'infinity'::timestamptz::timetz;
-- 12:00:00|12:00:00|12:00:00+02|12:00:00+01|NULL
select '12:00+02'::timetz::timestamptz;
-- ERROR 42846: cannot cast type time with time zone to timestamp with time zone
select '12:00+02'::timetz::timestamp;
-- ERROR 42846: cannot cast type time with time zone to timestamp without time zone
select '12:00+02'::timetz::interval;
-- ERROR 42846: cannot cast type time with time zone to interval
select '12:00+02'::timetz::date;
-- ERROR 42846: cannot cast type time with time zone to date
select '2020-01-01'::date::timetz;
-- ERROR 42846: cannot cast type date to time with time zone
select '2020-01-01'::timestamp::timetz;
-- ERROR 42846: cannot cast type timestamp without time zone to time with time zone
select '1 hour'::interval::timetz;
-- ERROR 42846: cannot cast type interval to time with time zone
select '12:00+02'::timetz < '12:00+01', '12:00+02'::timetz = '11:00+01'::timetz, '12:00+02'::timetz > '11:00+01'::timetz, '12:00+02'::timetz < '11:00+01'::timetz, '12:00'::time = '12:00'::timetz, '12:00'::time < '12:00+00'::timetz;
-- t|f|f|t|t|t
select x from (values ('12:00+02'::timetz),('11:00+01'),('10:00+00'),('23:00-12'),('00:00+14'),('10:00:00.000001+00'),(null)) v(x) order by x;
-- 00:00:00+14
-- 12:00:00+02
-- 11:00:00+01
-- 10:00:00+00
-- 10:00:00.000001+00
-- 23:00:00-12
-- NULL
select x from (values ('12:00+02'::timetz),('11:00+01'),('10:00+00'),('23:00-12'),('00:00+14'),(null)) v(x) order by x desc;
-- NULL
-- 23:00:00-12
-- 10:00:00+00
-- 11:00:00+01
-- 12:00:00+02
-- 00:00:00+14
select min(x), max(x), count(distinct x) from (values ('12:00+02'::timetz),('11:00+01'),('12:00+02'),('10:00+00'),(null)) v(x);
-- 12:00:00+02|10:00:00+00|3
select coalesce(null::time, '12:00+02'::timetz), greatest('12:00+02'::timetz, '12:00+01'), least('12:00+02'::timetz, '12:00+01');
-- 12:00:00+02|12:00:00+01|12:00:00+02
select case when true then '12:00'::time else '12:00+02'::timetz end is not null;
-- t
select array['12:00+02'::timetz, '13:00:01.5-03:30'], '{12:00+02,null,"13:00 PST"}'::timetz[], array_agg(x order by x) from (values ('12:00+02'::timetz),('11:00+01')) v(x);
-- {12:00:00+02,13:00:01.5-03:30}|{12:00:00+02,NULL,13:00:00-08}|{12:00:00+02,11:00:00+01}
select pg_typeof('{12:00+02}'::time(2) with time zone[]), format_type(1266,-1), format_type(1266,3), '{12:00:01.55+02}'::timetz(1)[];
-- time with time zone[]|time with time zone|time(3) with time zone|{12:00:01.6+02}
select ('12:00+02'::timetz,'14:00+02'::timetz) overlaps ('13:00+02'::timetz,'15:00+02'::timetz);
-- t
select ('12:00'::time,'14:00'::time) overlaps ('13:00'::time,'15:00'::time), ('12:00'::time,'1 hour'::interval) overlaps ('13:00'::time,'15:00'::time), ('12:00'::time,'2 hours'::interval) overlaps ('13:00'::time,'1 hour'::interval), ('2020-01-01'::date, '2 days'::interval) overlaps ('2020-01-02'::date, '2 days'::interval), ('2020-01-01'::timestamptz, '2 days'::interval) overlaps ('2020-01-02'::timestamptz, '2020-02-02'::timestamptz);
-- t|f|t|t|t
select ('12:00'::time,null::time) overlaps ('11:00'::time,'15:00'::time), ('12:00'::time,null::time) overlaps ('11:00'::time,'12:00'::time), (null,'12:00'::time) overlaps ('11:00'::time,null::time);
-- t|NULL|NULL
select timetz('12:00+02'), "time"('12:00+02'::timetz), timezone('UTC','12:00+02'::timetz), timestamptz('2020-01-01'::date,'12:00+02'::timetz);
-- 12:00:00+02|12:00:00|10:00:00+00|2020-01-01 11:00:00+01
select to_json('12:00+02'::timetz), to_jsonb('12:00:01.5+02'::timetz), json_build_object('a','12:00-03:30'::timetz), row('12:00+02'::timetz,1), '12:00+02'::timetz::text, '12:00+02'::timetz || 'x', concat('12:00+02'::timetz);
-- "12:00:00+02"|"12:00:01.5+02"|{"a" : "12:00:00-03:30"}|(12:00:00+02,1)|12:00:00+02|12:00:00+02x|12:00:00+02
select quote_literal('12:00+02'::timetz), format('%s %L','12:00+02'::timetz,'12:00+02'::timetz), string_agg(x::text, ',') from (values ('12:00+02'::timetz)) v(x);
-- '12:00:00+02'|12:00:00+02 '12:00:00+02'|12:00:00+02
set timezone='+05:30';
select '12:00'::timetz, '12:00'::time::timetz;
-- 12:00:00-05:30|12:00:00-05:30
set timezone='America/New_York';
select '12:00+02'::timetz;
-- 12:00:00+02
set datestyle='German';
select '12:00+02'::timetz;
-- 12:00:00+02
set datestyle='SQL';
select '12:00-02:30'::timetz;
-- 12:00:00-02:30
reset datestyle;
select isfinite('12:00+02'::timetz);
-- ERROR 42883: function isfinite(time with time zone) does not exist
select date_trunc('hour','12:00+02'::timetz);
-- ERROR 42883: function date_trunc(unknown, time with time zone) does not exist
select date_trunc('hour','12:34'::time);
-- 12:00:00
select justify_hours('12:00'::time);
-- 12:00:00
select '12:00+02'::timetz in ('10:00+00', '12:00+02'), '12:00+02'::timetz between '11:59+02' and '12:01+02', '12:00+02'::timetz = any('{12:00+02}');
-- t|t|t
select generate_series('12:00+02'::timetz, '13:00+02', '1 hour');
-- ERROR 42883: function generate_series(time with time zone, unknown, unknown) does not exist
select sum('12:00+02'::timetz);
-- ERROR 42883: function sum(time with time zone) does not exist
select make_time(1,2,3)::timetz at time zone 'UTC' is not null;
-- t
set timezone = 'Europe/Berlin';
select '2020-07-01 12:00'::timestamp at time zone 'CET', '2020-07-01 12:00'::timestamp at time zone 'Europe/Paris', '2020-07-01 12:00'::timestamp at time zone 'cest';
-- 2020-07-01 13:00:00+02|2020-07-01 12:00:00+02|2020-07-01 12:00:00+02
select make_timestamptz(2014, 12, 10, 0, 0, 0, '+1'), make_timestamptz(2014, 12, 10, 0, 0, 0, '-02:30'), make_timestamptz(2014, 12, 10, 0, 0, 0, 'PST');
-- 2014-12-10 00:00:00+01|2014-12-10 03:30:00+01|2014-12-10 09:00:00+01
select make_timestamptz(2014, 12, 10, 0, 0, 0, '1');
-- ERROR 22023: invalid input syntax for type numeric time zone: "1"
select make_timestamptz(2014, 12, 10, 0, 0, 0, '+16');
-- ERROR 22023: numeric time zone "+16" out of range
select date_trunc('day', '2020-07-01 23:30+00'::timestamptz, 'PST'), date_trunc('day', '2020-07-01 23:30+00'::timestamptz, '-05');
-- 2020-07-01 10:00:00+02|2020-07-01 21:00:00+02
select '{now}'::timestamptz[] = array[now()], '{today,tomorrow}'::date[] = array[current_date, current_date + 1], '{now}'::timetz[] = array[current_time];
-- t|t|t
select ('12:00'::time, '1 hour'::interval) overlaps ('13:00'::time, null::interval), ('2020-01-01'::timestamp, null::interval) overlaps ('2019-01-01'::timestamp, '2 years'::interval);
-- NULL|t
select current_time(0) - current_time;
-- ERROR 42883: operator does not exist: time with time zone - time with time zone
select current_time = now()::timetz, localtime = now()::time, current_time(3) = now()::timetz(3), localtimestamp(2) = now()::timestamp(2), localtime(1) = now()::time(1);
-- t|t|t|t|t
select 'today'::time;
-- ERROR 22007: invalid input syntax for type time: "today"
select 'tomorrow'::timetz;
-- ERROR 22007: invalid input syntax for type time with time zone: "tomorrow"
select '12:00+02'::timetz::varchar(5), cast('12:00+02' as time(0) with time zone), time(2) with time zone '1:2:3.456+1';
-- 12:00|12:00:00+02|01:02:03.46+01
select '040506.789+08'::timetz, '0405-08'::timetz, '040506.5-08:30'::timetz, '0405'::time, '040506.789'::time;
-- 04:05:06.789+08|04:05:00-08|04:05:06.5-08:30|04:05:00|04:05:06.789
select 'J2451187 04:05:06 PST'::timetz, 'Jan 1 2020 04:05 America/New_York'::timetz, '04:05:06 UTC'::timetz, '04:05:06 Etc/GMT+3'::timetz, 'T040506-08'::timetz;
-- ERROR 22007: invalid input syntax for type time with time zone: "Jan 1 2020 04:05 America/New_York"
select max(x), min(x) from (select null::timetz as x) q;
-- NULL|NULL
select nullif('12:00+02'::timetz, '12:00+02'), '12:00+02'::timetz is distinct from null, count('12:00+02'::timetz);
-- NULL|t|1
select lag(x) over (order by x), rank() over (order by x) from (values ('12:00+02'::timetz), ('11:00+01')) v(x);
-- NULL|1
-- 12:00:00+02|2
select percentile_disc(0.5) within group (order by x) from (values ('12:00+02'::timetz), ('11:00+01'), ('10:00+00')) v(x);
-- 11:00:00+01
select x from (select '12:00+02'::timetz union select '12:00+02'::timetz union select '11:00+01') q(x) order by 1;
-- 12:00:00+02
-- 11:00:00+01
select '12:00+02'::timetz + '12:00'::time;
-- 00:00:00+02
select timetz('12:00:01.55+02'::timetz, 1);
-- 12:00:01.6+02
select 'timestamp(3) with time zone'::regtype, 'numeric(10,2)'::regtype, 'interval(3)'::regtype;
-- timestamp with time zone|numeric|interval
CREATE TABLE al (a uuid, b name, c int8[], d text[], e timetz[], f "char", g bool, h interval, i float4[]);
SELECT attname, attalign FROM pg_attribute WHERE attrelid = 'al'::regclass AND attnum > 0 ORDER BY attnum;
-- a|c
-- b|c
-- c|d
-- d|i
-- e|d
-- f|c
-- g|c
-- h|d
-- i|i
select '{2020-01-01 12:00}'::timestamptz[];
-- {"2020-01-01 12:00:00+01"}
CREATE INDEX ON al ((h::text));
-- ERROR 42P17: functions in index expression must be marked IMMUTABLE
select '12:00+02'::timetz::int;
-- ERROR 42846: cannot cast type time with time zone to integer
select '2020-01-01'::date + '12:00+02';
-- ERROR 42725: operator is not unique: date + unknown
select jsonb_build_object('a', array['12:00+02'::timetz]), to_jsonb(row('12:00+02'::timetz));
-- {"a": ["12:00:00+02"]}|{"f1": "12:00:00+02"}
select oid, proname, prorettype::regtype, proargtypes, provolatile, proisstrict from pg_proc where proname in ('timetz', 'overlaps') or (1266 = any(proargtypes) and proname in ('timezone', 'extract', 'date_part', 'max')) order by oid;
-- 1271|overlaps|boolean|1266 1266 1266 1266|i|f
-- 1273|date_part|double precision|25 1266|i|t
-- 1304|overlaps|boolean|1184 1184 1184 1184|i|f
-- 1305|overlaps|boolean|1184 1186 1184 1186|s|f
-- 1306|overlaps|boolean|1184 1184 1184 1186|s|f
-- 1307|overlaps|boolean|1184 1186 1184 1184|s|f
-- 1308|overlaps|boolean|1083 1083 1083 1083|i|f
-- 1309|overlaps|boolean|1083 1186 1083 1186|i|f
-- 1310|overlaps|boolean|1083 1083 1083 1186|i|f
-- 1311|overlaps|boolean|1083 1186 1083 1083|i|f
-- 1388|timetz|time with time zone|1184|s|t
-- 1969|timetz|time with time zone|1266 23|i|t
-- 2037|timezone|time with time zone|25 1266|s|t
-- 2038|timezone|time with time zone|1186 1266|i|t
-- 2041|overlaps|boolean|1114 1114 1114 1114|i|f
-- 2042|overlaps|boolean|1114 1186 1114 1186|i|f
-- 2043|overlaps|boolean|1114 1114 1114 1186|i|f
-- 2044|overlaps|boolean|1114 1186 1114 1114|i|f
-- 2047|timetz|time with time zone|1083|s|t
-- 2124|max|time with time zone|1266|i|f
-- 6201|extract|numeric|25 1266|i|t
