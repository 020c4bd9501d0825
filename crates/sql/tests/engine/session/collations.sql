-- What COLLATE and CACHE said stays in the catalogs, where pg_dump finds it.

CREATE TABLE coll (id int PRIMARY KEY, c text COLLATE "C" NOT NULL, d text, p varchar(9) COLLATE pg_catalog."POSIX", e text COLLATE "default", k text[] COLLATE "C");
CREATE INDEX coll_c ON coll (c);
CREATE INDEX coll_d ON coll (d COLLATE "C" DESC, c COLLATE "default", p);
CREATE INDEX coll_l ON coll (lower(d) COLLATE "C", id);
CREATE INDEX coll_i ON coll (id) INCLUDE (c, d);
SELECT attname, attcollation, collname FROM pg_attribute a LEFT JOIN pg_collation c ON c.oid = attcollation WHERE attrelid = 'coll'::regclass AND attnum > 0 ORDER BY attnum;
-- id|0|NULL
-- c|950|C
-- d|100|default
-- p|951|POSIX
-- e|100|default
-- k|950|C
SELECT indexrelid::regclass, indcollation, pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'coll'::regclass ORDER BY 1::text;
-- coll_pkey|0|CREATE UNIQUE INDEX coll_pkey ON public.coll USING btree (id)
-- coll_c|950|CREATE INDEX coll_c ON public.coll USING btree (c)
-- coll_d|950 100 951|CREATE INDEX coll_d ON public.coll USING btree (d COLLATE "C" DESC, c COLLATE "default", p)
-- coll_l|950 0|CREATE INDEX coll_l ON public.coll USING btree (lower(d) COLLATE "C", id)
-- coll_i|0|CREATE INDEX coll_i ON public.coll USING btree (id) INCLUDE (c, d)
SELECT attrelid::regclass, attname, attcollation FROM pg_attribute WHERE attrelid IN ('coll_d'::regclass, 'coll_i'::regclass) ORDER BY 1::text, attnum;
-- coll_d|d|950
-- coll_i|id|0
-- coll_d|c|100
-- coll_i|c|0
-- coll_d|p|951
-- coll_i|d|0
SELECT pg_get_indexdef('coll_d'::regclass, 1, true), pg_get_indexdef('coll_d'::regclass, 2, true);
-- d|c
ALTER TABLE coll ADD COLUMN f text COLLATE "C";
ALTER TABLE coll ALTER COLUMN d TYPE text COLLATE "C";
ALTER TABLE coll ALTER COLUMN c TYPE varchar(20);
SELECT attname, attcollation FROM pg_attribute WHERE attrelid = 'coll'::regclass AND attname IN ('c', 'd', 'f') ORDER BY 1;
-- c|100
-- d|950
-- f|950
SELECT column_name, collation_schema, collation_name FROM information_schema.columns WHERE table_name = 'coll' ORDER BY ordinal_position;
-- id|NULL|NULL
-- c|NULL|NULL
-- d|pg_catalog|C
-- p|pg_catalog|POSIX
-- e|NULL|NULL
-- k|pg_catalog|C
-- f|pg_catalog|C
CREATE TABLE wrong (id int COLLATE "C");
-- ERROR 42804: collations are not supported by type integer
CREATE INDEX wrong ON coll (id COLLATE "C");
-- ERROR 42804: collations are not supported by type integer
ALTER TABLE coll ALTER COLUMN id TYPE bigint COLLATE "C";
-- ERROR 42804: collations are not supported by type bigint
INSERT INTO coll (id, c, d) VALUES (1, 'b', 'B'), (2, 'a', 'A');
SELECT c, d FROM coll ORDER BY c COLLATE "C";
-- a|A
-- b|B
CREATE SEQUENCE cached INCREMENT 2 CACHE 20;
SELECT seqcache FROM pg_sequence WHERE seqrelid = 'cached'::regclass;
-- 20
SELECT cache_size, increment_by FROM pg_sequences WHERE sequencename = 'cached';
-- 20|2
SELECT nextval('cached'), nextval('cached');
-- 1|3
ALTER SEQUENCE cached CACHE 5;
SELECT cache_size FROM pg_sequences WHERE sequencename = 'cached';
-- 5
ALTER SEQUENCE cached INCREMENT 3;
SELECT cache_size FROM pg_sequences WHERE sequencename = 'cached';
-- 5
CREATE SEQUENCE uncached CACHE 0;
-- ERROR 22023: CACHE (0) must be greater than zero
CREATE TABLE numbered (id int GENERATED ALWAYS AS IDENTITY (CACHE 7), s serial);
SELECT sequencename, cache_size FROM pg_sequences WHERE sequencename LIKE 'numbered%' ORDER BY 1;
-- numbered_id_seq|7
-- numbered_s_seq|1
