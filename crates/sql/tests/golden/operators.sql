# Operators before a sign, TRIM's forms and ARRAY behind a type, in queries and in what the catalog keeps.

CREATE TABLE o (a int CHECK (a>=-1), b text DEFAULT trim(both from '  x '), c int array DEFAULT '{1}'::int array, d text array[3]);
----
CREATE TABLE

CREATE INDEX o_trim ON o (trim(leading 'x' from b)) WHERE a>-1;
----
CREATE INDEX

CREATE VIEW w AS SELECT a, trim(both 'x' from b) AS t FROM o WHERE a<>-1;
----
CREATE VIEW

INSERT INTO o (a) VALUES (-1), (0);
----
INSERT 0 2

INSERT INTO o (a) VALUES (-2);
----
ERROR 23514: new row for relation "o" violates check constraint "o_a_check"
  detail: Failing row contains (-2, x, {1}, null).
  constraint: o_a_check

SELECT a, b, c FROM o WHERE a>=-1 AND a=-1;
----
a:int4 | b:text | c:_int4
-1 | x | {1}
SELECT 1

SELECT * FROM w;
----
a:int4 | t:text
0 | 
SELECT 1
