create sequence s;
create table t (a int);
create table u (a int primary key);
begin read only;
select nextval('s');
-- ERROR 25006: cannot execute nextval() in a read-only transaction
rollback;
begin read only;
select setval('s', 1);
-- ERROR 25006: cannot execute setval() in a read-only transaction
rollback;
begin read only;
select setval('s', 1, false);
-- ERROR 25006: cannot execute setval() in a read-only transaction
rollback;
begin read only;
select nextval('s') where false;
select count(nextval('s')) from t;
-- 0
select 1 from t for update limit 0;
-- ERROR 25006: cannot execute SELECT FOR UPDATE in a read-only transaction
rollback;
begin read only;
create table x (a int);
-- ERROR 25006: cannot execute CREATE TABLE in a read-only transaction
rollback;
begin read only;
create table if not exists t (a int);
-- ERROR 25006: cannot execute CREATE TABLE in a read-only transaction
rollback;
begin read only;
drop table if exists nosuch;
-- ERROR 25006: cannot execute DROP TABLE in a read-only transaction
rollback;
begin read only;
drop sequence nosuch;
-- ERROR 25006: cannot execute DROP SEQUENCE in a read-only transaction
rollback;
begin read only;
truncate t;
-- ERROR 25006: cannot execute TRUNCATE TABLE in a read-only transaction
rollback;
begin read only;
explain analyze insert into t values (1);
-- ERROR 25006: cannot execute INSERT in a read-only transaction
rollback;
begin read only;
prepare p as insert into t values (1);
execute p;
-- ERROR 25006: cannot execute INSERT in a read-only transaction
rollback;
begin read only;
explain analyze execute p;
-- ERROR 25006: cannot execute INSERT in a read-only transaction
rollback;
begin read only;
create table y as select 1;
-- ERROR 25006: cannot execute CREATE TABLE AS in a read-only transaction
rollback;
begin read only;
comment on table t is 'x';
-- ERROR 25006: cannot execute COMMENT in a read-only transaction
rollback;
begin read only;
create view v as select 1;
-- ERROR 25006: cannot execute CREATE VIEW in a read-only transaction
rollback;
begin read only;
alter table nosuch add b int;
-- ERROR 25006: cannot execute ALTER TABLE in a read-only transaction
rollback;
begin read only;
alter sequence s restart;
-- ERROR 25006: cannot execute ALTER SEQUENCE in a read-only transaction
rollback;
begin read only;
create index on t (a);
-- ERROR 25006: cannot execute CREATE INDEX in a read-only transaction
rollback;
begin read only;
with x as (insert into t values (1) returning 1) select 1;
-- ERROR 25006: cannot execute SELECT in a read-only transaction
rollback;
begin read only;
select * from t for update;
-- ERROR 25006: cannot execute SELECT FOR UPDATE in a read-only transaction
rollback;
begin read only;
select * from t for no key update;
-- ERROR 25006: cannot execute SELECT FOR NO KEY UPDATE in a read-only transaction
rollback;
begin read only;
select * from t for share;
-- ERROR 25006: cannot execute SELECT FOR SHARE in a read-only transaction
rollback;
begin read only;
select * from t for key share;
-- ERROR 25006: cannot execute SELECT FOR KEY SHARE in a read-only transaction
rollback;
begin read only;
declare c cursor for select * from t for update;
-- ERROR 25006: cannot execute SELECT FOR UPDATE in a read-only transaction
rollback;
begin read only;
create schema k;
-- ERROR 25006: cannot execute CREATE SCHEMA in a read-only transaction
rollback;
begin read only;
alter table t rename to tt;
-- ERROR 25006: cannot execute ALTER TABLE in a read-only transaction
rollback;
begin read only;
alter table t rename a to b;
-- ERROR 25006: cannot execute ALTER TABLE in a read-only transaction
rollback;
begin;
set transaction read only;
select nextval('s');
-- ERROR 25006: cannot execute nextval() in a read-only transaction
rollback;
select nextval('s');
-- 1
begin;
set transaction read only;
set transaction read write;
select nextval('s');
-- 2
rollback;
begin;
set default_transaction_read_only = on;
insert into t values (1);
show transaction_read_only;
-- off
commit;
show transaction_read_only;
-- on
insert into t values (1);
-- ERROR 25006: cannot execute INSERT in a read-only transaction
begin;
set default_transaction_read_only = off;
insert into t values (1);
-- ERROR 25006: cannot execute INSERT in a read-only transaction
rollback;
set default_transaction_read_only = off;
begin isolation level repeatable read;
set default_transaction_isolation = 'read committed';
show transaction_isolation;
-- repeatable read
select 1;
-- 1
show transaction_isolation;
-- repeatable read
select current_setting('transaction_isolation');
-- repeatable read
commit;
show transaction_isolation;
-- read committed
begin;
set default_transaction_isolation = 'repeatable read';
show transaction_isolation;
-- read committed
select pg_advisory_lock(1) is null;
-- f
select current_setting('transaction_isolation'), current_setting('transaction_deferrable'), current_setting('transaction_read_only');
-- read committed|off|off
commit and chain;
show transaction_isolation;
-- read committed
rollback;
begin;
set session characteristics as transaction read only, isolation level serializable;
show transaction_isolation;
-- repeatable read
show transaction_read_only;
-- off
rollback;
show transaction_isolation;
-- repeatable read
begin isolation level serializable read only deferrable;
select name, setting from pg_settings where name in ('transaction_read_only', 'transaction_isolation', 'transaction_deferrable') order by 1;
-- transaction_deferrable|on
-- transaction_isolation|serializable
-- transaction_read_only|on
select current_setting('transaction_deferrable');
-- on
rollback;
select name, setting from pg_settings where name in ('transaction_read_only', 'transaction_isolation') order by 1;
-- transaction_isolation|repeatable read
-- transaction_read_only|off
create table w (x int);
begin;
savepoint a;
set transaction read only;
rollback and chain;
show transaction_read_only;
-- off
insert into w values (1);
rollback;
begin;
savepoint a;
set transaction read only;
select 1/0;
-- ERROR 22012: division by zero
rollback and chain;
show transaction_read_only;
-- off
insert into w values (2);
rollback;
begin;
savepoint a;
set transaction read only;
select 1/0;
-- ERROR 22012: division by zero
commit and chain;
show transaction_read_only;
-- off
insert into w values (3);
rollback;
begin read only;
savepoint a;
select 1/0;
-- ERROR 22012: division by zero
rollback and chain;
show transaction_read_only;
-- on
rollback;
begin;
set transaction read only;
savepoint a;
rollback and chain;
show transaction_read_only;
-- on
rollback;
begin;
savepoint a;
set transaction read only;
commit and chain;
show transaction_read_only;
-- on
rollback;
