--- a quoted name of a type has a length, too
select '1234567'::"varchar"(3), 123.456::"numeric"(5,2), 'abcdefg'::pg_catalog."bpchar"(4), 'abcd'::"bpchar", 'x'::pg_catalog.bpchar(3) || '|';
-- 123|123.46|abcd|abcd|x|
select '12:34:56.789'::"time"(1), '2020-01-01 12:34:56.789'::"timestamp"(1), '12:34:56.789+00'::"timetz"(1), 127.5::"numeric"(3);
-- 12:34:56.8|2020-01-01 12:34:56.8|12:34:56.8+00|128
select 'a'::"text"(3);
-- ERROR 42601: type modifier is not allowed for type "text"
select 1::"int4"(3);
-- ERROR 42601: type modifier is not allowed for type "int4"
select 'ab'::"char"(2);
-- ERROR 42601: type modifier is not allowed for type "char"
select 1::"numeric"(0);
-- ERROR 22023: NUMERIC precision 0 must be between 1 and 1000
select 'a'::"varchar"(0);
-- ERROR 22023: length for type varchar must be at least 1
select 'a'::"varchar"(1,2);
-- ERROR 22023: invalid type modifier
select 1::"numeric"(1,2,3);
-- ERROR 22023: invalid NUMERIC type modifier
create table q (a "varchar"(3), b "numeric"(5,2), c "bpchar"(3), d "bpchar"(2), e pg_catalog."varchar"(4)[]);
select attname, format_type(atttypid, atttypmod) from pg_attribute where attrelid = 'q'::regclass and attnum > 0 order by attnum;
-- a|character varying(3)
-- b|numeric(5,2)
-- c|character(3)
-- d|character(2)
-- e|character varying(4)[]
insert into q values ('abcd', 1, 'x', 'y', '{a}');
-- ERROR 22001: value too long for type character varying(3)
insert into q values ('abc', 1.234, 'x  ', 'y', '{abcd}') returning *;
-- abc|1.23|x  |y |{abcd}
create view qv as select a::"varchar"(2) a, b::"numeric"(4,1) b from q;
select attname, format_type(atttypid, atttypmod) from pg_attribute where attrelid = 'qv'::regclass and attnum > 0 order by attnum;
-- a|character varying(2)
-- b|numeric(4,1)
select * from qv;
-- ab|1.2
--- what the library would print as something else
create view signs as select - - a as b, - - - a as c, -(-a) as d, @ -a as e, - @ a as f, a - - a as g, ~ - a as h from (values (5)) t(a);
select * from signs;
-- 5|-5|5|5|-5|10|4
create view ties as select a from (values (1), (1), (2), (2), (3)) t(a) order by a offset 1 fetch first (1 + 1) rows with ties;
create view ties2 as select a from (values (1), (1), (2), (2), (3)) t(a) order by a fetch first (2 - 1) row with ties;
create view ties3 as select a from (values (1), (1), (2), (2), (3)) t(a) order by a fetch first row with ties;
select array(select a from ties), array(select a from ties2), array(select a from ties3);
-- {1,2,2}|{1,1}|{1,1}
--- short for a view of WITH RECURSIVE
create recursive view rv (n) as values (1) union all select n+1 from rv where n < 5;
select * from rv;
-- 1
-- 2
-- 3
-- 4
-- 5
create or replace recursive view public.rv (n) as values (1) union all select n+1 from rv where n < 3;
select * from rv;
-- 1
-- 2
-- 3
create recursive view rv2 as select 1;
-- ERROR 42601: syntax error at or near "as"
create recursive view "R V" ("a b") as select 1 union all select "a b" + 1 from "R V" where "a b" < 2;
select * from "R V";
-- 1
-- 2
--- a zone right behind a date
set timezone = 'UTC';
select '1970-01-01Z'::date, '1970-01-01z'::timestamptz, '19700101Z'::date, '1/2/1970Z'::date, '1970-001Z'::timestamp, '1970-01-01 04:05:06Z'::timestamptz, '1970-01-01T040506Z'::timestamptz;
-- 1970-01-01|1970-01-01 00:00:00+00|1970-01-01|1970-01-02|1970-01-01 00:00:00|1970-01-01 04:05:06+00|1970-01-01 04:05:06+00
--- EXPLAIN of what a query is run for
create table xt (a int);
--- differs: what is read is named
explain (costs off) declare c cursor for select * from xt where false;
-- Seq Scan on xt
--   One-Time Filter: false
explain (costs off) create table xu as select 1 where false;
-- Result
--   One-Time Filter: false
select count(*) from pg_class where relname = 'xu';
-- 0
