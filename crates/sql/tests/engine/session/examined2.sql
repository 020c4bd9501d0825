-- Wrong answers that an examiner found beside PostgreSQL: equal values that were not grouped, aggregates of other orders and arguments.

SET client_min_messages = warning;
CREATE TABLE j (id int, d jsonb);
INSERT INTO j VALUES (1, '1'), (2, '1.0'), (3, '{"a": 1}'), (4, '{"a": 1.00}'), (5, '"1.0"'), (6, '"1."'), (7, '[0.10, "\".0"]'), (8, '[0.1, "\".0"]'), (9, '-0.0'), (10, '0');

--- Equal jsonb are one wherever they are hashed.
SELECT min(id), count(*) FROM j GROUP BY d ORDER BY 1;
-- 1|2
-- 3|2
-- 5|1
-- 6|1
-- 7|2
-- 9|2
SELECT count(*) FROM (SELECT DISTINCT d FROM j) s;
-- 6
SELECT count(DISTINCT d), jsonb_array_length(jsonb_agg(DISTINCT d)) FROM j;
-- 6|6
SELECT a.id, b.id FROM j a JOIN j b ON a.d = b.d ORDER BY 1, 2;
-- 1|1
-- 1|2
-- 2|1
-- 2|2
-- 3|3
-- 3|4
-- 4|3
-- 4|4
-- 5|5
-- 6|6
-- 7|7
-- 7|8
-- 8|7
-- 8|8
-- 9|9
-- 9|10
-- 10|9
-- 10|10
SELECT count(*) FROM j a JOIN (SELECT d FROM j) b USING (d);
-- 18
SELECT id FROM j WHERE d IN (SELECT d FROM j WHERE id IN (2, 4)) ORDER BY id;
-- 1
-- 2
-- 3
-- 4
SELECT id FROM j WHERE d NOT IN (SELECT d FROM j WHERE id > 2) ORDER BY id;
-- 1
-- 2
SELECT count(*) FROM (SELECT d FROM j UNION SELECT d FROM j) s;
-- 6
SELECT count(*) FROM (SELECT d FROM j WHERE id = 1 INTERSECT SELECT d FROM j WHERE id = 2) s;
-- 1
SELECT count(*) FROM (SELECT d FROM j WHERE id = 1 EXCEPT SELECT d FROM j WHERE id = 2) s;
-- 0
SELECT id, count(*) OVER (PARTITION BY d) FROM j ORDER BY id;
-- 1|2
-- 2|2
-- 3|2
-- 4|2
-- 5|1
-- 6|1
-- 7|2
-- 8|2
-- 9|2
-- 10|2
SELECT count(DISTINCT array[d]) FROM j;
-- 6
SELECT count(*) FROM j a JOIN j b ON array[a.d] = array[b.d];
-- 18
SELECT DISTINCT ON (d) d FROM j WHERE id < 3;
-- 1
SELECT count(*) FROM (SELECT DISTINCT ROW(1, d) FROM j) s;
-- 6

--- So are numbers of other scales, signs of zero, and char(n), within arrays and rows.
SELECT count(*) FROM (SELECT a FROM (VALUES (array[1.0]), (array[1.00])) v(a) GROUP BY a) s;
-- 1
SELECT count(DISTINCT a) FROM (VALUES (array[1.0]), (array[1.00])) v(a);
-- 1
SELECT count(*) FROM (SELECT DISTINCT ROW(x) FROM (VALUES (1.0), (1.00)) v(x)) s;
-- 1
SELECT count(DISTINCT a) FROM (VALUES (array['0'::float8]), (array['-0'::float8])) v(a);
-- 1
SELECT count(*) FROM (VALUES (array['0'::float8])) v(a) JOIN (VALUES (array['-0'::float8])) w(a) USING (a);
-- 1
SELECT count(DISTINCT a) FROM (VALUES (array['a'::char(3)]), (array['a'::bpchar])) v(a);
-- 1
SELECT count(*) FROM (VALUES (array['a'::char(3)])) v(a) JOIN (VALUES (array['a'::char(5)])) w(a) USING (a);
-- 1
SELECT count(*) OVER (PARTITION BY c) FROM (SELECT 'a'::char(3)::bpchar AS c UNION ALL SELECT 'a'::char(5)) s;
-- 2
-- 2

