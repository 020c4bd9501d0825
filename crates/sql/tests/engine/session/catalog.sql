-- tableoid, operators by their schema's name, reg-types.

CREATE TABLE t (a int PRIMARY KEY, b text);
INSERT INTO t VALUES (1, 'x'), (2, 'y');
CREATE TABLE s (a int PRIMARY KEY);
INSERT INTO s VALUES (2), (3);
SELECT tableoid::regclass, a FROM t ORDER BY a;
-- t|1
-- t|2
SELECT t.tableoid = 't'::regclass FROM t WHERE a = 1;
-- t
SELECT * FROM t WHERE tableoid = 't'::regclass ORDER BY a;
-- 1|x
-- 2|y
SELECT * FROM t WHERE tableoid = 's'::regclass;
SELECT s.a, t.tableoid::regclass, t.tableoid IS NULL, t FROM s LEFT JOIN t USING (a) ORDER BY s.a;
-- 2|t|f|(2,y)
-- 3|NULL|t|NULL
SELECT s.a, t.tableoid::regclass FROM s JOIN t ON t.a = s.a AND t.tableoid <> s.tableoid;
-- 2|t
SELECT tableoid FROM t, s;
-- ERROR 42702: column reference "tableoid" is ambiguous
SELECT x.tableoid::regclass FROM (SELECT tableoid, a FROM t) x WHERE a = 1;
-- t
SELECT * FROM (SELECT tableoid::regclass AS o, * FROM t) x ORDER BY a;
-- t|1|x
-- t|2|y
SELECT tableoid FROM (SELECT a FROM t) x;
-- ERROR 42703: column "tableoid" does not exist
SELECT tableoid::regclass, count(*) FROM t GROUP BY tableoid;
-- t|2
SELECT tableoid::regclass, relname FROM pg_class WHERE relname = 't';
-- pg_class|t
SELECT DISTINCT c.tableoid, n.tableoid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = 't';
-- 1259|2615
SELECT tableoid FROM pg_tables;
-- ERROR 42703: column "tableoid" does not exist
SELECT (SELECT t.tableoid::regclass) FROM t WHERE a = 1;
-- t
CREATE TABLE bad (tableoid int);
-- ERROR 42701: column name "tableoid" conflicts with a system column name
CREATE TABLE bad (a int, xmin int);
-- ERROR 42701: column name "xmin" conflicts with a system column name
ALTER TABLE t ADD COLUMN ctid int;
-- ERROR 42701: column name "ctid" conflicts with a system column name
ALTER TABLE t RENAME COLUMN b TO cmax;
-- ERROR 42701: column name "cmax" conflicts with a system column name

SELECT 1 OPERATOR(pg_catalog.=) 1, 1 OPERATOR(pg_catalog.+) 2 OPERATOR(pg_catalog.*) 3;
-- t|9
SELECT 2 OPERATOR(pg_catalog.=) ANY (array[1, 2]), 2 OPERATOR(pg_catalog.<>) ALL (array[1, 2]);
-- t|f
SELECT a FROM t WHERE a OPERATOR(pg_catalog.=) ANY (ARRAY[2, 3]);
-- 2
SELECT a FROM t WHERE a OPERATOR(pg_catalog.<) 2 AND b OPERATOR(pg_catalog.~) '^(x)$' COLLATE pg_catalog.default;
-- 1
SELECT 'abc' OPERATOR(pg_catalog.~~) 'a%', OPERATOR(pg_catalog.-) 3;
-- t|-3
SELECT a FROM t WHERE a OPERATOR(pg_catalog.=) ANY (SELECT a FROM s);
-- 2
SELECT 1 OPERATOR(pg_catalog.=) 2 OPERATOR(pg_catalog.=) false;
-- t

SELECT 'substr(text, int)'::regprocedure, 0::regprocedure, 0::regoperator, 0::regrole, 'postgres'::regrole;
-- substr(text,integer)|-|0|-|postgres
SELECT 'nosuch(int)'::regprocedure;
-- ERROR 42883: function "nosuch(int)" does not exist
SELECT 'substr'::regprocedure;
-- ERROR 22P02: expected a left parenthesis
SELECT 'nosuch'::regrole;
-- ERROR 42704: role "nosuch" does not exist
SELECT 'substr(text,integer)'::regprocedure::oid = 'pg_catalog.substr(text,integer)'::regprocedure::oid;
-- t
SELECT pg_typeof(0::regoperator), pg_typeof('postgres'::regrole), format_type(2204, -1);
-- regoperator|regrole|regoperator
SELECT count(*) FROM pg_user_mappings;
-- 0
SELECT count(*) FROM pg_largeobject_metadata;
-- 0
SELECT count(*) FROM pg_seclabels;
-- 0

