--- locks through queries, and aliases of joins: what was found by reading them again
set client_min_messages = warning;
create table u (id int primary key, x int); insert into u values (1, 10), (2, 20), (3, 30);
create table rt (a int primary key, b int, c int); insert into rt values (1, 2, 3), (4, 5, 6);
create table g1 (a int primary key); insert into g1 values (7);
create table jobs (id int primary key, st text, x int); insert into jobs values (1, 'new', 5), (2, 'new', 6), (3, 'done', 7);
--- what has no rows beside a table, and queries that cannot be merged beside one
--- differs: refused
select * from u, generate_series(1, 2) g for update of u;
-- 1|10|1
-- 1|10|2
-- 2|20|1
-- 2|20|2
-- 3|30|1
-- 3|30|2
with w as (select 1 a) select * from rt join w on w.a = rt.a for update;
-- 1|2|3|1
select u.id from u join unnest(array[1, 2]) as i(n) on i.n = u.id for update of u;
-- 1
-- 2
select * from u, (values (1)) v(n) for update of u;
-- 1|10|1
-- 2|20|1
-- 3|30|1
--- differs: refused
select * from rt, (select a + 1 c from g1) q for update;
-- ERROR 0A000: FOR UPDATE in this query is not supported
--- differs: refused
select * from rt, (select a + 1 c from g1 limit 1) q for update;
-- ERROR 0A000: FOR UPDATE in this query is not supported
select 1 where exists (select 1 from u, generate_series(1, 2) g for update of u);
-- 1
--- differs: refused
with w as (select * from u, generate_series(1, 2) g for update of u) select * from w;
-- 1|10|1
-- 1|10|2
-- 2|20|1
-- 2|20|2
-- 3|30|1
-- 3|30|2
--- differs: refused
select * from (select * from u, generate_series(1, 2) g) q for update;
-- 1|10|1
-- 1|10|2
-- 2|20|1
-- 2|20|2
-- 3|30|1
-- 3|30|2
select * from (select 1 as one) q for update of nosuch;
-- ERROR 42P01: relation "nosuch" in FOR UPDATE clause not found in FROM clause
select * from (select 1 as one) q for update;
-- 1
with u as (select 5 as id) select * from (select * from u) q for update;
-- 5
--- differs: refused
with u as (select 5 as id) select * from (select id from u) q, rt for update;
-- ERROR 0A000: FOR UPDATE in this query is not supported
--- some columns of a table, and other names for them
create view jobv as select id, st from jobs where st = 'new';
select id from jobv order by id limit 1 for update skip locked;
-- 1
select * from jobv order by id for update;
-- 1|new
-- 2|new
select j.* from jobv j where j.id = 2 for update;
-- 2|new
select upper(st), st::varchar(2) from jobv where id = 1 for update;
-- NEW|ne
--- differs: refused
select x from jobv for update;
-- ERROR 0A000: FOR UPDATE in this query is not supported
--- differs: refused
select id from jobv where x = 5 for update;
-- ERROR 0A000: FOR UPDATE in this query is not supported
--- differs: refused
select id from jobv order by x for update;
-- ERROR 0A000: FOR UPDATE in this query is not supported
--- differs: refused
select tableoid from jobv for update;
-- ERROR 0A000: FOR UPDATE in this query is not supported
create view jobw (n, s) as select v.id, v.st from jobv v where v.id > 1; select n, s from jobw order by n for update;
-- 2|new
select n + 1, s as n from jobw order by n for update;
-- 3|new
select * from jobw w (p, q) where p = 2 and w.q = 'new' for update of w;
-- 2|new
select * from jobw w (p) where p = 2 and w.s = 'new' for update of w;
-- 2|new
--- differs: refused
select id from jobw for update;
-- ERROR 0A000: FOR UPDATE in this query is not supported
select * from (select id as x, x as id from jobs) q where q.x = 3 order by id for update;
-- 3|7
select x as id from (select id as x, x as id from jobs) q order by id desc for update;
-- 3
-- 2
-- 1
select id from (select id from jobs) q where id = 3 for update;
-- 3
select * from (select a.id from (select id, st from jobs) a where a.st = 'done') q for share;
-- 3
select * from jobv, rt where rt.a = jobv.id order by 1 for update;
-- 1|new|1|2|3
--- differs: a list behind OF is not read
select * from rt join jobv v on v.id = rt.a for update of v, rt;
-- ERROR 42601: syntax error at or near ","
select c, st from rt join jobv v on v.id = rt.a for update;
-- 3|new
--- differs: refused
select x from rt join jobv v on v.id = rt.a for update;
-- ERROR 0A000: FOR UPDATE in this query is not supported
create view whole as select * from g1; alter table g1 add column b int; select * from whole where a = 7 for update;
-- 7
--- differs: refused
select q from (select id, st from jobs) q where id = 1 for update;
-- ERROR 0A000: FOR UPDATE in this query is not supported
--- what would lock more than it gives
--- differs: refused
select * from (select a + 1 c from rt) q where c = 2 for update;
-- ERROR 0A000: FOR UPDATE in this query is not supported
--- differs: refused
select * from (select a + 1 c from rt) q limit 1 for update;
-- ERROR 0A000: FOR UPDATE in this query is not supported
--- differs: refused
select * from (select * from rt order by a) q where a = 1 for update;
-- ERROR 0A000: FOR UPDATE in this query is not supported
select * from (select a + 1 c from rt order by a limit 1) q where c = 2 for update;
-- 2
select * from (select a + 1 c from rt) q order by c for update;
-- 2
-- 5
select * from rt left join (select * from u where x > 10) q on q.id = rt.a for update;
-- ERROR 0A000: FOR UPDATE cannot be applied to the nullable side of an outer join
select * from (select * from rt where b > 2) q left join u on u.id = q.a for update of q;
-- 4|5|6|NULL|NULL
--- names that are not there, whole rows, and what has no rows of a table
--- differs: refused
select * from (select zz.* from rt) q for update;
-- ERROR 0A000: FOR UPDATE in this query is not supported
--- differs: refused
select * from (select zz.a from rt) q for update;
-- ERROR 0A000: FOR UPDATE in this query is not supported
select a from (select * from rt where rt.* is not null) q order by 1 for update;
-- 1
-- 4
select a from (select * from rt where row_to_json(rt.*) is not null) q order by 1 for update;
-- 1
-- 4
select * from (select count(*) from rt) q for update;
-- ERROR 0A000: FOR UPDATE is not allowed with aggregate functions
select * from (select row_number() over () from rt) q for no key update;
-- ERROR 0A000: FOR NO KEY UPDATE is not allowed with window functions
select * from (select generate_series(1, a) from rt) q for share;
-- ERROR 0A000: FOR SHARE is not allowed with set-returning functions in the target list
select * from (select (select count(*) from u) n, a from rt) q order by a for update;
-- 3|1
-- 3|4
--- columns that a join merges, in queries inside
create table j1 (a int, b int); create table j2 (a int, c int); insert into j1 values (1, 2), (3, 4); insert into j2 values (1, 5), (3, 7);
select j.a from j1 join j2 using (a) as j where exists (select 1 from j2 k where k.a = j.a + 2);
-- 1
select j.a, (select count(*) from j2 k where k.a = j.a) from j1 join j2 using (a) as j order by 1;
-- 1|1
-- 3|1
select j.a, l.c from j1 join j2 using (a) as j, lateral (select k.c from j2 k where k.a = j.a) l order by 1, 2;
-- 1|5
-- 3|7
select j.a, (select count(*) from j1 k where k.a = j.a) from j1 left join j2 using (a) as j order by 1;
-- 1|1
-- 3|1
select j.a, (select count(*) from j1 k where k.a = j.a) from j1 right join j2 using (a) as j order by 1;
-- 1|1
-- 3|1
--- differs: refused
select j.a, (select count(*) from j1 k where k.a = j.a) from j1 full join j2 using (a) as j order by 1;
-- ERROR 0A000: j.a in this place is not supported
--- differs: refused
select j.a, (select count(*) from j1 where j1.a = j.a) from j1 join j2 using (a) as j order by 1;
-- ERROR 0A000: j.a in this place is not supported
select j.a, (select j.a from (values (9)) j (a)) from j1 join j2 using (a) as j order by 1;
-- 1|9
-- 3|9
select j.a, (select j.a from j1 k join j2 using (a) as j where k.b = 4) from j1 join j2 using (a) as j order by 1;
-- 1|3
-- 3|3
create view jin as select j.a from j1 join j2 using (a) as j where exists (select 1 from j2 k where k.a = j.a + 2); select * from jin;
-- 1
select j2.a + 0 as a, j.a as merged from j1 left join j2 using (a) as j order by j.a desc;
-- 3|3
-- 1|1
select -j2.a as a from j1 join j2 using (a) as j order by j.a;
-- -1
-- -3
select j.nosuch from j1 join j2 using (a) as j;
-- ERROR 42703: column j.nosuch does not exist
select 1 from j1 join j2 using (a) as j where exists (select j.nosuch);
-- ERROR 42703: column j.nosuch does not exist
select 1 from j1 join j2 using (a) as j1;
-- ERROR 42712: table name "j1" specified more than once
select 1 from j1 join j2 using (a) as j, j2 j;
-- ERROR 42712: table name "j" specified more than once
--- USING of a DELETE is a list of items
create table ja (p int); create table jb (q int); insert into ja values (1); insert into jb values (1);
delete from j1 using (table ja) as s where s.p = j1.a returning j1.a;
-- 1
delete from j2 using (ja cross join jb) as s where s.p = j2.a returning j2.a;
-- 1
delete from j2 using j1 x join j1 y using (a, b) as j where j2.a = j.a and exists (select 1 from ja k where k.p <> j.a) returning j2.*;
-- 3|7
