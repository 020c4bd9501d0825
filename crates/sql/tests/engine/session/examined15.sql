--- RETURNING of queries: names of WITH, parts of one statement, other items of FROM, what returns sets
set client_min_messages = warning;
create table u (id int primary key, x int); insert into u values (1, 10), (2, 20), (3, 30), (4, 40), (5, 50);
create table rt (a int primary key, b int, c int); insert into rt values (1, 2, 3), (4, 5, 6);
create table w (i int); insert into w values (1), (2);
create table o (id int, y int); insert into o values (1, 7), (2, 8);
--- a table has the name of the query of WITH
with rt as (select 100 a union all select 101 union all select 102) delete from u where id = 5 returning id, (select count(*) from rt where rt.a > u.id);
-- 5|3
with w as (select 4 as i) update u set x = 41 from w where u.id = w.i returning u.id, (select count(*) from rt where rt.a < u.id);
-- 4|1
with w as (select 4 as i) delete from u using w where u.id = w.i returning u.id, exists (select 1 from w where w.i > u.id);
-- 4|f
with recursive rt (a) as (select 7 union all select a + 1 from rt where a < 9) update u set x = x where id = 3 returning id, (select count(*) from rt where rt.a > u.id);
-- 3|3
select * from u order by 1;
-- 1|10
-- 2|20
-- 3|30
--- parts of one statement do not see each other, and write a row once
with a as (insert into rt values (0, 0, 0) returning a), d as (select 1) select * from a, d;
-- 0|1
delete from rt where a = 0;
begin;
with a as (insert into rt values (0, 0, 0) returning a), d as (delete from u where id = 3 returning id, (select count(*) from rt where rt.a < u.id) n) select * from a, d;
-- ERROR 0A000: a subquery is not supported here
rollback;
begin;
with a as (update u set x = 21 where id = 2 returning id), d as (delete from u where id = 2 returning id, (select count(*) from rt where rt.a < u.id) n) select (select count(*) from a), (select count(*) from d);
-- ERROR 0A000: a subquery is not supported here
rollback;
begin;
with a as (insert into rt values (0, 0, 0) returning a) delete from u where id = 3 returning id, (select count(*) from rt where rt.a < u.id), (select count(*) from a);
-- 3|1|1
rollback;
select * from rt order by 1;
-- 1|2|3
-- 4|5|6
--- all columns are those of all items
begin;
update u set x = 11 from o where o.id = u.id and u.id = 1 returning *, (select count(*) from rt where rt.a < u.id);
-- ERROR 0A000: a subquery is not supported here
rollback;
begin;
delete from u using o where o.id = u.id and u.id = 1 returning (select count(*) from rt where rt.a < u.id), *;
-- ERROR 0A000: a subquery is not supported here
rollback;
begin;
update u set x = 11 from o where o.id = u.id and u.id = 1 returning o.y, (select count(*) from rt where rt.a < u.id);
-- ERROR 0A000: a subquery is not supported here
rollback;
update u set x = 12 from o where o.id = u.id and u.id = 2 returning u.*, (select count(*) from rt where rt.a < u.id);
-- 2|12|1
update u set x = 13 where id = 2 returning *, (select count(*) from rt where rt.a < u.id);
-- 2|13|1
--- one row is returned for each that is written
insert into u values (9, 9) returning generate_series(1, 2), (select count(*) from rt where rt.a < u.id);
-- ERROR 0A000: set-returning functions are not allowed in RETURNING
insert into u values (9, 9) returning count(*), (select count(*) from rt where rt.a < u.id);
-- ERROR 42803: aggregate functions are not allowed in RETURNING
insert into u values (9, 9) returning row_number() over (), (select count(*) from rt where rt.a < u.id);
-- ERROR 42P20: window functions are not allowed in RETURNING
select * from u order by 1;
-- 1|10
-- 2|13
-- 3|30
--- locks of rows that are found: how many are computed, places in ORDER BY
create sequence s;
select nextval('s') > 0 from u, generate_series(1, 100) g limit 1 for update of u;
-- t
select last_value from s;
-- 1
select setval('s', 1, false);
-- 1
select nextval('s') > 0 from u, generate_series(1, 100) g order by g, u.id limit 2 offset 1 for update of u;
-- t
-- t
select last_value from s;
-- 3
select u.id from u, generate_series(1, 300) g where 10 / (2 - g) is not null limit 0 for update of u;
select u.id from u join generate_series(1, 3) g on 10 / (2 - g) > 0 limit 1 for update of u;
-- 1
select u.id from u, generate_series(1, 1) g order by 2 for update of u;
-- ERROR 42P10: ORDER BY position 2 is not in select list
select u.id from u, generate_series(1, 1) g order by 2 limit 1 offset 0 for update of u;
-- ERROR 42P10: ORDER BY position 2 is not in select list
select *, 1 from u, generate_series(1, 1) g order by 4, 1 limit 1 for update of u;
-- 1|10|1|1
