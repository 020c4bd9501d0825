create table q (id int, d int, ts timestamp);
insert into q values (1, 1, '2024-01-01'), (2, 2, '2024-01-02'), (3, null, null), (4, null, null);
select id, count(*) over (order by ts range between interval '5 days' preceding and current row) a, count(*) over (order by d range between 2 preceding and current row) b, count(*) over (order by ts range between current row and interval '5 days' following) f, sum(d) over (order by d desc nulls first range between 1 preceding and 1 following) g, sum(d) over (order by d nulls first range between 1 preceding and 1 following) h, count(*) over (order by d desc range between 1 preceding and 1 following) i from q order by id;
-- 1|1|1|2|3|3|2
-- 2|2|2|1|3|3|2
-- 3|2|2|2|NULL|NULL|2
-- 4|2|2|2|NULL|NULL|2
select null like any(array[]::text[]), null like all('{}'::text[]), null ilike any('{}'), null ~ any('{}'::text[]), null !~~ all('{}'::text[]), null like any(array['a']::text[]), 'a' like any(null::text[]), null like any(null::text[]);
-- f|t|f|f|t|NULL|NULL|NULL
create table nn (s text);
insert into nn values (null), ('a');
select count(*) from nn where not (s like any('{}'));
-- 2
select s not like all('{}') from nn order by 1;
-- t
-- t
create table b1 (c varchar(10) default 'z' collate "C", e text default 'q'::text collate "C" not null);
insert into b1 default values;
select * from b1;
-- z|q
select attname, attnotnull, collname from pg_attribute join pg_collation k on k.oid = attcollation where attrelid = 'b1'::regclass and attnum > 0 order by attnum;
-- c|f|C
-- e|t|C
drop table b1, nn, q;
