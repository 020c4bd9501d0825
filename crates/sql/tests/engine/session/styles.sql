-- DateStyle and IntervalStyle: what is written, what is read, and what no plan may keep.

SHOW DateStyle;
-- ISO, MDY
SHOW IntervalStyle;
-- postgres
SET timezone = 'Europe/Berlin';
CREATE TABLE d (id int PRIMARY KEY, a date, b timestamp, c timestamptz, i interval, l date[]);
INSERT INTO d VALUES (1, '1997-12-07', '1997-12-07 07:37:16.5', '1997-12-07 07:37:16+00', '1 year 2 mons 3 days 04:05:06.7', '{2020-01-02,NULL}'), (2, '0044-03-15 BC', '0044-03-15 01:02:03 BC', '0044-03-15 01:02:03+00 BC', '-1 mon 2 days -00:00:00.5', '{}'), (3, '12345-01-02', 'infinity', '2020-07-01 12:00:00+00', '-1 day', NULL), (4, '-infinity', '2000-02-29', '-infinity', '0', NULL);
SET datestyle = 'SQL, DMY';
SHOW datestyle;
-- SQL, DMY
SELECT a, b, c FROM d ORDER BY id;
-- 07/12/1997|07/12/1997 07:37:16.5|07/12/1997 08:37:16 CET
-- 15/03/0044 BC|15/03/0044 01:02:03 BC|15/03/0044 01:55:31 LMT BC
-- 02/01/12345|infinity|01/07/2020 14:00:00 CEST
-- -infinity|29/02/2000 00:00:00|-infinity
SELECT a::text, b::text || '!', c::text, l, row(a, b), format('%s', a), concat(b, '.') FROM d WHERE id = 1;
-- 07/12/1997|07/12/1997 07:37:16.5!|07/12/1997 08:37:16 CET|{02/01/2020,NULL}|(07/12/1997,"07/12/1997 07:37:16.5")|07/12/1997|07/12/1997 07:37:16.5.
SELECT date '01/02/2003', '01/02/03'::timestamp, '3/4/2005 06:07'::timestamp, timestamptz '13/12/2003 10:00 UTC';
-- 01/02/2003|01/02/2003 00:00:00|03/04/2005 06:07:00|13/12/2003 11:00:00 CET
SELECT date '02/13/2003';
-- ERROR 22008: date/time field value out of range: "02/13/2003"
SET datestyle = SQL;
SHOW datestyle;
-- SQL, DMY
SET datestyle = 'MDY';
SHOW datestyle;
-- SQL, MDY
SELECT a, b, c FROM d ORDER BY id;
-- 12/07/1997|12/07/1997 07:37:16.5|12/07/1997 08:37:16 CET
-- 03/15/0044 BC|03/15/0044 01:02:03 BC|03/15/0044 01:55:31 LMT BC
-- 01/02/12345|infinity|07/01/2020 14:00:00 CEST
-- -infinity|02/29/2000 00:00:00|-infinity
SELECT date '01/02/2003', '01/02/03'::timestamp;
-- 01/02/2003|01/02/2003 00:00:00
SET datestyle = 'SQL, YMD';
SELECT a, b, c FROM d ORDER BY id;
-- 12/07/1997|12/07/1997 07:37:16.5|12/07/1997 08:37:16 CET
-- 03/15/0044 BC|03/15/0044 01:02:03 BC|03/15/0044 01:55:31 LMT BC
-- 01/02/12345|infinity|07/01/2020 14:00:00 CEST
-- -infinity|02/29/2000 00:00:00|-infinity
SELECT date '01/02/03', date '2003/01/02', date '8 Jan 1999', date 'Jan 8 1999', date '1999 Jan 8';
-- 02/03/2001|01/02/2003|01/08/1999|01/08/1999|01/08/1999
SELECT date '01/02/2003';
-- ERROR 22008: date/time field value out of range: "01/02/2003"
SELECT date 'Jan 8 99';
-- ERROR 22008: date/time field value out of range: "Jan 8 99"
SET datestyle = 'Postgres';
SHOW datestyle;
-- Postgres, YMD
SET datestyle = 'Postgres, DMY';
SELECT a, b, c FROM d ORDER BY id;
-- 07-12-1997|Sun 07 Dec 07:37:16.5 1997|Sun 07 Dec 08:37:16 1997 CET
-- 15-03-0044 BC|Fri 15 Mar 01:02:03 0044 BC|Fri 15 Mar 01:55:31 0044 LMT BC
-- 02-01-12345|infinity|Wed 01 Jul 14:00:00 2020 CEST
-- -infinity|Tue 29 Feb 00:00:00 2000|-infinity
SELECT date '01-02-2003', date '8-Jan-99', timestamp 'Fri 15 Mar 01:02:03 0044 BC', timestamptz 'Sun 07 Dec 08:37:16.5 1997 CET';
-- 01-02-2003|08-01-1999|Fri 15 Mar 01:02:03 0044 BC|Sun 07 Dec 08:37:16.5 1997 CET
SET datestyle = 'Postgres, MDY';
SELECT a, b, c FROM d ORDER BY id;
-- 12-07-1997|Sun Dec 07 07:37:16.5 1997|Sun Dec 07 08:37:16 1997 CET
-- 03-15-0044 BC|Fri Mar 15 01:02:03 0044 BC|Fri Mar 15 01:55:31 0044 LMT BC
-- 01-02-12345|infinity|Wed Jul 01 14:00:00 2020 CEST
-- -infinity|Tue Feb 29 00:00:00 2000|-infinity
SELECT timestamp 'Sun Dec 07 07:37:16.5 1997', date '01-02-2003';
-- Sun Dec 07 07:37:16.5 1997|01-02-2003
SET datestyle = German;
SHOW datestyle;
-- German, DMY
SELECT a, b, c FROM d ORDER BY id;
-- 07.12.1997|07.12.1997 07:37:16.5|07.12.1997 08:37:16 CET
-- 15.03.0044 BC|15.03.0044 01:02:03 BC|15.03.0044 01:55:31 LMT BC
-- 02.01.12345|infinity|01.07.2020 14:00:00 CEST
-- -infinity|29.02.2000 00:00:00|-infinity
SELECT date '01.02.2003', timestamp '07.12.1997 07:37:16.5', timestamptz '07.12.1997 07:37:16 CET';
-- 01.02.2003|07.12.1997 07:37:16.5|07.12.1997 07:37:16 CET
SET datestyle = 'German, MDY';
SHOW datestyle;
-- German, MDY
SELECT a, date '02.13.2003' FROM d WHERE id = 1;
-- 07.12.1997|13.02.2003
SET datestyle = 'European';
SHOW datestyle;
-- German, DMY
SET datestyle = 'ISO';
SHOW datestyle;
-- ISO, DMY
SET datestyle = 'ISO, SQL';
-- ERROR 22023: invalid value for parameter "DateStyle": "ISO, SQL"
SET datestyle = 'nosuch';
-- ERROR 22023: invalid value for parameter "DateStyle": "nosuch"
SET datestyle = 'default';
SHOW datestyle;
-- ISO, MDY
SELECT set_config('DateStyle', 'SQL, DMY', false);
-- SQL, DMY
SELECT current_setting('datestyle'), a FROM d WHERE id = 1;
-- SQL, DMY|07/12/1997

