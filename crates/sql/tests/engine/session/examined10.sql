--- a key of a grouping is the same one, whatever it is written as
create table j1 (a int, b int); create table j2 (a int, c int); insert into j1 values (1, 2), (3, 4); insert into j2 values (1, 5), (6, 7);
create table r (a int, b text); insert into r values (1, 'x'), (2, null);
create table ar (id int primary key, a int[]); insert into ar values (5, null);
create table gk (a int, b int); insert into gk values (1, 1), (1, 2), (2, 2);
select a, count(*) from gk group by rollup (gk.a), rollup (a) order by 1, 2;
-- 1|2
-- 1|2
-- 1|2
-- 2|1
-- 2|1
-- 2|1
-- NULL|3
select a, count(*) from gk t group by grouping sets ((t.a), (a)) order by 1, 2;
-- 1|2
-- 1|2
-- 2|1
-- 2|1
select a, b, count(*) from gk t group by distinct rollup (t.a, b), cube (a) order by 1, 2, 3;
-- 1|1|1
-- 1|2|1
-- 1|NULL|2
-- 2|2|1
-- 2|NULL|1
-- NULL|NULL|3
create view gkv as select a, b, count(*) from gk group by distinct rollup (a, b), cube (a); select * from gkv order by 1, 2, 3;
-- 1|1|1
-- 1|2|1
-- 1|NULL|2
-- 2|2|1
-- 2|NULL|1
-- NULL|NULL|3
select j.a from j1 left join j2 using (a) as j order by j.a desc;
-- 3
-- 1
delete from j2 using gk g join gk h using (a, b) as x where j2.a = x.b returning j2.a;
-- 1
select coalesce((r.*), (r.*)) from r where a = 1;
-- (1,x)
create view nm as select (q).b, q.a from r q; select attname from pg_attribute where attrelid = 'nm'::regclass order by attnum;
-- b
-- a
update ar set a[-2][0:] = '{7,8}' where id = 5;
-- ERROR 2202E: array slice subscript must provide both boundaries
create table r2 (a int); insert into r2 values (1), (2), (null); create view gv as select a, count(*) from r2 group by distinct rollup (a), rollup (a); select * from gv order by 1, 2;
-- 1|1
-- 2|1
-- NULL|1
-- NULL|3
select j.a, (select j.a + 1) from j1 full join j2 using (a) as j where j.a > 0 order by j.a;
-- 1|2
-- 3|4
-- 6|7
