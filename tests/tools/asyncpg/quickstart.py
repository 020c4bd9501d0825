"""asyncpg: its own start-up settings, binary everything, prepared statements, cursors, copies, a pool, SQLAlchemy's async engine."""
import asyncio
import datetime
import decimal
import json
import sys
import uuid

import asyncpg
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

url = sys.argv[1]


async def usage(conn):
    """The example of its README."""
    await conn.execute("CREATE TABLE users (id serial PRIMARY KEY, name text, dob date)")
    await conn.execute("INSERT INTO users (name, dob) VALUES ($1, $2)", "Bob", datetime.date(1984, 3, 1))
    row = await conn.fetchrow("SELECT * FROM users WHERE name = $1", "Bob")
    assert (row["id"], row["name"], row["dob"]) == (1, "Bob", datetime.date(1984, 3, 1)), row


async def types(conn):
    await conn.execute(
        "CREATE TABLE kinds (id int PRIMARY KEY, i2 int2, i8 int8, f float8, n numeric, b bool, t text, v varchar(9), by bytea, d date, ti time,"
        " ts timestamp, tz timestamptz, iv interval, u uuid, j json, jb jsonb, ai int[], at text[])"
    )
    utc = datetime.timezone.utc
    row = (
        1, -3, 1 << 40, 1.5, decimal.Decimal("12345678901234567890.0123"), True, "tëxt", "var", b"\x00\xff", datetime.date(1912, 6, 23), datetime.time(8, 30, 1, 5),
        datetime.datetime(2026, 11, 20, 8, 30, 0, 123456), datetime.datetime(2026, 11, 20, 8, 30, tzinfo=utc), datetime.timedelta(days=2, hours=3),
        uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"), json.dumps({"a": 1}), json.dumps({"k": [1, None]}), [1, None, 3], ["a", None, 'q"x'],
    )
    marks = ", ".join(f"${i + 1}" for i in range(len(row)))
    got = await conn.fetchrow(f"INSERT INTO kinds VALUES ({marks}) RETURNING *", *row)
    for name, want, have in zip(got.keys(), row, got.values()):
        assert want == have, (name, want, have)
    await conn.executemany("INSERT INTO kinds (id, t) VALUES ($1, $2)", [(i, f"t{i}") for i in range(10, 110)])
    assert await conn.fetchval("SELECT count(*) FROM kinds WHERE id = ANY($1::int[])", [1, 10, 999]) == 2
    await conn.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
    assert await conn.fetchval("SELECT jb FROM kinds WHERE id = 1") == {"k": [1, None]}
    statement = await conn.prepare("SELECT id, n + $1 AS more FROM kinds WHERE id = $2")
    assert [a.name for a in statement.get_attributes()] == ["id", "more"]
    assert (await statement.fetchrow(decimal.Decimal("0.5"), 1))["more"] == decimal.Decimal("12345678901234567890.5123")


async def transactions(conn):
    async with conn.transaction():
        await conn.execute("INSERT INTO users (name) VALUES ('Eve')")
        try:
            async with conn.transaction():  # a savepoint
                await conn.execute("INSERT INTO users (id, name) VALUES (1, 'again')")
        except asyncpg.UniqueViolationError as e:
            assert e.constraint_name == "users_pkey", e.constraint_name
        cursor = await conn.cursor("SELECT id FROM kinds ORDER BY id")
        assert [r["id"] for r in await cursor.fetch(3)] == [1, 10, 11]
        assert await cursor.forward(7) == 7
        assert (await cursor.fetchrow())["id"] == 19
        assert [r["id"] async for r in conn.cursor("SELECT id FROM kinds WHERE id < $1 ORDER BY id", 13, prefetch=2)] == [1, 10, 11, 12]
    for isolation in ("serializable", "repeatable_read", "read_committed"):
        async with conn.transaction(isolation=isolation, readonly=True):
            assert await conn.fetchval("SELECT count(*) FROM users") == 2
            level = await conn.fetchval("SHOW transaction_isolation")
            assert level == isolation.replace("_", " "), level


async def copies(conn):
    records = [(i, f"c{i}") for i in range(1000, 1100)]
    await conn.copy_records_to_table("users", records=records, columns=["id", "name"])
    assert await conn.fetchval("SELECT count(*) FROM users WHERE id >= 1000") == 100
    out = bytearray()

    async def keep(data):
        out.extend(data)

    await conn.copy_from_query("SELECT id, name FROM users WHERE id < $1 ORDER BY id", 1002, output=keep, format="csv")
    assert out.endswith(b"1000,c1000\n1001,c1001\n"), out


async def reflection(conn):
    assert (await conn.fetchval("SHOW server_version")).startswith(f"{conn.get_server_version().major}.")
    assert conn.get_settings().client_encoding.upper().replace("-", "") in ("UTF8", "UTF-8")
    await conn.reload_schema_state()
    await conn.reset()


async def pools():
    async with asyncpg.create_pool(url, min_size=2, max_size=4, server_settings={"application_name": "quick start", "jit": "off"}, command_timeout=60) as pool:
        assert await pool.fetchval("SHOW application_name") == "quick start"

        async def add(n):
            async with pool.acquire() as conn, conn.transaction(isolation="read_committed"):
                await conn.execute("UPDATE users SET dob = coalesce(dob, DATE '2000-01-01') + $1::int WHERE id = 2", n)

        await asyncio.gather(*(add(1) for _ in range(20)))
        assert await pool.fetchval("SELECT dob FROM users WHERE name = 'Eve'") == datetime.date(2000, 1, 21)
        try:
            await pool.fetchval("SELECT pg_sleep(600)", timeout=0.2)
            raise SystemExit("a timeout was not kept")
        except TimeoutError:
            pass
        assert await pool.fetchval("SELECT 1") == 1


async def sqlalchemy():
    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
    meta = sa.MetaData()
    note = sa.Table("note", meta, sa.Column("id", sa.Integer, primary_key=True), sa.Column("at", sa.DateTime(timezone=True), server_default=sa.func.now()), sa.Column("text", sa.String(20)))
    async with engine.begin() as conn:
        await conn.run_sync(meta.create_all)
        await conn.execute(note.insert(), [{"text": "one"}, {"text": "two"}])
    async with engine.connect() as conn:
        assert (await conn.scalars(sa.select(note.c.text).order_by(note.c.id))).all() == ["one", "two"]
        names = await conn.run_sync(lambda sync: sa.inspect(sync).get_table_names())
        assert {"note", "users", "kinds"} <= set(names), names
    await engine.dispose()


async def main():
    for part in (usage, types, transactions, copies, reflection):
        conn = await asyncpg.connect(url)
        await part(conn)
        await conn.close()
    await pools()
    await sqlalchemy()
    print("all fine")


asyncio.run(main())
