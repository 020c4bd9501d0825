--- Uuids of names; privileges that there are not; what SHOW calls its column.
CREATE EXTENSION "uuid-ossp";
SELECT uuid_nil(), uuid_ns_dns(), uuid_ns_url(), uuid_ns_oid(), uuid_ns_x500();
-- 00000000-0000-0000-0000-000000000000|6ba7b810-9dad-11d1-80b4-00c04fd430c8|6ba7b811-9dad-11d1-80b4-00c04fd430c8|6ba7b812-9dad-11d1-80b4-00c04fd430c8|6ba7b814-9dad-11d1-80b4-00c04fd430c8
SELECT uuid_generate_v3(uuid_ns_url(), 'http://www.postgresql.org'), uuid_generate_v5(uuid_ns_dns(), 'widgets.com'), uuid_generate_v5(uuid_nil(), ''), uuid_generate_v3(uuid_ns_x500(), repeat('x', 1000));
-- cf16fe52-3365-3a1f-8572-288d8d2aaa46|ce4fd423-ea25-5b92-a531-654d537088de|e129f27c-5103-5c5c-844b-cdf0a15e160d|61852423-f841-37a1-aa7f-8d0c2c1f8794
SELECT uuid_generate_v5(NULL, 'x'), uuid_generate_v5('6ba7b810-9dad-11d1-80b4-00c04fd430c8', 'x') = uuid_generate_v5(uuid_ns_dns(), 'x');
-- NULL|t
SELECT uuid_generate_v4() <> uuid_generate_v4(), substr(gen_random_uuid()::text, 15, 1), substr(uuid_generate_v4()::text, 20, 1) IN ('8', '9', 'a', 'b');
-- t|4|t
CREATE TABLE g (a int);
GRANT nosuch ON g TO public;
-- ERROR 42601: unrecognized privilege type "nosuch"
GRANT select, "Nosuch" ON g TO public;
-- ERROR 42601: unrecognized privilege type "Nosuch"
REVOKE nosuch ON g FROM public;
-- ERROR 42601: unrecognized privilege type "nosuch"
GRANT ALL PRIVILEGES ON g TO public;
GRANT SELECT (a), INSERT (a), REFERENCES ON g TO public;
