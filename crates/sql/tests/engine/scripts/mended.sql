-- What Timeball once answered otherwise than PostgreSQL.

CREATE TABLE e (id int PRIMARY KEY, g int, name text, info json, tags text[]);
INSERT INTO e VALUES (1, 1, 'ada', '{"x":1}', '{a,b}'), (2, 1, 'bob', NULL, '{{x,y},{z,w}}'), (3, NULL, NULL, '[]', NULL);

--- IN with rows that hold NULLs.
SELECT (1, 2) IN (SELECT 3, NULL::int), (1, 2) NOT IN (SELECT 3, NULL::int), (1, 2) IN (SELECT 1, NULL::int);
-- f|t|NULL
SELECT (1, NULL::int) IN (SELECT 2, 3), (1, NULL::int) IN (SELECT 1, 3), (NULL::int, NULL::int) IN (SELECT 1, 2);
-- f|NULL|NULL
SELECT (NULL::int, 1) IN (SELECT 1, 2 WHERE false), 3 IN (SELECT g FROM e), 1 IN (SELECT g FROM e), NULL IN (SELECT g FROM e), NULL IN (SELECT 1 WHERE false);
-- f|NULL|t|NULL|f
SELECT id FROM e WHERE (id, g) NOT IN (SELECT 2, NULL::int) ORDER BY id;
-- 1
-- 3
SELECT (1.0, 'a') IN (SELECT 1, 'a'::char(3)), (1.5, NULL) IN (SELECT 1, 'a'), (1.0, NULL) IN (SELECT 1, 'a');
-- t|f|NULL

--- A minus belongs to the base of a power.
SELECT -2 ^ 2, -2.0 ^ 2, - 2 ^ 3 ^ 2, -(2 ^ 2), 1 - 2 ^ 2, -2 * 2 ^ 2;
-- 4|4.0000000000000000|64|-4|-3|-8

--- Slices of arrays with several dimensions.
SELECT tags[1:1], tags[2:], tags[5:6] FROM e ORDER BY id;
-- {a}|{b}|{}
-- {{x,y}}|{{z,w}}|{}
-- NULL|NULL|NULL
SELECT ('{{1,2},{3,4},{5,6}}'::int[])[2:3], ('[2:4]={1,2,3}'::int[])[3:4], ('{1,2,3}'::int[])[:2];
-- {{3,4},{5,6}}|{2,3}|{1,2}

--- Text and formats.
SELECT to_char(date '2024-08-01', 'RM|FMRM|rm'), to_char(date '2024-01-01', 'RM|FMRM|rm|');
-- VIII|VIII|viii|I   |I|i   |
--- differs: the scripts' answers are of the locale C, in which only ASCII has cases. In others each character becomes one, too.
SELECT upper('straße'), initcap('élan VITAL'), lower('ÀB');
-- STRAßE|Élan Vital|àb

SELECT json_agg(e2 ORDER BY id) FROM (SELECT id, g FROM e) e2;
-- [{"id":1,"g":1}, 
--  {"id":2,"g":1}, 
--  {"id":3,"g":null}]
SELECT json_agg(tags) FROM e;
-- [["a","b"], 
--  [["x","y"],["z","w"]], null]
SELECT json_agg(id ORDER BY id) FROM e;
-- [1, 2, 3]

--- json has no equality and no order.
SELECT DISTINCT info FROM e;
-- ERROR 42883: could not identify an equality operator for type json
SELECT DISTINCT x.info FROM e x JOIN e y ON x.id = y.id;
-- ERROR 42883: could not identify an equality operator for type json
SELECT DISTINCT ON (info) id FROM e;
-- ERROR 42883: could not identify an equality operator for type json
SELECT count(*) FROM e GROUP BY info;
-- ERROR 42883: could not identify an equality operator for type json
SELECT string_agg(name, ',') FROM e GROUP BY info;
-- ERROR 42883: could not identify an equality operator for type json
SELECT info FROM e UNION SELECT info FROM e;
-- ERROR 42883: could not identify an equality operator for type json
SELECT info FROM e UNION ALL SELECT info FROM e WHERE id = 1;
-- {"x":1}
-- NULL
-- []
-- {"x":1}
SELECT id FROM e ORDER BY info;
-- ERROR 42883: could not identify an ordering operator for type json
SELECT x.id FROM e x JOIN e y ON x.id = y.id ORDER BY x.info;
-- ERROR 42883: could not identify an ordering operator for type json
SELECT rank() OVER (ORDER BY info) FROM e;
-- ERROR 42883: could not identify an ordering operator for type json
SELECT array_agg(id ORDER BY info) FROM e;
-- ERROR 42883: could not identify an ordering operator for type json

