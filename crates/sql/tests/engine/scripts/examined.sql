-- Differences that an independent examiner found beside PostgreSQL.

create table k (a int primary key, b text, c char(4), d timestamp);
insert into k values (1, 'x', 'ab', '2024-01-02 03:04:05'), (2, null, null, null);
create table u (n int primary key);
insert into u values (1), (2), (3);
create table t (v1 int primary key, v2 text);
insert into t values (7, 'p'), (8, 'q');
select array_to_json(array_agg(q)) from (select 1 a, 'x' b) q;
-- [{"a":1,"b":"x"}]
select to_json(array_agg(q)) from (select 1 a, 'x' b) q;
-- [{"a":1,"b":"x"}]
select to_jsonb(array_agg(k order by a)) from k;
-- [{"a": 1, "b": "x", "c": "ab  ", "d": "2024-01-02T03:04:05"}, {"a": 2, "b": null, "c": null, "d": null}]
select json_build_object('r', array_agg(q)) from (select 1 a, 'x' b) q;
-- {"r" : [{"a":1,"b":"x"}]}
select array_to_json(array(select q from (select 1 a, 'x' b) q));
-- [{"a":1,"b":"x"}]
select row_to_json(z) from (select array_agg(q) as rows from (select 1 a, 'x' b) q) z;
-- {"rows":[{"a":1,"b":"x"}]}
select to_json(row(1, q)) from (select 1 a, 'x' b) q;
-- {"f1":1,"f2":{"a":1,"b":"x"}}
select json_agg(x) from (select q from (select 1 a, 'x' b) q) x;
-- [{"q":{"a":1,"b":"x"}}]
select json_object_agg(q.a, q) from (select 1 a, 'x' b) q;
-- { "1" : {"a":1,"b":"x"} }
select jsonb_object_agg(q.a, q) from (select 1 a, 'x' b) q;
-- {"1": {"a": 1, "b": "x"}}
select to_json(case when true then q end) from (select 1 a, 'x' b) q;
-- {"a":1,"b":"x"}
select to_json(coalesce(q, q)) from (select 1 a, 'x' b) q;
-- {"a":1,"b":"x"}
select to_json((select q from (select 1 a, 'x' b) q));
-- {"a":1,"b":"x"}
select to_json(first_value(q) over ()) from (select 1 a, 'x' b) q;
-- {"a":1,"b":"x"}
select to_json(lag(q) over (order by a)) from (values (1), (2)) q(a) order by a;
-- NULL
-- {"a":1}
select jsonb_agg(k.* order by a) from k;
-- [{"a": 1, "b": "x", "c": "ab  ", "d": "2024-01-02T03:04:05"}, {"a": 2, "b": null, "c": null, "d": null}]
select json_build_object('x', k.*) from k order by a;
-- {"x" : {"a":1,"b":"x","c":"ab  ","d":"2024-01-02T03:04:05"}}
-- {"x" : {"a":2,"b":null,"c":null,"d":null}}
select json_build_array(k.*, 1) from k order by a;
-- [{"a":1,"b":"x","c":"ab  ","d":"2024-01-02T03:04:05"}, 1]
-- [{"a":2,"b":null,"c":null,"d":null}, 1]
select to_json(k.*) from k order by a;
-- {"a":1,"b":"x","c":"ab  ","d":"2024-01-02T03:04:05"}
-- {"a":2,"b":null,"c":null,"d":null}
select row_to_json(row(k.*, 5)) from k order by a;
-- {"f1":1,"f2":"x","f3":"ab  ","f4":"2024-01-02T03:04:05","f5":5}
-- {"f1":2,"f2":null,"f3":null,"f4":null,"f5":5}
select to_json(row(k.*)) from k order by a;
-- {"f1":1,"f2":"x","f3":"ab  ","f4":"2024-01-02T03:04:05"}
-- {"f1":2,"f2":null,"f3":null,"f4":null}
select json_agg(k) from k where a = 1;
-- [{"a":1,"b":"x","c":"ab  ","d":"2024-01-02T03:04:05"}]
select to_jsonb(q) from (select k, 1 as one from k where a = 1) q;
-- {"k": {"a": 1, "b": "x", "c": "ab  ", "d": "2024-01-02T03:04:05"}, "one": 1}
select to_json(array[q, q]) from (select 1 a, 'x' b) q;
-- [{"a":1,"b":"x"},{"a":1,"b":"x"}]
select to_json(q) from (select 1 "A b", 2 "c""d") q;
-- {"A b":1,"c\"d":2}
select to_json(array_agg(q)) from (values (1, 2)) q;
-- [{"column1":1,"column2":2}]
select to_json(array_agg(q)) from (values (1, 2)) q(x, y);
-- [{"x":1,"y":2}]
select to_json(array_agg(e)) from json_each('{"a":1}') e;
-- [{"key":"a","value":1}]
select to_json(array_agg(e order by e)) from generate_series(1, 3) e;
-- [1,2,3]
select json_agg(x) from (select array_agg(k order by a) g from k) x;
-- [{"g":[{"a":1,"b":"x","c":"ab  ","d":"2024-01-02T03:04:05"},{"a":2,"b":null,"c":null,"d":null}]}]
select to_json(max(q.a)) from (select 1 a, 'x' b) q;
-- 1
select json_build_object('l', u.*) from t left join u on u.n = t.v1 - 6 order by v1;
-- {"l" : {"n":1}}
-- {"l" : {"n":2}}
select v1, to_json(u) from t left join u on u.n = v1 - 6 order by v1;
-- 7|{"n":1}
-- 8|{"n":2}
select count(u.*), count(*) from t left join u on u.n = v1 - 6;
-- 2|2
select count(k.*), count(k), count(k.b) from k;
-- 2|2|1
select count(distinct k.*) from k;
-- 2
select distinct q from (values (1, 'x'), (1, 'x')) q(a, b);
-- (1,x)
select to_json(q) from (select distinct q from (values (1, 'x'), (1, 'x')) q(a, b)) q;
-- {"a":1,"b":"x"}
with w as (select k from k where a = 1) select json_agg(w) from w;
-- [{"k":{"a":1,"b":"x","c":"ab  ","d":"2024-01-02T03:04:05"}}]
select to_json(array_agg(q)) from (select true a, 1.50 b, '2024-01-01'::date c, null::int d, array[1,2] e, '{"z":1}'::jsonb f) q;
-- [{"a":true,"b":1.50,"c":"2024-01-01","d":null,"e":[1,2],"f":{"z": 1}}]
select (select json_agg(x) from u limit 1) from t x;
-- [{"v1":7,"v2":"p"}, 
--  {"v1":8,"v2":"q"}]
select (select count(x) from u limit 1) from t x;
-- 2
select (select count(x.*) from u limit 1) from t x;
-- 2
select (select json_agg(x.*) from u limit 1) from t x;
-- [{"v1":7,"v2":"p"}, 
--  {"v1":8,"v2":"q"}]
select (select array_agg(x order by x.v1) from u limit 1) from t x;
-- {"(7,p)","(8,q)"}
select x.v1, (select count(x) from u) from t x;
-- ERROR 42803: column "x.v1" must appear in the GROUP BY clause or be used in an aggregate function
select (select count(u) from u) from t x order by v1;
-- 3
-- 3
select (select json_agg(u order by n) from u) from t x order by v1;
-- [{"n":1}, 
--  {"n":2}, 
--  {"n":3}]
-- [{"n":1}, 
--  {"n":2}, 
--  {"n":3}]
select (select count(x) from u x) from t x;
-- 3
-- 3
select (select count((x, u.n)) from u) from t x;
-- 3
-- 3
select (select json_agg(v1) from u limit 1) from t x;
-- [7, 8]
select (select jsonb_agg(x order by x.v1) from u limit 1), count(*) from t x;
-- [{"v1": 7, "v2": "p"}, {"v1": 8, "v2": "q"}]|2
select v2, (select to_json(array_agg(x)) from u limit 1) from t x group by v2 order by v2;
-- p|[{"v1":7,"v2":"p"}]
-- q|[{"v1":8,"v2":"q"}]
select (select (select count(x) from u limit 1) from u limit 1) from t x;
-- 2
select 1 from t x where (select count(x) from u) > 0;
-- ERROR 42803: aggregate functions are not allowed in WHERE
select t.v1 from t group by t.v1 having (select count(t) from u limit 1) > 0 order by 1;
-- 7
-- 8
select json_build_array(q, 1), jsonb_build_object('q', q), concat(q), q::text from (select 1 a, 'x' b) q;
-- [{"a":1,"b":"x"}, 1]|{"q": {"a": 1, "b": "x"}}|(1,x)|(1,x)
select to_json(array_agg(e order by e.key)) from json_each('{"a":1,"b":[2]}') e;
-- [{"key":"a","value":1},{"key":"b","value":[2]}]
select to_json(json_each('{"a":1}'));
-- {"key":"a","value":1}
select row_to_json(q, true), array_to_json(array[q, q], true), row_to_json(row(q, 1), true) from (select 1 a, 'x' b) q;
-- {"a":1,
--  "b":"x"}|[{"a":1,"b":"x"},
--  {"a":1,"b":"x"}]|{"f1":{"a":1,"b":"x"},
--  "f2":1}
select to_json(nullif(q, row(1, 2))), to_json(nullif(q, row(1, 3))) from (select 1 a, 2 b) q;
-- NULL|{"a":1,"b":2}
select json_object_agg(k.a, k order by k.a) from k;
-- { "1" : {"a":1,"b":"x","c":"ab  ","d":"2024-01-02T03:04:05"}, "2" : {"a":2,"b":null,"c":null,"d":null} }
select to_json(array_agg(t)) from (select k.*, u.* from k join u on u.n = k.a) t(one);
-- [{"one":1,"b":"x","c":"ab  ","d":"2024-01-02T03:04:05","n":1},{"one":2,"b":null,"c":null,"d":null,"n":2}]
select to_json(x.r) from (select q as r from (select 1 a) q union all select q from (select 2 b) q) x;
-- {"a":1}
-- {"b":2}
select to_json((array_agg(q))[1]) from (select 1 a, 'x' b) q;
-- {"a":1,"b":"x"}
select to_json(array_agg(q)) from (select 'k'::name a, 'pg_class'::regclass b, 5::oid c, 'y'::char(3) d, 1.5::float4 e) q;
-- [{"a":"k","b":"pg_class","c":"5","d":"y  ","e":1.5}]
select count(t.*), count(distinct t) from t;
-- 2|2
select (select string_agg(x::text, ',' order by x) from u limit 1) from t x;
-- (7,p),(8,q)
select (select max(x.v1) + count(x) from u limit 1) from t x;
-- 10
select (select count(x) filter (where x.v1 > 7) from u limit 1) from t x;
-- 1
select (select sum(n) from u having count(x.*) > 1) from t x;
-- 6
select x.v1 from t x order by (select count(x) from u);
-- ERROR 42803: column "x.v1" must appear in the GROUP BY clause or be used in an aggregate function

