--- Texts of times in the catalog mean what they meant when they were written, whatever the style and zone of who reads them.
SET datestyle = 'ISO, DMY';
SET timezone = 'Europe/Berlin';
SET intervalstyle = 'sql_standard';
CREATE TABLE t (
    id int PRIMARY KEY, d date DEFAULT '02/03/2020', z timestamptz DEFAULT '2020-06-01 12:00', s timestamp DEFAULT '05/06/2020 13:00',
    i interval DEFAULT '-1 2:03:04', note text DEFAULT '02/03/2020',
    CHECK (d > '01/02/2020'), CHECK (z > timestamptz '01/02/2020 00:00'), CHECK (note <> '04/05/2020' OR d <> '04/05/2020'),
    CONSTRAINT many CHECK (d IN ('02/03/2020', '10/11/2020', '11/12/2020', '05/04/2020') OR d BETWEEN '01/12/2021' AND DATE '02/12/2021'),
    g bool GENERATED ALWAYS AS (d < '10/11/2020') STORED);
CREATE INDEX t_some ON t (id) WHERE d > '03/04/2020';
CREATE INDEX t_expr ON t ((d - '01/02/2020'::date));
ALTER TABLE t ADD COLUMN late date DEFAULT '07/08/2020';
ALTER TABLE t ALTER COLUMN late SET DEFAULT '08/09/2020';
ALTER TABLE t ADD CONSTRAINT lately CHECK (late = '08/09/2020' OR late = CAST('07/08/2020' AS date));
CREATE VIEW v AS SELECT id, d, '02/03/2020' AS label, d - '01/02/2020' AS days, d < '10/11/2020' AS early,
    date_trunc('month', timestamp '05/06/2020 13:00') AS month, '{01/02/2020,03/04/2020}'::date[] AS days_of, z >= '2020-06-01 12:00' AS later,
    i + '-1 2:03:04'::interval AS twice FROM t WHERE d >= '02/03/2020' AND note <> '01/02/2020';
INSERT INTO t (id) VALUES (1);
SET datestyle = 'ISO, MDY';
SET timezone = 'UTC';
SET intervalstyle = 'postgres';
INSERT INTO t (id) VALUES (2);
SELECT id, d, z, s, i, note, g, late FROM t ORDER BY id;
-- 1|2020-03-02|2020-06-01 10:00:00+00|2020-06-05 13:00:00|-1 days -02:03:04|02/03/2020|t|2020-09-08
-- 2|2020-03-02|2020-06-01 10:00:00+00|2020-06-05 13:00:00|-1 days -02:03:04|02/03/2020|t|2020-09-08
INSERT INTO t (id, d) VALUES (3, '2020-01-15');
-- ERROR 23514: new row for relation "t" violates check constraint "many"
INSERT INTO t (id, d) VALUES (3, '2020-11-10');
INSERT INTO t (id, d, note) VALUES (4, '2020-05-04', '04/05/2020');
-- ERROR 23514: new row for relation "t" violates check constraint "many"
INSERT INTO t (id, d) VALUES (4, '2021-12-01');
INSERT INTO t (id, d) VALUES (5, '2021-01-12');
-- ERROR 23514: new row for relation "t" violates check constraint "many"
INSERT INTO t (id, z) VALUES (5, '2020-01-31 22:30+00');
-- ERROR 23514: new row for relation "t" violates check constraint "t_z_check"
INSERT INTO t (id, late) VALUES (5, '2020-08-09');
-- ERROR 23514: new row for relation "t" violates check constraint "lately"
SELECT * FROM v ORDER BY id;
-- 1|2020-03-02|02/03/2020|30|t|2020-06-01 00:00:00|{2020-02-01,2020-04-03}|t|-2 days -04:06:08
-- 2|2020-03-02|02/03/2020|30|t|2020-06-01 00:00:00|{2020-02-01,2020-04-03}|t|-2 days -04:06:08
-- 3|2020-11-10|02/03/2020|283|f|2020-06-01 00:00:00|{2020-02-01,2020-04-03}|t|-2 days -04:06:08
-- 4|2021-12-01|02/03/2020|669|f|2020-06-01 00:00:00|{2020-02-01,2020-04-03}|t|-2 days -04:06:08
SELECT id FROM t WHERE d > '2020-04-03' ORDER BY id;
-- 3
-- 4
SELECT id, d - date '2020-02-01' FROM t ORDER BY d - date '2020-02-01', id;
-- 1|30
-- 2|30
-- 3|283
-- 4|669
CREATE OR REPLACE VIEW v2 AS SELECT date '02/03/2020' AS d;
SET datestyle = 'ISO, DMY';
SELECT * FROM v2;
-- 2020-02-03
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 't'::regclass AND adnum = 2;
-- '2020-03-02'::date
