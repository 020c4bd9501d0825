-- Row comparisons, IN, BETWEEN, CASE.

CREATE TABLE t (id int PRIMARY KEY, a int, b int, s text);
INSERT INTO t VALUES (1, 1, 2, 'x'), (2, 1, NULL, 'y'), (3, NULL, 2, NULL), (4, 2, 1, 'x'), (5, NULL, NULL, 'z');

--- Rows with NULLs.
SELECT ROW(1, 2) < ROW(1, NULL), ROW(1, 2) <= ROW(1, NULL), ROW(1, 2) > ROW(1, NULL), ROW(1, 2) >= ROW(1, NULL);
-- NULL|NULL|NULL|NULL
SELECT ROW(1, 2) = ROW(1, NULL), ROW(1, 2) = ROW(2, NULL), ROW(1, 2) <> ROW(1, NULL), ROW(1, 2) <> ROW(2, NULL);
-- NULL|f|NULL|t
SELECT ROW(1, NULL) < ROW(2, 1), ROW(2, NULL) < ROW(1, 1), ROW(NULL, 1) < ROW(1, 1), ROW(1, NULL, 3) < ROW(1, 2, 4);
-- t|f|NULL|NULL
SELECT (1, 2) < (1, 3), (1, 2) < (2, 1), (1, 2) <= (1, 2), (2, 1) > (1, 9), (1, 2) >= (1, 3);
-- t|t|t|t|f
SELECT (1, 'a') < (1, 'b'), (1, 'a'::text) = (1, 'a'), (1, 2.5) > (1, 2), (1::bigint, 2) = (1, 2::smallint);
-- t|t|t|t
SELECT (1, NULL) IS DISTINCT FROM (1, NULL), (1, 2) IS DISTINCT FROM (1, NULL), (1, NULL) IS NOT DISTINCT FROM (1, NULL);
-- f|t|t
SELECT ROW(1, NULL) IS NULL, ROW(NULL, NULL) IS NULL, ROW(1, 2) IS NOT NULL, ROW(1, NULL) IS NOT NULL, ROW() IS NULL;
-- f|t|t|f|t
SELECT NOT (ROW(1, 2) < ROW(1, NULL)), (ROW(1, 2) < ROW(1, NULL)) IS NULL, coalesce(ROW(1, 2) < ROW(1, NULL), true);
-- NULL|t|t
SELECT id FROM t WHERE (a, b) < (2, 0) ORDER BY id;
-- 1
-- 2
SELECT id FROM t WHERE (a, b) >= (1, 2) ORDER BY id;
-- 1
-- 4
SELECT id FROM t WHERE (a, b) = (1, 2) ORDER BY id;
-- 1
SELECT id FROM t WHERE (a, b) <> (1, 2) ORDER BY id;
-- 4
SELECT id FROM t WHERE NOT (a, b) = (1, 2) ORDER BY id;
-- 4
SELECT id FROM t WHERE (id, a) > (2, 0) ORDER BY id;
-- 2
-- 3
-- 4
-- 5
SELECT id FROM t WHERE (id, a) > (1, 1) ORDER BY id;
-- 2
-- 3
-- 4
-- 5
SELECT id FROM t WHERE (a, b) IN ((1, 2), (2, 1)) ORDER BY id;
-- 1
-- 4
SELECT id FROM t WHERE (a, b) NOT IN ((1, 2), (2, NULL)) ORDER BY id;
SELECT id, (a, b) IN ((1, 2), (2, 1)), (a, b) < (b, a) FROM t ORDER BY id;
-- 1|t|t
-- 2|NULL|NULL
-- 3|NULL|NULL
-- 4|t|f
-- 5|NULL|NULL
SELECT id, (a, b) = (SELECT 1, 2), (a, b) < (SELECT 2, 0) FROM t ORDER BY id;
-- 1|t|t
-- 2|NULL|t
-- 3|NULL|NULL
-- 4|f|f
-- 5|NULL|NULL
SELECT (1, 2) = (SELECT 1, 2), (1, 2) = (SELECT 1, NULL::int), (1, 2) < (SELECT 1, 3), (1, 2) = (SELECT 1, 2 WHERE false);
-- t|NULL|t|NULL
SELECT (1, 2) = ANY (SELECT 1, 2), (1, 2) <> ALL (SELECT 1, 3), (1, 2) < ANY (SELECT 1, NULL::int);
-- t|t|NULL
SELECT (1, 2) < (1, 2, 3);
-- ERROR 42601: unequal number of entries in row expressions
SELECT (1, 2) = (1, 'x');
-- ERROR 22P02: invalid input syntax for type integer: "x"
SELECT (1, 2) = (SELECT 1);
-- ERROR 42601: subquery has too few columns
SELECT ROW(1) = ROW(1), ROW(1) < ROW(NULL), ROW() = ROW();
-- ERROR 0A000: cannot compare rows of zero length
SELECT (1, (2, 3)) = (1, (2, 3)), (1, (2, 3)) < (1, (2, 4));
-- t|t
SELECT ROW(1, 2)::text, (1, 'a b', NULL)::text, ROW(1, 2), ROW();
-- (1,2)|(1,"a b",)|(1,2)|()
SELECT t = t, t < t FROM t WHERE id < 3 ORDER BY id;
-- t|f
-- t|f
SELECT ROW(t.id, t.a) FROM t ORDER BY id LIMIT 2;
-- (1,1)
-- (2,1)
SELECT (1, 2) BETWEEN (1, 1) AND (1, 3), (1, 2) BETWEEN (1, 1) AND (1, NULL);
-- t|NULL
SELECT id FROM t ORDER BY (a, b), id;
-- 1
-- 2
-- 4
-- 3
-- 5
SELECT count(DISTINCT (a, b)) FROM t;
-- 5
SELECT DISTINCT (a, b) FROM t ORDER BY 1;
-- (1,2)
-- (1,)
-- (2,1)
-- (,2)
-- (,)
SELECT max(id) FROM t GROUP BY (a, b) ORDER BY 1;
-- 1
-- 2
-- 3
-- 4
-- 5
SELECT CASE (1, 2) WHEN (1, 2) THEN 'same' END, nullif((1, 2) = (1, 2), true);
-- same|NULL