--- WITHIN GROUP heeds its order.
SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY x DESC), percentile_disc(0.25) WITHIN GROUP (ORDER BY x DESC) FROM (VALUES (1), (2), (3), (4), (10)) t(x);
-- 4|4
SELECT percentile_cont(0.3) WITHIN GROUP (ORDER BY x DESC NULLS LAST), percentile_disc(0.3) WITHIN GROUP (ORDER BY x NULLS FIRST) FROM (VALUES (1.5), (2), (null), (4), (10)) t(x);
-- 4.6000000000000005|2
SELECT mode() WITHIN GROUP (ORDER BY y DESC), mode() WITHIN GROUP (ORDER BY y) FROM (VALUES ('a'), ('b'), ('b'), ('a'), (null)) t(y);
-- b|a
SELECT percentile_cont(null) WITHIN GROUP (ORDER BY x), percentile_disc(null) WITHIN GROUP (ORDER BY x DESC) FROM (VALUES (1), (2)) t(x);
-- NULL|NULL
SELECT percentile_cont(2) WITHIN GROUP (ORDER BY x) FROM (VALUES (1), (2)) t(x);
-- ERROR 22003: percentile value 2 is not between 0 and 1
SELECT percentile_cont(0) WITHIN GROUP (ORDER BY x DESC), percentile_cont(1) WITHIN GROUP (ORDER BY x DESC) FROM (VALUES (1), (2)) t(x);
-- 2|1

--- Aggregates have the arguments that they have.
SELECT sum(x, y) FROM (VALUES (1, 2)) t(x, y);
-- ERROR 42883: function sum(integer, integer) does not exist
SELECT max(x, y) FROM (VALUES (1, 2)) t(x, y);
-- ERROR 42883: function max(integer, integer) does not exist
SELECT avg(x, 1, 2, 'a') FROM (VALUES (1, 2)) t(x, y);
-- ERROR 42883: function avg(integer, integer, integer, unknown) does not exist
SELECT array_agg(x, y) FROM (VALUES (1, 2)) t(x, y);
-- ERROR 42883: function array_agg(integer, integer) does not exist
SELECT bool_and(x, x) FROM (VALUES (true)) t(x);
-- ERROR 42883: function bool_and(boolean, boolean) does not exist
SELECT min(DISTINCT 1, 2);
-- ERROR 42883: function min(integer, integer) does not exist
SELECT bit_or(1, 2);
-- ERROR 42883: function bit_or(integer, integer) does not exist
SELECT jsonb_agg(1, 2);
-- ERROR 42883: function jsonb_agg(integer, integer) does not exist
SELECT stddev(1, 2);
-- ERROR 42883: function stddev(integer, integer) does not exist
SELECT count(1, 2);
-- ERROR 42883: function count(integer, integer) does not exist
SELECT string_agg('a', 'b', 'c');
-- ERROR 42883: function string_agg(unknown, unknown, unknown) does not exist
SELECT sum(x, y) OVER () FROM (VALUES (1, 2)) t(x, y);
-- ERROR 42883: function sum(integer, integer) does not exist
SELECT mode(1) WITHIN GROUP (ORDER BY x) FROM (VALUES (1, 2)) t(x, y);
-- ERROR 42883: function mode(integer, integer) does not exist
SELECT percentile_cont(0.1, 0.2) WITHIN GROUP (ORDER BY x) FROM (VALUES (1, 2)) t(x, y);
-- ERROR 42883: function percentile_cont(numeric, numeric, integer) does not exist
SELECT percentile_cont() WITHIN GROUP (ORDER BY x) FROM (VALUES (1, 2)) t(x, y);
-- ERROR 42883: function percentile_cont(integer) does not exist

