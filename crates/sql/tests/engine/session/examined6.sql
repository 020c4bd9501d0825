create table q (a int, b text, "c""""d" text default 'it''''s', e text default E'\\''', f text generated always as (b || 'x''''y') stored, check (b <> 'a''''b'));
create view v1 as select 'a''''b' as x, '\''' y, E'\\\'' z, N'it''''s' n, $$'\'$$ d, "c""""d" from q;
select * from v1;
insert into q (a, b) values (1, 'p');
select * from v1;
-- a''b|\'|\'|it''s|'\'|it''s
select x = 'a''''b', y = '\''', z = E'\\\'', n = N'it''''s', d = $$'\'$$ from v1;
-- t|t|t|t|t
create view "v""""2" ("x""""y", "\""") as select "c""""d" as "\""", b as """" from q as "q""""";
select * from "v""""2";
-- it''s|p
select "x""""y", "\""" from "v""""2" as "a""""" where "a"""""."\""" = 'p';
-- it''s|p
create view v3 as select "\""" || '''''' w, "v""""2"."x""""y" from "v""""2" group by 1, 2 order by 1;
select * from v3;
-- p''|it''s
create view v4 as select * from (values ('a''''b', '\''')) as t ("m""""n", """");
select * from v4;
-- a''b|\'
create view v5 as select b, b ~ '\''''' from q where b like 'p''''%' escape '''' or b in ('''''', 'p') or b = any (array['''''']);
select * from v5;
-- p|f
alter table q rename column b to bb;
alter table q rename column "c""""d" to "\""";
insert into q (a, bb) values (2, 'a''''b');
-- ERROR 23514: new row for relation "q" violates check constraint "q_b_check"
insert into q (a, bb) values (3, 'a''b');
select * from q order by a;
-- 1|p|it''s|\'|px''y
-- 3|a'b|it''s|\'|a'bx''y
select * from v1 where a is null;
-- ERROR 42703: column "a" does not exist
select * from v5 order by 1;
-- p|f
select * from v3;
-- a'b''|it''s
-- p''|it''s
create table qd (a int default 1, b text default current_date::text || 'a''''b', d date default '2020-01-01', s int default nextval('q''''s'));
-- ERROR 42P01: relation "q''s" does not exist
create sequence "q''s""";
create table qd (a int, b text default '2020-01-01'::date::text || 'a''''b', s text default 'a''''b' || nextval('"q''''s"""'));
insert into qd (a) values (1);
select * from qd;
-- 1|2020-01-01a''b|a''b1
create index qi on qd (a, (b || 'a''''b')) where b <> '\''' and s <> 'a''''b1';
alter table qd rename b to c;
insert into qd (a) values (2);
select * from qd order by a;
-- 1|2020-01-01a''b|a''b1
-- 2|2020-01-01a''b|a''b2
insert into qd (a, c) select 1, '\''''';
insert into qd (a, c) select 1, 'a''''b' union all select 2, 'a''''b' order by 1;
update qd set (a, c) = (select 7, '''''') where c = '\''''';
update qd set (a, c) = (select a + 1, 'a''''b' || c from (select '"''''' as c) x) where a = 7;
select a, c from qd order by a, c;
-- 1|2020-01-01a''b
-- 1|a''b
-- 2|2020-01-01a''b
-- 2|a''b
-- 8|a''b"''
select c || 'a''''b' from qd group by c || 'a''b';
-- ERROR 42803: column "qd.c" must appear in the GROUP BY clause or be used in an aggregate function
select c || 'a''''b', count(*) from qd group by c || 'a''''b' order by 1;
-- 2020-01-01a''ba''b|2
-- a''b"''a''b|1
-- a''ba''b|2
create table jobs (id int primary key, s text);
insert into jobs select g, 'a''''b' from generate_series(1, 6) g;
insert into jobs values (7, 'a''b');
delete from jobs where id in (select id from jobs where s = 'a''''b' order by id limit 1) and s <> 'a''b' and 1 = num_nulls(variadic array[s, null]) and s = 'a''''b' and exists (select from jobs) returning *;
-- 1|a''b
update jobs j set s = k.s || 'a''''b' from jobs k where k.id = j.id and j.s = 'a''''b' and k.id > 4 and k.s = 'a''''b' returning j.*;
-- 5|a''ba''b
-- 6|a''ba''b
update jobs set s = (select max(s) || '\''' from jobs where s like 'a''''%') where id = (select max(id) from jobs where s = 'a''b') returning *;
-- 7|a''ba''b\'
with w as (select id from jobs where s = 'a''''b') update jobs set s = 'x''''y' where id in (select id from w) and id < 3 returning *;
-- 2|x''y
with w as (select id from jobs where s = 'a''''b' and num_nulls(variadic array[s, null]) = 1) delete from jobs using w where jobs.id = w.id and w.id = 3 returning *;
-- 3|a''b|3
update jobs set s = 'z' where id = (select id from jobs where s = 'a''''b' for no key update skip locked limit 1) returning *;
-- 4|z
update jobs set s = 'y' where id = any (select id from jobs where s = 'z' order by id for key share limit 1) and id between symmetric 9 and 1 returning *;
-- 4|y
update jobs set s = 'y' where id = (select max(id) over (order by id rows 1 preceding exclude current row) from jobs order by 1 limit 1) and exists (select from jobs where id between symmetric 9 and 1) returning *;
-- 2|y
create view v6 as select id, id between symmetric 3 and 1 as b, s similar to '''''#_' escape '#' as c, overlay(s placing '''''' from 2) d from jobs;
select * from v6 order by 1;
-- 2|t|f|y''
-- 4|f|f|y''
-- 5|f|f|a''ba''b
-- 6|f|f|a''ba''b
-- 7|f|f|a''ba''b\'
select * from jobs order by id;
-- 2|y
-- 4|y
-- 5|a''ba''b
-- 6|a''ba''b
-- 7|a''ba''b\'
