# sysbench: its scripts for transactions, prepared, run and cleaned up.
set -eu
run() {
  script=$1
  shift
  sysbench "$script" --db-driver=pgsql --pgsql-host="$PGHOST" --pgsql-port="$PGPORT" --pgsql-user="$PGUSER" --pgsql-db="$PGDATABASE" \
    --tables=2 --table-size=1000 --threads=4 --events=200 --time=0 "$@" > run.log 2>&1 || { grep -m 5 'FATAL\|ERROR\|PQ' run.log || tail -n 5 run.log; echo "$script $* failed"; exit 1; }
}
for script in oltp_read_write oltp_read_only oltp_point_select oltp_write_only oltp_update_index oltp_update_non_index oltp_insert oltp_delete; do
  run $script prepare
  run $script run
  run $script cleanup
done
for script in select_random_points select_random_ranges; do
  run $script prepare --tables=1
  run $script run --tables=1
  run $script cleanup --tables=1
done
run oltp_read_write prepare --create_secondary=off --auto_inc=off
run oltp_read_write run --create_secondary=off --auto_inc=off --range_selects=off --db-ps-mode=disable
run oltp_read_write cleanup
echo "all fine"
