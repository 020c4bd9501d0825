-- The schema public as pg_dump compares it with a new one's: what it would write down else takes rights away from everybody.
SELECT array_length(nspacl, 1), nspacl[2]::text LIKE '=U/%' FROM pg_namespace WHERE nspname = 'public';
-- 2|t
SELECT description, objsubid FROM pg_description d JOIN pg_namespace n ON n.oid = d.objoid WHERE n.nspname = 'public' AND d.classoid = 'pg_namespace'::regclass;
-- standard public schema|0
