"""psycopg 3 against a node: parameters in text and binary, errors, COPY, pipelines, server-side cursors."""
import datetime
import decimal
import sys
import uuid

import psycopg
from psycopg import errors

url = sys.argv[1]
with psycopg.connect(url, autocommit=True) as conn:
    conn.execute("CREATE TABLE py (id int PRIMARY KEY, n numeric, t timestamptz, d date, u uuid, j jsonb, a text[], b bytea)")
    row = (
        1,
        decimal.Decimal("12.340"),
        datetime.datetime(2026, 11, 20, 8, 30, 0, 123456, tzinfo=datetime.timezone.utc),
        datetime.date(1912, 6, 23),
        uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"),
        psycopg.types.json.Jsonb({"k": [1, None, "ü"]}),
        ["a", None, 'quo"ted'],
        b"\x00\xff",
    )
    conn.execute("INSERT INTO py VALUES (%s, %s, %s, %s, %s, %s, %s, %s)", row)
    for binary in (False, True):
        with conn.cursor(binary=binary) as cur:
            got = cur.execute("SELECT * FROM py WHERE id = %s", (1,)).fetchone()
            assert got[:5] == row[:5], (binary, got)
            assert got[5] == {"k": [1, None, "ü"]}, got
            assert got[6:] == row[6:], (binary, got)
    # After five executions psycopg prepares the statement by itself.
    for i in range(20):
        assert conn.execute("SELECT id + %s FROM py WHERE id = 1", (i,)).fetchone() == (1 + i,)
    try:
        conn.execute("INSERT INTO py (id) VALUES (1)")
        raise SystemExit("a duplicate was accepted")
    except errors.UniqueViolation as e:
        assert e.diag.constraint_name == "py_pkey", e.diag.constraint_name

with psycopg.connect(url) as conn:
    with conn.transaction():
        conn.execute("INSERT INTO py (id) VALUES (2)")
        try:
            with conn.transaction():  # a savepoint
                conn.execute("INSERT INTO py (id) VALUES (2)")
        except errors.UniqueViolation:
            pass
        conn.execute("INSERT INTO py (id) VALUES (3)")
    with conn.cursor() as cur:
        with cur.copy("COPY py (id, n) FROM STDIN") as copy:
            for i in range(100, 200):
                copy.write_row((i, decimal.Decimal(i) / 4))
        with cur.copy("COPY py (id) TO STDOUT") as copy:
            lines = b"".join(bytes(data) for data in copy)
        assert lines.count(b"\n") == 103, lines.count(b"\n")
    conn.commit()
    with conn.pipeline():
        results = [conn.execute("SELECT count(*) FROM py WHERE id >= %s", (i,)) for i in (0, 100, 500)]
    assert [r.fetchone()[0] for r in results] == [103, 100, 0]
    conn.rollback()

with psycopg.connect(url) as conn:
    conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    assert conn.execute("SELECT count(*) FROM py").fetchone() == (103,)
print("all fine")