--- Sort keys of DISTINCT ON, and names that mean two outputs.
SELECT DISTINCT ON (g) g, id FROM e ORDER BY g DESC NULLS LAST, id DESC;
-- 1|2
-- NULL|3
SELECT DISTINCT ON (g) g, id FROM e ORDER BY id;
-- ERROR 42P10: SELECT DISTINCT ON expressions must match initial ORDER BY expressions
SELECT DISTINCT ON (g, name) g, id FROM e ORDER BY name, g, id;
-- 1|1
-- 1|2
-- NULL|3
SELECT DISTINCT ON (g, name) g, id FROM e ORDER BY name, id, g;
-- ERROR 42P10: SELECT DISTINCT ON expressions must match initial ORDER BY expressions
SELECT DISTINCT ON (g, name) g, id FROM e ORDER BY name;
-- 1|1
-- 1|2
-- NULL|3
SELECT x.id, y.id FROM e x FULL JOIN e y ON x.id = y.id ORDER BY id;
-- ERROR 42702: ORDER BY "id" is ambiguous
SELECT id, x.id FROM e x FULL JOIN e y USING (id) ORDER BY id;
-- ERROR 42702: ORDER BY "id" is ambiguous

--- Windows.
SELECT sum(id) OVER (w ORDER BY id) FROM e WINDOW w AS (ORDER BY id);
-- ERROR 42P20: cannot override ORDER BY clause of window "w"
SELECT sum(id) OVER (w PARTITION BY g) FROM e WINDOW w AS (ORDER BY id);
-- ERROR 42P20: cannot override PARTITION BY clause of window "w"
SELECT sum(id) OVER (w) FROM e WINDOW w AS (ORDER BY id ROWS 1 PRECEDING);
-- ERROR 42P20: cannot copy window "w" because it has a frame clause
SELECT id, sum(id) OVER w, sum(id) OVER (v ROWS 1 PRECEDING) FROM e WINDOW w AS (ORDER BY id ROWS 1 PRECEDING), v AS (ORDER BY id) ORDER BY id;
-- 1|1|1
-- 2|3|3
-- 3|5|5
SELECT sum(id) OVER (ROWS UNBOUNDED FOLLOWING) FROM e;
-- ERROR 42P20: frame start cannot be UNBOUNDED FOLLOWING
SELECT sum(id) OVER (ROWS BETWEEN CURRENT ROW AND UNBOUNDED PRECEDING) FROM e;
-- ERROR 42P20: frame end cannot be UNBOUNDED PRECEDING
SELECT sum(id) OVER (ROWS 2 FOLLOWING) FROM e;
-- ERROR 42P20: frame starting from following row cannot end with current row
SELECT sum(id) OVER (ROWS BETWEEN CURRENT ROW AND 1 PRECEDING) FROM e;
-- ERROR 42P20: frame starting from current row cannot have preceding rows
SELECT sum(id) OVER (ROWS BETWEEN 1 FOLLOWING AND CURRENT ROW) FROM e;
-- ERROR 42P20: frame starting from following row cannot have preceding rows
SELECT percentile_cont(DISTINCT 0.5) WITHIN GROUP (ORDER BY id) FROM e;
-- ERROR 42601: cannot use DISTINCT with WITHIN GROUP

--- A grouping key that begins with a column.
SELECT id % 2, string_agg(name, ',') FROM e GROUP BY id % 2 ORDER BY 1;
-- 0|bob
-- 1|ada
SELECT g + 1, array_agg(id ORDER BY id) FROM e GROUP BY g + 1 HAVING g + 1 > 1 ORDER BY g + 1;
-- 2|{1,2}

