-- What psql, pgbench and ORMs ask of the catalogs.

CREATE TABLE posts (id int PRIMARY KEY, title text NOT NULL, author varchar(40) DEFAULT 'anon', created timestamptz);
CREATE TABLE likes (post_id int NOT NULL REFERENCES posts(id) ON DELETE CASCADE, user_id bigint NOT NULL, weight numeric(10,2), tags text[], CONSTRAINT likes_weight_check CHECK (weight >= 0), PRIMARY KEY (post_id, user_id));
CREATE INDEX likes_user ON likes (user_id DESC, weight);
CREATE UNIQUE INDEX posts_title ON posts (title);
SELECT n.nspname as "Schema",
  c.relname as "Name",
  CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' WHEN 'I' THEN 'partitioned index' END as "Type",
  pg_catalog.pg_get_userbyid(c.relowner) as "Owner"
FROM pg_catalog.pg_class c
     LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam
WHERE c.relkind IN ('r','p','')
      AND n.nspname <> 'pg_catalog'
      AND n.nspname !~ '^pg_toast'
      AND n.nspname <> 'information_schema'
  AND pg_catalog.pg_table_is_visible(c.oid)
ORDER BY 1,2;
-- public|likes|table|root
-- public|posts|table|root
SELECT n.nspname, c.relname FROM pg_catalog.pg_class c
     LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname OPERATOR(pg_catalog.~) '^(posts)$' COLLATE pg_catalog.default
  AND pg_catalog.pg_table_is_visible(c.oid)
ORDER BY 1, 2;
-- public|posts
SELECT c.relchecks, c.relkind, c.relhasindex, c.relhasrules, c.relhastriggers, c.relrowsecurity, c.relforcerowsecurity, false AS relhasoids, c.relispartition, '', c.reltablespace, CASE WHEN c.reloftype = 0 THEN '' ELSE c.reloftype::pg_catalog.regtype::pg_catalog.text END, c.relpersistence, c.relreplident, am.amname
FROM pg_catalog.pg_class c
 LEFT JOIN pg_catalog.pg_class tc ON (c.reltoastrelid = tc.oid)
LEFT JOIN pg_catalog.pg_am am ON (c.relam = am.oid)
WHERE c.oid = 'likes'::regclass;
-- 1|r|t|f|t|f|f|f|f||0||p|d|heap
SELECT a.attname,
  pg_catalog.format_type(a.atttypid, a.atttypmod),
  (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid, true)
   FROM pg_catalog.pg_attrdef d
   WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef),
  a.attnotnull,
  (SELECT c.collname FROM pg_catalog.pg_collation c, pg_catalog.pg_type t
   WHERE c.oid = a.attcollation AND t.oid = a.atttypid AND a.attcollation <> t.typcollation) AS attcollation,
  a.attidentity,
  a.attgenerated
FROM pg_catalog.pg_attribute a
WHERE a.attrelid = 'likes'::regclass AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum;
-- post_id|integer|NULL|t|NULL||
-- user_id|bigint|NULL|t|NULL||
-- weight|numeric(10,2)|NULL|f|NULL||
-- tags|text[]|NULL|f|NULL||
SELECT c2.relname, i.indisprimary, i.indisunique, i.indisclustered, i.indisvalid, pg_catalog.pg_get_indexdef(i.indexrelid, 0, true),
  pg_catalog.pg_get_constraintdef(con.oid, true), contype, condeferrable, condeferred, i.indisreplident, c2.reltablespace
FROM pg_catalog.pg_class c, pg_catalog.pg_class c2, pg_catalog.pg_index i
  LEFT JOIN pg_catalog.pg_constraint con ON (conrelid = i.indrelid AND conindid = i.indexrelid AND contype IN ('p','u','x'))
