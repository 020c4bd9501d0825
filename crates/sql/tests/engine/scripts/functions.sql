-- Functions that give sets, aggregates and names through the engine.

SELECT x FROM regexp_matches('foobarbequebazilbarfbonk', '(b[^b]+)(b[^b]+)', 'g') x;
-- {bar,beque}
-- {bazil,barf}
SELECT x FROM regexp_matches('foobarbequebazilbarfbonk', '(b[^b]+)(b[^b]+)') x;
-- {bar,beque}
SELECT regexp_matches('abc', '', 'g');
-- {""}
-- {""}
-- {""}
-- {""}
SELECT regexp_matches('abc', 'x', 'g');
SELECT regexp_matches('ABC', 'b', 'ig');
-- {B}
SELECT regexp_split_to_table('the quick  fox', '\s+');
-- the
-- quick
-- fox
SELECT x FROM regexp_split_to_table('123', '') x;
-- 1
-- 2
-- 3
SELECT x FROM json_array_elements('[1, {"a" :2}, [3 , 4], "x\u0041", 1.50]') x;
-- 1
-- {"a" :2}
-- [3 , 4]
-- "x\u0041"
-- 1.50
SELECT x FROM json_array_elements_text('["a\u0041", {"a" :2}, null, 1.50]') x;
-- aA
-- {"a" :2}
-- NULL
-- 1.50
SELECT * FROM json_each('{"a" : {"x" :1}, "b":2.50, "a":null}');
-- a|{"x" :1}
-- b|2.50
-- a|null
SELECT * FROM json_each_text('{"a" : {"x" :1}, "b":"c\"", "d":null}');
-- a|{"x" :1}
-- b|c"
-- d|NULL
SELECT * FROM jsonb_each('{"a" : {"x" :1}, "b":2.50}');
-- a|{"x": 1}
-- b|2.50
SELECT json_agg(x) FROM (VALUES ('{"a" :1}'::json), ('[1 , 2]')) t(x);
-- [{"a" :1}, [1 , 2]]
SELECT jsonb_agg(x) FROM (VALUES ('{"a" :1}'::json), ('[1 , 2]')) t(x);
-- [{"a": 1}, [1, 2]]
SELECT json_object_agg(k, v) FROM (VALUES ('a', '{"a" :1}'::json), ('b', null)) t(k, v);
-- { "a" : {"a" :1}, "b" : null }
SELECT row_to_json(t) FROM (VALUES (1, '{"a" :1}'::json)) t(a, b);
-- {"a":1,"b":{"a" :1}}
SELECT to_json(t) FROM (VALUES (1, '{"a" :1}'::json)) t(a, b);
-- {"a":1,"b":{"a" :1}}
SELECT json_agg(t) FROM (VALUES (1, 'x'), (2, 'y')) t(a, b);
-- [{"a":1,"b":"x"}, 
--  {"a":2,"b":"y"}]
CREATE TABLE odd_t (a int, b text, j json);
INSERT INTO odd_t VALUES (1, 'x', ' {"k" : [1 , 2]} ');
SELECT j, j -> 'k', j #> '{k,0}', row_to_json(o) FROM odd_t o;
--  {"k" : [1 , 2]} |[1 , 2]|1|{"a":1,"b":"x","j": {"k" : [1 , 2]} }
SELECT '"odd_t"'::regclass, 'public."odd_t"'::regclass, to_regclass('ODD_T'), to_regclass('"ODD_T"'), to_regclass('nosuch.t');
-- odd_t|odd_t|odd_t|NULL|NULL
SELECT 'nosuch.t'::regclass;
-- ERROR 3F000: schema "nosuch" does not exist
SELECT 'a.b.c.d'::regclass;
-- ERROR 42601: improper relation name (too many dotted names): a.b.c.d
SELECT '"pg_catalog"."pg_class"'::regclass, 'PG_CLASS'::regclass;
-- pg_class|pg_class
SELECT 'pg_catalog'::regnamespace, '"public"'::regnamespace, to_regnamespace('nosuch'), to_regnamespace('public');
-- pg_catalog|public|NULL|public
SELECT '"pg_catalog"."int4"'::regtype, 'int array'::regtype, to_regtype('"pg_catalog"."text"[]'), to_regtype('nosuch'), to_regproc('now'), to_regproc('length');
-- integer|integer[]|text[]|NULL|now|NULL
SELECT 'nosuch.int4'::regtype;
-- ERROR 3F000: schema "nosuch" does not exist
SELECT trim(both from b), trim(leading 'x' from b) FROM odd_t;
-- x|
SELECT * FROM odd_t WHERE b ~ '^(x|xx)$' AND a>=-1 AND a<>-1;
-- 1|x| {"k" : [1 , 2]} 
SELECT b ~ p, regexp_replace(b, p, '<\&>') FROM odd_t, (VALUES ('x'), ('(?=x)'), ('(.)\1')) v(p);
-- t|<x>
-- t|<>x
-- f|x
SELECT a::interval FROM (VALUES ('1 2:03:04.567')) v(a);
-- 1 day 02:03:04.567
SELECT a::interval(1), a::interval hour, a::interval day to minute FROM (VALUES (interval '1 2:03:04.567')) v(a);
-- 1 day 02:03:04.6|1 day 02:00:00|1 day 02:03:00
SELECT a::timestamp(0), a::timestamptz(1)::timestamp, a::time(2) FROM (VALUES (timestamp '2024-01-02 03:04:05.678901')) v(a);
-- 2024-01-02 03:04:06|2024-01-02 03:04:05.7|03:04:05.68