--- Logarithms and powers of numeric, to the last digit.
SELECT ln(2.0), ln(0.5), ln(10::numeric), ln(1.0), ln(1.05), ln(0.95), ln(1.0000001), ln(123456789.123), ln(1e-20), ln(1e100), ln(2.000000000000000000000);
-- 0.6931471805599453|-0.6931471805599453|2.3025850929940457|0.0000000000000000|0.048790164169432003|-0.051293294387550533|0.00000009999999500000033|18.631401767164318|-46.05170185988091368036|230.25850929940457|0.693147180559945309417
SELECT log(2.0), log(100.0), log(10, 1000), log(2, 8), log(2.0, 10.5), log(0.5, 3), log(1e-5), log(7.0, 1.01), log(3, 3);
-- 0.3010299956639812|2.0000000000000000|3.0000000000000000|3.0000000000000000|3.3923174227787603|-1.5849625007211562|-5.000000000000000|0.005113458531473665|1.0000000000000000
SELECT exp(1::numeric), exp(2.0), exp(-1.0), exp(0.0), exp(10.5), exp(-50.0), exp(100.0), exp(0.001), exp(-0.5), exp(1.000000000000000000001);
-- 2.7182818284590452|7.3890560989306502|0.3678794411714423|1.0000000000000000|36315.502674246638|0.0000000000000000000001928749847963918|26881171418161354484126255515800135873611118.8|1.0010005001667083|0.6065306597126334|2.718281828459045235363
SELECT 2 ^ 0.5, power(2::numeric, 0.5), 1.5 ^ 2.5, 10 ^ -0.5, 0.1 ^ 0.1, 123.456 ^ 1.5, 2 ^ 100.5, 0.5 ^ 20.5, 1.0 ^ 0.5, 9 ^ 0.5, 0 ^ 0.5, 1e10 ^ 1.1, 1.0001 ^ 1000.5;
-- 1.4142135623730950|1.4142135623730950|2.7556759606310754|0.3162277660168379|0.7943282347242815|1371.7289437796434|1792728671193156477399422023278.7|0.0000006743495761743045|1.0000000000000000|3.0000000000000000|0.0000000000000000|100000000000.000000|1.1052206494914752
SELECT ln(0.0);
-- ERROR 2201E: cannot take logarithm of zero
SELECT ln(-1.0);
-- ERROR 2201E: cannot take logarithm of a negative number
SELECT log(1, 10);
-- ERROR 22012: division by zero
SELECT log(1.0, 10);
-- ERROR 22012: division by zero
SELECT log(0, 10);
-- ERROR 2201E: cannot take logarithm of zero
SELECT log(10, -1);
-- ERROR 2201E: cannot take logarithm of a negative number
SELECT (-8) ^ 0.5;
-- ERROR 2201F: a negative number raised to a non-integer power yields a complex result
SELECT 0 ^ -0.5;
-- ERROR 2201F: zero raised to a negative power is undefined
SELECT 2.0 ^ 10, 2.5 ^ 3, 2 ^ -1.0, 10.0 ^ -3, 1.5 ^ 20, 3 ^ 40.0, 7.123 ^ -4, 0.001 ^ 5, 12345.678 ^ 3, 1.1 ^ 100, 2 ^ 0.0;
-- 1024.0000000000000000|15.6250000000000000|0.5000000000000000|0.0010000000000000|3325.2567300796508789|12157665459056928801.0000000000000000|0.0003884617145013|0.0000000000000010|1881675960266.5586057520000000|13780.6123398222701841|1.0000000000000000
SELECT exp(6000.0);
-- ERROR 22003: value overflows numeric format
SELECT exp(-6000.0) = 0, scale(exp(-6000.0)), length(exp(2000.5)::text), exp(1000.25), 1e-30 ^ 30.5 = 0, 2 ^ 3000.5 > 1e903;
-- t|1000|871|252962138308022182910397860922744894102013303947945650551831677321309561428320546235306112630868319815020546647174017755142829832328993407887088134938646992332726930283688241914087872508638779779569280449333478436861255300400555722770034391762190704657384364831286240265402935463283938130401905424443039959923020783648994708305820503168771392277182377970572802105413121412567505452688585729157046648946465211153450453789801383572966793.71|f|t
SELECT exp('NaN'::numeric), exp('Infinity'::numeric), exp('-Infinity'::numeric), ln('Infinity'::numeric), ln('NaN'::numeric);
-- NaN|Infinity|0|Infinity|NaN
SELECT exp(ln(x)), ln(exp(x)), log(x), x ^ 0.3333, log(x, x + 1) FROM (VALUES (0.7501), (1.0999), (1.4999), (3.0), (99.99), (1e-7)) v(x);
-- 0.7501000000000000|0.7501000000000000|-0.1248808345374318|0.9086093840204235|-1.9463584280576765
-- 1.099900000000000000|1.0999000000000000|0.041353202046974313|1.0322455569654221|7.79138247108161
-- 1.4999000000000000|1.4999000000000000|0.1760623051250793|1.1446733354964393|2.2601239729459520
-- 3.0000000000000000|3.0000000000000000|0.4771212547196624|1.4421967555044219|1.2618595071429149
-- 99.9899999999999990|99.990000000000000|1.9999565683801925|4.6407216925138492|1.0021609488367391
-- 0.00000009999999999999998|0.00000009999999999999983|-7.000000000000000|0.004644083289410480|-0.000000006204206574121845

