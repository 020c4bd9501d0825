--- READ ONLY is of the subtransaction that it was said in
create table z (a int);
begin; savepoint s; set transaction read only; show transaction_read_only;
-- on
rollback to s; show transaction_read_only;
-- off
insert into z values (1); set transaction read only;
release s; show transaction_read_only;
-- off
insert into z values (2); commit;
begin; savepoint s; savepoint s2; set transaction read only; savepoint s3;
release s3; show transaction_read_only;
-- on
release s; insert into z values (3); set transaction read only; savepoint s;
set transaction read write;
-- ERROR 25001: cannot set transaction read-write mode inside a read-only transaction
rollback to s; insert into z values (4);
-- ERROR 25006: cannot execute INSERT in a read-only transaction
rollback;
begin; savepoint s; set transaction read only; select 1/0;
-- ERROR 22012: division by zero
rollback to s; insert into z values (5);
savepoint s2; set local transaction_read_only = on; insert into z values (6);
-- ERROR 25006: cannot execute INSERT in a read-only transaction
rollback to s2; set transaction read write; insert into z values (6); rollback;
select * from z;
-- 1
-- 2
--- and nothing else can be said there
begin isolation level read committed; savepoint s; set transaction isolation level serializable;
-- ERROR 25001: SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction
rollback to s; set transaction isolation level read committed; set transaction deferrable;
-- ERROR 25001: SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction
rollback to s; set local transaction_deferrable = on;
-- ERROR 25001: SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction
rollback to s; set transaction read only, isolation level read committed; show transaction_read_only;
-- on
set transaction read write;
-- ERROR 25001: cannot set transaction read-write mode inside a read-only transaction
rollback;
--- what it is already may be said at any time
begin isolation level read committed; select 1;
-- 1
set transaction read write; set transaction read only, isolation level read committed; show transaction_read_only;
-- on
set transaction read write;
-- ERROR 25001: transaction read-write mode must be set before any query
rollback;
begin; savepoint s; set transaction read write; rollback to s; rollback;
--- the fields of a value stand in a list of fields, and nowhere else
create table t4 (id int primary key, v text);
insert into t4 values (1,'a'),(2,'b');
select * from t4 where (row(1,2)).* = 1;
-- ERROR 0A000: row expansion via "*" is not supported here
select coalesce((json_each('{"a":1}')).*) from t4;
-- ERROR 0A000: row expansion via "*" is not supported here
select 1 in ((json_each('{"a":1}')).*);
-- ERROR 0A000: row expansion via "*" is not supported here
select array[(json_each('{"a":1}')).*];
-- ERROR 0A000: row expansion via "*" is not supported here
select case when (json_each('{"a":1}')).* then 1 end;
-- ERROR 0A000: row expansion via "*" is not supported here
--- an index that is not there is a relation that is not there
alter index nosuch rename to x;
-- ERROR 42P01: relation "nosuch" does not exist
drop index nosuch;
-- ERROR 42704: index "nosuch" does not exist
alter view nosuch rename to x;
-- ERROR 42P01: relation "nosuch" does not exist
alter sequence nosuch rename to x;
-- ERROR 42P01: relation "nosuch" does not exist
--- bounds are a list
select array_fill(1,array[1,1],array[[1],[2]]);
-- ERROR 2202E: wrong number of array subscripts
select array_fill(1,'{}'::int[],array[[1],[2]]);
-- ERROR 2202E: wrong number of array subscripts
select array_fill(1,array[1,1],array[1,2]);
-- [1:1][2:2]={{1}}
--- a literal in search_path is one name
set search_path to 'My Schema'; show search_path;
-- "My Schema"
set search_path to "My Schema"; show search_path;
-- "My Schema"
set search_path to My; show search_path;
-- my
set search_path to 'a, b'; show search_path;
-- "a, b"
set search_path to 'A', "B", "c", C, public, "$user", 'user', 'a"b'; show search_path;
-- "A", "B", c, c, public, "$user", "user", "a""b"
set search_path to ''; show search_path;
-- ""
set schema 'My Schema'; show search_path;
-- "My Schema"
select set_config('search_path', 'Foo, "Bar"', false);
-- Foo, "Bar"
show search_path;
-- Foo, "Bar"
create schema "My Schema"; create schema "a""b"; set search_path to 'My Schema', public, 'a"b';
select current_schema(), current_schemas(false);
-- My Schema|{"My Schema",public,"a\"b"}
create table here (a int); select relnamespace::regnamespace from pg_class where relname = 'here';
-- "My Schema"
set search_path = public;
--- what looks like the literal of a sequence, and is none
create sequence sq; create table q4 (id int, a text default nextval('sq') || $$ 'sq'::REGCLASS $$, "'public.sq'::REGCLASS" int);
insert into q4 (id) values (1); select a from q4;
-- 1 'sq'::REGCLASS 
create table q5 (id int, a text default nextval('public.sq') || $$ 'public.sq'::REGCLASS, 'sq'::REGCLASS $$);
insert into q5 (id) values (1); select a from q5;
-- 2 'public.sq'::REGCLASS, 'sq'::REGCLASS 
alter sequence sq rename to sq2; insert into q5 (id) values (2); select a from q5 order by id;
-- 2 'public.sq'::REGCLASS, 'sq'::REGCLASS 
-- 3 'public.sq'::REGCLASS, 'sq'::REGCLASS 
