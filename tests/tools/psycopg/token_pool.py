"""One token for a pool: what one connection has written the other sees, under `token`, though neither knows of the other. Any two nodes: two URLs."""
import sys

import psycopg
from psycopg.conninfo import make_conninfo


class Pool:
    """Two connections, and the greatest token that either has heard of."""

    def __init__(self, urls):
        options = "-c timeball.report_token=on -c timeball.consistency=token"
        self.connections = [psycopg.connect(make_conninfo(url, options=options), autocommit=True) for url in urls]
        self.token = ""

    def use(self, number, statement, values=()):
        conn = self.connections[number]
        if self.token:
            conn.execute("SELECT set_config('timeball.token', %s, false)", (self.token,))
        cursor = conn.execute(statement, values)
        heard = conn.pgconn.parameter_status(b"timeball.token")
        assert heard, "the server says it with each transaction"
        self.token = max(self.token, heard.decode())
        return cursor.fetchall() if cursor.description else None


urls = sys.argv[1:] if len(sys.argv) > 2 else sys.argv[1:] * 2
pool = Pool(urls)
pool.use(0, "CREATE TABLE passed_on (id int PRIMARY KEY, v int)")
pool.use(0, "INSERT INTO passed_on VALUES (1, 0)")
for n in range(1, 101):
    writer, reader = n % 2, 1 - n % 2
    pool.use(writer, "UPDATE passed_on SET v = %s", (n,))
    assert pool.use(reader, "SELECT v FROM passed_on") == [(n,)], n
pool.use(0, "DROP TABLE passed_on")

for wrong in (pool.token[:-1] + "0", pool.token[:-1] + "1", "1-2-3-4-5", "99999999999999999999"):
    if wrong == pool.token:
        continue
    try:
        pool.connections[0].execute("SELECT set_config('timeball.token', %s, false)", (wrong,))
        raise SystemExit(f"{wrong} was taken")
    except psycopg.errors.InvalidParameterValue as e:
        assert e.diag.message_primary, wrong
print("all fine")