--- IN with NULLs.
SELECT NULL IN (NULL, 1), NULL IN (1, 2), NULL IN (NULL), 1 IN (NULL, 1), 2 IN (NULL, 1), NULL NOT IN (NULL, 1);
-- NULL|NULL|NULL|t|NULL|NULL
SELECT NULL IN ('a', 'b'), NULL IN (NULL, 'a'), 'a' IN (NULL, 'a'), NULL = NULL, NULL <> 1, NULL IS NULL;
-- NULL|NULL|t|NULL|NULL|t
SELECT 1 IN (SELECT NULL), NULL IN (SELECT NULL), NULL = ANY (ARRAY[NULL, 1]), 1 = ANY (NULL), NULL = ANY ('{1}'::int[]);
-- ERROR 42883: operator does not exist: integer = text
SELECT NULL BETWEEN 1 AND 2, 1 BETWEEN NULL AND 2, 3 BETWEEN NULL AND 2, NULL BETWEEN NULL AND NULL;
-- NULL|NULL|f|NULL
SELECT id FROM t WHERE a IN (NULL, 1) ORDER BY id;
-- 1
-- 2
SELECT id FROM t WHERE a NOT IN (NULL, 1) ORDER BY id;
SELECT id FROM t WHERE NULL IN (a, 1) ORDER BY id;
SELECT 1 IN (1, 2.5), '1' IN (1, 2), 1 IN ('1', '2'), 1 IN ('x');
-- ERROR 22P02: invalid input syntax for type integer: "x"
SELECT NULL IN (SELECT a FROM t WHERE id > 100), 5 NOT IN (SELECT a FROM t), 5 NOT IN (SELECT a FROM t WHERE a IS NOT NULL);
-- f|NULL|t
SELECT NULL || 'a', NULL + 1, NULL AND false, NULL OR true, NOT NULL, -NULL;
-- ERROR 42725: operator is not unique: - unknown
SELECT greatest(NULL, 1), least(NULL, NULL), coalesce(NULL, NULL), nullif(NULL, 1), nullif(1, NULL);
-- 1|NULL|NULL|NULL|1

