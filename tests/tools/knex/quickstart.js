// Knex: its migrations with their lock, seeds of rows, queries, upserts, transactions, streams, schema changes.
const assert = require('node:assert/strict');
const createKnex = require('knex');

/** Migrations in memory, as its guide has them in files. */
const steps = {
  '1_make': {
    async up(knex) {
      await knex.schema.createTable('authors', (t) => {
        t.increments('id');
        t.string('name', 40).notNullable().unique();
        t.enu('kind', ['person', 'firm']).defaultTo('person');
        t.timestamps(true, true);
      });
      await knex.schema.createTable('books', (t) => {
        t.uuid('id').primary().defaultTo(knex.fn.uuid());
        t.bigInteger('pages').index();
        t.string('title');
        t.decimal('price', 8, 2).checkPositive('price_positive');
        t.jsonb('facts');
        t.specificType('words', 'text[]');
        t.integer('author_id').unsigned().references('id').inTable('authors').onDelete('CASCADE');
        t.unique(['title', 'author_id'], { indexName: 'title_author' });
      });
    },
    async down(knex) {
      await knex.schema.dropTable('books').dropTable('authors');
    },
  },
  '2_change': {
    async up(knex) {
      await knex.schema.alterTable('books', (t) => {
        t.text('note').notNullable().defaultTo('');
        t.string('title', 100).notNullable().alter();
        t.renameColumn('pages', 'length');
        t.index(['note', 'title'], 'note_title');
        t.comment('what was read');
      });
      await knex.schema.createViewOrReplace('titles', (v) => {
        v.columns(['title']);
        v.as(knex('books').select('title'));
      });
    },
    async down(knex) {
      await knex.schema.dropView('titles');
      await knex.schema.alterTable('books', (t) => {
        t.dropIndex(['note', 'title'], 'note_title');
        t.dropColumn('note');
        t.renameColumn('length', 'pages');
      });
    },
  },
};
const migrationSource = {
  getMigrations: async () => Object.keys(steps),
  getMigrationName: (name) => name,
  getMigration: async (name) => steps[name],
};

async function main() {
  const knex = createKnex({ client: 'pg', connection: process.argv[2], pool: { min: 1, max: 4 } });
  await knex.migrate.latest({ migrationSource });
  assert.equal((await knex.migrate.list({ migrationSource }))[0].length, 2);
  await knex.migrate.rollback({ migrationSource }, true);
  assert.equal(await knex.schema.hasTable('books'), false);
  await knex.migrate.latest({ migrationSource });
  assert.ok(await knex.schema.hasColumn('books', 'note'));
  assert.equal((await knex('books').columnInfo()).title.maxLength, 100);

  const [{ id }] = await knex('authors').insert({ name: 'Sobel' }).returning('id');
  await knex('authors').insert([{ name: 'Sobel' }, { name: 'Gray' }]).onConflict('name').ignore();
  await knex('authors').insert({ name: 'Gray', kind: 'firm' }).onConflict('name').merge(['kind']);
  assert.deepEqual(await knex('authors').select('name', 'kind').orderBy('id'), [{ name: 'Sobel', kind: 'person' }, { name: 'Gray', kind: 'firm' }]);
  await assert.rejects(knex('authors').insert({ name: 'x', kind: 'ship' }), { code: '23514' });
  const rows = [...Array(250).keys()].map((i) => ({ title: `t${i}`, length: i, price: 1 + i / 4, facts: { n: i, deep: { odd: i % 2 === 1 } }, words: ['a', `w${i}`], author_id: id }));
  await knex.batchInsert('books', rows, 100);
  const some = await knex('books').join('authors', 'books.author_id', 'authors.id').where('length', '>', 10).whereIn('title', ['t5', 't11', 't12'])
    .whereRaw('(facts->>?)::int > ?', ['n', 10]).select('title', 'name').orderBy('title');
  assert.deepEqual(some, [{ title: 't11', name: 'Sobel' }, { title: 't12', name: 'Sobel' }]);
  const [{ n }] = await knex('books').whereRaw("facts @> ?::jsonb", [JSON.stringify({ deep: { odd: true } })]).andWhere('words', '@>', ['a']).count({ n: '*' });
  assert.equal(n, '125');
  const best = await knex.with('big', knex('books').where('price', '>=', 60)).from('big').avg({ a: 'length' }).max({ m: 'price' }).first();
  assert.deepEqual([Number(best.a), best.m], [242.5, '63.25']);
  assert.deepEqual(await knex('books').where({ title: 't3' }).update({ note: 'read', length: knex.raw('?? + 1', ['length']) }, ['note', 'length']), [{ note: 'read', length: '4' }]);
  assert.deepEqual((await knex('titles').distinct('title').whereILike('title', 'T24_').orderBy('title', 'desc').limit(2)).map((r) => r.title), ['t249', 't248']);
  assert.deepEqual((await knex('books').whereNull('note').union(knex('books').whereBetween('length', [1, 2]), true)).length, 2);

  await assert.rejects(knex.transaction(async (trx) => {
    await trx('books').del();
    throw new Error('back');
  }), /back/);
  await knex.transaction(async (trx) => {
    const job = await trx('books').where('note', '').orderBy('length').forUpdate().skipLocked().first();
    assert.equal(job.title, 't0');
    await trx.transaction(async (inner) => inner('books').where({ id: job.id }).update({ note: 'done' }));
  }, { isolationLevel: 'serializable' });
  assert.equal((await knex('books').where({ note: 'done' })).length, 1);
  let seen = 0;
  for await (const row of knex('books').select('title').stream()) seen += row.title.length > 0;
  assert.equal(seen, 250);
  await knex('authors').where({ id }).del();
  assert.equal((await knex('books').count())[0].count, '0');
  await knex.raw('TRUNCATE books, authors RESTART IDENTITY CASCADE');
  await knex.destroy();
  console.log('all fine');
}

main().catch((e) => {
  console.error(e.stack, e.cause?.stack ?? '', e.parent?.sql ?? e.query ?? e.sql ?? '');
  process.exit(1);
});