--- Plans and constants do not keep a style.
PREPARE p AS SELECT a, a::text, date '2003-02-01'::text, i::text, interval '-1 day 2:00'::text FROM d WHERE id = $1;
EXECUTE p (1);
-- 07/12/1997|07/12/1997|01/02/2003|1 year 2 mons 3 days 04:05:06.7|-1 days +02:00:00
SET datestyle = 'ISO, MDY';
EXECUTE p (1);
-- 1997-12-07|1997-12-07|2003-02-01|1 year 2 mons 3 days 04:05:06.7|-1 days +02:00:00
SET intervalstyle = iso_8601;
EXECUTE p (1);
-- 1997-12-07|1997-12-07|2003-02-01|P1Y2M3DT4H5M6.7S|P-1DT2H
RESET intervalstyle;
SET datestyle = German;
EXECUTE p (1);
-- 07.12.1997|07.12.1997|01.02.2003|1 year 2 mons 3 days 04:05:06.7|-1 days +02:00:00
SELECT a::text AS t, count(*) FROM d WHERE id = 1 GROUP BY a::text;
-- 07.12.1997|1
SELECT id FROM d WHERE a::text = '07.12.1997';
-- 1
SELECT id FROM d WHERE a = '07.12.1997';
-- 1
SELECT to_json(a), to_jsonb(b), to_json(c), json_build_object('a', a, 'i', i) FROM d WHERE id = 1;
-- "1997-12-07"|"1997-12-07T07:37:16.5"|"1997-12-07T08:37:16+01:00"|{"a" : "1997-12-07", "i" : "1 year 2 mons 3 days 04:05:06.7"}
SELECT array_agg(a ORDER BY id) FROM d WHERE id < 3;
-- {07.12.1997,"15.03.0044 BC"}
SELECT array_to_string(array_agg(b ORDER BY id), ';') FROM d WHERE id < 3;
-- 07.12.1997 07:37:16.5;15.03.0044 01:02:03 BC
SELECT date '2020-01-02' || '', 'x' || timestamp '2020-01-02 03:04';
-- 02.01.2020|x02.01.2020 03:04:00
SELECT to_char(a, 'YYYY-MM-DD'), extract(year FROM a) FROM d WHERE id = 1;
-- 1997-12-07|1997
CREATE INDEX d_text ON d ((a::text));
-- ERROR 42P17: functions in index expression must be marked IMMUTABLE
BEGIN;
SET LOCAL datestyle = 'SQL, MDY';
SELECT a FROM d WHERE id = 1;
-- 12/07/1997
ROLLBACK;
SELECT a FROM d WHERE id = 1;
-- 07.12.1997
SET datestyle = 'SQL, DMY';
SET timezone = '+05:30';
SET timezone = 'Asia/Dubai';
SELECT c FROM d WHERE id = 1;
-- 07/12/1997 11:37:16 +04
SET timezone = 'UTC';
SELECT c FROM d WHERE id = 1;
-- 07/12/1997 07:37:16 UTC
SET datestyle = 'ISO, MDY';