--- What pg_dump asks.
SELECT ('abc'::name)[0], ('abc'::name)[2], ('abc'::name)[70], ('abc'::name)[-1], ('é'::name)[0], pg_typeof(('a'::name)[0]), ('abc'::name)[3] IS NULL;
-- a|c|NULL|NULL|\303|"char"|f
SELECT ('abc'::name)[64] IS NULL, ('abc'::name)[63] = '';
-- t|t
SELECT ('abc'::text)[0];
-- ERROR 42804: cannot subscript type text because it does not support subscripting
SELECT k, acldefault(k::"char", 10) FROM unnest(ARRAY['c', 'r', 's', 'd', 'f', 'l', 'L', 'n', 'p', 't', 'F', 'S', 'T']) k;
-- c|{}
-- r|{postgres=arwdDxt/postgres}
-- s|{postgres=rwU/postgres}
-- d|{=Tc/postgres,postgres=CTc/postgres}
-- f|{=X/postgres,postgres=X/postgres}
-- l|{=U/postgres,postgres=U/postgres}
-- L|{postgres=rw/postgres}
-- n|{postgres=UC/postgres}
-- p|{postgres=sA/postgres}
-- t|{postgres=C/postgres}
-- F|{postgres=U/postgres}
-- S|{postgres=U/postgres}
-- T|{=U/postgres,postgres=U/postgres}
SELECT acldefault('x', 10);
-- ERROR XX000: unrecognized objtype abbreviation: x

--- A default names its sequence in full, follows it, and holds it.
CREATE SCHEMA shelf;
CREATE SEQUENCE tickets START 100 INCREMENT 5;
CREATE SEQUENCE shelf."Odd seq";
CREATE TABLE ticket (number bigint DEFAULT nextval('tickets'), other int DEFAULT nextval('shelf."Odd seq"'::regclass) + 1, late int DEFAULT nextval('tickets'::text), own serial);
CREATE TABLE nowhere (a int DEFAULT nextval('nosuch'));
-- ERROR 42P01: relation "nosuch" does not exist
SET search_path = '';
SELECT pg_catalog.pg_get_expr(adbin, adrelid) FROM pg_catalog.pg_attrdef WHERE adrelid = 'public.ticket'::pg_catalog.regclass AND adnum IN (1, 4) ORDER BY adnum;
-- nextval('public.tickets'::regclass)
-- nextval('public.ticket_own_seq'::regclass)
INSERT INTO public.ticket (late) VALUES (1) RETURNING *;
-- 100|2|1|1
SET search_path = public;
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'ticket'::regclass AND adnum IN (1, 4) ORDER BY adnum;
-- nextval('tickets'::regclass)
-- nextval('ticket_own_seq'::regclass)
SELECT column_default FROM information_schema.columns WHERE table_name = 'ticket' AND column_name IN ('number', 'own') ORDER BY column_name;
-- nextval('tickets'::regclass)
-- nextval('ticket_own_seq'::regclass)
DROP SEQUENCE tickets;
-- ERROR 2BP01: cannot drop sequence tickets because other objects depend on it
ALTER SEQUENCE tickets RENAME TO numbers;
INSERT INTO ticket (late) VALUES (2) RETURNING number;
-- 105
SELECT last_value, is_called FROM numbers;
-- 105|t
SELECT last_value FROM pg_sequences WHERE sequencename = 'numbers';
-- 105
SELECT pg_sequence_last_value('numbers'::regclass);
-- 105
SET client_min_messages = error;
DROP SEQUENCE numbers CASCADE;
INSERT INTO ticket (late) VALUES (3) RETURNING number, other;
-- NULL|4
ALTER TABLE ticket ALTER number SET DEFAULT nextval('shelf."Odd seq"');
INSERT INTO ticket (late) VALUES (4) RETURNING number;
-- 4
SELECT count(*) FROM pg_rewrite WHERE ev_class = 'ticket'::regclass;
-- 0
CREATE VIEW v AS SELECT number FROM ticket;
SELECT rulename, ev_class::regclass, is_instead FROM pg_rewrite WHERE ev_class = 'v'::regclass;
-- _RETURN|v|t
SELECT DISTINCT d.refobjid::regclass::text FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid AND d.classid = 'pg_rewrite'::regclass WHERE r.ev_class = 'v'::regclass ORDER BY 1;
-- ticket
-- v
SELECT pg_describe_object('pg_class'::regclass, 'ticket'::regclass, 0), pg_describe_object('pg_class'::regclass, 'ticket'::regclass, 2), pg_describe_object('pg_proc'::regclass, 'substr(text,int)'::regprocedure, 0), pg_describe_object('pg_namespace'::regclass, 'shelf'::regnamespace, 0), pg_describe_object('pg_class'::regclass, 'v'::regclass, 0), pg_describe_object('pg_type'::regclass, 'int'::regtype, 0), pg_describe_object('pg_class'::regclass, 99999999, 0);
-- table ticket|column other of table ticket|function substr(text,integer)|schema shelf|view v|type integer|NULL
SELECT a FROM ONLY public.t ORDER BY a FETCH FIRST 1 ROW ONLY;
-- 1
SELECT x.a FROM ONLY (t) AS x, ONLY s WHERE x.a = s.a;
-- 2
UPDATE ONLY t SET b = 'z' WHERE a = 2 RETURNING b;
-- z
DELETE FROM ONLY t WHERE a = 2 RETURNING a;
-- 2
SELECT to_regprocedure('abs(int)'), to_regprocedure('nosuch(int)') IS NULL, to_regrole('postgres'), to_regrole('nosuch') IS NULL;
-- abs(integer)|t|postgres|t
