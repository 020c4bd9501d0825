-- Floats among other numbers in lists, and literals of floats that are told apart or not.
create table t(r real, d double precision, n numeric, i int, b bigint, s smallint);
insert into t values (0.1, 0.1, 0.1, 1, 1, 1), ('NaN', 'NaN', 'NaN', 2, 9007199254740993, 2);

select r = 0.1, r in (0.1), r in (0.1, 0.2), r in (0.1, 2), r in (1, 0.1), r in (0.1::float8, 0.2), r in (0.1::real, 0.2), r in (2, 0.1::real) from t;
-- f|f|t|t|t|f|t|t
-- f|f|f|f|f|f|f|f
select r in (0.1, d), r in (n, i), r in (n, d), r in (n, n), r in (n), r in (0.1, n, 5), r in (null, 0.1), r in ('0.1', n), r in ('0.1', 2) from t;
-- f|f|f|f|f|t|t|t|t
-- t|t|t|t|t|t|NULL|t|f
select r = any(array[0.1, 0.2]), r = any('{0.1,0.2}'), r = any(array[r, n]), r between 0.1 and 0.1, r <> all (array[0.1, 0.2]), r = any(array[n, 0.2]) from t;
-- f|t|t|f|t|f
-- f|f|t|f|t|t
select d = 0.1, d in (0.1, 0.2), d in (r, 0.2), d in (r, r), d in (r), d in (r, n), d in (n, i), d in (0.1::real, 0.2), d in (0.1::real, 0.2::real) from t;
-- t|t|f|f|f|t|t|f|f
-- f|f|t|t|t|t|t|f|f
select d = any(array[r, n]), d = any(array[0.1, 0.2]), d = any(array[r, r]), d between 0.1 and 0.1::real from t;
-- f|t|f|t
-- t|f|t|f
select n = 0.1, n in (0.1, r), n in (r, r), n in (d, 0.2), n in (r, d), n in (r), n in (r, 0.1, 5), n in (0.1::real, 0.2), n in (0.1::float8, 0.2) from t;
-- t|t|f|t|t|f|t|f|t
-- f|t|t|t|t|t|t|f|f
select n = any(array[r, r]), n = any(array[r, 0.1]), n = any(array[0.1::float8, 5]) from t;
-- f|f|t
-- t|t|f
select i in (1.0, r), i in (1, r), i in (r, d), i = any(array[r, 1.0]), i in (n, 1), b in (r, 2), b in (r, d), s in (r, 1) from t;
-- t|t|f|t|t|f|f|t
-- f|f|f|f|f|f|f|f
select r not in (0.1, 0.2), n not in (r, 0.1), n not in (r, r), d not in (r, n, 0.3), r not in (n, null) from t;
-- f|f|t|f|NULL
-- t|f|f|f|f
select b in (9007199254740992, 1.5::float8), b in (9007199254740992, d), b in (9007199254740993, d) from t;
-- f|f|f
-- t|f|t
select i from t where r in (0.1, 0.2) order by i;
-- 1
select i from t where r in (0.1, 'NaN') order by i;
-- 1
-- 2
prepare lists as select i from t where r in ($1, 0.2) order by i;
execute lists(0.1);
-- 1
create index on t (r);
select i from t where r in (0.1, 0.2) order by i;
-- 1
select i from t where r in (0.1, n) order by i;
-- 2
select i from t where n in (0.1, 0.2::real) order by i;
select a.i, z.i from t a join t z on a.r in (z.n, 0.5) order by 1, 2;
-- 2|2

select distinct 'NaN'::real from t order by 'NaN'::real;
-- NaN
select distinct 'NaN'::float8 as x, i from t order by 'NaN'::float8, i;
-- NaN|1
-- NaN|2
select distinct 'NaN'::numeric from t order by 'NaN'::numeric;
-- NaN
select 'NaN'::real, count(*) from t group by 'NaN'::real;
-- NaN|2
select r + 'NaN'::real, count(*) from t group by r + 'NaN'::real order by 1;
-- NaN|2
select coalesce(d, 'NaN'::float8), count(*) from t group by coalesce(d, 'NaN'::float8) order by coalesce(d, 'NaN'::float8);
-- 0.1|1
-- NaN|1
select distinct on (d * 'NaN'::float8) i from t order by d * 'NaN'::float8, i;
-- 1
select distinct '-0'::float8 from t order by '0'::float8;
-- ERROR 42P10: for SELECT DISTINCT, ORDER BY expressions must appear in select list
select distinct i * '-0'::float8 from t order by i * '0'::float8;
-- ERROR 42P10: for SELECT DISTINCT, ORDER BY expressions must appear in select list
select i * '-0'::float8 from t group by i * '0'::float8;
-- ERROR 42803: column "t.i" must appear in the GROUP BY clause or be used in an aggregate function
select distinct i * 1.0 from t order by i * 1.00;
-- ERROR 42P10: for SELECT DISTINCT, ORDER BY expressions must appear in select list
select distinct i * 1.0 from t order by i * 1.0;
-- 1.0
-- 2.0
create table z(k int primary key, d double precision, n numeric);
insert into z values (1, '0', 1.0), (2, '-0', 1.00);
update z set d = '-0', n = 1.00 where k = 1;
update z set d = '0', n = 1.0 where k = 2;
select * from z order by k;
-- 1|-0|1.00
-- 2|0|1.0
create index on z (k) where d in ('-0', 'NaN');
select k from z where d in ('0', 'NaN') order by k;
-- 1
-- 2
select k from z where d = 'NaN' order by k;