--- Dates read by weeks and by Roman months.
SELECT to_date('2024-W10-1', 'IYYY-"W"IW-ID'), to_date('2021 01', 'IYYY IW'), to_date('2024 10', 'YYYY WW'), to_date('05 VIII 2024', 'DD RM YYYY'), to_date('5 xii 2024', 'DD rm YYYY');
-- 2024-03-04|2021-01-04|2024-03-04|2024-08-05|2024-12-05

SELECT count(*) OVER (PARTITION BY info) FROM e;
-- ERROR 42883: could not identify an equality operator for type json

--- A minus within an exponent belongs to its number alone.
SELECT 2 ^ -1 ^ 2, 2 ^ - -1 ^ 2 ^ 3, 2 * 3 ^ -1 ^ -1 * 2, -2 ^ -1 ^ 2, 2 ^ -(1 ^ 2), 2 ^ (-1 ^ 2), 2 ^ -1;
-- 0.25|64|12|0.25|0.5|2|0.5

--- Powers and logarithms are bounded.
SELECT 1.0 ^ '1e100000'::numeric, round(1 ^ 1e-16383, 16), 1.000 ^ 12345678.5, (1 + 1e-16000) ^ 0.5 = 1, scale((1 + 1e-1050) ^ 0.5);
-- 1.0000000000000000|1.0000000000000000|1.0000000000000000|t|1000
--- differs: such calculations would hold a CPU for minutes, uncancelled.
SELECT log(1 + 1e-16000, 2);
-- ERROR 22003: the calculation needs 33020 digits after the point, more than the limit of 4000
--- differs: as above.
SELECT (1 + 1e-10000) ^ 1e9999;
-- ERROR 22003: the calculation needs 10008 digits after the point, more than the limit of 4000
SELECT round((1 + 1e-500) ^ 1e500, 20);
-- 2.71828182845904523536
SELECT round((1 + 1e-300) ^ 1e300, 20), round(log(1 + 1e-300, 2) / 1e300, 20);
-- 2.71828182845904523536|0.69314718055994530942

--- DISTINCT and ORDER BY agree on what is the same, however it is spelled.
SELECT string_agg(DISTINCT id::regclass::text, ',' ORDER BY id::regclass::text) FROM e;
-- 1,2,3
SELECT string_agg(DISTINCT lower(name), ',' ORDER BY LOWER(name) DESC), array_agg(DISTINCT id ORDER BY (id) DESC), array_agg(DISTINCT id::text ORDER BY CAST(id AS TEXT)) FROM e;
-- bob,ada|{3,2,1}|{1,2,3}
SELECT array_agg(DISTINCT (SELECT max(x.id) FROM e x WHERE x.g = e.g) ORDER BY (SELECT MAX(x.id) FROM E x WHERE x.g = e.g)) FROM e;
-- {2,NULL}
SELECT array_agg(DISTINCT (id + 1) * 2 ORDER BY id + 1 * 2) FROM e;
-- ERROR 42P10: in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list
SELECT array_agg(DISTINCT id::regclass::text ORDER BY g::regclass::text) FROM e;
-- ERROR 42P10: in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list
SELECT json_agg(DISTINCT t ORDER BY t DESC), jsonb_agg(DISTINCT t), count(DISTINCT t) FROM (VALUES (2, 'b'), (10, 'a'), (2, 'b')) t(x, y);
-- [{"x":10,"y":"a"}, 
--  {"x":2,"y":"b"}]|[{"x": 2, "y": "b"}, {"x": 10, "y": "a"}]|2
SELECT json_agg(DISTINCT row_to_json(t)) FROM (VALUES (1)) t(x);
-- ERROR 42883: could not identify an equality operator for type json
SELECT json_agg(row_to_json(t)), json_agg(t) FROM (VALUES (1), (2)) t(x);
-- [{"x":1}, {"x":2}]|[{"x":1}, 
--  {"x":2}]
SELECT DISTINCT ON (oid::regclass) relname FROM pg_class WHERE relname = 'e' ORDER BY oid::regclass, relname;
-- e
SELECT DISTINCT ON (LOWER(name)) id, name FROM e ORDER BY lower(name), id DESC;
-- 1|ada
-- 2|bob
-- 3|NULL
SELECT DISTINCT ON ((g)) id FROM e ORDER BY g, id DESC;
-- 2
-- 3
SELECT DISTINCT ON ((SELECT x.g FROM e x WHERE x.id = e.id)) id FROM e ORDER BY (SELECT x.g FROM e x WHERE x.id = e.id), id DESC;
-- 2
-- 3
SELECT DISTINCT ON (id % 2) id FROM e ORDER BY id % 3, id % 2;
-- ERROR 42P10: SELECT DISTINCT ON expressions must match initial ORDER BY expressions
SELECT DISTINCT LOWER(name), (SELECT x.g FROM e x WHERE x.id = e.id) FROM e ORDER BY (SELECT x.g FROM e x WHERE x.id = e.id), lower(name);
-- ada|1
-- bob|1
-- NULL|NULL
SELECT lower(name) AS v, LOWER(name) AS v FROM e ORDER BY v;
-- ada|ada
-- bob|bob
-- NULL|NULL
SELECT lower(name) AS v, upper(name) AS v FROM e ORDER BY v;
-- ERROR 42702: ORDER BY "v" is ambiguous
SELECT DISTINCT row_number() OVER (ORDER BY id), id FROM e ORDER BY row_number() OVER (ORDER BY id) DESC;
-- 3|3
-- 2|2
-- 1|1
SELECT generate_series(1, 3) FROM e WHERE id = 1 ORDER BY generate_series(1, 3) DESC;
-- 3
-- 2
-- 1
SELECT DISTINCT ON (count(*)) g, count(*) FROM e GROUP BY g ORDER BY COUNT(*), g;
-- NULL|1
-- 1|2

