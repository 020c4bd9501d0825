create table f (x float8, n numeric, i int, d date);
insert into f values (1,1,1,'2020-01-01'),(2,2,2,'2020-01-02'),('inf','inf',3,'infinity'),('nan','nan',4,'2020-01-04'),('-inf','-inf',5,'-infinity');
select x, count(*) over (order by x range '1' preceding) from f order by 1;
-- -Infinity|1
-- 1|1
-- 2|2
-- Infinity|1
-- NaN|1
select x, count(*) over (order by x range between '1' preceding and '1.5' following) from f order by 1;
-- -Infinity|1
-- 1|2
-- 2|2
-- Infinity|1
-- NaN|1
select x, count(*) over (order by x range 'inf'::float8 preceding) from f order by 1;
-- -Infinity|1
-- 1|2
-- 2|3
-- Infinity|4
-- NaN|1
select x, count(*) over (order by x range between 'inf'::float8 preceding and 'inf'::float8 following) from f order by 1;
-- -Infinity|4
-- 1|4
-- 2|4
-- Infinity|4
-- NaN|1
select x, count(*) over (order by x range between 'inf'::float8 following and 'inf'::float8 following) from f order by 1;
-- -Infinity|4
-- 1|1
-- 2|1
-- Infinity|1
-- NaN|1
select x, count(*) over (order by x range 'nan'::float8 preceding) from f order by 1;
-- ERROR 22013: invalid preceding or following size in window function
select x, count(*) over (order by x range '-1'::float8 preceding) from f order by 1;
-- ERROR 22013: invalid preceding or following size in window function
select n, count(*) over (order by n range 'inf'::numeric preceding) from f order by 1;
-- -Infinity|1
-- 1|2
-- 2|3
-- Infinity|4
-- NaN|1
select n, count(*) over (order by n range 1 preceding) from f order by 1;
-- -Infinity|1
-- 1|1
-- 2|2
-- Infinity|1
-- NaN|1
select n, count(*) over (order by n range between 'inf' preceding and 'inf' following) from f order by 1;
-- -Infinity|4
-- 1|4
-- 2|4
-- Infinity|4
-- NaN|1
select n, count(*) over (order by n desc range between 'inf' preceding and 1 following) from f order by 1;
-- -Infinity|4
-- 1|3
-- 2|3
-- Infinity|1
-- NaN|1
select n, count(*) over (order by n desc range between 1 preceding and 1 following) from f order by 1;
-- -Infinity|1
-- 1|2
-- 2|2
-- Infinity|1
-- NaN|1
select i, count(*) over (order by i range '1' preceding) from f order by 1;
-- 1|1
-- 2|2
-- 3|2
-- 4|2
-- 5|2
select i, count(*) over (order by i range 'x' preceding) from f order by 1;
-- ERROR 22P02: invalid input syntax for type integer: "x"
select i, count(*) over (order by i range 1.5 preceding) from f order by 1;
-- ERROR 0A000: RANGE with offset PRECEDING/FOLLOWING is not supported for column type integer and offset type numeric
select d, count(*) over (order by d range '1 day' preceding) from f order by 1;
-- -infinity|1
-- 2020-01-01|1
-- 2020-01-02|2
-- 2020-01-04|1
-- infinity|1
select d, count(*) over (order by d range '1' preceding) from f order by 1;
-- -infinity|1
-- 2020-01-01|1
-- 2020-01-02|1
-- 2020-01-04|1
-- infinity|1
select i, count(*) over (order by i rows '1' preceding) from f order by 1;
-- 1|1
-- 2|2
-- 3|2
-- 4|2
-- 5|2
select i, count(*) over (order by i groups '1' preceding) from f order by 1;
-- 1|1
-- 2|2
-- 3|2
-- 4|2
-- 5|2
select i, count(*) over (order by i rows '1'::int preceding) from f order by 1;
-- 1|1
-- 2|2
-- 3|2
-- 4|2
-- 5|2
select i, count(*) over (order by i rows between abs(-1) preceding and 1+1 following) from f order by 1;
-- 1|3
-- 2|4
-- 3|4
-- 4|3
-- 5|2
select i, count(*) over (order by i rows (select 1) preceding) from f order by 1;
-- 1|1
-- 2|2
-- 3|2
-- 4|2
-- 5|2
select (jsonb_each('{"a":1}')).*;
-- a|1
select (json_each_text('{"a":"b","c":"d"}')).*, 1 as k;
-- a|b|1
-- c|d|1
select (jsonb_each(j)).* from (values ('{"a":1}'::jsonb)) v(j);
-- a|1
select (jsonb_each(j)).key from (values ('{"a":1}'::jsonb)) v(j);
-- a
select (row(1,2)).*;
-- 1|2
create sequence sc cache 5;
select nextval('sc'), setval('sc', 100), nextval('sc'), nextval('sc');
-- 1|100|101|102
select setval('sc', 200, false), nextval('sc'), currval('sc'), lastval();
-- 200|200|200|200
create sequence sd increment 3 cache 4;
select nextval('sd'),nextval('sd'),nextval('sd'),nextval('sd'),nextval('sd');
-- 1|4|7|10|13
select setval('sd',7);
-- 7
select nextval('sd'), nextval('sd');
-- 10|13
select 'a' like any (values ('b'),('a')), 'a' like all (values ('b'),('a')), 'a' not ilike all (values ('b'));
-- t|f|t
create table x1 (a int);
create table x2 (a int);
insert into x1 values (1);
insert into x2 table only x1;
select * from x2;
-- 1
table only x1;
-- 1
insert into x2 table only x1 on conflict do nothing;
select * from (table only x1) q;
-- 1
with q as (table only x1) table q;
-- 1
insert into x2 (table x1);
insert into x2 (table only x1);
create table t9 (c int);
create table u9 (d int);
insert into t9 values (1),(2);
insert into u9 values (1),(2);
select max((select sum(t9.c) from u9)) from t9;
-- ERROR 42803: aggregate function calls cannot be nested
select max((select count(*) from u9)) from t9;
-- 2
select max((select t9.c from u9 limit 1)) from t9;
-- 2
select max((select sum(t9.c + u9.d) from u9)) from t9;
-- 7
select (select sum(t9.c) from u9 limit 1) from t9;
-- 3
select count(*) from t9 where (select sum(t9.c) from u9 limit 1) > 1;
-- ERROR 42803: aggregate functions are not allowed in WHERE
select max(c) over (order by (select sum(t9.c) from u9 limit 1)) from t9;
-- ERROR 42803: column "t9.c" must appear in the GROUP BY clause or be used in an aggregate function
select array_agg(a) from (values (array[1]), (null::int[])) v(a);
-- ERROR 22004: cannot accumulate null arrays
select array_agg(a) from (values (null::int[])) v(a);
-- ERROR 22004: cannot accumulate null arrays
select array_agg(a) from (values (array[1]), (array[1,2])) v(a);
-- ERROR 2202E: cannot accumulate arrays of different dimensionality
select array_agg(a) from (values ('{}'::int[])) v(a);
-- ERROR 2202E: cannot accumulate empty arrays
select * from (x1 join x2 using (a)) q for update of q;
-- ERROR 0A000: FOR UPDATE cannot be applied to a join
select * from x1 a join x2 b using (a) join generate_series(1, 2) c on true for share of c;
-- ERROR 0A000: FOR SHARE cannot be applied to a function
select * from x1 join x2 using (a) where x1.a in (select max(a) from x2) for update of q;
-- ERROR 42P01: relation "q" in FOR UPDATE clause not found in FROM clause
with q as (select * from x1) select * from q join x2 using (a) for no key update of q;
-- ERROR 0A000: FOR NO KEY UPDATE cannot be applied to a WITH query
create view v7 as select (jsonb_each('{"a":1}')).*, (row(1, 2)).*;
select * from v7;
-- a|1|1|2
select (jsonb_each('{"a":1,"b":2}')).*, a from x1 order by 1, 3;
-- a|1|1
-- b|2|1
select (t9).*, (row(c, 'x'::text)).* from t9 order by 1;
-- 1|1|x
-- 2|2|x
insert into x2 table only x1;
select array(select null::int[]);
-- ERROR 22004: cannot accumulate null arrays
select array_agg(a order by a) from (values (null::int[]), (array[1, 2])) v(a);
-- ERROR 22004: cannot accumulate null arrays
select array_agg(distinct a) from (values (null::int[]), (array[1, 2])) v(a);
-- ERROR 22004: cannot accumulate null arrays
select array_agg(a) over () from (values (null::int[]), (array[1, 2])) v(a);
-- ERROR 22004: cannot accumulate null arrays
select array_agg(a) from (values (null::int[]), ('{}'::int[])) v(a);
-- ERROR 22004: cannot accumulate null arrays
select array_agg(a) from (values ('{}'::int[]), (null::int[])) v(a);
-- ERROR 2202E: cannot accumulate empty arrays
select array_agg(a) from (select null::int[] a where false) v;
-- NULL
select array[null::int[], array[1]];
-- ERROR 2202E: multidimensional arrays must have array expressions with matching dimensions
select array_fill(1, array[3], array[2]), array_fill(1, array[2,2], array[0,-1]), array_fill(1, array[0], array[2]), array_fill(1,'{}','{}');
-- [2:4]={1,1,1}|[0:1][-1:0]={{1,1},{1,1}}|{}|{}
select array_fill(1, array[3], null);
-- ERROR 22004: dimension array or low bound array cannot be null
select array_fill(1, null, array[3]);
-- ERROR 22004: dimension array or low bound array cannot be null
select array_fill(1, array[3], array[1,2]);
-- ERROR 2202E: wrong number of array subscripts
select array_fill(1, array[3], array[null]::int[]);
-- ERROR 22004: dimension values cannot be null
select array_fill(1, array[null]::int[]);
-- ERROR 22004: dimension values cannot be null
select array_fill(1, array[-1]);
-- ERROR 54000: array size exceeds the maximum allowed (134217727)
select array_fill(1, array[[1,2]]);
-- ERROR 2202E: wrong number of array subscripts
select array_fill(1, null);
-- ERROR 22004: dimension array or low bound array cannot be null
select array_fill(1, '[2:3]={1,2}'::int[]);
-- {{1,1}}
select array_fill(1, array[2], array[2147483647]);
-- ERROR 54000: array lower bound is too large: 2147483647
select array_fill(1, array[1,1,1,1,1,1,1]);
-- ERROR 54000: number of array dimensions (7) exceeds the maximum allowed (6)
create table follows (active bool, follower text, following text, check (follower <> '' and '' <> following));
insert into follows values (true, 'ann', 'bob'), (false, 'ann', 'cid');
select follower from follows where (active and 'bob' = following);
-- ann
select following from follows where (follower between 'a' and 'm' and (following between 'a' and 'bz' or 'cid' = following)) order by 1;
-- bob
-- cid
select sum(g) over (order by d range between '1 day' preceding and '1 day' following) from (values (1, date '2026-01-01'), (2, date '2026-01-02'), (4, date '2026-01-04')) v(g, d);
-- 3
-- 3
-- 4
