--- rows of no columns
create table t (a int primary key, b text); insert into t values (1, 'a'), (2, 'b'), (3, null);
create table none (); insert into none default values; insert into none default values;
select from t;
select;
select count(*) from (select from t) x;
-- 3
select count(*) from (select) x, (select from t where a > 1) y;
-- 2
select exists (select from t where a = 2), exists (select from t where a = 9), exists (select), exists (select where false);
-- t|f|t|f
select a from t where exists (select from t u where u.a = t.a + 1) order by a;
-- 1
-- 2
select count(*) from (select from t union all select from t) x;
-- 6
select count(*) from (select from t union select from t) x;
-- 1
select count(*) from (select from t intersect select) x;
-- 1
select count(*) from (select from t except select) x;
-- 0
select count(*) from (select all from t limit 2) x;
-- 2
select count(*) from (select from t order by b offset 1) x;
-- 2
select count(*) from (select from t group by b) x;
-- 3
select count(*) from (select from t having true) x;
-- 1
select count(*) from (select from none) x;
-- 2
select count(*) from none;
-- 2
select count(*) from (select * from none) x;
-- 2
select count(*) from (table none) x;
-- 2
with x as (select from t where a > 1) select count(*) from x;
-- 2
with recursive x as (select union all select from x where false) select count(*) from x;
-- 1
with x as (delete from t where a = 3 returning a) select from x;
select x from (select from none) x;
-- ()
-- ()
select to_json(x), x is null, x is not null from none x;
-- {}|t|t
-- {}|t|t
select (select);
-- ERROR 42601: subquery must return only one column
select (select from t);
-- ERROR 42601: subquery must return only one column
--- differs: the one message for ARRAY and IN
select array(select from t);
-- ERROR 42601: subquery has too few columns
select 1 in (select);
-- ERROR 42601: subquery has too few columns
select a in (select from t) from t;
-- ERROR 42601: subquery has too few columns
select 1 union select;
-- ERROR 42601: each UNION query must have the same number of columns
select order by 1;
-- ERROR 42P10: ORDER BY position 1 is not in select list
select from t order by 1;
-- ERROR 42P10: ORDER BY position 1 is not in select list
select from t order by nosuch;
-- ERROR 42703: column "nosuch" does not exist
select distinct from t;
-- ERROR 42601: syntax error at or near "from"
select distinct on (a) from t;
-- ERROR 42601: syntax error at or near "from"
select from nosuch;
-- ERROR 42P01: relation "nosuch" does not exist
insert into none default values returning *;
-- ERROR 42601: RETURNING must have at least one column
delete from none returning *;
-- ERROR 42601: RETURNING must have at least one column
insert into none select;
insert into none select from t;
select count(*) from none;
-- 5
insert into t select;
-- ERROR 23502: null value in column "a" of relation "t" violates not-null constraint
create view v as select from t where a > 1;
select count(*) from v;
-- 1
select pg_get_viewdef('v') like '%SELECT%';
-- t
create table made as select from t; select count(*) from made;
-- 2
select into made2 from t; select count(*) from made2;
-- 2
prepare p as select from t where a = $1; execute p(1);
begin; declare c cursor for select from t; fetch 1 from c; move 1 from c; fetch all from c; commit;
begin; declare c scroll cursor for select from t; fetch all from c; fetch backward 1 from c; commit;
begin; declare c cursor with hold for select from t; commit; fetch all from c; close c;
select from t for update;
select count(*) from t where (select count(*) from (select from t) x) > 1;
-- 2
select 1 as select, t.a as from from t order by 1, 2;
-- 1|1
-- 1|2
values ();
-- ERROR 42601: syntax error at or near ")"
select count(x) from none x;
-- 5
select count(*) from generate_series(1, 3), lateral (select) l;
-- 3
select from t a natural join t b;
select row(x.*) from none x limit 1;
-- ()
--- one row, and no set
update t set b = count(*);
-- ERROR 42803: aggregate functions are not allowed in UPDATE
update t set b = row_number() over ();
-- ERROR 42P20: window functions are not allowed in UPDATE
update t set b = generate_series(1, 2);
-- ERROR 0A000: set-returning functions are not allowed in UPDATE
update t set b = (select count(*) from t) returning b;
-- 2
-- 2
update t set b = 1 returning count(*);
-- ERROR 42803: aggregate functions are not allowed in RETURNING
delete from t returning sum(a);
-- ERROR 42803: aggregate functions are not allowed in RETURNING
insert into t values (7) returning count(*);
-- ERROR 42803: aggregate functions are not allowed in RETURNING
insert into t values (7) returning row_number() over ();
-- ERROR 42P20: window functions are not allowed in RETURNING
insert into t values (7) returning generate_series(1, 2);
-- ERROR 0A000: set-returning functions are not allowed in RETURNING
update t set b = 1 returning row_number() over ();
-- ERROR 42P20: window functions are not allowed in RETURNING
select a from t order by a;
-- 1
-- 2
select distinct limit 1;
-- ERROR 42601: syntax error at or near "limit"
select distinct order by 1;
-- ERROR 42601: syntax error at or near "order"
select distinct on (a, (b)) limit 1;
-- ERROR 42601: syntax error at or near "limit"
select (select distinct);
-- ERROR 42601: syntax error at or near ")"
select distinct a from t order by a limit 1;
-- 1
select for update;
select window w as ();
select count(*) from (select for update) x, (select window w as ()) y;
-- 1