--- Marks of the planner are no names.
SELECT "?0"::regclass;
-- ERROR 42703: column "?0" does not exist
SELECT "#0", "@0.0" FROM e;
-- ERROR 42703: column "#0" does not exist
SELECT "#0"::regclass, ("?0") FROM (SELECT 'e' AS "#0", 1 AS "?0", 3 AS "@0.0") s GROUP BY "?0", "#0" ORDER BY "#0";
-- e|1

--- A lateral item and joins after a comma.
CREATE TABLE la (id int PRIMARY KEY, n int, arr int[]);
INSERT INTO la VALUES (1, 10, '{1,2}'), (2, 20, '{}'), (3, 30, NULL);
CREATE TABLE lb (id int PRIMARY KEY, x int);
INSERT INTO lb VALUES (1, 100), (2, 200);
SELECT la.id, lb.id, s FROM la, lb LEFT JOIN LATERAL (SELECT lb.x + la.n WHERE la.id < 3) l(s) ON s < 220 ORDER BY 1, 2;
-- 1|1|110
-- 1|2|210
-- 2|1|120
-- 2|2|NULL
-- 3|1|NULL
-- 3|2|NULL
SELECT la.id, lb.id, s FROM la CROSS JOIN lb LEFT JOIN LATERAL (SELECT lb.x + la.n WHERE la.id < 3) l(s) ON s < 220 ORDER BY 1, 2;
-- 1|1|110
-- 1|2|210
-- 2|1|120
-- 2|2|NULL
-- 3|1|NULL
-- 3|2|NULL
SELECT la.id, s, lb.x FROM la, LATERAL (SELECT la.id - 1 AS s) l LEFT JOIN lb ON lb.id = l.s ORDER BY 1;
-- 1|0|NULL
-- 2|1|100
-- 3|2|200
SELECT la.id, v, lb.x FROM la, unnest(la.arr) v LEFT JOIN lb ON lb.id = v + 1 ORDER BY 1, 2;
-- 1|1|200
-- 1|2|NULL
SELECT la.id, v, lb.x, z FROM la, unnest(la.arr) v LEFT JOIN lb ON lb.id = v + 1 LEFT JOIN LATERAL (SELECT v * 10 + la.n WHERE lb.x IS NOT NULL) q(z) ON true WHERE la.n < 30 ORDER BY 1, 2;
-- 1|1|200|20
-- 1|2|NULL|NULL
SELECT la.id, y.id, v FROM la, lb x RIGHT JOIN lb y ON x.id = y.id + 1 LEFT JOIN LATERAL (SELECT la.n + y.x + coalesce(x.x, 0)) q(v) ON true WHERE la.id = 1 ORDER BY 2;
-- 1|1|310
-- 1|2|210
SELECT la.id, y.id, v FROM la, lb x FULL JOIN lb y ON x.id = y.id + 1 LEFT JOIN LATERAL (SELECT la.n + coalesce(y.x, 0) + coalesce(x.x, 0)) q(v) ON true WHERE la.id = 1 ORDER BY 2;
-- 1|1|310
-- 1|2|210
-- 1|NULL|110
SELECT la.id, lb.id, v, w.id FROM la, lb JOIN LATERAL (SELECT lb.x + la.n) q(v) ON v > 110, lb w LEFT JOIN LATERAL (SELECT 1 WHERE w.id = la.id) r(o) ON true WHERE o IS NULL ORDER BY 1, 2, 4;
-- 1|2|210|2
-- 2|1|120|1
-- 2|2|220|1
-- 3|1|130|1
-- 3|1|130|2
-- 3|2|230|1
-- 3|2|230|2
SELECT q, la.id FROM la, lb LEFT JOIN LATERAL (SELECT lb.x WHERE la.id = lb.id) q ON true ORDER BY la.id, lb.id;
-- (100)|1
-- NULL|1
-- NULL|2
-- (200)|2
-- NULL|3
-- NULL|3
SELECT la.id, (SELECT count(z) FROM lb, lb c LEFT JOIN LATERAL (SELECT 1 WHERE c.id + lb.id = la.id) q(z) ON true) FROM la ORDER BY 1;
-- 1|0
-- 2|1
-- 3|2
--- differs: joins that would have to be put in another order are refused.
SELECT 1 FROM la, unnest(la.arr) v FULL JOIN lb ON lb.id = v;
-- ERROR 0A000: LATERAL to what is not joined yet is not supported
--- differs: as above.
SELECT 1 FROM la LEFT JOIN (unnest(la.arr) v JOIN lb ON lb.id = v) ON true;
-- ERROR 0A000: LATERAL to what is not joined yet is not supported
--- differs: as above.
SELECT 1 FROM la, lb LEFT JOIN (lb c JOIN LATERAL (SELECT la.id) q ON true) ON true;
-- ERROR 0A000: LATERAL to what is not joined yet is not supported
SELECT 1 FROM la FULL JOIN LATERAL (SELECT la.id) q ON true;
-- ERROR 42P10: invalid reference to FROM-clause entry for table "la"