--- Digits of variances.
SELECT stddev(x), stddev_pop(x), variance(x), var_pop(x) FROM (VALUES (1), (200), (3000)) t(x);
-- 1676.981514507539|1369.249672874406|2812267.000000000000|1874844.666666666667
SELECT stddev(x), stddev_pop(x), variance(x), var_pop(x) FROM (VALUES (1.5), (200.25), (3000)) t(x);
-- 1676.757976721745|1369.067155036596|2811517.312500000000|1874344.875000000000
SELECT stddev(x), stddev_pop(x), variance(x), var_pop(x) FROM (VALUES (0.001), (0.002), (0.0035)) t(x);
-- 0.001258305739211791616074|0.001027402333828162741925|0.000001583333333333333333|0.000001055555555555555556
SELECT stddev(x), stddev_pop(x), variance(x), var_pop(x) FROM (VALUES (12345678901234567890::numeric), (2), (98765432109876543210)) t(x);
-- 53813567236069142730|43938593655774754922|2895900018670934313573235788173510135701|1930600012447289542382157192115673423801
SELECT stddev(x), stddev_pop(x), variance(x), var_pop(x) FROM (VALUES (1::bigint), (2)) t(x);
-- 0.70710678118654752440|0.50000000000000000000|0.50000000000000000000|0.25000000000000000000
SELECT stddev(x), stddev_pop(x), variance(x), var_pop(x) FROM (VALUES (5), (5)) t(x);
-- 0|0|0|0
SELECT stddev(x), stddev_pop(x), variance(x), var_pop(x) FROM (VALUES (1e-30), (2e-30)) t(x);
-- 0.00000000000000000000000000000070710678118654752440084436210484903928483593768847|0.00000000000000000000000000000050000000000000000000000000000000000000000000000000|0.00000000000000000000000000000000000000000000000000000000000050000000000000000000|0.00000000000000000000000000000000000000000000000000000000000025000000000000000000
SELECT stddev(x), stddev_pop(x), variance(x), var_pop(x) FROM (VALUES (10000), (20000), (40000)) t(x);
-- 15275.25231652|12472.19128925|233333333.33333333|155555555.55555556
SELECT stddev(x), stddev_pop(x) FROM generate_series(1, 100) t(x);
-- 29.0114919758820171|28.8660700477221180
SELECT sqrt(2812272.3333333333333333), sqrt(2::numeric), sqrt(0.0001), sqrt(12345678901234567890), sqrt(1e-20), sqrt(1e30);
-- 1676.9831046654385818|1.414213562373095|0.01000000000000000|3513641828.8201443|0.0000000001000000000000000|1000000000000000.0

