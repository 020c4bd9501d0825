// TypeORM: schema synchronisation and its difference, migrations, repositories, relations, trees, the query builder, transactions and locks.
require('reflect-metadata');
const assert = require('node:assert/strict');
const { DataSource, EntitySchema, Table, TableColumn, TableIndex, In, MoreThan, ILike } = require('typeorm');

const Photo = new EntitySchema({
  name: 'Photo',
  columns: {
    id: { type: Number, primary: true, generated: true },
    key: { type: 'uuid', generated: 'uuid' },
    name: { type: String, length: 100, unique: true },
    description: { type: 'text', nullable: true },
    views: { type: 'int', default: 0 },
    size: { type: 'numeric', precision: 10, scale: 2, nullable: true },
    published: { type: Boolean, default: false },
    facts: { type: 'jsonb', nullable: true },
    words: { type: 'text', array: true, nullable: true },
    made: { type: 'timestamptz', createDate: true },
    changed: { type: 'timestamp', updateDate: true },
    version: { type: 'int', version: true },
  },
  relations: {
    author: { type: 'many-to-one', target: 'Author', inverseSide: 'photos', onDelete: 'CASCADE' },
    albums: { type: 'many-to-many', target: 'Album', inverseSide: 'photos', joinTable: true, cascade: true },
    metadata: { type: 'one-to-one', target: 'PhotoMetadata', inverseSide: 'photo', cascade: true },
  },
  indices: [{ name: 'photo_views', columns: ['views', 'published'] }],
  checks: [{ name: 'views_positive', expression: '"views" >= 0' }],
});
const PhotoMetadata = new EntitySchema({
  name: 'PhotoMetadata',
  columns: { id: { type: Number, primary: true, generated: true }, height: { type: 'int' }, comment: { type: 'varchar', length: 20, default: 'none' } },
  relations: { photo: { type: 'one-to-one', target: 'Photo', inverseSide: 'metadata', joinColumn: true } },
});
const Author = new EntitySchema({
  name: 'Author',
  columns: { id: { type: Number, primary: true, generated: 'identity' }, name: { type: String }, left: { type: 'timestamptz', deleteDate: true, nullable: true } },
  relations: { photos: { type: 'one-to-many', target: 'Photo', inverseSide: 'author' } },
});
const Album = new EntitySchema({
  name: 'Album',
  columns: { id: { type: Number, primary: true, generated: true }, name: { type: String } },
  relations: {
    photos: { type: 'many-to-many', target: 'Photo', inverseSide: 'albums' },
    parent: { type: 'many-to-one', target: 'Album', treeParent: true },
    children: { type: 'one-to-many', target: 'Album', treeChildren: true, inverseSide: 'parent' },
  },
  trees: [{ type: 'materialized-path' }],
});

class First1700000000000 {
  name = 'First1700000000000';

  async up(runner) {
    await runner.createTable(new Table({ name: 'visit', columns: [{ name: 'id', type: 'bigint', isPrimary: true }, { name: 'place', type: 'varchar', length: '30' }] }), true);
    await runner.addColumn('visit', new TableColumn({ name: 'at', type: 'timestamptz', default: 'now()' }));
    await runner.createIndex('visit', new TableIndex({ name: 'visit_place', columnNames: ['place'] }));
    await runner.query(`INSERT INTO visit (id, place) VALUES (1, 'Greenwich')`);
  }

  async down(runner) {
    await runner.dropTable('visit');
  }
}

