-- Whole rows: on the NULL side of an outer join they are NULL, and not a row of NULLs.

CREATE TABLE p (id int PRIMARY KEY, name text);
CREATE TABLE q (a int, b text);
CREATE TABLE r (id int PRIMARY KEY, p int, z int);
CREATE INDEX r_p ON r (p);
INSERT INTO p VALUES (1, 'one'), (2, 'two'), (3, NULL);
INSERT INTO q VALUES (1, 'x'), (2, NULL), (NULL, NULL);
INSERT INTO r VALUES (10, 1, 1), (11, 1, NULL), (12, 9, 3);
SELECT p.id, q FROM p LEFT JOIN q ON q.a = p.id ORDER BY 1;
-- 1|(1,x)
-- 2|(2,)
-- 3|NULL
SELECT p, q.a FROM p RIGHT JOIN q ON q.a = p.id ORDER BY 2;
-- (1,one)|1
-- (2,two)|2
-- NULL|NULL
SELECT p, q FROM p FULL JOIN q ON q.a = p.id + 1 ORDER BY p.id, q.a;
-- (1,one)|(2,)
-- (2,two)|NULL
-- (3,)|NULL
-- NULL|(1,x)
-- NULL|(,)
SELECT p.id, r FROM p LEFT JOIN r ON r.p = p.id ORDER BY 1, r.id;
-- 1|(10,1,1)
-- 1|(11,1,)
-- 2|NULL
-- 3|NULL
SELECT p.id, r FROM p LEFT JOIN r ON r.p = p.id AND r.z = (SELECT 1) WHERE p.id < 3 ORDER BY 1;
-- 1|(10,1,1)
-- 2|NULL
SELECT p.id, s FROM p LEFT JOIN (SELECT a, b FROM q) s ON s.a = p.id ORDER BY 1;
-- 1|(1,x)
-- 2|(2,)
-- 3|NULL
SELECT p.id, v FROM p LEFT JOIN (VALUES (1, 2), (3, NULL)) v(id, n) USING (id) ORDER BY 1;
-- 1|(1,2)
-- 2|NULL
-- 3|(3,)
SELECT p.id, l FROM p LEFT JOIN LATERAL (SELECT r.id, r.z FROM r WHERE r.p = p.id ORDER BY r.id DESC LIMIT 1) l ON true ORDER BY 1;
-- 1|(11,)
-- 2|NULL
-- 3|NULL
SELECT p.id, l, m FROM p LEFT JOIN LATERAL (SELECT r.id, r.z FROM r WHERE r.p = p.id ORDER BY r.id LIMIT 1) l ON true LEFT JOIN LATERAL (SELECT l.z + p.id AS s) m ON m.s > 1 ORDER BY 1;
-- 1|(10,1)|(2)
-- 2|NULL|NULL
-- 3|NULL|NULL
SELECT l, n FROM p LEFT JOIN q l ON l.a = p.id, LATERAL (SELECT l.b || p.name AS c) n ORDER BY p.id;
-- (1,x)|(xone)
-- (2,)|()
-- NULL|()
WITH c AS (SELECT a, b FROM q) SELECT p.id, c FROM p LEFT JOIN c ON c.a = p.id ORDER BY 1;
-- 1|(1,x)
-- 2|(2,)
-- 3|NULL
SELECT p.id, (SELECT q) FROM p LEFT JOIN q ON q.a = p.id ORDER BY 1;
-- 1|(1,x)
-- 2|(2,)
-- 3|NULL
SELECT p.id, q IS NULL, q IS NOT NULL FROM p LEFT JOIN q ON q.a = p.id ORDER BY 1;
-- 1|f|t
-- 2|f|f
-- 3|t|f
SELECT p.id FROM p LEFT JOIN q ON q.a = p.id WHERE q IS NULL ORDER BY 1;
-- 3
SELECT p.id FROM p LEFT JOIN q ON q.a = p.id AND q IS NOT NULL WHERE p.id < 3 ORDER BY 1;
-- 1
-- 2
SELECT q FROM q WHERE q IS NULL;
-- (,)
SELECT p.id, count(q), count(q.a) FROM p LEFT JOIN q ON q.a = p.id GROUP BY p.id ORDER BY 1;
-- 1|1|1
-- 2|1|1
-- 3|0|0
SELECT p.id, row_to_json(q), to_jsonb(q), to_json(p) FROM p LEFT JOIN q ON q.a = p.id ORDER BY 1;
-- 1|{"a":1,"b":"x"}|{"a": 1, "b": "x"}|{"id":1,"name":"one"}
-- 2|{"a":2,"b":null}|{"a": 2, "b": null}|{"id":2,"name":"two"}
-- 3|NULL|NULL|{"id":3,"name":null}
SELECT jsonb_agg(q ORDER BY p.id) FROM p LEFT JOIN q ON q.a = p.id;
-- [{"a": 1, "b": "x"}, {"a": 2, "b": null}, null]
SELECT p.id, row_to_json(q) FROM p LEFT JOIN q ON q.a = p.id GROUP BY p.id, q.a, q.b ORDER BY 1;
-- ERROR 42803: column "q.*" must appear in the GROUP BY clause or be used in an aggregate function
SELECT * FROM p NATURAL LEFT JOIN (SELECT id, z FROM r) r WHERE r IS NULL ORDER BY 1;
-- 1|one|NULL
-- 2|two|NULL
-- 3|NULL|NULL
SELECT x, y FROM (p JOIN q ON q.a = p.id) LEFT JOIN r y ON y.p = p.id LEFT JOIN p x ON x.id = y.z ORDER BY p.id, y.id;
-- (1,one)|(10,1,1)
-- NULL|(11,1,)
-- NULL|NULL
SELECT coalesce(q::text, 'none') FROM p LEFT JOIN q ON q.a = p.id ORDER BY p.id;
-- (1,x)
-- (2,)
-- none
SELECT array_agg(q ORDER BY p.id) IS NULL FROM p LEFT JOIN q ON q.a = p.id;
-- f
SELECT p FROM p JOIN q ON q.a = p.id ORDER BY p.id;
-- (1,one)
-- (2,two)
SELECT c, c.relname FROM p LEFT JOIN pg_catalog.pg_class c ON c.relname = 'no' || p.name ORDER BY p.id LIMIT 1;
-- NULL|NULL