--- BETWEEN SYMMETRIC.
SELECT 2 BETWEEN SYMMETRIC 3 AND 1, 2 BETWEEN 3 AND 1, 5 BETWEEN SYMMETRIC 1 AND 3, 2 NOT BETWEEN SYMMETRIC 3 AND 1;
-- t|f|f|f
SELECT NULL BETWEEN SYMMETRIC 1 AND 2, 2 BETWEEN SYMMETRIC NULL AND 1, 2 BETWEEN SYMMETRIC 1 AND NULL, 0 BETWEEN SYMMETRIC 1 AND NULL;
-- NULL|NULL|NULL|NULL
SELECT id FROM t WHERE a BETWEEN SYMMETRIC 2 AND 1 ORDER BY id;
-- 1
-- 2
-- 4
SELECT id FROM t WHERE a NOT BETWEEN SYMMETRIC b AND 1 ORDER BY id;
-- 4
SELECT id FROM t WHERE id BETWEEN SYMMETRIC 4 AND 2 AND a IS NOT NULL ORDER BY id;
-- 2
-- 4
SELECT 2 BETWEEN ASYMMETRIC 1 AND 3, 'b' BETWEEN SYMMETRIC 'c' AND 'a', 1.5 BETWEEN SYMMETRIC 2 AND 1;
-- t|t|t
SELECT 2 BETWEEN SYMMETRIC 3 AND 1 = true, 1 + 1 BETWEEN SYMMETRIC 1 + 2 AND 2 - 1 OR false;
-- t|t
SELECT 2 BETWEEN SYMMETRIC (SELECT 3) AND 1, NOT 2 BETWEEN SYMMETRIC 3 AND 1;
-- t|f
SELECT CASE WHEN 2 BETWEEN SYMMETRIC 3 AND 1 THEN 'in' ELSE 'out' END;
-- in
SELECT 1 AS symmetric_value, 5 BETWEEN SYMMETRIC 6 AND 4 AND 3 BETWEEN SYMMETRIC 2 AND 4;
-- 1|t

--- Branches that are never taken.
SELECT CASE WHEN true THEN 'ok' ELSE (1/0)::text END;
-- ok
SELECT CASE WHEN false THEN 1/0 ELSE 2 END, CASE 1 WHEN 1 THEN 'a' WHEN 2 THEN (1/0)::text END;
-- 2|a
SELECT CASE WHEN true THEN 1 WHEN 1/0 = 1 THEN 2 END;
-- 1
SELECT CASE WHEN id > 0 THEN 1 ELSE 1/0 END FROM t WHERE id = 1;
-- ERROR 22012: division by zero
SELECT CASE WHEN id > 0 THEN 1 ELSE id/0 END FROM t WHERE id = 1;
-- 1
SELECT CASE WHEN true THEN 1 ELSE 'x'::int END;
-- ERROR 22P02: invalid input syntax for type integer: "x"
SELECT CASE WHEN true THEN '1' ELSE 'x'::text END, coalesce(1, 1/0), coalesce(NULL, 2, 1/0);
-- 1|1|2
SELECT CASE WHEN false THEN (1/0)::text END, CASE WHEN NULL THEN 1/0 ELSE 0 END;
-- NULL|0
SELECT true OR 1/0 = 1, false AND 1/0 = 1, NULL AND 1 = 1;
-- t|f|NULL
SELECT CASE 2 WHEN 1 THEN 1/0 ELSE 7 END, CASE WHEN true THEN CASE WHEN false THEN 1/0 ELSE 3 END END;
-- 7|3
SELECT CASE WHEN length('abc') = 3 THEN 'y' ELSE (1/0)::text END;
-- y
SELECT CASE WHEN 1 = 1 THEN 'ok' ELSE ('x'::text)::int::text END;
-- ok
SELECT 1 WHERE false AND 1/0 = 1;
SELECT 1 FROM t WHERE false AND 1/0 = 1;
SELECT count(*) FROM t WHERE true OR 1/0 = 1;
-- 5
SELECT 1/0;
-- ERROR 22012: division by zero
SELECT CASE WHEN false THEN 1 ELSE 1/0 END;
-- ERROR 22012: division by zero
SELECT id FROM t WHERE CASE WHEN id = 1 THEN true ELSE false END;
-- 1
SELECT CASE WHEN s = 'x' THEN 1 ELSE 0 END + 1 FROM t ORDER BY id;
-- 2
-- 1
-- 1
-- 2
-- 1
SELECT CASE WHEN true THEN 1 ELSE 2.5 END, pg_typeof(CASE WHEN true THEN 1 ELSE 2.5 END), CASE WHEN true THEN 'a' ELSE NULL END;
-- 1|numeric|a
SELECT CASE a WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE 'none' END FROM t ORDER BY id;
-- one
-- one
-- none
-- two
-- none
SELECT CASE WHEN true THEN 1 ELSE 'a' END;
-- ERROR 22P02: invalid input syntax for type integer: "a"
SELECT CASE WHEN 1 THEN 1 END;
-- ERROR 42804: argument of CASE/WHEN must be type boolean, not type integer

