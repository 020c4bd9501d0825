// node-postgres against a node: pool, parameters, types, named statements, cursors, errors, cancel, transactions and their repetition.
const assert = require('node:assert/strict');
const { Client, Pool } = require('pg');
const Cursor = require('pg-cursor');

const url = process.argv[2];

async function refused(state, promise) {
  await assert.rejects(promise, (e) => {
    assert.equal(e.code, state, `${e.code} ${e.message}`);
    return true;
  });
}

/** Runs `work` in a transaction, again while the server says 40001. */
async function transaction(pool, work) {
  for (let attempt = 1; ; attempt++) {
    const client = await pool.connect();
    try {
      await client.query('BEGIN');
      const result = await work(client, attempt);
      await client.query('COMMIT');
      return result;
    } catch (e) {
      await client.query('ROLLBACK');
      if (e.code !== '40001' || attempt === 50) throw e;
    } finally {
      client.release();
    }
  }
}

async function main() {
  const pool = new Pool({ connectionString: url, max: 8 });
  await pool.query(`CREATE TABLE js (id serial PRIMARY KEY, s text, n numeric, i8 bigint, f float8, b boolean, t timestamptz, d date,
    j jsonb, a int[], at text[], by bytea, u uuid)`);

  // Parameters of every kind, twice: unnamed, and as a named statement that is reused.
  const at = new Date('2026-11-20T08:30:00.123Z');
  const values = ['tëxt', '12345678901234567890.5', '9007199254740993', 1.5, true, at, '1912-06-23', { k: [1, null] }, [1, null, 3],
    ['a', 'q"x', null], Buffer.from([0, 255, 92]), '00112233-4455-6677-8899-aabbccddeeff'];
  const insert = `INSERT INTO js (s, n, i8, f, b, t, d, j, a, at, by, u)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING *`;
  for (const name of [undefined, 'insert', 'insert']) {
    const { rows: [row], rowCount, command, fields } = await pool.query({ name, text: insert, values });
    assert.equal(rowCount, 1);
    assert.equal(command, 'INSERT');
    assert.equal(fields[1].dataTypeID, 25);
    assert.equal(row.s, 'tëxt');
    assert.equal(row.n, '12345678901234567890.5');
    assert.equal(row.i8, '9007199254740993');
    assert.equal(row.f, 1.5);
    assert.equal(row.b, true);
    assert.equal(row.t.getTime(), at.getTime());
    assert.equal(row.d.getFullYear(), 1912);
    assert.deepEqual(row.j, { k: [1, null] });
    assert.deepEqual(row.a, [1, null, 3]);
    assert.deepEqual(row.at, ['a', 'q"x', null]);
    assert.deepEqual([...row.by], [0, 255, 92]);
    assert.equal(row.u, values[11]);
  }
  const client = new Client({ connectionString: url, statement_timeout: 60000, application_name: 'js' });
  await client.connect();
  assert.equal((await client.query('SHOW application_name')).rows[0].application_name, 'js');
  for (let i = 0; i < 10; i++) {
    const { rows } = await client.query({ name: 'plus', text: 'SELECT $1::int + 1 AS n', values: [i], rowMode: 'array' });
    assert.deepEqual(rows, [[i + 1]]);
  }
  assert.equal((await client.query('SELECT 1 FROM js WHERE id = ANY($1)', [[1, 2, 99]])).rowCount, 2);
  const several = await client.query("SELECT 1 AS a; INSERT INTO js (s) VALUES ('x'); SELECT 2 AS b");
  assert.deepEqual(several.map((r) => r.command), ['SELECT', 'INSERT', 'SELECT']);
  assert.equal((await client.query('SELECT $1::text AS n', [null])).rows[0].n, null);
  assert.equal((await client.query({ text: 'SELECT s, n FROM js WHERE id = $1', values: [1], binary: true })).rows[0].s, 'tëxt');

  // Errors carry SQLSTATE, constraint, table and position.
  await client.query('CREATE TABLE pair (id int PRIMARY KEY, v int CONSTRAINT positive CHECK (v > 0), js int REFERENCES js)');
  await assert.rejects(client.query('INSERT INTO pair VALUES ($1, $2)', [1, -1]), { code: '23514', constraint: 'positive', table: 'pair', severity: 'ERROR' });
  await assert.rejects(client.query('INSERT INTO pair VALUES (1, 1, 77)'), { code: '23503', constraint: 'pair_js_fkey' });
  await assert.rejects(client.query('SELEC 1'), { code: '42601', position: '1' });
  await refused('42P01', client.query('SELECT * FROM nowhere'));
  await refused('22P02', client.query('SELECT $1::int', ['x']));
  await refused('22012', client.query('SELECT 1 / $1::int', [0]));
  assert.equal((await client.query('SELECT 1 AS one')).rows[0].one, 1);

  // A cursor reads a portal in parts.
  const cursor = client.query(new Cursor('SELECT g FROM generate_series(1, $1::int) g', [250]));
  let seen = 0;
  for (let rows = await cursor.read(100); rows.length; rows = await cursor.read(100)) seen += rows.length;
  assert.equal(seen, 250);
  await cursor.close();
  const closed = client.query(new Cursor('SELECT g FROM generate_series(1, 1000) g'));
  assert.equal((await closed.read(10)).length, 10);
  await closed.close();
  assert.equal((await client.query('SELECT 1 AS one')).rows[0].one, 1);

  // Queries without waiting for the one before; an idle transaction; a statement that takes too long.
  const many = await Promise.all([...Array(50).keys()].map((i) => client.query('SELECT $1::int AS i', [i])));
  assert.deepEqual(many.map((r) => r.rows[0].i), [...Array(50).keys()]);
  await client.query('SET statement_timeout = 50');
  await refused('57014', client.query('SELECT pg_sleep(600)'));
  await client.query('RESET statement_timeout');

  // Savepoints.
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  await client.query('INSERT INTO pair VALUES (1, 1)');
  await client.query('SAVEPOINT s');
  await refused('23505', client.query('INSERT INTO pair VALUES (1, 1)'));
  await refused('25P02', client.query('SELECT 1'));
  await client.query('ROLLBACK TO SAVEPOINT s');
  await client.query('RELEASE SAVEPOINT s');
  await client.query('COMMIT');
  await client.query('PREPARE p AS SELECT 1');
  await client.query('DISCARD ALL');

  // Two writers of one row, SERIALIZABLE: the one that loses sees 40001, and repeats.
  const first = await pool.connect();
  await first.query('BEGIN');
  await first.query('SELECT v FROM pair WHERE id = 1');
  await client.query('UPDATE pair SET v = 2 WHERE id = 1');
  await refused('40001', first.query('UPDATE pair SET v = v + 10 WHERE id = 1').then(() => first.query('COMMIT')));
  await first.query('ROLLBACK');
  first.release();
  await client.query('UPDATE pair SET v = 1 WHERE id = 1');
  await Promise.all([...Array(24).keys()].map(() => transaction(pool, async (c) => {
    const { rows: [{ v }] } = await c.query('SELECT v FROM pair WHERE id = 1');
    await c.query('UPDATE pair SET v = $1 WHERE id = 1', [v + 1]);
  })));
  assert.equal((await client.query('SELECT v FROM pair WHERE id = 1')).rows[0].v, 25);

  await client.end();
  await pool.end();
  console.log('all fine');
}

main().catch((e) => {
  console.error(e);
  process.exit(1);
});
