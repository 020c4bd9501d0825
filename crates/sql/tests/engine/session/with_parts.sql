--- Job queues as people write them.
CREATE TABLE q (id int PRIMARY KEY, state text DEFAULT 'ready', at int, owner text);
INSERT INTO q (id, at) SELECT i, 100 - i FROM generate_series(1, 9) i;
WITH job AS (SELECT id FROM q WHERE state = 'ready' ORDER BY at FOR UPDATE SKIP LOCKED LIMIT 1) UPDATE q SET state = 'run', owner = 'a' FROM job WHERE q.id = job.id RETURNING q.*;
-- 9|run|91|a
WITH job AS (SELECT id FROM q WHERE state = 'ready' ORDER BY at LIMIT 1 FOR UPDATE SKIP LOCKED) UPDATE q SET state = 'run' FROM job WHERE q.id = job.id RETURNING q.id, job.id AS job;
-- 8|8
WITH job AS MATERIALIZED (SELECT id FROM q WHERE state = 'ready' ORDER BY at LIMIT 2 FOR UPDATE SKIP LOCKED) UPDATE q SET state = 'run' WHERE id IN (SELECT id FROM job) RETURNING id;
-- 6
-- 7
UPDATE q SET state = 'run' WHERE id = (SELECT id FROM q WHERE state = 'ready' ORDER BY at FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING *;
-- 5|run|95|NULL
UPDATE q SET state = 'run' WHERE id IN (SELECT id FROM q WHERE state = 'ready' ORDER BY at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED) RETURNING id;
-- 4
UPDATE q SET state = 'run' FROM (SELECT id FROM q WHERE state = 'ready' ORDER BY at LIMIT 1 FOR UPDATE SKIP LOCKED) j WHERE q.id = j.id RETURNING q.id;
-- 3
UPDATE q SET owner = x.o FROM (SELECT id AS i, 'o' || id AS o FROM q WHERE state = 'ready' ORDER BY at LIMIT 1 FOR UPDATE) AS x WHERE q.id = x.i RETURNING q.id, owner;
-- 2|o2
DELETE FROM q WHERE id IN (SELECT id FROM q WHERE state = 'run' ORDER BY at FOR UPDATE SKIP LOCKED LIMIT 2) RETURNING *;
-- 8|run|92|NULL
-- 9|run|91|a
DELETE FROM q USING (SELECT id FROM q WHERE state = 'run' ORDER BY at LIMIT 1 FOR UPDATE SKIP LOCKED) d WHERE q.id = d.id RETURNING q.id;
-- 7
DELETE FROM q WHERE id = ANY (ARRAY(SELECT id FROM q WHERE state = 'run' ORDER BY at LIMIT 1 FOR UPDATE SKIP LOCKED)) RETURNING id;
-- 6
WITH d AS (SELECT id FROM q ORDER BY id LIMIT 1 FOR UPDATE) DELETE FROM q USING d WHERE q.id = d.id RETURNING q.id, d.*;
-- 1|1
SELECT * FROM (SELECT id, state FROM q ORDER BY id DESC FOR UPDATE LIMIT 2) s ORDER BY id;
-- 4|run
-- 5|run
WITH l AS (SELECT id FROM q ORDER BY id FOR SHARE) SELECT count(*), min(l.id) FROM l JOIN q USING (id);
-- 4|2
SELECT id, state FROM q ORDER BY id;
-- 2|ready
-- 3|run
-- 4|run
-- 5|run
PREPARE next(text, int) AS WITH job AS (SELECT id FROM q WHERE state = $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED) UPDATE q SET owner = $1 FROM job WHERE q.id = job.id RETURNING q.id, owner;
EXECUTE next('ready', 1);
-- 2|ready
EXECUTE next('ready', 5);
-- 2|ready
--- Statements that write in WITH.
CREATE TABLE a (id int PRIMARY KEY, v text UNIQUE);
CREATE TABLE b (id int PRIMARY KEY, v text, n int DEFAULT 7);
INSERT INTO a SELECT i, 'v' || i FROM generate_series(1, 6) i;
WITH moved AS (DELETE FROM a WHERE id <= 2 RETURNING *) INSERT INTO b (id, v) SELECT * FROM moved;
SELECT * FROM b ORDER BY id;
-- 1|v1|7
-- 2|v2|7
SELECT count(*) FROM a;
-- 4
WITH moved AS (DELETE FROM a WHERE id = 3 RETURNING *) INSERT INTO b (id, v) SELECT * FROM moved RETURNING *;
-- 3|v3|7
WITH u AS (UPDATE b SET n = n + 1 RETURNING *) SELECT id, n FROM u ORDER BY id;
-- 1|8
-- 2|8
-- 3|8
--- All parts read the state before the statement.
WITH u AS (UPDATE b SET n = 100 RETURNING id, n) SELECT u.id, u.n, b.n FROM u JOIN b USING (id) ORDER BY 1;
-- 1|100|8
-- 2|100|8
-- 3|100|8
WITH i AS (INSERT INTO b (id) VALUES (50) RETURNING id) SELECT count(*) FROM b;
-- 3
WITH i AS (INSERT INTO b (id) VALUES (51) RETURNING id) SELECT (SELECT count(*) FROM b), id FROM i;
-- 4|51
WITH d AS (DELETE FROM b WHERE id >= 50) SELECT count(*) FROM b WHERE id >= 50;
-- 2
SELECT count(*) FROM b WHERE id >= 50;
-- 0
WITH d AS (DELETE FROM b RETURNING id), i AS (INSERT INTO b SELECT id + 10, 'i' FROM d RETURNING id) SELECT (SELECT sum(id) FROM d), (SELECT sum(id) FROM i), (SELECT sum(id) FROM b);
-- 6|36|6
SELECT * FROM b ORDER BY id;
-- 11|i|7
-- 12|i|7
-- 13|i|7
WITH d AS (DELETE FROM b RETURNING *) INSERT INTO b SELECT * FROM d;
SELECT * FROM b ORDER BY id DESC;
-- 13|i|7
-- 12|i|7
-- 11|i|7
WITH d AS (DELETE FROM b WHERE id = 11) SELECT id FROM b WHERE id BETWEEN 11 AND 12 ORDER BY id DESC;
-- 12
-- 11
SELECT id FROM b ORDER BY id;
-- 12
-- 13
--- A row is written once.
WITH u AS (UPDATE b SET n = 1 WHERE id = 12 RETURNING id) UPDATE b SET n = 2 FROM u WHERE b.id = u.id RETURNING b.id, b.n;
SELECT id, n FROM b ORDER BY id;
-- 12|1
-- 13|7
WITH u AS (UPDATE b SET n = 3 WHERE id = 12 RETURNING id) DELETE FROM b USING u WHERE b.id = u.id RETURNING *;
WITH i AS (INSERT INTO b (id) VALUES (60) RETURNING id) INSERT INTO b (id) SELECT id FROM i ON CONFLICT (id) DO NOTHING RETURNING id;
WITH i AS (INSERT INTO b (id) VALUES (61) RETURNING id) INSERT INTO b (id) SELECT id FROM i ON CONFLICT (id) DO UPDATE SET n = 0;
-- ERROR 21000: ON CONFLICT DO UPDATE command cannot affect row a second time
WITH i AS (INSERT INTO b (id) VALUES (62) RETURNING id) INSERT INTO b (id) SELECT id FROM i;
-- ERROR 23505: duplicate key value violates unique constraint "b_pkey"
SELECT id, n FROM b ORDER BY id;
-- 12|3
-- 13|7
-- 60|7
--- Upserts, chains, names of columns.
WITH new (k, w) AS (VALUES (12, 'x'), (70, 'y')), upd AS (UPDATE b SET v = w FROM new WHERE b.id = k RETURNING b.id) INSERT INTO b (id, v) SELECT k, w FROM new WHERE k NOT IN (SELECT id FROM upd) RETURNING id;
-- 70
SELECT id, v FROM b ORDER BY id;
-- 12|x
-- 13|i
-- 60|NULL
-- 70|y
WITH x AS (INSERT INTO a VALUES (100, 'h') RETURNING id AS i), y AS (INSERT INTO b SELECT i, 'from x' FROM x RETURNING id AS j, v), z AS (UPDATE a SET v = v || '!' WHERE id < 6 RETURNING *) SELECT i, j, y.v, (SELECT count(*) FROM z) FROM x, y;
-- 100|100|from x|2
WITH gone (x, y) AS (DELETE FROM a WHERE id = 100 RETURNING id, v) SELECT y, x FROM gone;
-- h|100
WITH RECURSIVE n(i) AS (SELECT 200 UNION ALL SELECT i + 1 FROM n WHERE i < 203), ins AS (INSERT INTO b (id) SELECT i FROM n RETURNING id) SELECT count(*), max(id) FROM ins;
-- 4|203
WITH big AS (SELECT id FROM b WHERE id >= 200), d AS (DELETE FROM b USING big WHERE b.id = big.id RETURNING b.id) SELECT count(*) FROM d;
-- 4
WITH d AS (DELETE FROM a WHERE id = 4) SELECT 1 AS one;
-- 1
SELECT count(*) FROM a WHERE id = 4;
-- 0
WITH one AS (SELECT 5 AS id), d AS (DELETE FROM a WHERE id = (SELECT id FROM one) RETURNING v) SELECT * FROM d;
-- v5!
--- Foreign keys are asked at the end of the statement.
CREATE TABLE p (id int PRIMARY KEY);
CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p);
WITH n AS (INSERT INTO p VALUES (1), (2) RETURNING id) INSERT INTO c SELECT id * 10, id FROM n RETURNING *;
-- 10|1
-- 20|2
WITH n AS (INSERT INTO c VALUES (30, 3)) INSERT INTO p VALUES (3);
WITH n AS (INSERT INTO c VALUES (40, 4)) SELECT 1;
-- ERROR 23503: insert or update on table "c" violates foreign key constraint "c_p_fkey"
WITH n AS (DELETE FROM p WHERE id = 3 RETURNING id) DELETE FROM c USING n WHERE c.p = n.id RETURNING c.id;
-- 30
WITH n AS (DELETE FROM p WHERE id = 2 RETURNING id) SELECT * FROM n;
-- ERROR 23503: update or delete on table "p" violates foreign key constraint "c_p_fkey" on table "c"
SELECT * FROM c ORDER BY id;
-- 10|1
-- 20|2
--- What is refused.
WITH d AS (DELETE FROM a WHERE false) SELECT * FROM d;
-- ERROR 0A000: WITH query "d" does not have a RETURNING clause
WITH d AS (DELETE FROM a RETURNING *), d AS (SELECT 1) SELECT 1;
-- ERROR 42712: WITH query name "d" specified more than once
WITH a AS (DELETE FROM b WHERE false RETURNING *) DELETE FROM a;
SELECT * FROM (WITH d AS (DELETE FROM a RETURNING *) SELECT * FROM d) x;
-- ERROR 0A000: WITH clause containing a data-modifying statement must be at the top level
WITH o AS (WITH d AS (DELETE FROM a RETURNING *) SELECT * FROM d) SELECT * FROM o;
-- ERROR 0A000: WITH clause containing a data-modifying statement must be at the top level
CREATE VIEW vw AS WITH d AS (DELETE FROM a RETURNING *) SELECT * FROM d;
-- ERROR 0A000: views must not contain data-modifying statements in WITH
WITH d (x, y, z) AS (DELETE FROM a WHERE false RETURNING *) SELECT * FROM d;
-- ERROR 42P10: WITH query "d" has 2 columns available but 3 columns specified
SELECT count(*) FROM a;
-- 0
BEGIN;
DECLARE k CURSOR FOR WITH d AS (DELETE FROM a RETURNING *) SELECT * FROM d;
-- ERROR 0A000: DECLARE CURSOR must not contain data-modifying statements in WITH
ROLLBACK;
BEGIN READ ONLY;
WITH d AS (DELETE FROM a RETURNING *) SELECT * FROM d;
-- ERROR 25006: cannot execute SELECT in a read-only transaction
ROLLBACK;
PREPARE mv(int, text) AS WITH d AS (DELETE FROM a WHERE v = $2 RETURNING id) INSERT INTO b (id, v, n) SELECT id + $1, $2, $1 FROM d RETURNING *;
EXECUTE mv(500, 'v6');
DROP TABLE q, a, b, c, p;