async function main() {
  const options = { type: 'postgres', url: process.argv[2], entities: [Photo, PhotoMetadata, Author, Album], migrations: [First1700000000000], synchronize: true };
  let source = await new DataSource(options).initialize();
  await source.destroy();
  // The second time it reads the whole schema back, and must find nothing to change.
  source = await new DataSource({ ...options, synchronize: false }).initialize();
  const left = (await source.driver.createSchemaBuilder().log()).upQueries.map((q) => q.query);
  assert.deepEqual(left, []);
  assert.equal((await source.runMigrations()).length, 1);
  assert.equal((await source.query('SELECT place FROM visit WHERE id = $1', [1]))[0].place, 'Greenwich');
  await source.undoLastMigration();

  const photos = source.getRepository('Photo');
  const author = await source.manager.save('Author', { name: 'Ada' });
  const photo = await photos.save({ name: 'Bear', size: '12.50', facts: { a: 1 }, words: ['x', 'y'], author, albums: [{ name: 'Bears' }, { name: 'Me' }], metadata: { height: 640 } });
  assert.ok(photo.id === 1 && photo.version === 1 && photo.key.length === 36);
  photo.views = 5;
  await photos.save(photo);
  assert.equal(photo.version, 2);
  await photos.save([...Array(20).keys()].map((i) => ({ name: `p${i}`, views: i, author })));
  const found = await photos.findOne({ where: { name: 'Bear' }, relations: { albums: true, author: true, metadata: true } });
  assert.deepEqual([found.albums.map((a) => a.name).sort(), found.author.name, found.metadata.height, found.size, found.words], [['Bears', 'Me'], 'Ada', 640, '12.50', ['x', 'y']]);
  const [page, total] = await photos.findAndCount({ where: { views: MoreThan(4), name: ILike('P%') }, order: { views: 'DESC' }, skip: 2, take: 3, relations: { author: true } });
  assert.deepEqual([page.map((p) => p.views), total], [[17, 16, 15], 15]);
  await photos.upsert([{ name: 'p1', views: 100 }, { name: 'new', views: 1 }], ['name']);
  assert.equal((await photos.findOneByOrFail({ name: 'p1' })).views, 100);
  const raw = await photos.createQueryBuilder('photo').leftJoin('photo.author', 'author').select('author.name', 'name').addSelect('SUM(photo.views)', 'views')
    .where('photo.published = :published', { published: false }).groupBy('author.name').having('COUNT(*) > 1').getRawMany();
  assert.deepEqual(raw.map((r) => [r.name, Number(r.views)]), [['Ada', 294]]);
  const nested = await photos.createQueryBuilder('photo').where((b) => `photo.id IN ${b.subQuery().select('p.id').from('Photo', 'p').where('p.views = :v').getQuery()}`).setParameter('v', 5).getMany();
  assert.equal(nested.length, 2);
  await photos.createQueryBuilder().update().set({ views: () => 'views + 1' }).where({ name: In(['p2', 'p3']) }).returning('views').execute();
  await photos.increment({ name: 'p2' }, 'views', 10);
  assert.equal((await photos.findOneBy({ name: 'p2' })).views, 13);
  await source.manager.softDelete('Author', author.id);
  assert.equal(await source.manager.count('Author'), 0);
  await source.manager.restore('Author', author.id);

  const trees = source.getTreeRepository('Album');
  const top = await trees.save({ name: 'top' });
  const child = await trees.save({ name: 'child', parent: top });
  await trees.save({ name: 'leaf', parent: child });
  assert.equal(await trees.countDescendants(top), 3);
  assert.equal((await trees.findDescendantsTree(top)).children[0].children[0].name, 'leaf');

  await assert.rejects(source.transaction(async (manager) => {
    await manager.delete('Photo', { name: 'new' });
    throw new Error('back');
  }), /back/);
  await source.transaction('SERIALIZABLE', async (manager) => {
    const locked = await manager.findOne('Photo', { where: { name: 'new' }, lock: { mode: 'pessimistic_write', onLocked: 'skip_locked' } });
    await manager.transaction(async (inner) => inner.update('Photo', { id: locked.id }, { published: true }));
  });
  assert.equal(await photos.countBy({ published: true }), 1);
  await assert.rejects(photos.insert({ name: 'Bear' }), { code: '23505' });
  await source.dropDatabase();
  await source.destroy();
  console.log('all fine');
}

main().catch((e) => {
  console.error(e.stack, e.cause?.stack ?? '', e.parent?.sql ?? e.query ?? e.sql ?? '');
  process.exit(1);
});
