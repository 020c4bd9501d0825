-- What shows a view's definition, and so a dump, shows the names of its columns, which need not be those of its query.
create table ka (id int primary key, a int);
create table kb (id int primary key, b int);
insert into ka values (1, 10), (2, 20), (3, 10);
insert into kb values (2, 5), (3, 4);
create view kv (p, q) as select id, a from ka;
create view kv_first (p) as select id, a from ka;
create view kv_rename as select id k from ka;
alter view kv_rename rename k to kk;
create view kv_back as select id k from ka;
alter table kv_back rename k to id;
create view kv_union (p) as select id, a from ka union select 7, 2;
create view kv_values (x, y) as values (1, 2), (3, 4);
create view kv_values_own as values (1, 2), (3, 4);
create view kv_values_sorted (x, y) as values (1, 2), (3, 4) order by column2 desc limit 1;
create view kv_values_union (n) as values (1) union select id from ka;
create view kv_recursive (n) as with recursive r (i) as (select 1 union all select i + 1 from r where i < 3) select * from r;
create view kv_series (m) as select * from generate_series(1, 3);
create view kv_on (m, n) as select distinct on (x) a as x, id from ka order by x, id desc;
create view kv_null (n) as select null;
create view kv_literal (n, m) as select 'x', 1;
create view kv_nested (n) as (select id as k from ka order by k limit 1) union all (select a from ka order by 1 limit 2) order by k desc;
create view kv_grouped (s, c) as select a as k, count(*) from ka group by k order by k desc;
create view kv_computed (s) as select a + 1 as k from ka group by k order by k;
create view kv_swapped (a, id) as select id, a from ka order by a, id desc;
create view kv_taken (id) as select a from ka order by id desc;
create view kv_merged (id) as select ka.a from ka join kb using (id) order by id desc;
create view kv_merged_group (x) as select id from ka join kb using (id) group by id order by id desc;
create view kv_with (s, t) as with w (x, y) as (values (1, 2)) select * from w;
create view kv_table (s, t) as table ka;
create view kv_quoted ("P q", "select") as select id, a from ka where a > 10;
create view kv_upper ("A") as select a from ka where id = 1;
create view kv_over (z) as select q from kv where p = 1;
alter view kv rename p to pp;
alter table ka rename a to aa;
create or replace view kv_first (p, a, more) as select id, aa, aa + 1 from ka;
select * from kv;
-- 1|10
-- 2|20
-- 3|10
select * from kv_first;
-- 1|10|11
-- 2|20|21
-- 3|10|11
select * from kv_rename;
-- 1
-- 2
-- 3
select * from kv_back;
-- 1
-- 2
-- 3
select * from kv_union order by 1;
-- 1|10
-- 2|20
-- 3|10
-- 7|2
select * from kv_values;
-- 1|2
-- 3|4
select * from kv_values_own;
-- 1|2
-- 3|4
select * from kv_values_sorted;
-- 3|4
select * from kv_values_union order by 1;
-- 1
-- 2
-- 3
select * from kv_recursive;
-- 1
-- 2
-- 3
select * from kv_series;
-- 1
-- 2
-- 3
select * from kv_on;
-- 10|3
-- 20|2
select * from kv_null;
-- NULL
select * from kv_literal;
-- x|1
select * from kv_nested;
-- 10
-- 10
-- 1
select * from kv_grouped;
-- 20|1
-- 10|2
select * from kv_computed;
-- 11
-- 21
select * from kv_swapped;
-- 3|10
-- 1|10
-- 2|20
select * from kv_taken;
-- 10
-- 20
-- 10
select * from kv_merged;
-- 10
-- 20
select * from kv_merged_group;
-- 3
-- 2
select * from kv_with;
-- 1|2
select * from kv_table;
-- 1|10
-- 2|20
-- 3|10
select * from kv_quoted;
-- 2|20
select * from kv_upper;
-- 10
select * from kv_over;
-- 10
select pg_get_viewdef('kv'::regclass) ~ 'AS pp\M.* AS q\M';
-- t
select pg_get_viewdef('kv_first'::regclass) ~ 'AS p\M.* AS a\M.* AS more\M';
-- t
select pg_get_viewdef('kv_rename'::regclass) ~ 'AS kk\M';
-- t
select pg_get_viewdef('kv_union'::regclass) ~ 'AS p\M.*UNION';
-- t
select pg_get_viewdef('kv_values'::regclass) ~ 'AS x\M.* AS y\M';
-- t
select pg_get_viewdef('kv_values_own'::regclass) ~ 'VALUES \(1, ?2\), \(3, ?4\)';
-- t
select pg_get_viewdef('kv_values_sorted'::regclass) ~ 'AS x\M.* AS y\M';
-- t
select pg_get_viewdef('kv_values_union'::regclass) ~ 'AS n\M.*UNION';
-- t
select pg_get_viewdef('kv_recursive'::regclass) ~ 'r\.i AS n\M';
-- t
select pg_get_viewdef('kv_series'::regclass) ~ 'AS m\M';
-- t
select pg_get_viewdef('kv_on'::regclass) ~ 'AS m\M.* AS n\M';
-- t
select pg_get_viewdef('kv_null'::regclass) ~ 'NULL(::text)? AS n\M';
-- t
select pg_get_viewdef('kv_grouped'::regclass) ~ 'AS s\M.* AS c\M';
-- t
select pg_get_viewdef('kv_computed'::regclass) ~ 'AS s\M';
-- t
select pg_get_viewdef('kv_swapped'::regclass) ~ 'AS a\M.* AS id\M';
-- t
select pg_get_viewdef('kv_taken'::regclass) ~ 'AS id\M';
-- t
select pg_get_viewdef('kv_merged'::regclass) ~ 'AS id\M';
-- t
select pg_get_viewdef('kv_with'::regclass) ~ 'AS s\M.* AS t\M';
-- t
select pg_get_viewdef('kv_table'::regclass) ~ 'AS s\M.* AS t\M';
-- t
select pg_get_viewdef('kv_quoted'::regclass) ~ 'AS "P q".* AS "select"';
-- t
select pg_get_viewdef('kv_upper'::regclass) ~ 'AS "A"';
-- t
