create table t (a int primary key, b text, v varchar(5), c char(3), i int[], j jsonb, n numeric, o oid);
create index on t (b nosuch_ops);
-- ERROR 42704: operator class "nosuch_ops" does not exist for access method "btree"
create index on t (b text_pattern_ops);
create index on t (b pg_catalog.text_ops);
create index on t (b varchar_pattern_ops desc nulls last, v text_ops asc);
create index on t (a text_ops);
-- ERROR 42804: operator class "text_ops" does not accept data type integer
create index on t (b int4_ops);
-- ERROR 42804: operator class "int4_ops" does not accept data type text
create index on t (a int8_ops);
-- ERROR 42804: operator class "int8_ops" does not accept data type integer
create index on t (a int4_ops desc);
create index on t (a oid_ops);
create index on t (c text_pattern_ops);
-- ERROR 42804: operator class "text_pattern_ops" does not accept data type character
create index on t (v bpchar_pattern_ops);
create index on t (j jsonb_path_ops);
-- ERROR 42704: operator class "jsonb_path_ops" does not exist for access method "btree"
create index on t (lower(b) text_pattern_ops, (a + 1) int4_ops);
create index on t (lower(b) int4_ops);
-- ERROR 42804: operator class "int4_ops" does not accept data type text
create index on t (i array_ops);
create index on t (n numeric_ops, o oid_ops);
create unique index on t (b collate "C" text_pattern_ops);
create table u (a int primary key, b text);
insert into u values (1, 'a');
insert into u table u on conflict do nothing;
insert into u table u on conflict (a) do update set b = excluded.b || 'z' returning *;
-- 1|az
insert into u (a, b) table u on conflict (a) do nothing returning a;
with x as (select 9, 'x') insert into u table x on conflict do nothing returning *;
-- 9|x
insert into u table u;
-- ERROR 23505: duplicate key value violates unique constraint "u_pkey"
insert into t (a, n) values (1, 1.5), (2, 2.5), (3, null);
create view v1 as select b, count(*) from t group by b;
create view v2 as select a from t order by n;
create view v3 as select a from t where v is not null;
create view v4 as select t.a from t join u using (a);
create view v5 as select count(*) from t group by c;
alter table t alter column b type varchar(10);
-- ERROR 0A000: cannot alter type of a column used by a view or rule
alter table t alter column n type numeric(10,2);
-- ERROR 0A000: cannot alter type of a column used by a view or rule
alter table t alter column v type varchar(10);
-- ERROR 0A000: cannot alter type of a column used by a view or rule
alter table u alter column a type bigint;
-- ERROR 0A000: cannot alter type of a column used by a view or rule
alter table t alter column c type char(5);
-- ERROR 0A000: cannot alter type of a column used by a view or rule
alter table t alter column o type int8;
drop view v1, v2, v3, v4, v5;
alter table t alter column n type numeric(10,2);
alter table t alter column b type varchar(10);
select n from t order by a;
-- 1.50
-- 2.50
-- NULL
set wal_level = 'replica';
-- ERROR 55P02: parameter "wal_level" cannot be changed without restarting the server
set ssl = off;
-- ERROR 55P02: parameter "ssl" cannot be changed now
reset wal_level;
-- ERROR 55P02: parameter "wal_level" cannot be changed without restarting the server
set shared_buffers = '128MB';
-- ERROR 55P02: parameter "shared_buffers" cannot be changed without restarting the server
set integer_datetimes = on;
-- ERROR 55P02: parameter "integer_datetimes" cannot be changed
set lc_collate = 'C';
-- ERROR 55P02: parameter "lc_collate" cannot be changed
set is_superuser = on;
-- ERROR 55P02: parameter "is_superuser" cannot be changed
set server_encoding = 'UTF8';
-- ERROR 55P02: parameter "server_encoding" cannot be changed
select set_config('wal_level', 'replica', false);
-- ERROR 55P02: parameter "wal_level" cannot be changed without restarting the server
show wal_level;
-- replica
create table w (g int, a int, ts timestamp, d date, tm time, tz timetz, i interval, n numeric, f float8, r float4, h int8, s int2, b text);
insert into w select x % 3, x, timestamp '2024-01-01' + x * interval '1 day', date '2024-01-01' + x, time '00:00' + x * interval '3 hours', time with time zone '00:00+00' + x * interval '2 hours', x * interval '1 day', x / 3.0, x / 7.0, x / 7.0, 9007199254740990 + x, x, x::text from generate_series(1, 7) x;
insert into w default values;
select a, sum(a) over (order by a rows between 1 preceding and 1 following exclude current row) from w order by a;
-- 1|2
-- 2|4
-- 3|6
-- 4|8
-- 5|10
-- 6|12
-- 7|6
-- NULL|7
select a, sum(a) over (order by g rows between unbounded preceding and unbounded following exclude group) from w order by a;
-- 1|16
-- 2|21
-- 3|19
-- 4|16
-- 5|21
-- 6|19
-- 7|16
-- NULL|28
select g, sum(a) over (order by g range between unbounded preceding and current row exclude ties), count(*) over (order by g groups between 1 preceding and 1 following exclude ties) from w order by g, a;
-- 0|3|4
-- 0|6|4
-- 1|10|5
-- 1|13|5
-- 1|16|5
-- 2|23|5
-- 2|26|5
-- NULL|28|3
select a, sum(a) over (order by a rows between 1 preceding and 1 following exclude no others), sum(a) over (partition by g rows between unbounded preceding and unbounded following exclude current row), count(*) over (rows between unbounded preceding and unbounded following exclude current row) from w order by a;
-- 1|3|11|7
-- 2|6|5|7
-- 3|9|6|7
-- 4|12|8|7
-- 5|15|2|7
-- 6|18|3|7
-- 7|13|5|7
-- NULL|7|NULL|7
select a, first_value(a) over x, last_value(a) over x, nth_value(a, 2) over x, nth_value(a, null) over x from w window x as (order by g, a rows between 2 preceding and 2 following exclude current row) order by g, a;
-- 3|6|1|1|NULL
-- 6|3|4|1|NULL
-- 1|3|7|6|NULL
-- 4|6|2|1|NULL
-- 7|1|5|4|NULL
-- 2|4|NULL|7|NULL
-- 5|7|NULL|2|NULL
-- NULL|2|5|5|NULL
select a, sum(a) over (x rows 2 preceding exclude current row) from w window x as (order by a) order by a;
-- 1|NULL
-- 2|1
-- 3|3
-- 4|5
-- 5|7
-- 6|9
-- 7|11
-- NULL|13
select a, row_number() over (order by a rows 2 preceding exclude current row), rank() over (order by g range between unbounded preceding and current row exclude ties) from w order by a;
-- 1|1|3
-- 2|2|6
-- 3|3|1
-- 4|4|3
-- 5|5|6
-- 6|6|1
-- 7|7|3
-- NULL|8|8
create view vw as select a, sum(a) over (order by a rows between 1 preceding and 1 following exclude current row) s from w;
select pg_get_viewdef('vw'::regclass) like '%EXCLUDE CURRENT ROW%', position('exclude' in pg_get_viewdef('vw'::regclass));
-- t|0
select * from vw order by a;
-- 1|2
-- 2|4
-- 3|6
-- 4|8
-- 5|10
-- 6|12
-- 7|6
-- NULL|7
select a as exclude, sum(a) over (order by a rows 1 preceding) from w order by exclude limit 2;
-- 1|1
-- 2|3
select a, count(*) over (order by tm range between interval '3 hours' preceding and interval '6 hours' following) from w order by a;
-- 1|3
-- 2|4
-- 3|4
-- 4|4
-- 5|4
-- 6|3
-- 7|2
-- NULL|1
select a, count(*) over (order by tm desc range between '3 hours' preceding and '20 hours' following) from w order by a;
-- 1|2
-- 2|3
-- 3|4
-- 4|5
-- 5|6
-- 6|7
-- 7|7
-- NULL|1
select a, count(*) over (order by tz range between interval '2 hours' preceding and interval '4 hours' following) from w order by a;
-- 1|3
-- 2|4
-- 3|4
-- 4|4
-- 5|4
-- 6|3
-- 7|2
-- NULL|1
select f, count(*) over (order by f range between cast('inf' as float8) preceding and cast('inf' as float8) following) from (values ('-inf'::float8),(1),('inf'),('nan')) v(f) order by f;
-- -Infinity|3
-- 1|3
-- Infinity|3
-- NaN|1
select a, count(*) over (order by i range between interval '1 day' preceding and interval '2 days' following) from w order by a;
-- 1|3
-- 2|4
-- 3|4
-- 4|4
-- 5|4
-- 6|3
-- 7|2
-- NULL|1
select a, count(*) over (order by i desc range between '1 day' preceding and '2 days' following exclude current row) from w order by a;
-- 1|1
-- 2|2
-- 3|3
-- 4|3
-- 5|3
-- 6|3
-- 7|2
-- NULL|0
select a, count(*) over (order by n range between 0.5 preceding and 1 following), count(*) over (order by n desc range 1 preceding), count(*) over (order by f range between 0.2 preceding and 0.3 following), count(*) over (order by r range between 0.2 preceding and 1 following) from w order by a;
-- 1|4|4|3|7
-- 2|4|3|4|7
-- 3|5|4|4|6
-- 4|5|4|4|5
-- 5|4|3|4|4
-- 6|3|2|3|3
-- 7|2|1|2|2
-- NULL|1|1|1|1
select a, count(*) over (order by h range between 1 preceding and 0 following), count(*) over (order by s range between 1 preceding and 2::int8 following), count(*) over (order by h range between 9223372036854775807 preceding and 9223372036854775807 following) from w order by a;
-- 1|1|3|7
-- 2|2|4|7
-- 3|2|4|7
-- 4|2|4|7
-- 5|2|4|7
-- 6|2|3|7
-- 7|2|2|7
-- NULL|1|1|1
select a, count(*) over (order by d range between 1 preceding and 1 following) from w;
-- ERROR 0A000: RANGE with offset PRECEDING/FOLLOWING is not supported for column type date and offset type integer
select a, count(*) over (order by b range between 1 preceding and 1 following) from w;
-- ERROR 0A000: RANGE with offset PRECEDING/FOLLOWING is not supported for column type text
select a, count(*) over (order by h range between 1.5 preceding and 1 following) from w;
-- ERROR 0A000: RANGE with offset PRECEDING/FOLLOWING is not supported for column type bigint and offset type numeric
select a, count(*) over (order by a range between null preceding and 1 following) from w;
-- ERROR 22004: frame starting offset must not be null
select a, count(*) over (order by a rows between 1 preceding and null following) from w;
-- ERROR 22004: frame ending offset must not be null
select a, count(*) over (order by a range between -1 preceding and 1 following) from w;
-- ERROR 22013: invalid preceding or following size in window function
select a, count(*) over (order by i range between interval '-1 day' preceding and '1 day' following) from w;
-- ERROR 22013: invalid preceding or following size in window function
select a, count(*) over (order by tm range between interval '-1 hour' preceding and '1 hour' following) from w;
-- ERROR 22013: invalid preceding or following size in window function
select a, count(*) over (order by n range between -1 preceding and 1 following) from w;
-- ERROR 22013: invalid preceding or following size in window function
select a, count(*) over (order by a, g range between 1 preceding and 1 following) from w;
-- ERROR 42P20: RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column
select a, count(*) over (range between 1 preceding and 1 following) from w;
-- ERROR 42P20: RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column
select a, count(*) over (groups between 1 preceding and 1 following) from w;
-- ERROR 42P20: GROUPS mode requires an ORDER BY clause
select concat(variadic array['a', 'b']), concat_ws(',', variadic array['a', null, 'b']), format('%s %s', variadic array[1, 2]), concat(variadic '{{1,2},{3,4}}'::int[]);
-- ab|a,b|1 2|1234
select concat('x', variadic array[]::text[]);
-- ERROR 42883: function concat(unknown, text[]) does not exist
select concat(variadic null::text[]), concat_ws(',', variadic '{}'::text[]), num_nulls(variadic array[1, null, 2]), num_nonnulls(variadic array[1, null, 2]), num_nulls(variadic null::int[]);
-- NULL||1|2|NULL
select json_build_array(variadic array[1, 2]), jsonb_build_object(variadic array['a', 'b']), json_build_array(variadic '{}'::int[]), jsonb_build_array(variadic '{a,b}'::text[]), json_build_object(variadic array['a', 'b']);
-- [1, 2]|{"a": "b"}|[]|["a", "b"]|{"a" : "b"}
select json_extract_path('{"a":{"b":1}}', variadic array['a', 'b']), jsonb_extract_path_text('{"a":{"b":1}}', variadic '{a,b}'), jsonb_extract_path('{"a":1}', variadic array['a', null]);
-- 1|1|NULL
select a, concat(variadic array[a, g]), format(b || '%s%s', variadic array[a, g]) from w where a < 3 order by a;
-- 1|11|111
-- 2|22|222
select json_build_object(variadic array['a', 'b', 'c']);
-- ERROR 22023: argument list must have even number of elements
select format('%s', variadic null::int[]);
-- ERROR 22023: too few arguments for format()
select concat(variadic 'a');
-- ERROR 42804: VARIADIC argument must be an array
select concat(variadic 1);
-- ERROR 42804: VARIADIC argument must be an array
select concat('x', variadic array[1, 2, 3]);
-- ERROR 42883: function concat(unknown, integer[]) does not exist
select format(variadic array['%s']);
-- ERROR 42883: function format(text[]) does not exist
select concat_ws(variadic array[',', 'a']);
-- ERROR 42883: function concat_ws(text[]) does not exist
select abs(variadic array[1]);
-- ERROR 42883: function abs(integer[]) does not exist
select (w).a, (w).* from w where (w).a = 1;
-- 1|1|1|2024-01-02 00:00:00|2024-01-02|03:00:00|02:00:00+00|1 day|0.33333333333333333333|0.14285714285714285|0.14285715|9007199254740991|1|1
select (x).* from (select 1 as p, 2 as q) x, w where w.a = 1;
-- 1|2
select 'a' not like all (select 'b' union select 'c'), 'a' not like all (select 'b' union select 'a'), 'a' like all (select 'a%'), 'a' not ilike all (select 'A'), null not like all (select 'a'), 'a' not like all (select 'a' where false), 'a' like all (values ('a'), ('%'));
-- t|f|t|f|NULL|t|t
select 'a' not like some (array['b']), 'a' like some (select 'a'), 'a' like all (with x as (select 'a') table x);
-- t|t|t
update w set b = 'q' where b like all (select '%' union select '1') returning a;
-- 1
select count(*) from w where b not like any (select 'q' union all select 'q');
-- 6
select corr(x, y) from (values (1e200, 1e200), (2e200, 3e200), (5e200, 1e199)) v(x, y);
-- ERROR 22003: value out of range: overflow
select corr(x, y) from (values (1e308::float8, 1e308::float8), (-1e308, -1e308)) v(x, y);
-- ERROR 22003: value out of range: overflow
select regr_sxx(y, x) from (values (1e200::float8, 1::float8), (-1e200, 2)) v(x, y);
-- ERROR 22003: value out of range: overflow
select regr_syy(y, x) from (values (1::float8, 1e200::float8), (2, -1e200)) v(x, y);
-- ERROR 22003: value out of range: overflow
select regr_avgx(y, x), regr_count(y, x), regr_slope(y, x) from (values ('inf'::float8, 1::float8), (2, 3), (1, 2)) v(x, y);
-- Infinity|3|NaN
select corr(x, y), regr_sxx(y, x), regr_syy(y, x) from (values (1, 2), ('inf'::float8, 1::float8), (2, 3)) v(x, y);
-- NaN|NaN|2
select var_pop(x), stddev(x), avg(x) from (values ('inf'::float8), (1)) v(x);
-- NaN|NaN|Infinity
select var_pop(x), stddev(x), avg(x) from (values (1), ('-inf'::float8)) v(x);
-- NaN|NaN|-Infinity
select var_pop(x), var_samp(x) from (values ('nan'::float8)) v(x);
-- NaN|NULL
select var_samp(x) from (values (1e200::float8), (-1e200)) v(x);
-- ERROR 22003: value out of range: overflow
select length(row(row(row(row(row(row(row(row(row(row(row(row(row(row(row(row(row(row(row(row(1))))))))))))))))))))::text);
-- 1048615
select row(row(row(row(row(row(row(row(row(row(row(row(row(row(row(row(row(row(row(row(1)))))))))))))))))))) = row(row(row(row(row(row(row(row(row(row(row(row(row(row(row(row(row(row(row(row(1))))))))))))))))))));
-- t
select 'a' ~ (repeat('(', 300) || 'a' || repeat(')', 300)), regexp_replace('xaax', repeat('(?:', 900) || 'a+' || repeat(')', 900), 'b'), regexp_match('ab', repeat('((', 150) || 'a' || repeat('))', 150) || 'b') is null;
-- t|xbx|f
create view vv as select concat(variadic array[a, g]) c, a from w;
select pg_get_viewdef('vv'::regclass) ilike '%variadic array%', (select c from vv where a = 1);
-- t|11
table u union table u order by 1;
-- 1|az
-- 9|x
select * from (table u) x where a in (table x_none);
-- ERROR 42P01: relation "x_none" does not exist
select 1 table;
-- 1
create table st (a int, b text, check (num_nulls(variadic array[a, null]) = 1));
insert into st values (1, 'x');
insert into st values (null, 'x');
-- ERROR 23514: new row for relation "st" violates check constraint "st_a_check"
alter table st alter column b set storage nosuch;
-- ERROR 22023: invalid storage type "nosuch"
alter table st alter column b set storage external;
alter table st alter column b set compression nosuch;
-- ERROR 22023: invalid compression method "nosuch"
vacuum (nosuch) st;
-- ERROR 42601: unrecognized VACUUM option "nosuch"
vacuum (skip_locked, truncate off) st;
analyze (nosuch) st;
-- ERROR 42601: unrecognized ANALYZE option "nosuch"
reindex (nosuch) table st;
-- ERROR 42601: unrecognized REINDEX option "nosuch"
cluster (nosuch) st;
-- ERROR 42601: unrecognized CLUSTER option "nosuch"
