# Where an error stands is counted in the client's text, from its first character on: what stands before a statement counts once.
/**/SELECT nosuch;
----
ERROR 42703: column "nosuch" does not exist
  position: 12

   SELECT nosuch;
----
ERROR 42703: column "nosuch" does not exist
  position: 11

SELECT 1; SELECT nosuch;
----
?column?:int4
1
SELECT 1
ERROR 42703: column "nosuch" does not exist
  position: 18

/* a
comment */ SELECT nosuch;
----
ERROR 42703: column "nosuch" does not exist
  position: 24

/**/ SELECT 1 +;
----
ERROR 42601: syntax error at end of input
  detail: Expected: an expression, found: EOF
  position: 16

/**/SELECT (SELECT nosuch);
----
ERROR 42703: column "nosuch" does not exist
  position: 20

/**/SELECT 1 WHERE x IN ((SELECT 1), 2);
----
ERROR 42703: column "x" does not exist
  position: 20
