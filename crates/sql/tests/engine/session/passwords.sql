--- crypt and gen_salt of pgcrypto, by bcrypt and MD5.
CREATE EXTENSION pgcrypto;
SELECT crypt('abc', '$1$abcdefgh'), crypt('abc', '$1$'), crypt('abc', '$1$abcdefghijk'), crypt('', '$1$ab$zzz');
-- $1$abcdefgh$Kn5qrjcQzV7oAHBJ23Cu3/|$1$$j0yT3c/2mYPQF09fpvPLb0|$1$abcdefgh$Kn5qrjcQzV7oAHBJ23Cu3/|$1$ab$rn6aQS/o7141mj179E/zA.
SELECT crypt('a long password that goes on and on', '$1$ab$zzz'), crypt('é日本', '$1$ab');
-- $1$ab$S2/KnMmevlEi11KgHntTq.|$1$ab$v2s03Dn0IBufjiwArPDvh/
SELECT crypt('abc', '$2a$06$1234567890123456789012'), crypt('', '$2a$04$abcdefghijklmnopqrstuu');
-- $2a$06$123456789012345678901uiHfbBlc6LPxBzrt0mOLEkG0zpqs3yhy|$2a$04$abcdefghijklmnopqrstuubyCG3zY1GIXMyxfivm.ClDiInHzxjiq
SELECT crypt('é日本', '$2a$04$abcdefghijklmnopqrstuv');
-- $2a$04$abcdefghijklmnopqrstuu25PjzsXyA7bSkcyudELXo/uqgubPteG
SELECT crypt(repeat('x', 100), '$2a$04$abcdefghijklmnopqrstuv'), crypt(repeat('x', 72), '$2a$04$abcdefghijklmnopqrstuv'), crypt(repeat('x', 71), '$2a$04$abcdefghijklmnopqrstuv');
-- $2a$04$abcdefghijklmnopqrstuubzadhGtS2zEF.gu0yd0opP6cVzb.e0i|$2a$04$abcdefghijklmnopqrstuubzadhGtS2zEF.gu0yd0opP6cVzb.e0i|$2a$04$abcdefghijklmnopqrstuu.gc7UY/21CSNJGJg21jJzx9QiOpJ9bO
SELECT crypt('abc', '$2a$04$abc');
-- ERROR 22023: invalid salt
SELECT crypt('abc', '$2a$03$abcdefghijklmnopqrstuv');
-- ERROR 22023: invalid salt
SELECT crypt('abc', '$2a$32$abcdefghijklmnopqrstuv');
-- ERROR 22023: invalid salt
SELECT crypt('abc', '$2a$40$abcdefghijklmnopqrstuv');
-- ERROR 22023: invalid salt
SELECT crypt('abc', '$2a$04$abcdefghijklmnopqrst+v');
-- ERROR 22023: invalid salt
SELECT crypt('abc', '$2a$');
-- ERROR 22023: invalid salt
SELECT crypt('abc', '');
-- ERROR 22023: invalid salt
SELECT crypt('abc', '$');
-- ERROR 22023: invalid salt
SELECT crypt('abc', NULL), crypt(NULL, '$1$ab'), gen_salt(NULL), gen_salt('bf', NULL);
-- NULL|NULL|NULL|NULL
SELECT length(gen_salt('bf')), substr(gen_salt('bf'), 1, 7), substr(gen_salt('BF', 10), 1, 7), substr(gen_salt('bf', 0), 1, 7), length(gen_salt('md5')), substr(gen_salt('MD5', 1000), 1, 3);
-- 29|$2a$06$|$2a$10$|$2a$06$|11|$1$
SELECT gen_salt('bf') <> gen_salt('bf'), gen_salt('md5') <> gen_salt('md5');
-- t|t
SELECT gen_salt('bf', 3);
-- ERROR 22023: gen_salt: Incorrect number of rounds
SELECT gen_salt('bf', 32);
-- ERROR 22023: gen_salt: Incorrect number of rounds
SELECT gen_salt('md5', 3);
-- ERROR 22023: gen_salt: Incorrect number of rounds
SELECT gen_salt('nosuch');
-- ERROR 22023: gen_salt: Unknown salt algorithm
SELECT gen_salt('sha256');
-- ERROR 22023: gen_salt: Unknown salt algorithm
CREATE TABLE users (name text PRIMARY KEY, hash text);
INSERT INTO users VALUES ('a', crypt('secret', gen_salt('bf', 4))), ('b', crypt('secret', gen_salt('md5')));
SELECT name, hash = crypt('secret', hash), hash = crypt('Secret', hash), length(hash) FROM users ORDER BY name;
-- a|t|f|60
-- b|t|f|34
--- differs: nothing here is by DES
SELECT crypt('abc', 'ab');
-- ERROR 0A000: crypt by DES is not supported
--- differs: nothing here is by DES
SELECT crypt('abc', '_J9..rasm');
-- ERROR 0A000: crypt by extended DES (xdes) is not supported
--- differs: nothing here is by DES
SELECT crypt('abc', '$2y$04$abcdefghijklmnopqrstuv');
-- ERROR 0A000: crypt by DES is not supported
--- differs: the variant of bcrypt with a mistake
SELECT crypt('abc', '$2x$04$abcdefghijklmnopqrstuv');
-- ERROR 0A000: crypt with bcrypt's variant $2x$ is not supported
--- differs: nothing here is by DES
SELECT gen_salt('des');
-- ERROR 0A000: gen_salt('des') is not supported
--- differs: nothing here is by DES
SELECT gen_salt('xdes', 725);
-- ERROR 0A000: gen_salt('xdes') is not supported
