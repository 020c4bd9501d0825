-- A numeric that is whole equals integers wherever it is hashed, multiples of ten too.
SET client_min_messages = warning;
create table wa (n numeric, k int);
create table wb (i int);
insert into wa values (10.0, 1), (10, 2), (7.0, 5), (-100, 6), (0.0, 7), (1e18, 8), (1e30, 9), (0.5, 10);
insert into wb values (10), (7), (-100), (0), (5);
select k from wa, wb where wa.n = wb.i order by k;
-- 1
-- 2
-- 5
-- 6
-- 7
select count(*) from generate_series(1, 100) g where g in (select h from generate_series(1::numeric, 100) h);
-- 100
select count(*) from generate_series(1, 100) g where g not in (select h from generate_series(1::numeric, 100) h);
-- 0
select k from wa where n in (select 1000000000000000000::int8);
-- 8
select (10, 20.0) in (select 10.0, 20), 1e30 in (select 1e30), 100::int8 in (select 100.00);
-- t|t|t
select count(*) from wa full join wb on wa.n = wb.i;
-- 9
update wb set i = i + 1 from wa where wa.n = wb.i;
select i from wb order by i;
-- -99
-- 1
-- 5
-- 8
-- 11
delete from wb using wa where wb.i - 1 = wa.n;
select i from wb order by i;
-- 5