--- A function in FROM whose rows are one value.
SELECT value FROM jsonb_array_elements('[1, "a", null]') q;
-- 1
-- "a"
-- null
SELECT q.value FROM jsonb_array_elements('[1, "a"]') q;
-- 1
-- "a"
SELECT q FROM jsonb_array_elements('[1, "a"]') q;
-- 1
-- "a"
SELECT q.* FROM jsonb_array_elements('[1, "a"]') q;
-- 1
-- "a"
SELECT * FROM jsonb_array_elements('[1, "a"]') q;
-- 1
-- "a"
SELECT value FROM jsonb_array_elements('[1, "a"]');
-- 1
-- "a"
SELECT jsonb_array_elements.value FROM jsonb_array_elements('[1, "a"]');
-- 1
-- "a"
SELECT jsonb_array_elements FROM jsonb_array_elements('[1, "a"]');
-- 1
-- "a"
SELECT value FROM json_array_elements_text('[1, "a"]') AS q;
-- 1
-- a
SELECT q.value, q FROM json_array_elements_text('[1, "a"]') AS q;
-- 1|1
-- a|a
SELECT x FROM jsonb_array_elements('[1]') q(x);
-- 1
SELECT value FROM jsonb_array_elements('[1]') q(x);
-- ERROR 42703: column "value" does not exist
SELECT q, q.key, q.value, key FROM jsonb_each('{"a": 1, "b": "c"}') q ORDER BY key;
-- (a,1)|a|1|a
-- (b,"""c""")|b|"c"|b
SELECT key, value FROM jsonb_each_text('{"a": 1, "b": "c"}') ORDER BY key;
-- a|1
-- b|c
SELECT value ->> 'n' FROM jsonb_array_elements('[{"n": 1}, {"n": 2}]') WHERE value ->> 'n' > '1';
-- 2
SELECT q.value -> 'n' FROM jsonb_array_elements('[{"n": 1}, {"n": 2}]') AS q ORDER BY q.value ->> 'n' DESC;
-- 2
-- 1
SELECT t.id, q.value FROM t, jsonb_array_elements(to_jsonb(ARRAY[t.id, t.id * 10])) q WHERE t.id < 3 ORDER BY 1, 2;
-- 1|1
-- 1|10
-- 2|2
-- 2|20
SELECT value, ordinality FROM jsonb_array_elements('[5, 6]') WITH ORDINALITY;
-- 5|1
-- 6|2
SELECT q.value, q.ordinality, q FROM jsonb_array_elements('[5, 6]') WITH ORDINALITY q;
-- 5|1|(5,1)
-- 6|2|(6,2)
SELECT v, n FROM jsonb_array_elements('[5, 6]') WITH ORDINALITY q(v, n);
-- 5|1
-- 6|2
SELECT g, g.g, g.* FROM generate_series(1, 2) g;
-- 1|1|1
-- 2|2|2
SELECT generate_series FROM generate_series(1, 2);
-- 1
-- 2
SELECT g.generate_series FROM generate_series(1, 2) g;
-- ERROR 42703: column g.generate_series does not exist
SELECT u, u.u FROM unnest(ARRAY[3, 4]) u;
-- 3|3
-- 4|4
SELECT unnest FROM unnest(ARRAY[3, 4]);
-- 3
-- 4
SELECT * FROM unnest(ARRAY[1, 2], ARRAY['a', 'b']) u(x, y) ORDER BY x;
-- 1|a
-- 2|b
SELECT u FROM unnest(ARRAY[1, 2], ARRAY['a', 'b']) u;
-- (1,a)
-- (2,b)
SELECT count(q) FROM jsonb_array_elements('[1, null]') q;
-- 2
SELECT max(q.g) FROM generate_series(1, 3) q(g);
-- 3
SELECT word, q FROM regexp_split_to_table('a b', ' ') AS q(word);
-- a|a
-- b|b
SELECT jsonb_object_keys FROM jsonb_object_keys('{"b": 1, "a": 2}') ORDER BY 1;
-- a
-- b
SELECT k FROM jsonb_object_keys('{"b": 1, "a": 2}') k ORDER BY k;
-- a
-- b
SELECT e.value FROM t LEFT JOIN LATERAL jsonb_array_elements('[1]') e ON t.id = 1 ORDER BY t.id LIMIT 2;
-- 1
-- NULL
SELECT count(*) FROM jsonb_array_elements('[1, 2]') value;
-- 2
SELECT value FROM jsonb_array_elements('[1, 2]') value;
-- 1
-- 2
