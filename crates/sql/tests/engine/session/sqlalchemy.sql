-- What an inspector asks of a table in a schema that is not on the path, and that references itself.

CREATE SCHEMA test_schema;
CREATE TABLE test_schema.s (id int PRIMARY KEY, p int REFERENCES test_schema.s (id), name varchar(20), CONSTRAINT u UNIQUE (name), CHECK (p > 0));
CREATE TABLE l (id int PRIMARY KEY, s int REFERENCES test_schema.s (id) ON DELETE CASCADE, me int REFERENCES l (id));
CREATE TABLE test_schema.m (id int PRIMARY KEY, l int REFERENCES l (id));

SELECT conname, pg_get_constraintdef(oid, true), confrelid::regclass, conrelid::regclass::text FROM pg_constraint WHERE conrelid = 'test_schema.s'::regclass ORDER BY conname;
-- s_p_check|CHECK (p > 0)|-|test_schema.s
-- s_p_fkey|FOREIGN KEY (p) REFERENCES test_schema.s(id)|test_schema.s|test_schema.s
-- s_pkey|PRIMARY KEY (id)|-|test_schema.s
-- u|UNIQUE (name)|-|test_schema.s
SELECT conname, pg_get_constraintdef(oid), confrelid::regclass::text FROM pg_constraint WHERE contype = 'f' ORDER BY conname, conrelid::regclass::text;
-- l_me_fkey|FOREIGN KEY (me) REFERENCES l(id)|l
-- l_s_fkey|FOREIGN KEY (s) REFERENCES test_schema.s(id) ON DELETE CASCADE|test_schema.s
-- m_l_fkey|FOREIGN KEY (l) REFERENCES l(id)|l
-- s_p_fkey|FOREIGN KEY (p) REFERENCES test_schema.s(id)|test_schema.s
SELECT 's'::regclass;
-- ERROR 42P01: relation "s" does not exist
SELECT 'test_schema.s'::regclass::text, 'l'::regclass::text, to_regclass('s'), to_regclass('test_schema.s');
-- test_schema.s|l|NULL|test_schema.s
SELECT c.relname, n.nspname, pg_catalog.pg_table_is_visible(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname IN ('public', 'test_schema') ORDER BY 1, 2;
-- l|public|t
-- m|test_schema|f
-- s|test_schema|f
SELECT pg_catalog.pg_class.relname, pg_catalog.pg_constraint.conname, CASE WHEN (pg_catalog.pg_constraint.oid IS NOT NULL) THEN pg_catalog.pg_get_constraintdef(pg_catalog.pg_constraint.oid, true) END AS anon_1, nsp_ref.nspname, pg_catalog.pg_description.description FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_constraint ON pg_catalog.pg_class.oid = pg_catalog.pg_constraint.conrelid AND pg_catalog.pg_constraint.contype = 'f' LEFT OUTER JOIN pg_catalog.pg_class AS cls_ref ON cls_ref.oid = pg_catalog.pg_constraint.confrelid LEFT OUTER JOIN pg_catalog.pg_namespace AS nsp_ref ON cls_ref.relnamespace = nsp_ref.oid LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_constraint.oid JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace WHERE pg_catalog.pg_class.relkind = ANY (ARRAY['r', 'p', 'f', 'v', 'm']) AND pg_catalog.pg_namespace.nspname = 'test_schema' AND pg_catalog.pg_class.relname IN ('s', 'm') ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_constraint.conname;
-- m|m_l_fkey|FOREIGN KEY (l) REFERENCES l(id)|public|NULL
-- s|s_p_fkey|FOREIGN KEY (p) REFERENCES test_schema.s(id)|test_schema|NULL
SET search_path = test_schema, public;
SELECT conname, pg_get_constraintdef(oid), confrelid::regclass::text FROM pg_constraint WHERE contype = 'f' ORDER BY conname, conrelid::regclass::text;
-- l_me_fkey|FOREIGN KEY (me) REFERENCES l(id)|l
-- l_s_fkey|FOREIGN KEY (s) REFERENCES s(id) ON DELETE CASCADE|s
-- m_l_fkey|FOREIGN KEY (l) REFERENCES l(id)|l
-- s_p_fkey|FOREIGN KEY (p) REFERENCES s(id)|s
SET search_path = public;
INSERT INTO test_schema.s VALUES (1, NULL, 'a'), (2, 1, 'b');
INSERT INTO test_schema.s VALUES (3, 9, 'c');
-- ERROR 23503: insert or update on table "s" violates foreign key constraint "s_p_fkey"
SELECT s.id, c.id FROM test_schema.s JOIN test_schema.s AS c ON c.p = s.id;
-- 1|2
SELECT test_schema.s.id FROM test_schema.s ORDER BY test_schema.s.id;
-- 1
-- 2
ALTER TABLE test_schema.s ADD CONSTRAINT again FOREIGN KEY (p) REFERENCES test_schema.s (id) DEFERRABLE INITIALLY DEFERRED;
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'again';
-- FOREIGN KEY (p) REFERENCES test_schema.s(id) DEFERRABLE INITIALLY DEFERRED
CREATE TABLE test_schema.t2 (id serial PRIMARY KEY, t int, FOREIGN KEY (t) REFERENCES test_schema.t2 (id) ON UPDATE CASCADE ON DELETE SET NULL);
SELECT pg_get_constraintdef(oid), pg_get_serial_sequence('test_schema.t2', 'id') FROM pg_constraint WHERE conname = 't2_t_fkey';
-- FOREIGN KEY (t) REFERENCES test_schema.t2(id) ON UPDATE CASCADE ON DELETE SET NULL|test_schema.t2_id_seq
SELECT a.attname, pg_get_expr(d.adbin, d.adrelid) FROM pg_attribute a JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE a.attrelid = 'test_schema.t2'::regclass;
-- id|nextval('test_schema.t2_id_seq'::regclass)
SELECT kcu.table_schema, kcu.table_name, kcu.column_name, ccu.table_schema, ccu.table_name FROM information_schema.key_column_usage kcu JOIN information_schema.referential_constraints rc USING (constraint_name) JOIN information_schema.constraint_column_usage ccu ON ccu.constraint_name = rc.unique_constraint_name WHERE kcu.table_name = 't2';
-- test_schema|t2|t|test_schema|t2
DROP SCHEMA test_schema;
-- ERROR 2BP01: cannot drop schema test_schema because other objects depend on it
SELECT conname FROM pg_constraint WHERE contype = 'f' ORDER BY 1;
-- again
-- l_me_fkey
-- l_s_fkey
-- m_l_fkey
-- s_p_fkey
-- t2_t_fkey
