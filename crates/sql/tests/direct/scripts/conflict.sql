-- INSERT .. ON CONFLICT.

CREATE TABLE c (id int PRIMARY KEY, email text, n int DEFAULT 0, UNIQUE (email));
-- CREATE TABLE
INSERT INTO c VALUES (1, 'a', 1);
-- INSERT 0 1
INSERT INTO c VALUES (1, 'b', 2) ON CONFLICT DO NOTHING;
-- INSERT 0 0
INSERT INTO c VALUES (2, 'a', 2) ON CONFLICT DO NOTHING RETURNING id;
-- INSERT 0 0
INSERT INTO c VALUES (2, 'a', 2) ON CONFLICT (id) DO NOTHING;
-- ERROR 23505: duplicate key value violates unique constraint "c_email_key"
-- DETAIL: Key (email)=(a) already exists.
INSERT INTO c VALUES (1, 'z', 5) ON CONFLICT (id) DO UPDATE SET n = c.n + excluded.n RETURNING *;
-- 1|a|6
-- INSERT 0 1
INSERT INTO c VALUES (9, 'a', 5) ON CONFLICT (email) DO UPDATE SET n = excluded.n, email = 'aa' WHERE c.n < 100 RETURNING *;
-- 1|aa|5
-- INSERT 0 1
INSERT INTO c VALUES (9, 'aa', 5) ON CONFLICT (email) DO UPDATE SET n = 0 WHERE c.n > 100 RETURNING *;
-- INSERT 0 0
INSERT INTO c VALUES (3, 'c', 1), (3, 'd', 2) ON CONFLICT (id) DO UPDATE SET n = 9;
-- ERROR 21000: ON CONFLICT DO UPDATE command cannot affect row a second time
INSERT INTO c VALUES (3, 'c', 1), (3, 'd', 2) ON CONFLICT (id) DO NOTHING;
-- INSERT 0 1
INSERT INTO c VALUES (4, 'q', 1) ON CONFLICT ON CONSTRAINT c_pkey DO UPDATE SET n = 1;
-- INSERT 0 1
INSERT INTO c VALUES (4, 'q', 1) ON CONFLICT ON CONSTRAINT c_pkey DO UPDATE SET n = excluded.n + 41;
-- INSERT 0 1
INSERT INTO c VALUES (4, 'q', 1) ON CONFLICT ON CONSTRAINT nope DO NOTHING;
-- ERROR 42704: constraint "nope" for table "c" does not exist
INSERT INTO c VALUES (4, 'q', 1) ON CONFLICT (n) DO NOTHING;
-- ERROR 42P10: there is no unique or exclusion constraint matching the ON CONFLICT specification
INSERT INTO c VALUES (4, 'q', 1) ON CONFLICT DO UPDATE SET n = 1;
-- ERROR 42601: ON CONFLICT DO UPDATE requires inference specification or constraint name
INSERT INTO c VALUES (4, 'q', 1) ON CONFLICT (id) DO UPDATE SET n = nope;
-- ERROR 42703: column "nope" does not exist
SELECT * FROM c ORDER BY id;
-- 1|aa|5
-- 3|c|1
-- 4|q|42
-- SELECT 3
