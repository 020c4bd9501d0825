-- Outer joins above which a condition leaves out the rows of NULLs are inner joins, and only those.
create table a (id int primary key, x int, y int);
create table b (id int primary key, x int, y int);
create table c (id int primary key, x int, y int);
insert into a select g, nullif(g % 7, 3), g % 3 from generate_series(1, 12) g;
insert into b select g, nullif(g % 5, 2), g % 4 from generate_series(4, 15) g;
insert into c select g, nullif(g % 4, 1), g % 2 from generate_series(8, 20) g;
select a.id, b.id from a left join b on a.id = b.id where b.y > 1 order by 1, 2;
-- 6|6
-- 7|7
-- 10|10
-- 11|11
select a.id, b.id from a left join b on a.id = b.id where b.y is null or b.y > 1 order by 1, 2;
-- 1|NULL
-- 2|NULL
-- 3|NULL
-- 6|6
-- 7|7
-- 10|10
-- 11|11
select a.id, b.id from a left join b on a.id = b.id where b.y is not null order by 1, 2;
-- 4|4
-- 5|5
-- 6|6
-- 7|7
-- 8|8
-- 9|9
-- 10|10
-- 11|11
-- 12|12
select a.id, b.id from a left join b on a.id = b.id where coalesce(b.y, 1) = 1 order by 1, 2;
-- 1|NULL
-- 2|NULL
-- 3|NULL
-- 5|5
-- 9|9
select a.id, b.id from a left join b on a.id = b.id where b.y is distinct from 1 order by 1, 2;
-- 1|NULL
-- 2|NULL
-- 3|NULL
-- 4|4
-- 6|6
-- 7|7
-- 8|8
-- 10|10
-- 11|11
-- 12|12
select a.id, b.id from a left join b on a.id = b.id where not (b.y = 1) order by 1, 2;
-- 4|4
-- 6|6
-- 7|7
-- 8|8
-- 10|10
-- 11|11
-- 12|12
select a.id, b.id from a full join b on a.id = b.id where a.y = 1 order by 1, 2;
-- 1|NULL
-- 4|4
-- 7|7
-- 10|10
select a.id, b.id from a full join b on a.id = b.id where b.y = 1 order by 1, 2;
-- 5|5
-- 9|9
-- NULL|13
select a.id, b.id from a full join b on a.id = b.id where b.y = a.y order by 1, 2;
-- 12|12
select a.id, b.id from a full join b on a.id = b.id where b.y = 1 or a.y = 1 order by 1, 2;
-- 1|NULL
-- 4|4
-- 5|5
-- 7|7
-- 9|9
-- 10|10
-- NULL|13
select id, a.x, b.x from a full join b using (id) where id > 10 order by 1;
-- 11|4|1
-- 12|5|NULL
-- 13|NULL|3
-- 14|NULL|4
-- 15|NULL|0
select id, a.x, b.x from a full join b using (id) where b.x > 0 order by 1;
-- 4|4|4
-- 6|6|1
-- 8|1|3
-- 9|2|4
-- 11|4|1
-- 13|NULL|3
-- 14|NULL|4
select a.id, b.id, c.id from a left join b on a.id = b.id left join c on b.id = c.id where c.y = 1 order by 1, 2, 3;
-- 9|9|9
-- 11|11|11
select a.id, b.id, c.id from a left join b on a.id = b.id left join c on a.id = c.id where c.y = 1 order by 1, 2, 3;
-- 9|9|9
-- 11|11|11
select a.id, b.id, c.id from a left join (b left join c on b.id = c.id) on a.id = b.id and c.y = 1 order by 1, 2, 3;
-- 1|NULL|NULL
-- 2|NULL|NULL
-- 3|NULL|NULL
-- 4|NULL|NULL
-- 5|NULL|NULL
-- 6|NULL|NULL
-- 7|NULL|NULL
-- 8|NULL|NULL
-- 9|9|9
-- 10|NULL|NULL
-- 11|11|11
-- 12|NULL|NULL
select a.id, b.id, c.id from a left join (b full join c on b.id = c.id) on a.id = b.id order by 1, 2, 3;
-- 1|NULL|NULL
-- 2|NULL|NULL
-- 3|NULL|NULL
-- 4|4|NULL
-- 5|5|NULL
-- 6|6|NULL
-- 7|7|NULL
-- 8|8|8
-- 9|9|9
-- 10|10|10
-- 11|11|11
-- 12|12|12
select a.id, b.id, c.id from (a full join b on a.id = b.id) join c on c.id = b.id order by 1, 2, 3;
-- 8|8|8
-- 9|9|9
-- 10|10|10
-- 11|11|11
-- 12|12|12
-- NULL|13|13
-- NULL|14|14
-- NULL|15|15
select a.id, b.id, c.id from (a full join b on a.id = b.id) left join c on c.id = b.id order by 1, 2, 3;
-- 1|NULL|NULL
-- 2|NULL|NULL
-- 3|NULL|NULL
-- 4|4|NULL
-- 5|5|NULL
-- 6|6|NULL
-- 7|7|NULL
-- 8|8|8
-- 9|9|9
-- 10|10|10
-- 11|11|11
-- 12|12|12
-- NULL|13|13
-- NULL|14|14
-- NULL|15|15
select a.id, b.id, c.id from (a full join b on a.id = b.id) full join c on c.id = b.id where c.x in (0, 2) order by 1, 2, 3;
-- 8|8|8
-- 10|10|10
-- 12|12|12
-- NULL|14|14
-- NULL|NULL|16
-- NULL|NULL|18
-- NULL|NULL|20
select a.id, b.id, c.id from a right join b on a.id = b.id right join c on c.id = b.id where a.x between 1 and 9 order by 1, 2, 3;
-- 8|8|8
-- 9|9|9
-- 11|11|11
-- 12|12|12
select a.id, b.id from a left join b on a.id = b.id where b.x in (select x from c where c.y = 1) order by 1, 2;
-- 8|8
select a.id, b.id from a left join b on a.id = b.id where b.x not in (select x from c where x is not null) order by 1, 2;
-- 4|4
-- 6|6
-- 9|9
-- 11|11
select a.id, (select count(*) from b left join c on b.id = c.id where c.y = a.y) from a order by 1;
-- 1|4
-- 2|0
-- 3|4
-- 4|4
-- 5|0
-- 6|4
-- 7|4
-- 8|0
-- 9|4
-- 10|4
-- 11|0
-- 12|4
select a.id, b from a left join b on a.id = b.id where b.y = 1 order by 1;
-- 5|(5,0,1)
-- 9|(9,4,1)
