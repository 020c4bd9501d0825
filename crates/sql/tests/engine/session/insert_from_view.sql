create table t (id int primary key);
insert into t select g from generate_series(1, 5000) g;
create view v as select * from t;
insert into t select id + 1000000 from v;
select count(*), max(id) from t;
-- 10000|1005000
