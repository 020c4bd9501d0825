-- The operators of patterns see the trailing blanks of char(n), functions do not.

CREATE TABLE fixed (c char(4), v varchar(4), t text);
INSERT INTO fixed VALUES ('ab', 'ab', 'ab'), ('ab c', 'ab c', 'ab c'), ('', '', ''), (NULL, NULL, NULL);
SELECT c LIKE 'ab', c LIKE 'ab  ', c NOT LIKE 'ab', c NOT LIKE 'ab  ' FROM fixed;
-- f|t|t|f
-- f|f|t|t
-- f|f|t|t
-- NULL|NULL|NULL|NULL
SELECT c ILIKE 'AB', c ILIKE 'AB  ', c NOT ILIKE 'AB', c NOT ILIKE 'AB  ' FROM fixed;
-- f|t|t|f
-- f|f|t|t
-- f|f|t|t
-- NULL|NULL|NULL|NULL
SELECT c ~~ 'ab', c !~~ 'ab', c ~~* 'aB', c !~~* 'aB', c ~~* 'aB%' FROM fixed;
-- f|t|f|t|t
-- f|t|f|t|t
-- f|t|f|t|f
-- NULL|NULL|NULL|NULL|NULL
SELECT c ~ 'b$', c ~ 'b  $', c !~ 'b$', c !~ 'b  $' FROM fixed;
-- f|t|t|f
-- f|f|t|t
-- f|f|t|t
-- NULL|NULL|NULL|NULL
SELECT c ~* 'B$', c ~* 'B  $', c !~* 'B$', c !~* 'B  $' FROM fixed;
-- f|t|t|f
-- f|f|t|t
-- f|f|t|t
-- NULL|NULL|NULL|NULL
SELECT c ~ '^ *$', c ~ '^$', c ~* '^ {4}$' FROM fixed;
-- f|f|f
-- f|f|f
-- t|f|t
-- NULL|NULL|NULL
SELECT c SIMILAR TO 'ab', c SIMILAR TO 'ab  ', c NOT SIMILAR TO 'ab' FROM fixed;
-- f|t|t
-- f|f|t
-- f|f|t
-- NULL|NULL|NULL
SELECT v ILIKE c, t LIKE c, t ~ c, v ~* c FROM fixed;
-- t|t|t|t
-- t|t|t|t
-- t|t|t|t
-- NULL|NULL|NULL|NULL
SELECT c ILIKE c, c ~ c FROM fixed;
-- f|t
-- t|t
-- f|t
-- NULL|NULL
SELECT c ILIKE ANY (ARRAY['AB', 'x']), c ~ ANY (ARRAY[' $']), c ILIKE ALL (ARRAY['ab  ', '%']) FROM fixed;
-- f|t|t
-- f|f|f
-- f|t|f
-- NULL|NULL|NULL
SELECT c ILIKE 'ab!  ' ESCAPE '!', c LIKE 'ab!' ESCAPE '!' FROM fixed WHERE c = 'ab';
-- ERROR 22025: LIKE pattern must not end with escape character
SELECT count(*) FROM fixed WHERE c ILIKE 'ab';
-- 0
SELECT count(*) FROM fixed WHERE c LIKE 'ab%' AND c ~ ' ';
-- 2
SELECT regexp_match(c, '.*'), regexp_replace(c, ' ', 'x', 'g'), position(' ' in c), length(c), octet_length(c) FROM fixed;
-- {ab}|ab|0|2|4
-- {"ab c"}|abxc|3|4|4
-- {""}||0|0|4
-- NULL|NULL|NULL|NULL|NULL
SELECT starts_with(c, 'ab  '), c ^@ 'ab ', upper(c) || '|', substr(c, 1, 4) || '|', split_part(c, ' ', 2) FROM fixed;
-- f|f|AB||ab||
-- f|t|AB C||ab c||c
-- f|f|||||
-- NULL|NULL|NULL|NULL|NULL
SELECT c LIKE ALL (ARRAY['ab  ', 'ab%']), c NOT LIKE ALL (ARRAY['x', 'ab']), t NOT ILIKE ALL (ARRAY['AB', 'x%']) FROM fixed;
-- t|t|f
-- f|t|t
-- f|t|t
-- NULL|NULL|NULL
CREATE INDEX fixed_c ON fixed (c);
SELECT c FROM fixed WHERE c LIKE 'ab' ORDER BY 1;
SELECT c FROM fixed WHERE c LIKE 'ab%' ORDER BY 1;
-- ab  
-- ab c
SELECT c FROM fixed WHERE c ~ '^ab' ORDER BY 1;
-- ab  
-- ab c