--- Intervals.
CREATE TABLE i (id serial PRIMARY KEY, v interval);
INSERT INTO i (v) VALUES ('1-2'), ('3 4:05:06'), ('-1-2 3 -4:05:06.789'), ('0'), ('1 year 2 mons -3 days 04:05:06.70'), ('-00:00:00.5'), ('1 mon'), ('-1 day'), ('-1 day -2:00'), ('5 days'), ('1 year -1 day'), ('1 day 00:00:01'), ('-1 mon 2 days'), ('-3 days +04:00:00.000001'), ('100:00:00'), ('00:00:01.5'), ('-00:00:01'), ('1 hour'), ('-1 years -2 mons'), ('00:01:00');
SET intervalstyle = postgres_verbose;
SHOW intervalstyle;
-- postgres_verbose
SELECT v FROM i ORDER BY id;
-- @ 1 year 2 mons
-- @ 3 days 4 hours 5 mins 6 secs
-- @ 1 year 2 mons -3 days 4 hours 5 mins 6.789 secs ago
-- @ 0
-- @ 1 year 2 mons -3 days 4 hours 5 mins 6.7 secs
-- @ 0.5 secs ago
-- @ 1 mon
-- @ 1 day ago
-- @ 1 day 2 hours ago
-- @ 5 days
-- @ 1 year -1 days
-- @ 1 day 1 sec
-- @ 1 mon -2 days ago
-- @ 3 days -4 hours -0.000001 secs ago
-- @ 100 hours
-- @ 1.5 secs
-- @ 1 sec ago
-- @ 1 hour
-- @ 1 year 2 mons ago
-- @ 1 min
SELECT interval '@ 1 year 2 mons -3 days 4 hours 5 mins 6.789 secs ago', '@ 1 day'::interval, '-1 2:03:04'::interval;
-- @ 1 year 2 mons -3 days 4 hours 5 mins 6.789 secs ago|@ 1 day|@ 1 day -2 hours -3 mins -4 secs ago
SET intervalstyle = sql_standard;
SELECT v FROM i ORDER BY id;
-- 1-2
-- 3 4:05:06
-- -1-2 +3 -4:05:06.789
-- 0
-- +1-2 -3 +4:05:06.7
-- -0:00:00.5
-- 0-1
-- -1 0:00:00
-- -1 2:00:00
-- 5 0:00:00
-- +1-0 -1 +0:00:00
-- 1 0:00:01
-- -0-1 +2 +0:00:00
-- +0-0 -3 +4:00:00.000001
-- 100:00:00
-- 0:00:01.5
-- -0:00:01
-- 1:00:00
-- -1-2
-- 0:01:00
SELECT interval '-1 2:03:04', interval '-1-2 3 4:05:06', interval '-1 day 2:00', interval '-23 hours 45 min', interval '-1 12:34:56.7', interval '-2 days +3:00', interval '1 -2:03', interval '-1.5 days 3 hours';
-- -1 2:03:04|-1-2 -3 -4:05:06|-1 2:00:00|-23:45:00|-1 12:34:56.7|+0-0 -2 +3:00:00|+0-0 +1 -2:03:00|-1 15:00:00
SELECT '-1 2:03:04'::interval = interval '-1 day -2:03:04', interval '-1' day, interval '-1 2' day to hour;
-- t|-1 0:00:00|-1 2:00:00
SET intervalstyle = iso_8601;
SELECT v FROM i ORDER BY id;
-- P1Y2M
-- P3DT4H5M6S
-- P-1Y-2M3DT-4H-5M-6.789S
-- PT0S
-- P1Y2M-3DT4H5M6.7S
-- PT-0.5S
-- P1M
-- P-1D
-- P-1DT-2H
-- P5D
-- P1Y-1D
-- P1DT1S
-- P-1M2D
-- P-3DT4H0.000001S
-- PT100H
-- PT1.5S
-- PT-1S
-- PT1H
-- P-1Y-2M
-- PT1M
SELECT '-1 2:03:04'::interval, interval 'P1Y2M3DT4H5M6.5S', ARRAY[interval '1 day', '2:00'], interval '1 day'::text || '!';
-- P-1DT2H3M4S|P1Y2M3DT4H5M6.5S|{P1D,PT2H}|P1D!
SET intervalstyle = postgres;
SELECT v FROM i ORDER BY id LIMIT 6;
-- 1 year 2 mons
-- 3 days 04:05:06
-- -1 years -2 mons +3 days -04:05:06.789
-- 00:00:00
-- 1 year 2 mons -3 days +04:05:06.7
-- -00:00:00.5
SELECT '-1 2:03:04'::interval;
-- -1 days +02:03:04
SET intervalstyle = nosuch;
-- ERROR 22023: invalid value for parameter "intervalstyle": "nosuch"
RESET intervalstyle;
SHOW intervalstyle;
-- postgres
