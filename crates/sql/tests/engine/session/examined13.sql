--- words that are functions, groups of nothing, schemas before names, collations, dates beside timestamps
create table c2 (x int, c text); insert into c2 values (1,'a'),(2,'b');
select current_schema from (select 1) s;
-- public
select current_schema, current_role = current_user from c2 limit 1;
-- public|t
select c2.*, current_schema from c2;
-- 1|a|public
-- 2|b|public
select current_schema, count(*) from c2 group by current_schema order by current_schema;
-- public|2
select count(*) from c2 where current_schema = 'public' and current_role = session_user;
-- 2
values (current_schema);
-- public
select current_schema union select current_schema;
-- public
with q as (select current_schema) select q.current_schema, "current_schema" from q;
-- public|public
select (q).current_schema from (select current_schema) q;
-- public
create view cs as select current_schema, x as current_role from c2; select * from cs;
-- public|1
-- public|2
select 1 from c2 group by ();
-- 1
select x from c2 group by ();
-- ERROR 42803: column "c2.x" must appear in the GROUP BY clause or be used in an aggregate function
select count(*) from c2 group by ();
-- 2
select 1 from c2 where false group by ();
-- 1
select 1 group by ();
-- 1
select nope.c2.* from c2;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "c2"
select pg_catalog.c2.* from c2;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "c2"
select public.c2.* from c2;
-- 1|a
-- 2|b
select public.y.* from c2 y;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "y"
select row(nope.c2.*) from c2;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "c2"
select count(nope.c2.*) from c2;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "c2"
select nope.c2.x from c2;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "c2"
select public.c2.x from c2;
-- 1
-- 2
select public.c2.nope from c2;
-- ERROR 42703: column c2.nope does not exist
select public.y.x from c2 y;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "y"
select (select nope.c2.x) from c2;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "c2"
select (select public.c2.x) from c2;
-- 1
-- 2
select c collate "nope" from c2;
-- ERROR 42704: collation "nope" for encoding "UTF8" does not exist
select c from c2 where c collate "nope" = 'a';
-- ERROR 42704: collation "nope" for encoding "UTF8" does not exist
select c from c2 order by c collate "nope";
-- ERROR 42704: collation "nope" for encoding "UTF8" does not exist
select c collate "nope" from c2 group by 1;
-- ERROR 42704: collation "nope" for encoding "UTF8" does not exist
select max(c collate "C") from c2;
-- b
select c from c2 order by c collate pg_catalog.default desc;
-- b
-- a
create table dd (d date, t timestamp, z timestamptz);
insert into dd values ('5874897-12-31', '2020-12-01', '2020-12-01'), ('2020-12-01', '2020-12-01', '2020-12-01'), ('infinity','infinity','infinity'), (null,null,null);
select count(*) from dd where d > timestamp '2020-12-01';
-- 2
select count(*) from dd where d > t;
-- 1
select d > t, d = t, d < z from dd;
-- t|f|f
-- f|t|f
-- f|t|f
-- NULL|NULL|NULL
select count(*) from dd a join dd b on a.d = b.t;
-- 3
select count(*) from dd where t < date '5874897-12-31';
-- 2
select count(*) from dd where z < date '5874897-12-31';
-- 2
select count(*) from dd where d is distinct from t;
-- 1
select count(*) from dd where d between t and timestamp 'infinity';
-- 3
select d > timestamp 'infinity' from dd;
-- f
-- f
-- f
-- NULL
select count(*) from dd where d::timestamp > timestamp '2020-12-01';
-- ERROR 22008: date out of range for timestamp
select count(*) from dd where d::timestamp is null;
-- ERROR 22008: date out of range for timestamp
select count(*) from dd where d::timestamp > t;
-- ERROR 22008: date out of range for timestamp
create table ck (d date, t timestamp, check (d > t));
insert into ck values ('5874897-12-31', now());
insert into ck values ('1999-01-01', now());
-- ERROR 23514: new row for relation "ck" violates check constraint "ck_check"
select pg_get_constraintdef(oid) from pg_constraint where conname = 'ck_check';
-- CHECK ((d > t))
select x from c2 order by 1.5;
-- ERROR 42601: non-integer constant in ORDER BY
select count(*) from (select x, c, count(*) from c2 group by (x, c)) s;
-- 2
select count(*) from c2 where c2.* is null;
-- 0
select current_schema as a, current_schema b, "current_schema" from (select 7 as "current_schema") s;
-- public|public|7
create table rk (id int primary key, s name default current_schema, r name default current_role); insert into rk values (1) returning s = current_schema, r = current_role;
-- t|t
update rk set s = current_schema where r = current_role returning s;
-- public
select current_schema from rk union all select s from rk order by "current_schema";
-- public
-- public
select public.c2.x, public.c2.* from c2, (select 1) s where public.c2.x = 1;
-- 1|1|a
select public.cs.* from cs where public.cs."current_role" = 1;
-- public|1
select pg_catalog.pg_namespace.nspname from pg_namespace where nspname = 'public';
-- public
select public.q.x from (select 1 as x) q;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "q"
select sum(random()) = sum(random()) from c2;
-- f
select count(*) from (select sum(random()) from c2 having sum(random()) = sum(random())) s;
-- 0
select a = b from (select sum(random()) a, sum(random()) b from c2 order by sum(random())) s;
-- f
select sum(x) = sum(x) from c2;
-- t
select x from c2 order by 'x';
-- ERROR 42601: non-integer constant in ORDER BY
select x from c2 order by ('x');
-- ERROR 42601: non-integer constant in ORDER BY
select x from c2 order by null;
-- ERROR 42601: non-integer constant in ORDER BY
select 1 from c2 group by null;
-- ERROR 42601: non-integer constant in GROUP BY
select distinct on ('a') x from c2;
-- ERROR 42601: non-integer constant in DISTINCT ON
select x from c2 union select 3 order by 'x';
-- ERROR 42601: non-integer constant in ORDER BY
select x from c2 order by (1) desc;
-- 2
-- 1
select x from c2 order by N'x', 1;
-- 1
-- 2
delete from c2 where nope.c2.x = 1;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "c2"
update c2 set x = public.c2.x where public.c2.x = 1 returning public.c2.x;
-- 1
update c2 set x = public.c2.y;
-- ERROR 42703: column c2.y does not exist