WHERE c.oid = 'posts'::regclass AND c.oid = i.indrelid AND i.indexrelid = c2.oid
ORDER BY i.indisprimary DESC, c2.relname;
-- posts_pkey|t|t|f|t|CREATE UNIQUE INDEX posts_pkey ON posts USING btree (id)|PRIMARY KEY (id)|p|f|f|f|0
-- posts_title|f|t|f|t|CREATE UNIQUE INDEX posts_title ON posts USING btree (title)|NULL|NULL|NULL|NULL|f|0
SELECT c2.relname, pg_catalog.pg_get_indexdef(i.indexrelid, 0, true), pg_catalog.pg_get_indexdef(i.indexrelid, 1, true), i.indoption, i.indkey
FROM pg_catalog.pg_class c, pg_catalog.pg_class c2, pg_catalog.pg_index i
WHERE c.oid = 'likes'::regclass AND c.oid = i.indrelid AND i.indexrelid = c2.oid ORDER BY 1;
-- likes_pkey|CREATE UNIQUE INDEX likes_pkey ON likes USING btree (post_id, user_id)|post_id|0 0|1 2
-- likes_user|CREATE INDEX likes_user ON likes USING btree (user_id DESC, weight)|user_id|3 0|2 3
SELECT true as sametable, conname,
  pg_catalog.pg_get_constraintdef(r.oid, true) as condef,
  conrelid::pg_catalog.regclass AS ontable
FROM pg_catalog.pg_constraint r
WHERE r.conrelid = 'likes'::regclass AND r.contype = 'f'
     AND conparentid = 0
ORDER BY conname;
-- t|likes_post_id_fkey|FOREIGN KEY (post_id) REFERENCES posts(id) ON DELETE CASCADE|likes
SELECT conname, conrelid::pg_catalog.regclass AS ontable,
       pg_catalog.pg_get_constraintdef(oid, true) AS condef
  FROM pg_catalog.pg_constraint c
 WHERE confrelid IN (SELECT pg_catalog.pg_partition_ancestors('posts'::regclass)
                     UNION ALL VALUES ('posts'::pg_catalog.regclass))
       AND contype = 'f' AND conparentid = 0
ORDER BY conname;
-- likes_post_id_fkey|likes|FOREIGN KEY (post_id) REFERENCES posts(id) ON DELETE CASCADE
SELECT pol.polname, pol.polpermissive,
  CASE WHEN pol.polroles = '{0}' THEN NULL ELSE pg_catalog.array_to_string(array(select rolname from pg_catalog.pg_roles where oid = any (pol.polroles) order by 1),',') END,
  pg_catalog.pg_get_expr(pol.polqual, pol.polrelid),
  CASE pol.polcmd WHEN 'r' THEN 'SELECT' END AS cmd
FROM pg_catalog.pg_policy pol
WHERE pol.polrelid = 'posts'::regclass ORDER BY 1;
SELECT oid, stxrelid::pg_catalog.regclass, stxnamespace::pg_catalog.regnamespace::pg_catalog.text AS nsp, stxname,
pg_catalog.pg_get_statisticsobjdef_columns(oid) AS columns,
  'd' = any(stxkind) AS ndist_enabled, stxstattarget
FROM pg_catalog.pg_statistic_ext
WHERE stxrelid = 'posts'::regclass
ORDER BY nsp, stxname;
SELECT pubname
     , NULL
     , NULL
FROM pg_catalog.pg_publication p
     JOIN pg_catalog.pg_publication_namespace pn ON p.oid = pn.pnpubid
     JOIN pg_catalog.pg_class pc ON pc.relnamespace = pn.pnnspid
WHERE pc.oid ='posts'::regclass and pg_catalog.pg_relation_is_publishable('posts'::regclass)
UNION
SELECT pubname
     , pg_get_expr(pr.prqual, c.oid)
     , (CASE WHEN pr.prattrs IS NOT NULL THEN
         (SELECT string_agg(attname, ', ')
           FROM pg_catalog.generate_series(0, pg_catalog.array_upper(pr.prattrs::pg_catalog.int2[], 1)) s,
                pg_catalog.pg_attribute
          WHERE attrelid = pr.prrelid AND attnum = prattrs[s])
        ELSE NULL END) FROM pg_catalog.pg_publication p
     JOIN pg_catalog.pg_publication_rel pr ON p.oid = pr.prpubid
     JOIN pg_catalog.pg_class c ON c.oid = pr.prrelid