--- Powers, and what numeric divides.
select 'nan'::numeric^0, 1::numeric^'nan'::numeric, 'nan'::numeric^1, 'inf'::numeric^0, 'inf'::numeric^'nan'::numeric, 2::numeric^0, power('nan'::numeric, 0.00), '-inf'::numeric^0, '-inf'::numeric^3, 'inf'::numeric^(-1), 1::numeric ^ 'inf';
-- 1|1|NaN|1|NaN|1.0000000000000000|1|1|-Infinity|0|1
select gcd(12::numeric, 18), gcd(1.5, 0.5), lcm(1.5, 2), gcd('nan'::numeric, 1), lcm('inf'::numeric, 1), gcd(0::numeric, 0), lcm(0::numeric, 5), gcd(-12.0, 18), gcd(2.0, 3.00), lcm(4.0, 6), gcd(12::int8, 18::numeric), lcm(1e100, 3), gcd(0.05, -0.3), lcm(-0.05, 0.3);
-- 6|0.5|6.0|NaN|NaN|0|0|6.0|1.00|12.0|6|30000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000|0.05|0.30

--- Documents as a whole.
select '|' || (' 1 '::json #>> '{}') || '|', '|' || (' "x" '::json #>> '{}') || '|', '|' || (' [1, 2 ] '::json #>> '{}') || '|', ' null '::json #>> '{}', '|' || (' 1 '::json #> '{}')::text || '|', '|' || json_extract_path_text(' {"a":  1 } ', 'a') || '|';
-- | 1|||x|||[1, 2 ]||NULL|| 1|||1|
select '|' || (' true '::json #>> '{}') || '|', '|' || (' {"a": 1 } '::json #>> '{}') || '|', '|' || (' {"a": [1 ] } '::json #> '{a}')::text || '|', '|' || (' null '::json #> '{}')::text || '|', '|' || (' "x" '::json #> '{}')::text || '|';
-- | true|||{"a": 1 }|||[1 ]||| null||| "x"|

--- Steps of a path that are no numbers.
select jsonb_set('[1]', '{99999999999}', '5');
-- ERROR 22P02: path element at position 1 is not an integer: "99999999999"
select jsonb_set('[1]', '{x}', '5');
-- ERROR 22P02: path element at position 1 is not an integer: "x"
select jsonb_set('[1]', '{-99999999999}', '5');
-- ERROR 22P02: path element at position 1 is not an integer: "-99999999999"
select jsonb_set('[1]', '{2147483647}', '5'), jsonb_set('[1]', '{" 1"}', '5'), jsonb_set('[1]', '{+0}', '5'), jsonb_set('[1]', '{-2147483648}', '5');
-- [1, 5]|[1, 5]|[5]|[5, 1]
select jsonb_set('[1]', '{"1 "}', '5');
-- ERROR 22P02: path element at position 1 is not an integer: "1 "
select jsonb_insert('[1]', '{99999999999}', '5');
-- ERROR 22P02: path element at position 1 is not an integer: "99999999999"
select jsonb_insert('{"a":[1]}', '{a,x}', '5');
-- ERROR 22P02: path element at position 2 is not an integer: "x"
select '[1]'::jsonb #- '{99999999999}';
-- ERROR 22P02: path element at position 1 is not an integer: "99999999999"
select '[1]'::jsonb #- '{x}';
-- ERROR 22P02: path element at position 1 is not an integer: "x"
select jsonb_set('[[1]]', '{0,99999999999}', '5');
-- ERROR 22P02: path element at position 2 is not an integer: "99999999999"
select '[1]'::jsonb #> '{99999999999}', '[1]'::json #> '{99999999999}', '[1,2]'::json #>> '{"1 "}', '[1,2]'::jsonb #>> '{" 1"}', '[1,2]'::json #>> '{4294967296}', '[1,2]'::jsonb #>> '{-4294967296}';
-- NULL|NULL|NULL|2|NULL|NULL

--- Intervals.
select interval '1' day to month;
-- ERROR 42601: syntax error at or near "month"
select interval '1' hour to day;
-- ERROR 42601: syntax error at or near "day"
select interval '1' year to day;
-- ERROR 42601: syntax error at or near "day"
select interval '1' day to year;
-- ERROR 42601: syntax error at or near "year"
select interval '1' minute to hour;
-- ERROR 42601: syntax error at or near "hour"
select interval '1' year to month, interval '1' day to hour, interval '1' day to second, interval '1' minute to second;
-- 1 mon|01:00:00|00:00:01|00:00:01
select timestamp 'epoch' + 9223372036854*interval '1 second';
-- 294247-01-10 04:00:53.999616
select timestamptz 'epoch' + 9223372036854*interval '1 second' = '294247-01-10 04:00:53.999616+00';
-- t
select timestamp 'epoch' + 9224318015999*interval '1 second';
-- ERROR 22008: interval out of range
select 1e13*interval '1 second';
-- ERROR 22008: interval out of range
select timestamp '2000-01-01' + 9223372036854*interval '1 second';
-- ERROR 22008: timestamp out of range
select 2147483647 * interval '1 day', 2147483648 * interval '-1 month';
-- 2147483647 days|-178956970 years -8 mons
select 2147483648 * interval '1 day';
-- ERROR 22008: interval out of range

--- FX is exact.
select to_timestamp('2000    JUN', 'FXYYYY MON');
-- ERROR 22007: invalid value "" for "MON"
select to_timestamp('2000    JUN', 'YYYY MON')::date, to_timestamp('2000 JUN', 'FXYYYY MON')::date, to_timestamp('2000+JUN', 'FXYYYY MON')::date, to_timestamp('2000  JUN', 'FXYYYY  MON')::date, to_timestamp(' 2000 JUN', 'FXYYYY MON')::date;
-- 2000-06-01|2000-06-01|2000-06-01|2000-06-01|2000-06-01
select to_timestamp('2000 + JUN', 'FXYYYY MON');
-- ERROR 22007: invalid value "+" for "MON"
select to_timestamp('2000JUN', 'FXYYYY MON');
-- ERROR 22007: invalid value "UN" for "MON"
select to_timestamp('2000 JUN', 'FXYYYY  MON');
-- ERROR 22007: invalid value "UN" for "MON"
select to_timestamp('2000--JUN', 'FXYYYY-MON');
-- ERROR 22007: invalid value "-JUN" for "MON"
select to_date('1 2 2000', 'FXMM DD YYYY'), to_timestamp('1997-1', 'FXYYYY-MM')::date, to_timestamp('2000-JUN-01 ', 'FXYYYY-MON-DD')::date, to_timestamp('2000 TxtJUN', 'FXYYYY "Txt"MON')::date;
-- 2000-01-02|1997-01-01|2000-06-01|2000-06-01
select to_char(timestamp '2000-06-01', 'FXYYYY  MON');
-- 2000  JUN

--- Bounds of arrays.
select array_append('[2147483646:2147483646]={1}'::int[], 2) || 3;
-- ERROR 54000: array lower bound is too large: 2147483646
select '[2147483646:2147483646]={1}'::int[] || 2;
-- ERROR 54000: array lower bound is too large: 2147483646
select array_append('[2147483645:2147483645]={1}'::int[], 2);
-- [2147483645:2147483646]={1,2}
select array_prepend(0, '[-2147483648:-2147483648]={1}'::int[]);
-- ERROR 22003: integer out of range
select array_prepend(0, '[-2147483647:-2147483647]={1}'::int[]);
-- [-2147483647:-2147483646]={0,1}
select '[2147483646:2147483646]={1}'::int[] || array[2, 3];
-- ERROR 54000: array lower bound is too large: 2147483646
select '[2147483646:2147483646][1:1]={{1}}'::int[] || array[5];
-- ERROR 54000: array lower bound is too large: 2147483646
select '[2147483647:2147483647]={1}'::int[];
-- ERROR 54000: array lower bound is too large: 2147483647
select '[2147483646:2147483647]={1,2}'::int[];
-- ERROR 54000: array lower bound is too large: 2147483646

--- WITH TIES of nothing.
select 1 order by 1 fetch first null rows with ties;
-- ERROR 2201W: row count cannot be null in FETCH FIRST ... WITH TIES clause
select 1 order by 1 fetch first (null) rows with ties;
-- ERROR 2201W: row count cannot be null in FETCH FIRST ... WITH TIES clause
select 1 order by 1 fetch first (null::int) rows with ties;
-- 1
select 1 order by 1 fetch first null rows only;
-- 1