SELECT count(*) FROM la CROSS JOIN LATERAL (SELECT la.id AS s) q FULL JOIN lb ON s = lb.id;
-- 3

--- ON names the items of its own join alone.
SELECT la.id, lb.id, v FROM la, lb LEFT JOIN LATERAL (SELECT lb.x + la.n) q(v) ON id * 100 + 10 = v ORDER BY 1, 2;
-- 1|1|110
-- 1|2|210
-- 2|1|NULL
-- 2|2|NULL
-- 3|1|NULL
-- 3|2|NULL
SELECT la.id, v, lb.id FROM la, LATERAL (SELECT la.id + 1) q(v) LEFT JOIN lb ON id = v ORDER BY 1, 2;
-- 1|2|2
-- 2|3|NULL
-- 3|4|NULL
SELECT la.id, v, lb.id FROM la, LATERAL (SELECT la.id + 1) q(v) LEFT JOIN lb ON lb.id = v AND la.id = 1 ORDER BY 1, 2;
-- ERROR 42P01: invalid reference to FROM-clause entry for table "la"
SELECT la.id, lb.id FROM la, lb JOIN LATERAL (SELECT lb.x + la.n) q(v) ON id * 100 + 10 = v ORDER BY 1, 2;
-- 1|1
-- 1|2
SELECT la.id, lb.id FROM la, lb JOIN lb c ON c.id = n ORDER BY 1, 2;
-- ERROR 42703: column "n" does not exist
SELECT (SELECT sum(lb.x + v) FROM la, lb LEFT JOIN LATERAL (SELECT la.n) q(v) ON n = lb.id) FROM (VALUES (1)) o(n);
-- 360
SELECT (SELECT count(*) FROM la, lb JOIN lb c ON c.id = n) FROM (VALUES (1)) o(n);
-- 6
SELECT count(*) FROM la, lb LEFT JOIN lb c ON id = 1;
-- ERROR 42702: column reference "id" is ambiguous
SELECT count(*) FROM la, lb LEFT JOIN lb c ON c.id = n;
-- ERROR 42703: column "n" does not exist
SELECT count(*) FROM la, lb LEFT JOIN LATERAL (SELECT la.arr) q ON q.arr[1] = id;
-- 6
