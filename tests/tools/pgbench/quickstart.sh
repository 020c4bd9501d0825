# pgbench: its tables, its three built-in scripts in each of its ways to send a statement, a script of one's own; then the books balance.
set -eu
pgbench -q -i -s 2 --foreign-keys
for mode in simple extended prepared; do
  for script in select-only simple-update tpcb-like; do
    pgbench -n -M $mode -b $script -c 4 -j 2 -t 50 > run.log
    grep -q 'actually processed: 200/200' run.log || { cat run.log; exit 1; }
  done
done
cat > own.sql <<'SQL'
\set aid random_zipfian(1, 100000 * :scale, 1.1)
\set delta random(-10, 10)
BEGIN;
SELECT abalance AS before FROM pgbench_accounts WHERE aid = :aid \gset
UPDATE pgbench_accounts SET abalance = :before + :delta WHERE aid = :aid;
COMMIT;
SQL
pgbench -n -f own.sql -c 2 -t 50 --max-tries=20 > run.log
grep -q 'actually processed: 100/100' run.log || { cat run.log; exit 1; }
sums=$(psql -X -At -c 'SELECT (SELECT sum(bbalance) FROM pgbench_branches) - (SELECT sum(tbalance) FROM pgbench_tellers)')
[ "$sums" = 0 ] || { echo "the books do not balance: $sums"; exit 1; }
echo "all fine"
