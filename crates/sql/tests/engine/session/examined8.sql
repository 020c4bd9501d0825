--- READ ONLY is of the subtransaction that it was said in
create table z (a int);
begin; savepoint s; set transaction read only; show transaction_read_only;
-- on
rollback to s; show transaction_read_only;
-- off
insert into z values (1); set transaction read only;
release s; show transaction_read_only;
-- off
insert into z values (2); commit;
begin; savepoint s; savepoint s2; set transaction read only; savepoint s3;
release s3; show transaction_read_only;
-- on
release s; insert into z values (3); set transaction read only; savepoint s;
set transaction read write;
-- ERROR 25001: cannot set transaction read-write mode inside a read-only transaction
rollback to s; insert into z values (4);
-- ERROR 25006: cannot execute INSERT in a read-only transaction
rollback;
begin; savepoint s; set transaction read only; select 1/0;
-- ERROR 22012: division by zero
rollback to s; insert into z values (5);
savepoint s2; set local transaction_read_only = on; insert into z values (6);
-- ERROR 25006: cannot execute INSERT in a read-only transaction
rollback to s2; set transaction read write; insert into z values (6); rollback;
select * from z;
-- 1
-- 2
--- and nothing else can be said there
begin isolation level read committed; savepoint s; set transaction isolation level serializable;
-- ERROR 25001: SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction
rollback to s; set transaction isolation level read committed; set transaction deferrable;
-- ERROR 25001: SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction
rollback to s; set local transaction_deferrable = on;
-- ERROR 25001: SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction
rollback to s; set transaction read only, isolation level read committed; show transaction_read_only;
-- on
set transaction read write;
-- ERROR 25001: cannot set transaction read-write mode inside a read-only transaction
rollback;
--- what it is already may be said at any time
begin isolation level read committed; select 1;
-- 1
set transaction read write; set transaction read only, isolation level read committed; show transaction_read_only;
-- on
set transaction read write;
-- ERROR 25001: transaction read-write mode must be set before any query
rollback;
begin; savepoint s; set transaction read write; rollback to s; rollback;