WHERE pr.prrelid = 'posts'::regclass
UNION
SELECT pubname
     , NULL
     , NULL
FROM pg_catalog.pg_publication p
WHERE p.puballtables AND pg_catalog.pg_relation_is_publishable('posts'::regclass)
ORDER BY 1;
SELECT t.tgname, pg_catalog.pg_get_triggerdef(t.oid, true), t.tgenabled, t.tgisinternal,
  CASE WHEN t.tgparentid != 0 THEN
    (SELECT u.tgrelid::pg_catalog.regclass
     FROM pg_catalog.pg_trigger AS u,
          pg_catalog.pg_partition_ancestors(t.tgrelid) WITH ORDINALITY AS a(relid, depth)
     WHERE u.tgname = t.tgname AND u.tgrelid = a.relid
           AND u.tgparentid = 0
     ORDER BY a.depth LIMIT 1)
  END AS parent
FROM pg_catalog.pg_trigger t
WHERE t.tgrelid = 'posts'::regclass AND (NOT t.tgisinternal OR (t.tgisinternal AND t.tgenabled = 'D'))
ORDER BY 1;
SELECT c.oid::pg_catalog.regclass, c.relkind, inhdetachpending, pg_catalog.pg_get_expr(c.relpartbound, c.oid)
FROM pg_catalog.pg_class c, pg_catalog.pg_inherits i
WHERE c.oid = i.inhrelid AND i.inhparent = 'posts'::regclass
ORDER BY pg_catalog.pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT', c.oid::pg_catalog.regclass::pg_catalog.text;
select o.n, p.partstrat, pg_catalog.count(i.inhparent) from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on (n.oid = c.relnamespace) cross join lateral (select pg_catalog.array_position(pg_catalog.current_schemas(true), n.nspname)) as o(n) left join pg_catalog.pg_partitioned_table as p on (p.partrelid = c.oid) left join pg_catalog.pg_inherits as i on (c.oid = i.inhparent) where c.relname = 'posts' and o.n is not null group by 1, 2 order by 1 asc limit 1;
-- 2|NULL|0
SELECT 'posts'::regclass, 'public.likes'::regclass::text, 'int4'::regtype, 'pg_catalog.pg_class'::regclass::oid, 'pg_class'::regclass;
-- posts|likes|integer|1259|pg_class
SELECT 'nope'::regclass;
-- ERROR 42P01: relation "nope" does not exist
SELECT to_regclass('nope'), to_regclass('posts'), to_regtype('integer');
-- NULL|posts|integer
SELECT relname FROM pg_class WHERE oid = 1259;
-- pg_class
SELECT typname, typlen, typcategory FROM pg_type WHERE typname IN ('int4', 'text', '_int4', 'timestamptz', 'jsonb', 'uuid') ORDER BY oid;
-- int4|4|N
-- text|-1|S
-- _int4|-1|A
-- timestamptz|8|D
-- uuid|16|U
-- jsonb|-1|U
SELECT oid, typname, typarray FROM pg_type WHERE typname = 'numeric';
-- 1700|numeric|1231
SELECT t.typname, t.oid, t.typarray, t.oid::regtype::text AS regtype, t.typdelim AS delimiter FROM pg_type t WHERE t.oid = to_regtype('int8') ORDER BY t.oid;
-- int8|20|1016|bigint|,
SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1;
-- likes|BASE TABLE
-- posts|BASE TABLE
SELECT column_name, ordinal_position, column_default, is_nullable, data_type, character_maximum_length, numeric_precision, numeric_scale, udt_name FROM information_schema.columns WHERE table_name = 'likes' ORDER BY 2;
-- post_id|1|NULL|NO|integer|NULL|32|0|int4
-- user_id|2|NULL|NO|bigint|NULL|64|0|int8
-- weight|3|NULL|YES|numeric|NULL|10|2|numeric
-- tags|4|NULL|YES|ARRAY|NULL|NULL|NULL|_text
SELECT constraint_name, constraint_type FROM information_schema.table_constraints WHERE table_name = 'likes' AND constraint_name NOT LIKE '%not_null' ORDER BY 1;
-- likes_pkey|PRIMARY KEY
-- likes_post_id_fkey|FOREIGN KEY
-- likes_weight_check|CHECK
SELECT constraint_name, column_name, ordinal_position, position_in_unique_constraint FROM information_schema.key_column_usage WHERE table_name = 'likes' ORDER BY 1, 3;
-- likes_pkey|post_id|1|NULL
-- likes_pkey|user_id|2|NULL
-- likes_post_id_fkey|post_id|1|1
SELECT constraint_name, unique_constraint_name, match_option, update_rule, delete_rule FROM information_schema.referential_constraints;
-- likes_post_id_fkey|posts_pkey|NONE|NO ACTION|CASCADE
SELECT table_name, column_name, constraint_name FROM information_schema.constraint_column_usage WHERE constraint_schema = 'public' ORDER BY 3, 2;
-- likes|post_id|likes_pkey
-- likes|user_id|likes_pkey
-- posts|id|likes_post_id_fkey
-- likes|weight|likes_weight_check
-- posts|id|posts_pkey
--- differs: expressions are shown as they were written
SELECT constraint_name, check_clause FROM information_schema.check_constraints WHERE constraint_schema = 'public' AND constraint_name = 'likes_weight_check';
-- likes_weight_check|((weight >= 0))
SELECT schemaname, tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 3;
-- public|likes|likes_pkey|CREATE UNIQUE INDEX likes_pkey ON public.likes USING btree (post_id, user_id)
-- public|likes|likes_user|CREATE INDEX likes_user ON public.likes USING btree (user_id DESC, weight)
-- public|posts|posts_pkey|CREATE UNIQUE INDEX posts_pkey ON public.posts USING btree (id)
-- public|posts|posts_title|CREATE UNIQUE INDEX posts_title ON public.posts USING btree (title)
SELECT tablename, hasindexes FROM pg_tables WHERE schemaname = 'public' ORDER BY 1;
-- likes|t
-- posts|t
--- SQLAlchemy 2, get_columns
SELECT pg_catalog.pg_attribute.attname AS name, pg_catalog.format_type(pg_catalog.pg_attribute.atttypid, pg_catalog.pg_attribute.atttypmod) AS format_type, (SELECT pg_catalog.pg_get_expr(pg_catalog.pg_attrdef.adbin, pg_catalog.pg_attrdef.adrelid) AS pg_get_expr_1
FROM pg_catalog.pg_attrdef
WHERE pg_catalog.pg_attrdef.adrelid = pg_catalog.pg_attribute.attrelid AND pg_catalog.pg_attrdef.adnum = pg_catalog.pg_attribute.attnum AND pg_catalog.pg_attribute.atthasdef) AS "default", pg_catalog.pg_attribute.attnotnull AS not_null, pg_catalog.pg_class.relname AS table_name, pg_catalog.pg_description.description AS comment, pg_catalog.pg_attribute.attgenerated AS generated, (SELECT json_build_object('always', pg_catalog.pg_attribute.attidentity = 'a', 'start', pg_catalog.pg_sequence.seqstart, 'increment', pg_catalog.pg_sequence.seqincrement, 'minvalue', pg_catalog.pg_sequence.seqmin, 'maxvalue', pg_catalog.pg_sequence.seqmax, 'cache', pg_catalog.pg_sequence.seqcache, 'cycle', pg_catalog.pg_sequence.seqcycle) AS json_build_object_1
FROM pg_catalog.pg_sequence
WHERE pg_catalog.pg_attribute.attidentity != '' AND pg_catalog.pg_sequence.seqrelid = CAST(CAST(pg_catalog.pg_get_serial_sequence(CAST(CAST(pg_catalog.pg_attribute.attrelid AS REGCLASS) AS TEXT), pg_catalog.pg_attribute.attname) AS REGCLASS) AS OID)) AS identity_options
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_attribute ON pg_catalog.pg_class.oid = pg_catalog.pg_attribute.attrelid AND pg_catalog.pg_attribute.attnum > 0 AND NOT pg_catalog.pg_attribute.attisdropped LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_attribute.attrelid AND pg_catalog.pg_description.objsubid = pg_catalog.pg_attribute.attnum JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY['r', 'p', 'f', 'v', 'm']) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != 'pg_catalog' AND pg_catalog.pg_class.relname IN ('posts') ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_attribute.attnum;
-- id|integer|NULL|t|posts|NULL||NULL
-- title|text|NULL|t|posts|NULL||NULL
-- author|character varying(40)|'anon'::character varying|f|posts|NULL||NULL
-- created|timestamp with time zone|NULL|f|posts|NULL||NULL
SELECT attr.conrelid::regclass, array_agg(CAST(attr.attname AS TEXT) ORDER BY attr.ord) AS cols, attr.conname, min(attr.description) AS description
FROM (SELECT con.conrelid AS conrelid, con.conname AS conname, con.conindid AS conindid, con.description AS description, con.ord AS ord, pg_catalog.pg_attribute.attname AS attname
FROM pg_catalog.pg_attribute JOIN (SELECT pg_catalog.pg_constraint.conrelid AS conrelid, pg_catalog.pg_constraint.conname AS conname, pg_catalog.pg_constraint.conindid AS conindid, unnest(pg_catalog.pg_constraint.conkey) AS attnum, generate_subscripts(pg_catalog.pg_constraint.conkey, 1) AS ord, pg_catalog.pg_description.description AS description
FROM pg_catalog.pg_constraint LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_constraint.oid
WHERE pg_catalog.pg_constraint.contype = 'p' AND pg_catalog.pg_constraint.conrelid IN ('likes'::regclass)) AS con ON pg_catalog.pg_attribute.attnum = con.attnum AND pg_catalog.pg_attribute.attrelid = con.conrelid
WHERE con.conrelid IN ('likes'::regclass)) AS attr GROUP BY attr.conrelid, attr.conname ORDER BY attr.conrelid, attr.conname;
-- likes|{post_id,user_id}|likes_pkey|NULL
SELECT pg_catalog.pg_class.relname, pg_catalog.pg_constraint.conname, CASE WHEN (pg_catalog.pg_constraint.oid IS NOT NULL) THEN pg_catalog.pg_get_constraintdef(pg_catalog.pg_constraint.oid, true) END AS anon_1, nsp_ref.nspname, pg_catalog.pg_description.description
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_constraint ON pg_catalog.pg_class.oid = pg_catalog.pg_constraint.conrelid AND pg_catalog.pg_constraint.contype = 'f' LEFT OUTER JOIN pg_catalog.pg_class AS cls_ref ON cls_ref.oid = pg_catalog.pg_constraint.confrelid LEFT OUTER JOIN pg_catalog.pg_namespace AS nsp_ref ON cls_ref.relnamespace = nsp_ref.oid LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_constraint.oid JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY['r', 'p']) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != 'pg_catalog' AND pg_catalog.pg_class.relname IN ('likes', 'posts') ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_constraint.conname;
-- likes|likes_post_id_fkey|FOREIGN KEY (post_id) REFERENCES posts(id) ON DELETE CASCADE|public|NULL
-- posts|NULL|NULL|NULL|NULL
SELECT idx.indrelid::regclass, cls_idx.relname AS relname_index, idx.indisunique, con.conname IS NOT NULL AS has_constraint, idx.indoption, am.amname, CASE WHEN (idx.indpred IS NOT NULL) THEN pg_get_expr(idx.indpred, idx.indrelid) END AS filter_definition, idx.indnkeyatts, idx_attr.elements, idx_attr.elements_is_expr
FROM pg_catalog.pg_index AS idx JOIN pg_catalog.pg_class AS cls_idx ON idx.indexrelid = cls_idx.oid JOIN pg_catalog.pg_am AS am ON cls_idx.relam = am.oid LEFT OUTER JOIN (SELECT sub.indexrelid, min(sub.indrelid) AS min_1, array_agg(sub.element ORDER BY sub.ord) AS elements, array_agg(sub.is_expr ORDER BY sub.ord) AS elements_is_expr FROM (SELECT a.indexrelid, a.indrelid, a.ord, a.attnum, CASE WHEN (a.attnum = 0) THEN pg_get_indexdef(a.indexrelid, a.ord + 1, true) ELSE CAST(att.attname AS TEXT) END AS element, a.attnum = 0 AS is_expr FROM (SELECT i.indexrelid, i.indrelid, unnest(i.indkey) AS attnum, generate_subscripts(i.indkey, 1) AS ord FROM pg_catalog.pg_index i WHERE NOT i.indisprimary AND i.indrelid IN ('likes'::regclass, 'posts'::regclass)) AS a LEFT OUTER JOIN pg_catalog.pg_attribute att ON att.attnum = a.attnum AND att.attrelid = a.indrelid) AS sub GROUP BY sub.indexrelid) AS idx_attr ON idx.indexrelid = idx_attr.indexrelid LEFT OUTER JOIN pg_catalog.pg_constraint AS con ON idx.indrelid = con.conrelid AND idx.indexrelid = con.conindid AND con.contype = ANY (ARRAY['p', 'u', 'x'])
WHERE idx.indrelid IN ('likes'::regclass, 'posts'::regclass) AND NOT idx.indisprimary ORDER BY idx.indrelid, cls_idx.relname;
-- posts|posts_title|t|f|0|btree|NULL|1|{title}|{f}
-- likes|likes_user|f|f|3 0|btree|NULL|2|{user_id,weight}|{f,f}
SELECT NULL AS TABLE_CAT, result.TABLE_SCHEM, result.TABLE_NAME, result.COLUMN_NAME, result.KEY_SEQ, result.PK_NAME FROM (SELECT n.nspname AS TABLE_SCHEM, ct.relname AS TABLE_NAME, a.attname AS COLUMN_NAME, (information_schema._pg_expandarray(i.indkey)).n AS KEY_SEQ, ci.relname AS PK_NAME, information_schema._pg_expandarray(i.indkey) AS KEYS, a.attnum AS A_ATTNUM FROM pg_catalog.pg_class ct JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid) JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid) JOIN pg_catalog.pg_index i ON ( a.attrelid = i.indrelid) JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid) WHERE true AND n.nspname = 'public' AND ct.relname = 'likes' AND i.indisprimary ) result where result.A_ATTNUM = (result.KEYS).x ORDER BY result.table_name, result.pk_name, result.key_seq;
-- NULL|public|likes|post_id|1|likes_pkey
-- NULL|public|likes|user_id|2|likes_pkey
SELECT NULL::text AS PKTABLE_CAT, pkn.nspname AS PKTABLE_SCHEM, pkc.relname AS PKTABLE_NAME, pka.attname AS PKCOLUMN_NAME, NULL::text AS FKTABLE_CAT, fkn.nspname AS FKTABLE_SCHEM, fkc.relname AS FKTABLE_NAME, fka.attname AS FKCOLUMN_NAME, pos.n AS KEY_SEQ, CASE con.confupdtype WHEN 'c' THEN 0 WHEN 'n' THEN 2 WHEN 'd' THEN 4 WHEN 'r' THEN 1 WHEN 'p' THEN 1 WHEN 'a' THEN 3 ELSE NULL END AS UPDATE_RULE, CASE con.confdeltype WHEN 'c' THEN 0 WHEN 'n' THEN 2 WHEN 'd' THEN 4 WHEN 'r' THEN 1 WHEN 'p' THEN 1 WHEN 'a' THEN 3 ELSE NULL END AS DELETE_RULE, con.conname AS FK_NAME, pkic.relname AS PK_NAME FROM pg_catalog.pg_namespace pkn, pg_catalog.pg_class pkc, pg_catalog.pg_attribute pka, pg_catalog.pg_namespace fkn, pg_catalog.pg_class fkc, pg_catalog.pg_attribute fka, pg_catalog.pg_constraint con, pg_catalog.generate_series(1, 32) pos(n), pg_catalog.pg_class pkic WHERE pkn.oid = pkc.relnamespace AND pkc.oid = pka.attrelid AND pka.attnum = con.confkey[pos.n] AND con.confrelid = pkc.oid AND fkn.oid = fkc.relnamespace AND fkc.oid = fka.attrelid AND fka.attnum = con.conkey[pos.n] AND con.conrelid = fkc.oid AND con.contype = 'f' AND (pkic.relkind = 'i' OR pkic.relkind = 'I') AND pkic.oid = con.conindid AND fkc.relname = 'likes' ORDER BY pkn.nspname, pkc.relname, con.conname, pos.n;
-- NULL|public|posts|id|NULL|public|likes|post_id|1|3|0|likes_post_id_fkey|posts_pkey
SELECT * FROM (SELECT n.nspname,c.relname,a.attname,a.atttypid,a.attnotnull OR (t.typtype = 'd' AND t.typnotnull) AS attnotnull,a.atttypmod,a.attlen,t.typtypmod,row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum) AS attnum, nullif(a.attidentity, '') as attidentity,nullif(a.attgenerated, '') as attgenerated,pg_catalog.pg_get_expr(def.adbin, def.adrelid) AS adsrc,dsc.description,t.typbasetype,t.typtype FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_class c ON (c.relnamespace = n.oid) JOIN pg_catalog.pg_attribute a ON (a.attrelid=c.oid) JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid) LEFT JOIN pg_catalog.pg_attrdef def ON (a.attrelid=def.adrelid AND a.attnum = def.adnum) LEFT JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid) LEFT JOIN pg_catalog.pg_class dc ON (dc.oid=dsc.classoid AND dc.relname='pg_class') LEFT JOIN pg_catalog.pg_namespace dn ON (dc.relnamespace=dn.oid AND dn.nspname='pg_catalog') WHERE c.relkind in ('r','p','v','f','m') and a.attnum > 0 AND NOT a.attisdropped AND c.relname LIKE 'posts') c WHERE true AND attname LIKE '%' ORDER BY nspname,c.relname,attnum;
-- public|posts|id|23|t|-1|4|-1|1|NULL|NULL|NULL|NULL|0|b
-- public|posts|title|25|t|-1|-1|-1|2|NULL|NULL|NULL|NULL|0|b
-- public|posts|author|1043|f|44|-1|-1|3|NULL|NULL|'anon'::character varying|NULL|0|b
-- public|posts|created|1184|f|-1|8|-1|4|NULL|NULL|NULL|NULL|0|b
SELECT count(*) > 10 FROM pg_proc WHERE proname = 'sum' OR proname = 'count' OR proname = 'now' OR proname = 'lower';
-- t
SELECT pg_get_userbyid(10) IS NOT NULL, pg_encoding_to_char(6), obj_description('posts'::regclass, 'pg_class'), has_table_privilege('posts', 'SELECT'), quote_ident('Ab c');
-- t|UTF8|NULL|t|"Ab c"
SELECT current_schemas(false), current_schema();
-- {public}|public
SELECT count(*) FROM pg_enum;
-- 0
SELECT a.attname FROM pg_attribute a WHERE a.attrelid = 'likes_user'::regclass ORDER BY attnum;
-- user_id
-- weight
SELECT relname FROM pg_class WHERE relname LIKE 'likes%' ORDER BY 1;
-- likes
-- likes_pkey
-- likes_user
SELECT pg_size_pretty(n) FROM (VALUES (0::bigint), (10239), (10240), (20000), (1048576), (10485760), (123456789012), (-20000)) v(n);
-- 0 bytes
-- 10239 bytes
-- 10 kB
-- 20 kB
-- 1024 kB
-- 10 MB
-- 115 GB
-- -20 kB
SELECT current_setting(x) FROM (VALUES ('server_encoding'), ('max_index_keys')) v(x);
-- UTF8
-- 32
SELECT current_setting(x) FROM (VALUES ('no_such_setting')) v(x);
-- ERROR 42704: unrecognized configuration parameter "no_such_setting"
--- differs: expressions are shown as they were written
SELECT pg_get_constraintdef(oid, true) FROM pg_constraint WHERE conname = 'likes_weight_check';
-- CHECK (weight >= 0)
