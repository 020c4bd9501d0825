-- Views go on meaning the columns that they were made of: what is added below them is not theirs, what is renamed keeps its place (decision 0148).
create table t (id int primary key, a int, b text);
create table u (id int primary key, t_id int, c int);
insert into t values (1, 10, 'x'), (2, 20, 'y');
insert into u values (1, 1, 100), (2, 2, 200), (3, 9, 300);
create view star as select * from t;
create view both_stars as select t.*, u.c from t join u on t.id = u.t_id;
create view natural_join as select * from t natural join u;
create view using_join as select id, a, c from t left join u using (id);
create view full_join as select * from t full join u using (id);
create view whole as select t from t;
create view whole_json as select to_json(t) as j, count(t.*) as n from t group by t.id;
create view unqualified as select a, c from t, u where t_id = t.id order by c;
create view over as select * from star;
create view inner_star as select s.a, s.b from (select * from t where a > 5) s;
create view with_star as with w as (select * from t), n (p, q) as (select a, b from t) select w.a, n.q from w join n on w.a = n.p;
create view correlated as select id, (select max(c) from u where t_id = t.id) as m from t where exists (select 1 from u where u.id = t.id);
create view grouped as select a, count(*) as n from t group by a having max(id) > 0 order by a;
create view a_union as select a from t union all select c from u order by 1;
create view wholly as table t;
create view listed as select x.p, x.q from t as x (o, p, q);
create view windowed as select a, row_number() over (partition by b order by a) as r from t;
create view filtered as select sum(a) filter (where b = 'x') as s, array_agg(a order by id) as l from t;
create view lateral_item as select t.id, l.m from t, lateral (select max(c) as m from u where t_id = t.id) l;
create view grouped_stars as select * from (select b, max(a) as a from t group by b) g join (select * from u) v on v.id = g.a / 10;
alter table t add column z int default 7;
alter table u add column a int default 8;
alter table u add column b text default 'x';
select * from star order by 1;
-- 1|10|x
-- 2|20|y
select * from both_stars order by 1;
-- 1|10|x|100
-- 2|20|y|200
select * from natural_join;
-- 1|10|x|1|100
-- 2|20|y|2|200
select * from using_join order by 1;
-- 1|10|100
-- 2|20|200
select * from full_join order by 1;
-- 1|10|x|1|100
-- 2|20|y|2|200
-- 3|NULL|NULL|9|300
select * from unqualified;
-- 10|100
-- 20|200
select * from over order by 1;
-- 1|10|x
-- 2|20|y
select * from inner_star order by 1;
-- 10|x
-- 20|y
select * from with_star order by 1;
-- 10|x
-- 20|y
select * from correlated order by 1;
-- 1|100
-- 2|200
select * from a_union;
-- 10
-- 20
-- 100
-- 200
-- 300
select * from wholly order by 1;
-- 1|10|x
-- 2|20|y
select * from lateral_item order by 1;
-- 1|100
-- 2|200
select * from grouped_stars order by 1;
-- x|10|1|1|100
-- y|20|2|2|200
select * from whole;
-- (1,10,x,7)
-- (2,20,y,7)
select j, n from whole_json order by j::text;
-- {"id":1,"a":10,"b":"x","z":7}|1
-- {"id":2,"a":20,"b":"y","z":7}|1
alter table t rename column a to aa;
alter table t rename a2 to x;
-- ERROR 42703: column "a2" does not exist
select * from star order by 1;
-- 1|10|x
-- 2|20|y
select * from both_stars order by 1;
-- 1|10|x|100
-- 2|20|y|200
select * from natural_join;
-- 1|10|x|1|100
-- 2|20|y|2|200
select * from using_join order by 1;
-- 1|10|100
-- 2|20|200
select * from full_join order by 1;
-- 1|10|x|1|100
-- 2|20|y|2|200
-- 3|NULL|NULL|9|300
select * from unqualified;
-- 10|100
-- 20|200
select * from over order by 1;
-- 1|10|x
-- 2|20|y
select * from inner_star order by 1;
-- 10|x
-- 20|y
select * from with_star order by 1;
-- 10|x
-- 20|y
select * from grouped;
-- 10|1
-- 20|1
select * from a_union;
-- 10
-- 20
-- 100
-- 200
-- 300
select * from wholly order by 1;
-- 1|10|x
-- 2|20|y
select * from listed order by 1;
-- 10|x
-- 20|y
select * from windowed order by 1;
-- 10|1
-- 20|1
select * from filtered;
-- 10|{10,20}
select * from grouped_stars order by 1;
-- x|10|1|1|100
-- y|20|2|2|200
alter table t rename column id to tid;
alter table u rename column t_id to owner;
select * from natural_join;
-- 1|10|x|1|100
-- 2|20|y|2|200
select * from using_join order by 1;
-- 1|10|100
-- 2|20|200
select * from full_join order by 1;
-- 1|10|x|1|100
-- 2|20|y|2|200
-- 3|NULL|NULL|9|300
select * from both_stars order by 1;
-- 1|10|x|100
-- 2|20|y|200
select * from correlated order by 1;
-- 1|100
-- 2|200
select * from lateral_item order by 1;
-- 1|100
-- 2|200
select * from grouped;
-- 10|1
-- 20|1
select j, n from whole_json order by j::text;
-- {"tid":1,"aa":10,"b":"x","z":7}|1
-- {"tid":2,"aa":20,"b":"y","z":7}|1
alter table t rename to tt;
alter table u rename to "U 2";
select * from star order by 1;
-- 1|10|x
-- 2|20|y
select * from natural_join;
-- 1|10|x|1|100
-- 2|20|y|2|200
select * from unqualified;
-- 10|100
-- 20|200
select * from correlated order by 1;
-- 1|100
-- 2|200
select * from using_join order by 1;
-- 1|10|100
-- 2|20|200
select * from lateral_item order by 1;
-- 1|100
-- 2|200
select j, n from whole_json order by j::text;
-- {"tid":1,"aa":10,"b":"x","z":7}|1
-- {"tid":2,"aa":20,"b":"y","z":7}|1
select * from whole;
-- (1,10,x,7)
-- (2,20,y,7)
alter view star rename column b to bee;
alter table star rename column aa to x;
-- ERROR 42703: column "aa" does not exist
alter table star rename column a to ay;
select * from over order by 1;
-- 1|10|x
-- 2|20|y
select * from star order by 1;
-- 1|10|x
-- 2|20|y
alter view star rename to sun;
select * from over order by 1;
-- 1|10|x
-- 2|20|y
create schema s;
alter table tt set schema s;
select * from sun order by 1;
-- 1|10|x
-- 2|20|y
alter schema s rename to s2;
select * from sun order by 1;
-- 1|10|x
-- 2|20|y
select * from unqualified;
-- 10|100
-- 20|200
alter table s2.tt drop column z;
alter table s2.tt drop column b;
-- ERROR 2BP01: cannot drop column b of table s2.tt because other objects depend on it
alter table "U 2" drop column b;
alter table "U 2" drop column c;
-- ERROR 2BP01: cannot drop column c of table "U 2" because other objects depend on it
alter table s2.tt alter column aa type text;
-- ERROR 0A000: cannot alter type of a column used by a view or rule
create table d (k int, l int, m int);
insert into d values (1, 2, 3);
create view d_listed as select x.f from d as x (e, f);
create view d_first as select x.e from d as x (e);
alter table d drop column k;
-- ERROR 2BP01: cannot drop column k of table d because other objects depend on it
set client_min_messages = warning;
alter table d drop column k cascade;
select * from d_listed;
-- 2
select * from d_first;
-- ERROR 42P01: relation "d_first" does not exist
create view d_star as select * from d;
create view d_over as select * from d_star;
create or replace view d_star as select l, m, l + m as n from d;
select * from d_over;
-- 2|3
select * from d_star;
-- 2|3|5
alter table d drop column m cascade;
select * from d_over;
-- ERROR 42P01: relation "d_over" does not exist
