-- Literals that go on in another line.

SELECT 'multi'
  'line', length('x'

'yz'), 'a' -- and so on
'b', 'c' IN ('c'
'd');
-- multiline|3|ab|f
SELECT E'a\n'
'b', 'one' AS two;
-- a
-- b|one
