--- a sequence in a default is meant by its name in a literal, and not by where that name stands in the text
set client_min_messages = error;
create schema s; create schema "S 2";
create sequence a; create sequence aa; create sequence "A"; create sequence "q""u'ote"; create sequence s.a;
create table t (k int, p int default nextval('a'), q int default nextval('aa'), r int default nextval('"A"'::regclass), x text default 'nextval(''public.a''::regclass)');
create table u (k int, p int default nextval('s.a') + 100, q int default nextval(cast('a' as regclass)) * 10, r int default currval('"q""u''ote"'), z oid default 'a'::regclass);
alter sequence a rename to b;
--- differs: defaults are shown as they were written
select attname, pg_get_expr(adbin, adrelid) from pg_attrdef join pg_attribute on attrelid = adrelid and attnum = adnum where adrelid in ('t'::regclass, 'u'::regclass) order by adrelid::regclass::text, attnum;
-- p|nextval('b'::regclass)
-- q|nextval('aa'::regclass)
-- r|nextval('"A"'::regclass)
-- x|'nextval(''public.a''::regclass)'::text
-- p|nextval('s.a'::regclass) + 100
-- q|nextval('b'::regclass) * 10
-- r|currval('"q""u''ote"'::regclass)
-- z|'b'::regclass
insert into t (k) values (1) returning *;
-- 1|1|1|1|nextval('public.a'::regclass)
insert into u (k, r, z) values (1, 0, 0) returning *;
-- 1|101|20|0|0
alter sequence "q""u'ote" rename to "plain";
alter sequence "A" rename to "a.b";
alter sequence s.a set schema "S 2";
alter sequence aa set schema s;
--- differs: defaults are shown as they were written
select attname, pg_get_expr(adbin, adrelid) from pg_attrdef join pg_attribute on attrelid = adrelid and attnum = adnum where adrelid in ('t'::regclass, 'u'::regclass) order by adrelid::regclass::text, attnum;
-- p|nextval('b'::regclass)
-- q|nextval('s.aa'::regclass)
-- r|nextval('"a.b"'::regclass)
-- x|'nextval(''public.a''::regclass)'::text
-- p|nextval('"S 2".a'::regclass) + 100
-- q|nextval('b'::regclass) * 10
-- r|currval('plain'::regclass)
-- z|'b'::regclass
alter schema "S 2" rename to s3;
alter schema s rename to "s""4";
--- differs: defaults are shown as they were written
select attname, pg_get_expr(adbin, adrelid) from pg_attrdef join pg_attribute on attrelid = adrelid and attnum = adnum where adrelid in ('t'::regclass, 'u'::regclass) order by adrelid::regclass::text, attnum;
-- p|nextval('b'::regclass)
-- q|nextval('"s""4".aa'::regclass)
-- r|nextval('"a.b"'::regclass)
-- x|'nextval(''public.a''::regclass)'::text
-- p|nextval('s3.a'::regclass) + 100
-- q|nextval('b'::regclass) * 10
-- r|currval('plain'::regclass)
-- z|'b'::regclass
insert into t (k) values (2) returning *;
-- 2|3|2|2|nextval('public.a'::regclass)
insert into u (k, r, z) values (2, 0, 0) returning *;
-- 2|102|40|0|0
--- dropped: what names it is in the way, and nothing else
create sequence public.a;
drop sequence a;
drop sequence b;
-- ERROR 2BP01: cannot drop sequence b because other objects depend on it
--- differs: the name as it is
drop sequence "a.b";
-- ERROR 2BP01: cannot drop sequence a.b because other objects depend on it
drop sequence plain;
-- ERROR 2BP01: cannot drop sequence plain because other objects depend on it
drop schema s3;
-- ERROR 2BP01: cannot drop schema s3 because other objects depend on it
drop sequence "a.b" cascade;
drop sequence b cascade;
--- differs: defaults are shown as they were written
select attname, pg_get_expr(adbin, adrelid) from pg_attrdef join pg_attribute on attrelid = adrelid and attnum = adnum where adrelid in ('t'::regclass, 'u'::regclass) order by adrelid::regclass::text, attnum;
-- q|nextval('"s""4".aa'::regclass)
-- x|'nextval(''public.a''::regclass)'::text
-- p|nextval('s3.a'::regclass) + 100
-- r|currval('plain'::regclass)
drop table t, u;
drop sequence s3.a, plain, "s""4".aa;
--- an owner's default is his own
create table o (id serial, n int);
alter table o alter id set default 7;
alter sequence o_id_seq rename to o_seq;
insert into o (n) values (1) returning *;
-- 7|1
alter table o set schema s3;
insert into s3.o (n) values (1) returning *;
-- 7|1
alter table s3.o alter id set default nextval('s3.o_seq') + 1000;
alter sequence s3.o_seq rename to o_seq2;
insert into s3.o (n) values (1) returning *;
-- 1001|1
create table other (a int default nextval('s3.o_seq2'));
--- differs: the name without its schema
alter table s3.o drop column id;
-- ERROR 2BP01: cannot drop column id of table o because other objects depend on it
--- differs: the name without its schema
drop table s3.o;
-- ERROR 2BP01: cannot drop table o because other objects depend on it
alter table s3.o drop column id cascade;
insert into other default values returning a is null;
-- t
create table o2 (id serial);
create table other2 (a int default nextval('o2_id_seq'));
drop table o2;
-- ERROR 2BP01: cannot drop table o2 because other objects depend on it
drop table o2, other2;
create table o3 (id serial, again int default nextval('o3_id_seq'));
alter table o3 rename to o4; alter sequence o3_id_seq rename to "O 3";
insert into o4 default values returning *;
-- 1|2
drop table o4;
--- tables and views are named, too
create table named (a int); create table naming (a oid default 'named'::regclass, b text default 'named');
alter table named rename to renamed;
select attname, pg_get_expr(adbin, adrelid) from pg_attrdef join pg_attribute on attrelid = adrelid and attnum = adnum where adrelid = 'naming'::regclass order by attnum;
-- a|'renamed'::regclass
-- b|'named'::text
drop table renamed;
-- ERROR 2BP01: cannot drop table renamed because other objects depend on it
drop table renamed cascade;
insert into naming default values returning *;
-- NULL|named
create table wrong (a int default nextval('nosuch'));
-- ERROR 42P01: relation "nosuch" does not exist
create table wrong (a int default nextval('nosuch.s'));
-- ERROR 3F000: schema "nosuch" does not exist
create table wrong (a oid default 'nosuch'::regclass);
-- ERROR 42P01: relation "nosuch" does not exist
create table late (a oid default 'nosuch'::text::regclass);
