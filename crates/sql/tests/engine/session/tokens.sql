-- What PostgreSQL refuses to read, and digests.

SELECT 'x' 'y';
-- ERROR 42601: syntax error at or near "'y'"
SELECT 'a' /* b */ 'c';
-- ERROR 42601: syntax error at or near "'c'"
SELECT date '2020-01-01' 'y';
-- ERROR 42601: syntax error at or near "'y'"
SELECT E'x' 'y';
-- ERROR 42601: syntax error at or near "'y'"
SELECT 'a' -- b
'c';
-- ac
SELECT 'a'
   'b' AS t, 'c''d';
-- ab|c'd
SELECT 1_000;
-- ERROR 42601: trailing junk after numeric literal at or near "1_000"
SELECT 12abc;
-- ERROR 42601: trailing junk after numeric literal at or near "12abc"
SELECT 0x1f;
-- ERROR 42601: trailing junk after numeric literal at or near "0x1f"
SELECT 1.5e;
-- ERROR 42601: trailing junk after numeric literal at or near "1.5e"
SELECT .5x;
-- ERROR 42601: trailing junk after numeric literal at or near ".5x"
SELECT 1e5x;
-- ERROR 42601: trailing junk after numeric literal at or near "1e5x"
SELECT 1e5, 1., .5, 1.5e-3;
-- 100000|1|0.5|0.0015
SELECT 1from pg_class;
-- ERROR 42601: trailing junk after numeric literal at or near "1from"
SELECT $1a;
-- ERROR 42601: trailing junk after parameter at or near "$1a"
SELECT '1_000', "1_0" FROM (SELECT 1 AS "1_0") t;
-- 1_000|1
SELECT a1_0 FROM (SELECT 2 AS a1_0) t;
-- 2
SELECT (ARRAY[1,2,3])[1:2];
-- {1,2}
SELECT 1 < 2 = true;
-- ERROR 42601: syntax error at or near "="
SELECT 1 = 1 = true;
-- ERROR 42601: syntax error at or near "="
SELECT 1 <> 2 < true;
-- ERROR 42601: syntax error at or near "<"
SELECT (1 < 2) = true, 1 < 2 AND 2 < 3, 1 = 1 IS TRUE, NOT 1 = 2, 1 + 1 = 2;
-- t|t|t|t|t
SELECT 'a' LIKE 'a' LIKE 'b';
-- ERROR 42601: syntax error at or near "LIKE"
SELECT 1 IS NULL IS NULL;
-- f
SELECT CASE WHEN 1 = 1 THEN 2 = 2 END = true;
-- t
SELECT 1 = ANY (ARRAY[1]) AND 2 = 2;
-- t

SELECT sha224('abc'::bytea), sha256('abc'::bytea);
-- \x23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7|\xba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad
SELECT sha384(''::bytea), sha512('a'::bytea);
-- \x38b060a751ac96384cd9327eb1b1e36a21fdb71114be07434c0cc7bf63f6e1da274edebfe76f65fbd51ad2f14898b95b|\x1f40fc92da241694750979ee6cf582f2d5d7d28e18335de05abc54d0560e0f5302860c652bf08d560252aa5e74210546f369fbbbce8c12cfc7957b2652fe9a75
CREATE EXTENSION pgcrypto;
SELECT digest('a', 'md5'), digest('a'::bytea, 'SHA1'), digest('a', 'sha-224');
-- \x0cc175b9c0f1b6a831c399e269772661|\x86f7e437faa5a7fce15d1ddcb9eaeaea377667b8|\xabd37534c7d9a2efb9465de931cd7055ffdb8879563ae98078d6d6d5
SELECT digest('a', 'SHA-256'), digest('', 'sha384'), digest('a', 'Sha512');
-- \xca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb|\x38b060a751ac96384cd9327eb1b1e36a21fdb71114be07434c0cc7bf63f6e1da274edebfe76f65fbd51ad2f14898b95b|\x1f40fc92da241694750979ee6cf582f2d5d7d28e18335de05abc54d0560e0f5302860c652bf08d560252aa5e74210546f369fbbbce8c12cfc7957b2652fe9a75
SELECT digest('a', 'nope');
-- ERROR 22023: Cannot use "nope": No such hash algorithm
SELECT digest(NULL, 'md5');
-- NULL
SELECT hmac('a', '', 'md5'), hmac('', 'k', 'sha1'), hmac('data'::bytea, 'key'::bytea, 'sha256');
-- \x3673438f11d71c21a9b8b59232a3dd61|\x3a84a218ee6665209bb70e84525dd837645a1965|\x5031fe3d989c6d1537a013fa6e739da23463fdaec3b70137d828e36ace221bd0
SELECT hmac(repeat('data', 100), repeat('key', 100), 'sha512'), hmac('a', 'b', 'sha-384');
-- \x77e69ef2ccc825ed38fac75cf41df320529775ee075456fd19bdf36b5999bd5e9ddf5dd2bdea829d388d166091c6bbb3d2218e2ac05d0680e25848a64cefab11|\x40292a79a280f609aef472272d2a2a0d148bfb83fa18fd2806440d07d16e31d9f0d398891063c11f6c73891e6f646106
SELECT hmac('a', 'b', 'nope');
-- ERROR 22023: Cannot use "nope": No such hash algorithm
SELECT length(gen_random_bytes(1)), length(gen_random_bytes(1024)), gen_random_bytes(16) <> gen_random_bytes(16);
-- 1|1024|t
SELECT gen_random_bytes(0);
-- ERROR 39000: Length not in range
SELECT gen_random_bytes(1025);
-- ERROR 39000: Length not in range
SELECT encode(digest('password', 'sha256'), 'hex');
-- 5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8
SELECT md5('abc'), md5(''::bytea);
-- 900150983cd24fb0d6963f7d28e17f72|d41d8cd98f00b204e9800998ecf8427e
--- differs: of pgcrypto there is no encryption
SELECT encrypt('a', 'b', 'aes');
-- ERROR 0A000: function encrypt of the extension pgcrypto is not supported
