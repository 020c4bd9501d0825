select 1 as one, 'a' as two, null::int as three
select * from t
select id, g as "Group", n + 1 as "n plus" from t where n is not null
select t.*, s.w from t join s on s.id = t.id
select t.id, s.w from t left join s using (id)
select * from t natural join s
select id, x.w from t full join s x using (id)
select j.id from t join s using (id) as j
select a.id as i, b.id as k from t a, t b where a.id < b.id
select * from t cross join (values (1), (2)) v(z)
select g, count(*), sum(n), avg(n) from t group by g having count(*) > 1
select g, n, grouping(g, n), count(*) from t group by grouping sets ((g, n), (g), ())
select g, count(*) from t group by rollup (g)
select g, n, max(id) from t group by cube (g, n)
select distinct g from t
select distinct on (g) g, id from t order by g, id desc
select id from t order by id desc limit 2 offset 1
select id from t order by n nulls first, id fetch first 3 rows with ties
select id, row_number() over (order by id), sum(n) over (partition by g order by id rows between 1 preceding and current row) from t
select id, lag(n, 2, -1) over w, first_value(id) over (w range between unbounded preceding and current row) from t window w as (partition by g order by id)
select id, count(*) over (order by id groups between 1 preceding and 1 following exclude ties) from t
select sum(n) filter (where id > 2), string_agg(g, ',' order by g desc, id), array_agg(distinct g) from t
select percentile_cont(0.5) within group (order by n), mode() within group (order by g) from t
select id from t union select id from s union all select 7
select id from t intersect select id from s except select 1
(select id from t order by id limit 1) union all (select id from s order by id limit 1)
with q as (select id, g from t where id < 4) select q.id, q.g, s.w from q left join s on s.id = q.id
with recursive r(n, p) as (select 1, 1 union all select n + 1, p * 2 from r where n < 5) select * from r
with a as materialized (select id from t), b as not materialized (select id from s) select a.id from a join b using (id)
select id, (select count(*) from s where s.id = t.id) as c from t
select id from t where exists (select 1 from s where s.id = t.id) and id not in (select 9)
select id from t where id = any (select id from s) or n > all (select 5)
select id from t where (id, g) in (select id, w from s)
select array(select id from t order by id) as ids
select t.id, l.x from t, lateral (select t.id * 2 as x) l
select t.id, l.w from t left join lateral (select w from s where s.id = t.id order by w limit 1) l on true
select g.i, g.o from generate_series(1, 3) with ordinality g(i, o)
select * from unnest(array[1, 2], array['a', 'b']) u(x, y)
select case when n > 2 then 'big' when n is null then 'none' else 'small' end as size, case g when 'a' then 1 end from t
select coalesce(n, 0), nullif(g, 'a'), greatest(id, n), least(1, id, 2.5) from t
select id between 2 and 4 as a, id not between symmetric 4 and 2 as b, n is distinct from 2 as c, n is not distinct from null as d from t
select g like 'a%' as a, g not ilike 'B_' as b, g like 'a!%' escape '!' as c, g similar to '(a|b)' as d, g ~ '^a' as e, g !~* 'B' as f from t
select id in (1, 2, 3) as a, id not in (4) as b, n is null as c, (n > 1) is true as d, (n > 1) is not unknown as e from t
select not (id > 2 and n < 3 or g = 'a') as b, -id as neg, +id as pos, @ (id - 5) as abs, id % 2 as odd, 2 ^ id as pow, |/ id as root from t
select id::text || '-' || g as s, id::numeric(10, 2) as n, cast(id as varchar(3)) as v, '5'::int4 as i, g::char(3) as c from t
select date '2024-01-31' + interval '1 month' as d, extract(year from date '2024-05-06') as y, timestamp '2024-01-01 10:00' at time zone 'UTC' as z, interval '1-2' as i, time '10:00' as t
select a[1] as x, a[1:2] as y, a || 5 as z, array[[1, 2], [3, 4]] as w, a @> array[1] as b from (select array[1, 2, 3] as a) q
select '{"a": [1, 2]}'::jsonb -> 'a' ->> 0 as x, '{"a": 1}'::jsonb ? 'a' as y, jsonb_build_object('k', id) #>> '{k}' as z from t
select substring(g from 1 for 2), position('a' in g), overlay(g placing 'x' from 1 for 1), trim(both 'a' from g) as b, trim(leading 'a' from g) as l, upper(g), left(g, 1) from t
select row(id, g) as r, row(id, 1) < row(2, 1) as b, (id, g) = (1, 'b') as c from t where id < 3
select t as whole, to_json(t) as j from t where id < 3
select to_jsonb(x.*) as j, x.* is null as n from t x where id < 3
select "We""ird"."Col umn" as "O'k", 'it''s' as q, E'tab\tnew\n' as e, $$dollar$$ as d, U&'\0061' as u from (select 1 as "Col umn") "We""ird"
select "select"."from" as "where" from (select 1 as "from") as "select"
select 1.50 as a, 1e3 as b, 1e-10 as c, 12345678901234567890 as d, -2147483648 as e, -(-1) as f, - - 1 as g, 'infinity'::float8 as h
select true as a, false as b, null as c, 'x'::bytea as d, '\x41'::bytea as f
select q.* from (select id, g from t where id < 3) q join (s cross join (select 1 as k) o) on q.id = s.id
select current_schema as s, current_user = session_user as u, now() is not null as n, current_date - current_date as d, localtimestamp is not null as l
select v.x, v.y from (values (1, 'a'), (2, null)) as v(x, y) order by v.x desc
values (1, 'a'), (2, null)
table t
select t1.id, t2.id as id2, t3.id as id3 from t t1 join t t2 on t1.id = t2.id + 1 left join (t t3 join s on s.id = t3.id) on t3.id = t2.id
select count(*) as count, count(distinct g) as "count distinct", max(g collate "C") from t
select nextval('sq') > 0 as n, 't'::regclass as r, 'int4'::regtype as ty
select regexp_replace(g, '(.)', '[\1]', 'g'), regexp_split_to_array('a,b', ','), format('%s-%I-%L', g, g, g) from t
select extract(epoch from interval '1 day') as e, date_trunc('month', timestamp '2024-05-06 07:08') as m, age(date '2024-05-06', date '2020-01-01') as a
select sum(sum(n)) over (order by g) as s, g from t group by g
select id from t where n > (select avg(n) from t) group by id having max(g) is not null order by max(n), id
