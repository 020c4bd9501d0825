-- What an examination found: when the select list is computed, ANALYZE of columns, what the catalogs show of statistics.

CREATE TABLE st (id int PRIMARY KEY, v int, w text, n int);
INSERT INTO st SELECT i, i % 4, 'w' || i, CASE WHEN i % 10 = 0 THEN i END FROM generate_series(1, 200) i;

CREATE SEQUENCE seq;
SELECT id, nextval('seq') FROM st ORDER BY v, id DESC LIMIT 3;
-- 200|1
-- 196|2
-- 192|3
SELECT nextval('seq');
-- 4
SELECT v, id, nextval('seq') FROM st WHERE id < 6 ORDER BY v, id;
-- 0|4|5
-- 1|1|6
-- 1|5|7
-- 2|2|8
-- 3|3|9
SELECT id, nextval('seq') AS n FROM st WHERE id < 4 ORDER BY n;
-- 1|10
-- 2|11
-- 3|12
SELECT id, (SELECT count(*) FROM st o WHERE o.v = st.v AND o.id < st.id) FROM st ORDER BY v DESC, id LIMIT 3 OFFSET 1;
-- 7|1
-- 11|2
-- 15|3
SELECT id, (SELECT max(o.id) FROM st o WHERE o.v = st.v) m FROM st WHERE id < 9 ORDER BY m DESC, id LIMIT 3;
-- 4|200
-- 8|200
-- 3|199
SELECT (SELECT max(o.id) FROM st o WHERE o.v = st.v) + 1, id % 3 FROM st ORDER BY id % 3, id FETCH FIRST 2 ROWS WITH TIES;
-- 200|0
-- 199|0
SELECT id % 3, (SELECT 1 / (st.id - 9)) FROM st ORDER BY id LIMIT 2;
-- 1|0
-- 2|0
SELECT DISTINCT v, (SELECT max(o.id) FROM st o WHERE o.v = st.v) FROM st ORDER BY v LIMIT 2;
-- 0|200
-- 1|197
SELECT DISTINCT ON (v) v, (SELECT max(o.id) FROM st o WHERE o.v = st.v), id FROM st ORDER BY v, id LIMIT 2;
-- 0|200|4
-- 1|197|1
SELECT v, count(*), (SELECT max(o.id) FROM st o WHERE o.v = st.v) FROM st GROUP BY v ORDER BY sum(id) DESC LIMIT 2;
-- 0|50|200
-- 3|50|199
SELECT v, (SELECT string_agg(g::text, ',') FROM generate_series(1, v) g), generate_series(1, 2) FROM st ORDER BY v DESC, 3, id LIMIT 3;
-- 3|1,2,3|1
-- 3|1,2,3|1
-- 3|1,2,3|1

ANALYZE st (nosuch);
-- ERROR 42703: column "nosuch" of relation "st" does not exist
ANALYZE st (v, nosuch);
-- ERROR 42703: column "nosuch" of relation "st" does not exist
ANALYZE st (v, v);
-- ERROR 42701: column "v" of relation "st" appears more than once
ANALYZE nosuch (v);
-- ERROR 42P01: relation "nosuch" does not exist
VACUUM st (v);
-- ERROR 0A000: ANALYZE option must be specified when a column list is provided
VACUUM (ANALYZE) st (nosuch);
-- ERROR 42703: column "nosuch" of relation "st" does not exist
ANALYZE st (v, w);
VACUUM ANALYZE st (v);
ANALYZE st;
SELECT attname, null_frac, n_distinct, most_common_vals, most_common_freqs FROM pg_stats WHERE tablename = 'st' ORDER BY 1;
-- id|0|-1|NULL|NULL
-- n|0.9|-0.100000024|NULL|NULL
-- v|0|4|{0,1,2,3}|{0.25,0.25,0.25,0.25}
-- w|0|-1|NULL|NULL
SELECT schemaname, tablename, inherited, array_length(most_common_freqs, 1), histogram_bounds IS NULL FROM pg_stats WHERE tablename = 'st' ORDER BY attname;
-- public|st|f|NULL|f
-- public|st|f|NULL|f
-- public|st|f|4|t
-- public|st|f|NULL|f
SELECT relname, n_live_tup, last_analyze > now() - interval '1 hour', last_autoanalyze FROM pg_stat_user_tables WHERE relname = 'st';
-- st|200|t|NULL
SELECT n_live_tup FROM pg_stat_all_tables WHERE relname = 'st';
-- 200
CREATE TABLE unanalyzed (v int);
SELECT last_analyze, n_live_tup FROM pg_stat_user_tables WHERE relname = 'unanalyzed';
-- NULL|0
SELECT count(*) FROM pg_stats WHERE tablename = 'unanalyzed';
-- 0
