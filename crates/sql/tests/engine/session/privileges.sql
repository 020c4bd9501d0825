--- what a statement without effect names is looked up
set client_min_messages = error;
create table a_table(a int); create view a_view as select 1 x; create sequence a_seq; create index a_idx on a_table(a);
grant usage on a_table to public;
-- ERROR 0LP01: invalid privilege type USAGE for table
grant select on a_seq to public;
grant usage on sequence a_table to public;
-- ERROR 42809: "a_table" is not a sequence
grant select on nosuch to public;
-- ERROR 42P01: relation "nosuch" does not exist
grant select on table nosuch to public;
-- ERROR 42P01: relation "nosuch" does not exist
grant select on nosuch.t to public;
-- ERROR 3F000: schema "nosuch" does not exist
grant usage on sequence nosuch to public;
-- ERROR 42P01: relation "nosuch" does not exist
grant execute on function nosuch() to public;
-- ERROR 42883: function nosuch() does not exist
grant execute on function nosuch to public;
-- ERROR 42883: could not find a function named "nosuch"
grant execute on function abs(int) to public;
grant execute on function abs(text) to public;
-- ERROR 42883: function abs(text) does not exist
grant execute on function abs to public;
-- ERROR 42725: function name "abs" is not unique
grant execute on procedure abs(int) to public;
-- ERROR 42809: abs(integer) is not a procedure
grant execute on procedure nosuch(int) to public;
-- ERROR 42883: procedure nosuch(integer) does not exist
grant execute on routine nosuch(int) to public;
-- ERROR 42883: function nosuch(integer) does not exist
grant usage on type nosuch to public;
-- ERROR 42704: type "nosuch" does not exist
grant usage on type int4 to public;
grant usage on domain int4 to public;
-- ERROR 42809: "int4" is not a domain
grant usage on domain nosuch to public;
-- ERROR 42704: type "nosuch" does not exist
grant usage on language nosuch to public;
-- ERROR 42704: language "nosuch" does not exist
grant usage on language sql to public;
grant usage on foreign data wrapper nosuch to public;
-- ERROR 42704: foreign-data wrapper "nosuch" does not exist
grant usage on foreign server nosuch to public;
-- ERROR 42704: server "nosuch" does not exist
grant select on large object 12345 to public;
-- ERROR 42704: large object 12345 does not exist
grant create on tablespace nosuch to public;
-- ERROR 42704: tablespace "nosuch" does not exist
grant create on tablespace pg_default to public;
grant usage on schema nosuch to public;
-- ERROR 3F000: schema "nosuch" does not exist
grant select on schema public to public;
-- ERROR 0LP01: invalid privilege type SELECT for schema
grant connect on database nosuch to public;
-- ERROR 3D000: database "nosuch" does not exist
grant select on database postgres to public;
-- ERROR 0LP01: invalid privilege type SELECT for database
grant select on all tables in schema nosuch to public;
-- ERROR 3F000: schema "nosuch" does not exist
grant execute on all tables in schema public to public;
-- ERROR 0LP01: invalid privilege type EXECUTE for relation
grant select (a) on a_table to public;
grant select (nosuch) on a_table to public;
-- ERROR 42703: column "nosuch" of relation "a_table" does not exist
grant usage (a) on a_table to public;
-- ERROR 0LP01: invalid privilege type USAGE for column
grant execute on a_table to public;
-- ERROR 0LP01: invalid privilege type EXECUTE for relation
grant select on a_idx to public;
-- ERROR 42809: "a_idx" is an index
grant select on a_view to public;
grant set on parameter work_mem to public;
grant set on parameter nosuch to public;
-- ERROR 42602: invalid parameter name "nosuch"
grant all on a_table to nosuchrole;
-- ERROR 42704: role "nosuchrole" does not exist
grant foo on a_table to public;
-- ERROR 42601: unrecognized privilege type "foo"
revoke select on nosuch from public;
-- ERROR 42P01: relation "nosuch" does not exist
revoke usage on a_table from public;
-- ERROR 0LP01: invalid privilege type USAGE for table
grant all on a_seq to public;
grant update (a) on a_view to public;
-- ERROR 42703: column "a" of relation "a_view" does not exist
grant truncate on a_seq to public;
grant usage, select on a_table to public;
-- ERROR 0LP01: invalid privilege type USAGE for table
comment on function nosuch() is 'x';
-- ERROR 42883: function nosuch() does not exist
comment on function abs(text) is 'x';
-- ERROR 42883: function abs(text) does not exist
comment on function abs is 'x';
-- ERROR 42725: function name "abs" is not unique
comment on function abs(int) is 'x';
comment on procedure abs(int) is 'x';
-- ERROR 42809: abs(integer) is not a procedure
comment on aggregate nosuch(int) is 'x';
-- ERROR 42883: aggregate nosuch(integer) does not exist
comment on aggregate sum(int) is 'x';
comment on aggregate abs(int) is 'x';
-- ERROR 42809: function abs(integer) is not an aggregate
comment on function sum(int) is 'x';
comment on collation nosuch is 'x';
-- ERROR 42704: collation "nosuch" for encoding "UTF8" does not exist
comment on collation "C" is 'x';
comment on operator + (int, int) is 'x';
--- differs: it is looked whether the types are there
comment on cast (int as text) is 'x';
comment on cast (int as bool) is 'x';
comment on cast (int as nosuch) is 'x';
-- ERROR 42704: type "nosuch" does not exist
comment on text search configuration nosuch is 'x';
-- ERROR 42704: text search configuration "nosuch" does not exist
comment on text search configuration english is 'x';
comment on text search parser nosuch is 'x';
-- ERROR 42704: text search parser "nosuch" does not exist
comment on text search dictionary nosuch is 'x';
-- ERROR 42704: text search dictionary "nosuch" does not exist
comment on text search template nosuch is 'x';
-- ERROR 42704: text search template "nosuch" does not exist
comment on conversion nosuch is 'x';
-- ERROR 42704: conversion "nosuch" does not exist
comment on operator class nosuch using btree is 'x';
-- ERROR 42704: operator class "nosuch" does not exist for access method "btree"
comment on operator class int4_ops using btree is 'x';
comment on operator class int4_ops using nosuch is 'x';
-- ERROR 42704: access method "nosuch" does not exist
comment on operator family nosuch using btree is 'x';
-- ERROR 42704: operator family "nosuch" does not exist for access method "btree"
comment on access method nosuch is 'x';
-- ERROR 42704: access method "nosuch" does not exist
comment on access method heap is 'x';
comment on transform for int language sql is 'x';
-- ERROR 42704: transform for type integer language "sql" does not exist
comment on transform for nosuch language sql is 'x';
-- ERROR 42704: type "nosuch" does not exist
comment on column a_table.nosuch is 'x';
-- ERROR 42703: column "nosuch" of relation "a_table" does not exist
comment on column nosuch.a is 'x';
-- ERROR 42P01: relation "nosuch" does not exist
comment on column a_view.x is 'x';
comment on column a_view.nosuch is 'x';
-- ERROR 42703: column "nosuch" of relation "a_view" does not exist
comment on column a_seq.last_value is 'x';
-- ERROR 42809: cannot set comment on relation "a_seq"
comment on column a_seq.nosuch is 'x';
-- ERROR 42703: column "nosuch" of relation "a_seq" does not exist
comment on view nosuch is 'x';
-- ERROR 42P01: relation "nosuch" does not exist
comment on view a_table is 'x';
-- ERROR 42809: "a_table" is not a view
comment on table a_view is 'x';
-- ERROR 42809: "a_view" is not a table
--- differs: DDL names the relation
comment on table nosuch.t is 'x';
-- ERROR 42P01: relation "nosuch.t" does not exist
comment on table a_idx is 'x';
-- ERROR 42809: "a_idx" is not a table
--- differs: there is neither
comment on materialized view a_view is 'x';
-- ERROR 42809: "a_view" is not a materialized view or a foreign table
comment on type nosuch is 'x';
-- ERROR 42704: type "nosuch" does not exist
comment on domain int4 is 'x';
-- ERROR 42809: "int4" is not a domain
--- differs: the text is read no further
comment on column a_table is 'x';
-- ERROR 42601: syntax error at or near "is"
comment on rule r on a_table is 'x';
-- ERROR 42704: rule "r" for relation "a_table" does not exist
comment on rule r on nosuch is 'x';
-- ERROR 42P01: relation "nosuch" does not exist
comment on trigger r on nosuch is 'x';
-- ERROR 42P01: relation "nosuch" does not exist
comment on policy r on nosuch is 'x';
-- ERROR 42P01: relation "nosuch" does not exist
comment on constraint c on domain nosuch is 'x';
-- ERROR 42704: type "nosuch" does not exist
comment on language nosuch is 'x';
-- ERROR 42704: language "nosuch" does not exist
comment on role nosuch is 'x';
-- ERROR 42704: role "nosuch" does not exist
comment on index a_table is 'x';
-- ERROR 42809: "a_table" is not an index
comment on sequence a_table is 'x';
-- ERROR 42809: "a_table" is not a sequence
comment on large object 99 is 'x';
-- ERROR 42704: large object 99 does not exist
alter table nosuch owner to postgres;
-- ERROR 42P01: relation "nosuch" does not exist
alter view nosuch owner to postgres;
-- ERROR 42P01: relation "nosuch" does not exist
alter view a_table owner to postgres;
-- ERROR 42809: "a_table" is not a view
alter sequence nosuch owner to postgres;
-- ERROR 42P01: relation "nosuch" does not exist
alter sequence a_table owner to postgres;
-- ERROR 42809: "a_table" is not a sequence
alter index a_idx owner to postgres;
alter schema nosuch owner to postgres;
-- ERROR 3F000: schema "nosuch" does not exist
alter database nosuch owner to postgres;
-- ERROR 3D000: database "nosuch" does not exist
alter function nosuch() owner to postgres;
-- ERROR 42883: function nosuch() does not exist
alter function abs(text) owner to postgres;
-- ERROR 42883: function abs(text) does not exist
alter function abs(int) owner to nosuch;
-- ERROR 42704: role "nosuch" does not exist
alter procedure nosuch() owner to postgres;
-- ERROR 42883: procedure nosuch() does not exist
alter aggregate nosuch(int) owner to postgres;
-- ERROR 42883: aggregate nosuch(integer) does not exist
alter routine nosuch() owner to postgres;
-- ERROR 42883: function nosuch() does not exist
alter type nosuch owner to postgres;
-- ERROR 42704: type "nosuch" does not exist
alter domain nosuch owner to postgres;
-- ERROR 42704: type "nosuch" does not exist
alter collation nosuch owner to postgres;
-- ERROR 42704: collation "nosuch" for encoding "UTF8" does not exist
alter conversion nosuch owner to postgres;
-- ERROR 42704: conversion "nosuch" does not exist
alter operator class nosuch using btree owner to postgres;
-- ERROR 42704: operator class "nosuch" does not exist for access method "btree"
alter language nosuch owner to postgres;
-- ERROR 42704: language "nosuch" does not exist
alter large object 99 owner to postgres;
-- ERROR 42704: large object 99 does not exist
alter tablespace nosuch owner to postgres;
-- ERROR 42704: tablespace "nosuch" does not exist
alter materialized view nosuch owner to postgres;
-- ERROR 42P01: relation "nosuch" does not exist
alter foreign table nosuch owner to postgres;
-- ERROR 42P01: relation "nosuch" does not exist
alter publication nosuch owner to postgres;
-- ERROR 42704: publication "nosuch" does not exist
alter subscription nosuch owner to postgres;
-- ERROR 42704: subscription "nosuch" does not exist
alter event trigger nosuch owner to postgres;
-- ERROR 42704: event trigger "nosuch" does not exist
alter server nosuch owner to postgres;
-- ERROR 42704: server "nosuch" does not exist
alter foreign data wrapper nosuch owner to postgres;
-- ERROR 42704: foreign-data wrapper "nosuch" does not exist
alter text search configuration nosuch owner to postgres;
-- ERROR 42704: text search configuration "nosuch" does not exist
alter text search dictionary nosuch owner to postgres;
-- ERROR 42704: text search dictionary "nosuch" does not exist
alter statistics nosuch owner to postgres;
-- ERROR 42704: statistics object "nosuch" does not exist
alter table if exists nosuch owner to postgres;
alter table a_table owner to nosuchrole;
-- ERROR 42704: role "nosuchrole" does not exist
security label on table nosuch is 'x';
-- ERROR 22023: no security label providers have been loaded
alter default privileges in schema nosuch grant select on tables to public;
-- ERROR 3F000: schema "nosuch" does not exist
alter default privileges for role nosuch grant select on tables to public;
-- ERROR 42704: role "nosuch" does not exist
alter default privileges grant usage on tables to public;
-- ERROR 0LP01: invalid privilege type USAGE for relation
alter default privileges grant execute on sequences to public;
-- ERROR 0LP01: invalid privilege type EXECUTE for sequence
reassign owned by nosuch to postgres;
-- ERROR 42704: role "nosuch" does not exist
drop owned by nosuch;
-- ERROR 42704: role "nosuch" does not exist
lock table nosuch;
-- ERROR 25P01: LOCK TABLE can only be used in transaction blocks
create table language (a int); create table types (a int); create table type (a int);
grant select on language to public;
grant insert on types, type to public;
revoke select on type from public;
grant select on public.language to public;
grant select on domain to public;
-- ERROR 42P01: relation "domain" does not exist
grant select on functions to public;
-- ERROR 42P01: relation "functions" does not exist
