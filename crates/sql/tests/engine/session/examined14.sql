--- rows of joins as wholes, rows that a join's alias names, what locks rows of joins, RETURNING of subqueries
set client_min_messages = warning;
create table j1 (a int, b int); create table j2 (a int, c int); insert into j1 values (1, 2), (3, 4); insert into j2 values (1, 5), (3, 7);
create table u (id int primary key, x int); insert into u values (1, 10), (2, 20), (3, 30);
create table rt (a int primary key, b int, c int); insert into rt values (1, 2, 3), (4, 5, 6);
create table t (id int primary key, g text, n int); insert into t select i, chr(97 + i % 3), nullif(i % 4, 0) from generate_series(1, 9) i;
create table s (id int, w text); insert into s values (1,'a'),(2,'b'),(2,'c'),(null,'d');
--- whole rows in conditions of joins
select x.*::text from t x, s where x.* is not null and s.id = 1 order by x.id;
-- (1,b,1)
-- (2,c,2)
-- (3,a,3)
-- (5,c,1)
-- (6,a,2)
-- (7,b,3)
-- (9,a,1)
select count(*) from t x left join s y on x.id = y.id where y.* is null;
-- 7
select count(*) from t x join s y on x.id = y.id and to_json(x.*)::text like '%b%';
-- 1
select count(*) from t x, s y where to_json(x.*)::text like '%"id":1%' and row(y.*) is not null;
-- 3
select * from j1 x join j1 y on x.* = y.* order by 1;
-- 1|2|1|2
-- 3|4|3|4
select * from j1 x join j1 y on (x.*) = (y.*) order by 1;
-- 1|2|1|2
-- 3|4|3|4
select * from j1 x, j1 y where x.* < y.*;
-- 1|2|3|4
select * from j1 x, j1 y where (select (x.*)::text) = '(1,2)' order by 3;
-- 1|2|1|2
-- 1|2|3|4
select count(*) from j1 x left join j2 y on x.a = y.a + 2 where y.* is not null;
-- 1
--- the row of a join's alias
select row(j.*) from j1 join j2 using (a) as j order by 1;
-- (1)
-- (3)
select row(j.*, 1) from j1 join j2 using (a) as j order by 1;
-- (1,1)
-- (3,1)
select (j).a, j, to_json(j), to_jsonb(j.*), j.* is null from j1 join j2 using (a) as j order by 1;
-- 1|(1)|{"a":1}|{"a": 1}|f
-- 3|(3)|{"a":3}|{"a": 3}|f
select j.a from j1 join j2 using (a) as j where j.* = row(1);
-- 1
select count(*) from j1 join j2 using (a) as j where row(j.*, 1) = row(3, 1);
-- 1
select json_agg(j order by j.a) from j1 join j2 using (a) as j;
-- [{"a":1}, 
--  {"a":3}]
select (j).nosuch from j1 join j2 using (a) as j;
-- ERROR 42703: could not identify column "nosuch" in record data type
select j.a from j1 join j2 using (a) as j for update of j;
-- ERROR 0A000: FOR UPDATE cannot be applied to a join
select j.a from j1 join j2 using (a) as j order by 1 for share of j;
-- ERROR 0A000: FOR SHARE cannot be applied to a join
--- locks of joins
select j.a from j1 join j2 using (a) as j order by 1 for update;
-- 1
-- 3
select j.a from j1 join j2 using (a) as j order by 1 for update of j2;
-- 1
-- 3
select * from j1 join j2 using (a) order by 1 for update;
-- 1|2|5
-- 3|4|7
select * from j1 natural join j2 order by 1 for update;
-- 1|2|5
-- 3|4|7
select * from j1, j2 where j1.a = j2.a order by 1 for update;
-- 1|2|1|5
-- 3|4|3|7
select * from j1 left join j2 on j1.a = j2.a order by 1 for update of j1;
-- 1|2|1|5
-- 3|4|3|7
select * from j1 left join j2 on j1.a = j2.a for update;
-- ERROR 0A000: FOR UPDATE cannot be applied to the nullable side of an outer join
select * from j1 right join j2 on j1.a = j2.a for share of j1;
-- ERROR 0A000: FOR SHARE cannot be applied to the nullable side of an outer join
select * from j1 full join j2 on j1.a = j2.a for update;
-- ERROR 0A000: FOR UPDATE cannot be applied to the nullable side of an outer join
select * from j1 cross join j2 order by 1, 3 for update;
-- 1|2|1|5
-- 1|2|3|7
-- 3|4|1|5
-- 3|4|3|7
select j1.a, count(*) over () from j1 join j2 on j1.a = j2.a for update;
-- ERROR 0A000: FOR UPDATE is not allowed with window functions
select count(*) from j1 join j2 on j1.a = j2.a for update;
-- ERROR 0A000: FOR UPDATE is not allowed with aggregate functions
select distinct j1.a from j1 join j2 on j1.a = j2.a for update;
-- ERROR 0A000: FOR UPDATE is not allowed with DISTINCT clause
select j1.a from j1 join j2 on j1.a = j2.a order by j2.c desc limit 1 for update of j1;
-- 3
select j1.a from j1 join j2 on j1.a = j2.a order by j2.c desc limit 1 offset 1 for update of j1 skip locked;
-- 1
select j1.a from j1 join j2 on j1.a = j2.a order by j2.c desc limit 0 for update;
select j1.a from j1 join j2 on j1.a = j2.a limit -1 for update;
-- ERROR 2201W: LIMIT must not be negative
select j1.a from j1 join j2 on j1.a = j2.a order by 1 fetch first row only for update;
-- 1
select u.id, rt.b from u, rt where u.id = rt.a for update;
-- 1|2
select u.id, rt.b from u join rt on u.id = rt.a for update of u for share of rt;
-- 1|2
select u.id, rt.b from u, rt where u.id < rt.a order by 1, 2 for update;
-- 1|5
-- 2|5
-- 3|5
select u.id, rt.b from u, rt order by 1, 2 for update skip locked;
-- 1|2
-- 1|5
-- 2|2
-- 2|5
-- 3|2
-- 3|5
select u.id, r.b from u join rt r on r.a = u.id where r.b in (select b from rt) for update of r nowait;
-- 1|2
select u.*, u2.id from u join u u2 on u.id = u2.id + 1 order by 1 for update;
-- 2|20|1
-- 3|30|2
select u, rt.* from u, rt where u.id = rt.a for no key update;
-- (1,10)|1|2|3
select * from u, rt, j1, j2, s where u.id = rt.a and j1.a = u.id and j2.a = u.id and s.id = u.id for key share;
-- 1|10|1|2|3|1|2|1|5|1|a
select * from u, generate_series(1, 2) g order by 1, 3 for update of u;
-- 1|10|1
-- 1|10|2
-- 2|20|1
-- 2|20|2
-- 3|30|1
-- 3|30|2
select * from u, generate_series(1, 2) g for update of g;
-- ERROR 0A000: FOR UPDATE cannot be applied to a function
with w as (select 1 a) select * from rt join w on w.a = rt.a for update;
-- 1|2|3|1
with w as (select 1 a) select * from rt join w on w.a = rt.a for update of w;
-- ERROR 0A000: FOR UPDATE cannot be applied to a WITH query
select u.id from u join unnest(array[1, 2]) as i(n) on i.n = u.id order by 1 for update of u;
-- 1
-- 2
select * from u, (values (1)) v(n) order by 1 for update of u;
-- 1|10|1
-- 2|20|1
-- 3|30|1
select 1 where exists (select 1 from u, generate_series(1, 2) g for update of u);
-- 1
select * from u where id in (select rt.a from rt, j1 where rt.a = j1.a for update) for update;
-- 1|10
select id from u join rt on u.id = rt.a for update of nosuch;
-- ERROR 42P01: relation "nosuch" in FOR UPDATE clause not found in FROM clause
prepare locks (int, int) as select u.id from u join j1 on j1.a = u.id where u.x > $2 order by 1 limit $1 for update;
execute locks (1, 5);
-- 1
execute locks (5, 10);
-- 3
--- RETURNING
insert into u values (9, 9) returning (select count(*) from rt where rt.a < u.id);
-- 2
update u set x = 5 where id = 9 returning (select max(b) from rt where rt.a < u.x), x;
-- 5|5
update u as k set x = 6 where id = 9 returning k.*, (select count(*) from u where u.x = k.x);
-- 9|6|0
with w as (select 9 as i) update u set x = 7 from w where id = w.i returning u.id, exists (select 1 from rt where a > u.x);
-- 9|f
insert into u values (9, 8) on conflict (id) do update set x = excluded.x returning x, array(select a from rt where a < u.x order by 1);
-- 8|{1,4}
delete from u where id = 9 returning exists (select 1 from rt where rt.a = u.id), array(select a from rt where a < u.id order by 1), u.id in (select a from rt);
-- f|{1,4}|f
delete from u where id = 9 returning (select max(a) from rt where a < id) as m;
select * from u order by 1;
-- 1|10
-- 2|20
-- 3|30
insert into u values (9, 9) returning nope.u.*;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "u"
insert into u values (9, 9) returning public.u.*;
-- 9|9
update u set x = 8 where id = 9 returning nope.u.*;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "u"
delete from u where id = 9 returning nope.u.*;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "u"
delete from u where id = 9 returning public.u.*;
-- 9|9
--- LIMIT
select a from j1 limit a;
-- ERROR 42P10: argument of LIMIT must not contain variables
select a from j1 limit j1.a;
-- ERROR 42P10: argument of LIMIT must not contain variables
select a from j1 offset a;
-- ERROR 42P10: argument of OFFSET must not contain variables
select a from j1 limit b + 1;
-- ERROR 42P10: argument of LIMIT must not contain variables
select a from j1 fetch first a rows only;
-- ERROR 42P10: argument of LIMIT must not contain variables
select a from j1 limit (select a);
-- ERROR 42P10: argument of LIMIT must not contain variables
select a from j1 order by 1 limit (select max(a) from j2);
-- 1
-- 3
select a from j1 limit nope;
-- ERROR 42703: column "nope" does not exist
select a from j1 limit nope.a;
-- ERROR 42P01: missing FROM-clause entry for table "nope"
select 1 limit nope;
-- ERROR 42703: column "nope" does not exist
values (1) limit column1;
-- ERROR 42P10: argument of LIMIT must not contain variables
select a from j1 union select c from j2 order by 1 limit a;
-- ERROR 42703: column "a" does not exist
select (select k.c from j2 k order by 1 limit j1.a) from j1 order by 1 desc;
-- ERROR 21000: more than one row returned by a subquery used as an expression
select g, count(*) from t group by g limit n;
-- ERROR 42P10: argument of LIMIT must not contain variables
--- functions that return sets, and those of windows
select case when id > 1 then generate_series(1, 2) end from t;
-- ERROR 0A000: set-returning functions are not allowed in CASE
select coalesce(generate_series(1, 2), 0);
-- ERROR 0A000: set-returning functions are not allowed in COALESCE
select coalesce((select generate_series(1, 1)), 0);
-- 1
select count(generate_series(1, 2)) from t;
-- ERROR 0A000: aggregate function calls cannot contain set-returning function calls
select lag(id) from t;
-- ERROR 42809: window function lag requires an OVER clause
select id from t where row_number() = 1;
-- ERROR 42809: window function row_number requires an OVER clause
--- subscripts
select ('{1,2}'::int[])[1][1][1][1][1][1][1];
-- ERROR 54000: number of array dimensions (7) exceeds the maximum allowed (6)
select ('{1,2}'::int[])[1:1][1][1][1][1][1][1];
-- ERROR 54000: number of array dimensions (7) exceeds the maximum allowed (6)
select (a)[1][1][1][1][1][1][1] from (select '{1,2}'::int[] a) q;
-- ERROR 54000: number of array dimensions (7) exceeds the maximum allowed (6)
select ('{1,2}'::int[])[1][1][1][1][1][1];
-- NULL
--- EXECUTE
prepare p3 (int[]) as select $1;
execute p3 (1);
-- ERROR 42804: parameter $1 of type integer cannot be coerced to the expected type integer[]
execute p3 ('{1}');
-- {1}
execute p3 (true);
-- ERROR 42804: parameter $1 of type boolean cannot be coerced to the expected type integer[]
prepare p4 (bool) as select $1;
execute p4 ('{1}'::int[]);
-- ERROR 42804: parameter $1 of type integer[] cannot be coerced to the expected type boolean
--- cursors as they are shown
select count(*) from pg_cursors;
-- 0
begin; declare c cursor for select * from j1; declare d scroll cursor with hold for select 1; declare "E" no scroll cursor for select 2;
select name, is_holdable, is_binary, is_scrollable, creation_time = now() from pg_cursors order by name;
-- E|f|f|f|f
-- c|f|f|t|f
-- d|t|f|t|f
select statement like 'begin; declare c cursor for select * from j1;%' from pg_cursors where name = 'c';
-- f
savepoint a; declare z cursor for select 5; rollback to a;
close c; fetch d; fetch "E";
-- 1
-- 2
select name from pg_cursors order by name;
-- E
-- d
commit;
select name, is_holdable from pg_cursors;
-- d|t
close all;
select count(*) from pg_cursors;
-- 0
--- windows: defaults of another type, frames that end with their partition
select id, lag(id, 1, '0') over (order by id), lead(n, 1, 2.5) over (order by id) from t order by id;
-- 1|0|2
-- 2|1|3
-- 3|2|NULL
-- 4|3|1
-- 5|4|2
-- 6|5|3
-- 7|6|NULL
-- 8|7|1
-- 9|8|2.5
select lag(id, 1, 'x') over (order by id) from t;
-- ERROR 22P02: invalid input syntax for type integer: "x"
select lag(id, 1, date '2024-01-01') over (order by id) from t;
-- ERROR 42883: function lag(integer, integer, date) does not exist
select id, sum(n) over w, count(n) over w, avg(id) over w, min(n) over w, max(n) over w, bit_or(n) over w from t window w as (order by id rows between current row and unbounded following) order by id;
-- 1|13|7|5.0000000000000000|1|3|3
-- 2|12|6|5.5000000000000000|1|3|3
-- 3|10|5|6.0000000000000000|1|3|3
-- 4|7|4|6.5000000000000000|1|3|3
-- 5|7|4|7.0000000000000000|1|3|3
-- 6|6|3|7.5000000000000000|1|3|3
-- 7|4|2|8.0000000000000000|1|3|3
-- 8|1|1|8.5000000000000000|1|1|1
-- 9|1|1|9.0000000000000000|1|1|1
select id, n, sum(id) over w, count(*) filter (where id > 3) over w, min(id) over w from t window w as (order by n nulls first range between 1 following and unbounded following) order by id;
-- 1|1|18|2|2
-- 2|2|10|1|3
-- 3|3|NULL|0|NULL
-- 4|NULL|45|6|1
-- 5|1|18|2|2
-- 6|2|10|1|3
-- 7|3|NULL|0|NULL
-- 8|NULL|45|6|1
-- 9|1|18|2|2
select id, n, sum(id) over w, string_agg(g, '' ) over (partition by g order by n, id groups between 1 following and unbounded following) from t window w as (partition by g order by n desc, id groups between 1 preceding and unbounded following) order by id;
-- 1|1|8|bb
-- 2|2|15|c
-- 3|3|18|NULL
-- 4|NULL|12|NULL
-- 5|1|7|cc
-- 6|2|18|a
-- 7|3|12|b
-- 8|NULL|15|NULL
-- 9|1|15|aa
select id, sum(n) over (order by id rows between 2 following and unbounded following), sum(n / 2.0) over (order by id rows between 1 preceding and unbounded following) from t order by id;
-- 1|10|6.50000000000000000000
-- 2|7|6.50000000000000000000
-- 3|7|6.00000000000000000000
-- 4|6|5.00000000000000000000
-- 5|4|3.50000000000000000000
-- 6|1|3.50000000000000000000
-- 7|1|3.00000000000000000000
-- 8|NULL|2.00000000000000000000
-- 9|NULL|0.50000000000000000000