--- char(n) beside varchar is compared without its blanks, beside text with what is left of it as text; of types that can be each other the first is meant.
select 'a'::char(3) = 'a '::varchar, 'a'::char(3) = 'a '::text, 'a'::varchar = 'a  '::char(3), 'a '::varchar = 'a'::char(3), 'a'::char(3) <> 'a '::varchar;
-- t|f|t|t|f
select 'a'::char(3) < 'a '::varchar, 'a'::char(3) <= 'a '::varchar, 'a'::char(3) > 'a '::varchar, 'a'::char(3) >= 'a '::varchar, 'a'::char(3) < 'a '::text,'a'::char(3) >= 'a '::text;
-- f|t|f|t|t|f
select 'a '::name = 'a'::char(3), 'a '::name < 'a'::char(3), 'a'::char(3) = 'a'::name;
-- f|f|t
select pg_typeof('a'::char(3) || 'b'::varchar), 'a'::char(3) || 'b'::varchar || '|', 'a'::char(3) || 'b' || '|', pg_typeof('a'::char(3) || 'b');
-- text|ab||ab||text
select pg_typeof(x) from (select 'a'::char(3) union all select 'a '::varchar(5)) s(x);
-- character
-- character
select pg_typeof(x) from (select 'a'::varchar(5) union all select 'a '::char(3)) s(x);
-- character varying
-- character varying
select pg_typeof(x) from (select 'a'::char(3) union all select 'a '::text) s(x);
-- character
-- character
select pg_typeof(x) from (select 'a'::text union all select 'a '::char(3)) s(x);
-- text
-- text
select pg_typeof(x) from (select 'a'::char(3) union all select 'a ') s(x);
-- character
-- character
select count(*) from (select 'a'::char(3) union select 'a '::varchar(5)) s(x);
-- 1
select count(*) from (select 'a '::varchar(5) union select 'a'::char(3)) s(x);
-- 2
select x || '|' from (select 'a'::char(3) union all select 'a '::varchar(5)) s(x);
-- a|
-- a|
select x || '|' , length(x), octet_length(x) from (values ('a'::char(3)), ('b'), ('ccccc')) s(x);
-- a||1|3
-- b||1|1
-- ccccc||5|5
select x || '|' , length(x), octet_length(x), pg_typeof(x) from (values ('a'), ('b'::char(3)), ('ccccc')) s(x);
-- a||1|1|character
-- b||1|3|character
-- ccccc||5|5|character
select octet_length(x), pg_typeof(x) from (values ('a'::char(3)), ('b '::varchar)) s(x);
-- 3|character
-- 2|character
select octet_length(x), pg_typeof(x) from (values ('a'::varchar), ('b '::char(3))) s(x);
-- 1|character varying
-- 1|character varying
select octet_length(x), pg_typeof(x) from (values ('a'::char(3)), ('b '::char(3)), (null)) s(x);
-- 3|character
-- 3|character
-- NULL|character
select octet_length(x), pg_typeof(x) from (values ('a'::char(3)), ('b '::char(5))) s(x);
-- 3|character
-- 5|character
select octet_length(x), pg_typeof(x) from (select 'a'::char(3) union all select 'bbbbbb') s(x);
-- 3|character
-- 6|character
select octet_length(x), pg_typeof(x) from (select 'bbbbb' union all select 'a'::char(3)) s(x);
-- 5|character
-- 3|character
select octet_length(x) from (select 'bbbbb' union all select 'a'::varchar(3)) s(x);
-- 5
-- 1
select octet_length(x) from (values ('bbbbb'), ('a'::varchar(3))) s(x);
-- 5
-- 1
select pg_typeof(coalesce('a'::char(3), 'b'::varchar)), pg_typeof(coalesce('a'::varchar, 'b'::char(3))), pg_typeof(coalesce('a'::char(3), 'b'::text)), pg_typeof(coalesce('a'::char(3), 'b'));
-- character|character varying|character|character
select pg_typeof(greatest('a'::char(3), 'b'::varchar)), pg_typeof(greatest('a'::varchar, 'b'::char(3))), pg_typeof(nullif('a'::char(3), 'a '::varchar)), nullif('a'::char(3), 'a '::varchar), nullif('a '::varchar, 'a'::char(3));
-- character|character varying|character|NULL|NULL
select pg_typeof(array['a'::char(3), 'b'::varchar]), pg_typeof(array['a'::varchar, 'b'::char(3)]), array['abcd', 'b'::char(3)];
-- character[]|character varying[]|{abcd,"b  "}
select 'a'::char(3) in ('a '::varchar, 'b'), 'a '::varchar in ('a'::char(3)), 'a '::varchar in ('b', 'a'::char(3)), 'a'::char(3) in ('a '::text), 'a'::char(3) in ('a ', 'b');
-- t|t|f|f|t
select 'a'::char(3) = any(array['a '::varchar]), 'a '::varchar = any(array['a'::char(3)]), 'a'::char(3) = any(array['a '::text]);
-- t|t|f
select 'a'::char(3) in (select 'a '::varchar), 'a '::varchar in (select 'a'::char(3)), 'a'::char(3) in (select 'a '::text), 'a '::varchar in (select 'a'::char(3) union all select 'b'::char(3));
-- t|t|f|t
select 'a'::char(3) not in (select 'a '::varchar), 'a'::char(3) = all(select 'a '::varchar), 'a'::char(3) < any(select 'a '::varchar);
-- f|t|f
select count(*) from (values ('a'::char(3))) a(x) join (values ('a '::varchar)) b(x) on a.x = b.x;
-- 1
select count(*) from (values ('a'::char(3))) a(x) join (values ('a '::varchar)) b(x) using (x);
-- 1
select count(*), pg_typeof(x) from (values ('a '::varchar)) a(x) full join (values ('a'::char(3))) b(x) using (x) group by 2;
-- 1|character varying
select count(*), pg_typeof(x) from (values ('a'::char(3))) a(x) full join (values ('a '::varchar)) b(x) using (x) group by 2;
-- 1|character
select count(*) from (values ('a'::char(3))) a(x) join (values ('a '::text)) b(x) using (x);
-- 0
select count(*) from (values ('a'::char(3))) a(x) join (values ('a'::text)) b(x) on a.x = b.x;
-- 1
select 'a'::char(3) between 'a '::varchar and 'a  '::varchar, 'a'::char(3) is distinct from 'a '::varchar, 'a '::varchar is not distinct from 'a'::char(3);
-- t|f|t
select ('a'::char(3), 1) = ('a '::varchar, 1), row('a'::char(3)) < row('a '::varchar);
-- t|f
select pg_typeof(x) from (select 'a'::char(3) intersect select 'a '::varchar) s(x);
-- character
select pg_typeof(x) from (select 'a '::varchar except select 'a'::char(3)) s(x);
-- character varying
select pg_typeof(x) from (select 'a'::char(3) union select 'a'::varchar union select 'a'::text) s(x);
-- character
select pg_typeof(max(x)), pg_typeof(min(y)) from (values ('a'::char(3), 'b'::varchar)) s(x,y);
-- character|text
create table cc(c3 char(3), v5 varchar(5), t text, n name);
insert into cc values ('a','a ','a','a'),('b','b','b ','b'),(null,null,null,null);
create table ci(c char(3) primary key);
insert into ci values ('a'),('b');
create table vi(v varchar(5) primary key);
insert into vi values ('a '),('b'),('b ');
select count(*) from cc join cc d on cc.c3 = d.v5;
-- 2
select v from vi where v = 'a'::char(3);
-- a 
select c from ci where c = 'a '::varchar;
-- a  
select c, v from ci join vi on c = v order by 1, 2;
-- a  |a 
-- b  |b
-- b  |b 
select c, v from vi join ci on v = c order by 1, 2;
-- a  |a 
-- b  |b
-- b  |b 
select c, v from vi left join ci on v = c order by 1, 2;
-- a  |a 
-- b  |b
-- b  |b 
select c3 from cc where exists (select 1 from vi where v = c3) order by 1;
-- a  
-- b  
select v from vi where exists (select 1 from ci where v = c) order by 1;
-- a 
-- b
-- b 
select v from vi where v in (select c from ci) order by 1;
-- a 
-- b
-- b 
select c from ci where c in (select v from vi) order by 1;
-- a  
-- b  
select (select count(*) from vi where v = c) from ci order by 1;
-- 1
-- 2
select c3 from cc union select v5 from cc order by 1;
-- a  
-- b  
-- NULL
select count(*) over (partition by c) from (select 'a'::char(3)::bpchar as c union all select 'a'::char(5)) s;
-- 2
-- 2
select count(*) from (select distinct c from (select 'a'::char(3)::bpchar as c union all select 'a'::char(5)) s) t;
-- 1
select count(*) from (select 'a'::char(3) as c union select 'a'::char(5)) s;
-- 1
select count(*) from (select 'a'::char(3) as c intersect select 'a'::char(5)) s;
-- 1
select count(*) from (select 'a'::char(3) as c except select 'a'::char(5)) s;
-- 0
with recursive r(c) as (select 'a'::char(3)::bpchar union select c::char(5) from r) select count(*) from r;
-- 1
select x from (values ('1.234'), (1.1::numeric(3,1))) s(x);
-- 1.234
-- 1.1
