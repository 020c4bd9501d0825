-- FOR UPDATE: what another open transaction holds. Two transactions take turns: `@2` runs in the second.

CREATE TABLE q (id int PRIMARY KEY, state text, n int);
-- CREATE TABLE
INSERT INTO q VALUES (1, 'new', 1), (2, 'new', 2), (3, 'new', 3);
-- INSERT 0 3
BEGIN;
-- BEGIN
SELECT id FROM q WHERE id = 1 FOR UPDATE;
-- 1
-- SELECT 1
@2 SELECT id FROM q WHERE id = 1 FOR UPDATE NOWAIT;
-- ERROR 55P03: could not obtain lock on row
@2 SELECT id FROM q WHERE state = 'new' ORDER BY n LIMIT 1 FOR UPDATE SKIP LOCKED;
-- 2
-- SELECT 1
SELECT id FROM q WHERE state = 'new' ORDER BY n LIMIT 2 FOR UPDATE SKIP LOCKED;
-- 1
-- 3
-- SELECT 2
SELECT id FROM q WHERE id IN (1, 2, 3) FOR UPDATE SKIP LOCKED;
-- 1
-- 3
-- SELECT 2
@2 COMMIT;
-- COMMIT
UPDATE q SET state = 'done' WHERE id = 1;
-- UPDATE 1
COMMIT;
-- COMMIT
SELECT * FROM q ORDER BY id;
-- 1|done|1
-- 2|new|2
-- 3|new|3
-- SELECT 3
