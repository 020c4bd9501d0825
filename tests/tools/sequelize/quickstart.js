// Sequelize: sync and alter, associations, eager loading, upserts, transactions and row locks, its query interface.
const assert = require('node:assert/strict');
const { Sequelize, DataTypes, Op, Transaction, UniqueConstraintError, ForeignKeyConstraintError } = require('sequelize');

async function main() {
  const sequelize = new Sequelize(process.argv[2], { logging: false });
  await sequelize.authenticate();
  assert.ok((await sequelize.databaseVersion()).startsWith('15'));
  const User = sequelize.define('User', {
    firstName: { type: DataTypes.STRING, allowNull: false },
    lastName: DataTypes.STRING,
    email: { type: DataTypes.STRING(80), unique: true },
    age: { type: DataTypes.INTEGER, defaultValue: 18 },
    balance: DataTypes.DECIMAL(10, 2),
    key: { type: DataTypes.UUID, defaultValue: DataTypes.UUIDV4 },
    facts: { type: DataTypes.JSONB, defaultValue: {} },
    words: { type: DataTypes.ARRAY(DataTypes.TEXT), defaultValue: [] },
    born: DataTypes.DATEONLY,
  }, { indexes: [{ fields: ['lastName', 'firstName'] }], paranoid: true });
  const Post = sequelize.define('Post', { title: DataTypes.STRING, body: DataTypes.TEXT, likes: { type: DataTypes.BIGINT, defaultValue: 0 } });
  const Tag = sequelize.define('Tag', { label: { type: DataTypes.STRING, primaryKey: true } }, { timestamps: false });
  User.hasMany(Post, { as: 'posts', foreignKey: { name: 'authorId', allowNull: false }, onDelete: 'CASCADE' });
  Post.belongsTo(User, { as: 'author', foreignKey: 'authorId' });
  Post.belongsToMany(Tag, { through: 'PostTags' });
  Tag.belongsToMany(Post, { through: 'PostTags' });
  await sequelize.sync({ force: true });
  await sequelize.sync();

  const jane = await User.create({ firstName: 'Jane', lastName: 'Doe', email: 'jane@example.com', balance: '12.50', facts: { a: { b: 1 } }, words: ['x', 'y'], born: '1912-06-23' });
  assert.equal(jane.id, 1);
  await jane.reload();
  assert.deepEqual([jane.balance, jane.facts, jane.words, jane.born, jane.age], ['12.50', { a: { b: 1 } }, ['x', 'y'], '1912-06-23', 18]);
  await User.bulkCreate([{ firstName: 'Ann', age: 30, email: 'ann@example.com' }, { firstName: 'Bob', age: 40, email: 'bob@example.com' }]);
  const [upserted] = await User.upsert({ firstName: 'Robert', email: 'bob@example.com', age: 41 }, { conflictFields: ['email'] });
  assert.equal(upserted.firstName, 'Robert');
  const [, made] = await User.findOrCreate({ where: { email: 'ann@example.com' }, defaults: { firstName: 'nobody' } });
  assert.equal(made, false);
  await assert.rejects(User.create({ firstName: 'x', email: 'jane@example.com' }), UniqueConstraintError);
  await assert.rejects(Post.create({ title: 'x', authorId: 99 }), ForeignKeyConstraintError);

  const post = await Post.create({ title: 'one', body: 'text', authorId: jane.id });
  await Post.bulkCreate([{ title: 'two', authorId: jane.id }, { title: 'three', authorId: upserted.id }]);
  await post.addTag(await Tag.create({ label: 'time' }));
  await post.setTags(await Tag.bulkCreate([{ label: 'logic' }, { label: 'sea' }]));
  const found = await User.findAll({ include: [{ model: Post, as: 'posts', include: Tag, where: { title: { [Op.iLike]: 'ON%' } } }], order: [['id', 'ASC']], limit: 5 });
  assert.deepEqual(found.map((u) => [u.firstName, u.posts[0].Tags.map((t) => t.label).sort()]), [['Jane', ['logic', 'sea']]]);
  assert.equal(await User.count({ where: { [Op.or]: [{ age: { [Op.between]: [30, 41] } }, { words: { [Op.contains]: ['x'] } }] } }), 3);
  assert.equal(await User.count({ where: { 'facts.a.b': 1 } }), 1);
  const page = await Post.findAndCountAll({ order: [['title', 'DESC']], limit: 2, offset: 1 });
  assert.deepEqual([page.count, page.rows.map((p) => p.title)], [3, ['three', 'one']]);
  const groups = await Post.findAll({ attributes: ['authorId', [sequelize.fn('COUNT', sequelize.col('id')), 'n']], group: ['authorId'], order: [['authorId', 'ASC']], raw: true });
  assert.deepEqual(groups.map((g) => Number(g.n)), [2, 1]);
  await Post.increment({ likes: 3 }, { where: { title: 'one' } });
  assert.equal((await Post.findOne({ where: { title: 'one' } })).likes, '3');
  assert.deepEqual(await User.update({ lastName: 'Ray' }, { where: { id: 2 }, returning: ['lastName'] }).then(([n, rows]) => [n, rows[0].lastName]), [1, 'Ray']);
  await (await User.findByPk(2)).destroy();
  assert.equal(await User.count(), 2);
  await User.restore({ where: { id: 2 } });
  assert.equal(await User.max('age'), 41);

  // Transactions: rolled back, isolated, locking.
  await assert.rejects(sequelize.transaction(async (transaction) => {
    await User.destroy({ where: {}, transaction });
    throw new Error('back');
  }), /back/);
  await sequelize.transaction({ isolationLevel: Transaction.ISOLATION_LEVELS.REPEATABLE_READ }, async (transaction) => {
    const locked = await User.findOne({ where: { id: 1 }, lock: transaction.LOCK.UPDATE, skipLocked: true, transaction });
    await locked.update({ age: 50 }, { transaction });
    await sequelize.transaction({ transaction }, async (inner) => User.update({ age: 51 }, { where: { id: 1 }, transaction: inner }));
  });
  assert.equal((await User.findByPk(1)).age, 51);

  // Schema: described, altered, reflected.
  const query = sequelize.getQueryInterface();
  const described = await query.describeTable('Users');
  assert.deepEqual([described.id.primaryKey, described.firstName.allowNull, described.balance.type, described.words.type], [true, false, 'NUMERIC', 'ARRAY']);
  await query.addColumn('Posts', 'note', { type: DataTypes.STRING(30), defaultValue: 'none', allowNull: false });
  await query.changeColumn('Posts', 'note', { type: DataTypes.TEXT });
  await query.renameColumn('Posts', 'note', 'remark');
  await query.addIndex('Posts', ['remark'], { name: 'posts_remark' });
  assert.ok((await query.showIndex('Posts')).some((i) => i.name === 'posts_remark'));
  await query.addConstraint('Posts', { fields: ['likes'], type: 'check', name: 'likes_positive', where: { likes: { [Op.gte]: 0 } } });
  await query.removeConstraint('Posts', 'likes_positive');
  await query.removeColumn('Posts', 'remark');
  assert.deepEqual((await query.getForeignKeyReferencesForTable('Posts')).map((k) => [k.columnName, k.referencedTableName]), [['authorId', 'Users']]);
  assert.ok((await query.showAllTables()).includes('PostTags'));
  await sequelize.sync({ alter: true });
  const rows = await sequelize.query('SELECT :a::int + $b AS n'.replace('$b', ':b'), { replacements: { a: 1, b: 2 }, type: Sequelize.QueryTypes.SELECT });
  assert.deepEqual(rows, [{ n: 3 }]);
  const bound = await sequelize.query('SELECT "firstName" FROM "Users" WHERE id = $1', { bind: [1], type: Sequelize.QueryTypes.SELECT });
  assert.deepEqual(bound, [{ firstName: 'Jane' }]);
  await sequelize.drop();
  await sequelize.close();
  console.log('all fine');
}

main().catch((e) => {
  console.error(e.stack, e.cause?.stack ?? '', e.parent?.sql ?? e.query ?? e.sql ?? '');
  process.exit(1);
});
