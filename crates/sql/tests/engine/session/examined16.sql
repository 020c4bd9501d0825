select row(1, 2) in (select 1, 2), row(1, 2) not in (select 1, 3), (row(1, 2)) in (values (1, 2));
-- t|t|t
select row(1, null) in (select 1, 2), row(1) in (select 1);
-- NULL|t
select row(1, 2) in (select 1);
-- ERROR 42601: subquery has too few columns
create table windows (x int);
insert into windows values (1), (2);
select x from windows where row(x, x + 1) in (select y, y + 1 from (values (2)) as v (y));
-- 2
select sum(sum(x) over ()) over () from windows;
-- ERROR 42P20: window function calls cannot be nested
select rank() over (order by sum(x) over ()) from windows;
-- ERROR 42P20: window functions are not allowed in window definitions
select count(*) filter (where row_number() over () > 1) over () from windows;
-- ERROR 42P20: window functions are not allowed in FILTER
select x from windows order by sum(lag(x) over ()) over ();
-- ERROR 42P20: window function calls cannot be nested
select sum(row_number() over ()) from windows;
-- ERROR 42803: aggregate function calls cannot contain window function calls
select sum(sum(x)) over () from windows;
-- 3
select extract("year" from date '2024-01-01'), extract('year' from date '2024-01-01'), extract(YEAR from date '2024-01-01');
-- 2024|2024|2024
select extract("epoch" from interval '1 minute');
-- 60.000000
