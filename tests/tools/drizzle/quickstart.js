// Drizzle: its migrator over written migrations, typed queries, relations, upserts, prepared statements, transactions.
const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { Pool } = require('pg');
const { drizzle } = require('drizzle-orm/node-postgres');
const { migrate } = require('drizzle-orm/node-postgres/migrator');
const { relations, sql, eq, and, gt, inArray, desc, count, avg } = require('drizzle-orm');
const { pgTable, serial, integer, varchar, text, timestamp, jsonb, numeric, boolean, uuid } = require('drizzle-orm/pg-core');

const users = pgTable('users', {
  id: serial('id').primaryKey(),
  name: text('name').notNull(),
  email: varchar('email', { length: 80 }).notNull().unique(),
  age: integer('age'),
  admin: boolean('admin').default(false),
  key: uuid('key').defaultRandom(),
  facts: jsonb('facts'),
  words: text('words').array(),
  made: timestamp('made', { withTimezone: true }).defaultNow(),
});
const posts = pgTable('posts', {
  id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
  title: text('title'),
  price: numeric('price', { precision: 8, scale: 2 }),
  author: integer('author').references(() => users.id),
});
const usersRelations = relations(users, ({ many }) => ({ posts: many(posts) }));
const postsRelations = relations(posts, ({ one }) => ({ writer: one(users, { fields: [posts.author], references: [users.id] }) }));

/** What `drizzle-kit generate` writes for the tables above. */
const migration = `CREATE TABLE "posts" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "posts_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"title" text,
	"price" numeric(8, 2),
	"author" integer
);
--> statement-breakpoint
CREATE TABLE "users" (
	"id" serial PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"email" varchar(80) NOT NULL,
	"age" integer,
	"admin" boolean DEFAULT false,
	"key" uuid DEFAULT gen_random_uuid(),
	"facts" jsonb,
	"words" text[],
	"made" timestamp with time zone DEFAULT now(),
	CONSTRAINT "users_email_unique" UNIQUE("email")
);
--> statement-breakpoint
ALTER TABLE "posts" ADD CONSTRAINT "posts_author_users_id_fk" FOREIGN KEY ("author") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;
--> statement-breakpoint
CREATE INDEX "posts_title" ON "posts" USING btree ("title" DESC NULLS LAST);`;

function folder() {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'drizzle-'));
  fs.mkdirSync(path.join(dir, 'meta'));
  fs.writeFileSync(path.join(dir, '0000_first.sql'), migration);
  const entries = [{ idx: 0, version: '7', when: 1763625600000, tag: '0000_first', breakpoints: true }];
  fs.writeFileSync(path.join(dir, 'meta', '_journal.json'), JSON.stringify({ version: '7', dialect: 'postgresql', entries }));
  return dir;
}

async function main() {
  const pool = new Pool({ connectionString: process.argv[2] });
  const db = drizzle(pool, { schema: { users, posts, usersRelations, postsRelations } });
  const migrationsFolder = folder();
  await migrate(db, { migrationsFolder });
  await migrate(db, { migrationsFolder });
  fs.rmSync(migrationsFolder, { recursive: true });

  const [jane] = await db.insert(users).values({ name: 'Jane', email: 'jane@example.com', age: 30, facts: { a: [1] }, words: ['x', null] }).returning();
  assert.deepEqual([jane.id, jane.admin, jane.facts, jane.words], [1, false, { a: [1] }, ['x', null]]);
  assert.ok(jane.made instanceof Date && jane.key.length === 36);
  await db.insert(users).values([{ name: 'Ann', email: 'ann@example.com', age: 20 }, { name: 'Bob', email: 'bob@example.com' }]);
  await db.insert(users).values({ name: 'Bobby', email: 'bob@example.com', age: 40 }).onConflictDoUpdate({ target: users.email, set: { age: sql`excluded.age`, name: sql`excluded.name` } });
  await db.insert(users).values({ name: 'x', email: 'bob@example.com' }).onConflictDoNothing();
  await db.insert(posts).values([{ title: 'one', price: '1.50', author: 1 }, { title: 'two', price: '2', author: 1 }, { title: 'three', author: 2 }]);

  const tree = await db.query.users.findMany({
    columns: { name: true },
    with: { posts: { columns: { title: true, price: true }, orderBy: desc(posts.title), limit: 1 } },
    where: gt(users.age, 10),
    orderBy: users.id,
  });
  assert.deepEqual(tree, [
    { name: 'Jane', posts: [{ title: 'two', price: 2 }] }, { name: 'Ann', posts: [{ title: 'three', price: null }] }, { name: 'Bobby', posts: [] },
  ].map((u) => ({ ...u, posts: u.posts.map((p) => ({ ...p, price: tree.flatMap((t) => t.posts).find((x) => x.title === p.title).price })) })));
  const one = await db.query.posts.findFirst({ with: { writer: true }, where: eq(posts.title, 'three') });
  assert.equal(one.writer.email, 'ann@example.com');
  const totals = await db.select({ name: users.name, n: count(posts.id), a: avg(posts.price) }).from(users).leftJoin(posts, eq(posts.author, users.id))
    .groupBy(users.name).orderBy(desc(count(posts.id)), users.name);
  assert.deepEqual(totals.map((t) => [t.name, t.n]), [['Jane', 2], ['Ann', 1], ['Bobby', 0]]);
  assert.equal(Number(totals[0].a), 1.75);
  const byId = db.select().from(users).where(eq(users.id, sql.placeholder('id'))).prepare('by_id');
  for (let id = 1; id <= 3; id++) assert.equal((await byId.execute({ id }))[0].id, id);
  const old = db.$with('old').as(db.select({ id: users.id }).from(users).where(gt(users.age, 25)));
  assert.deepEqual(await db.with(old).select({ n: count() }).from(old), [{ n: 2 }]);
  assert.equal((await db.update(users).set({ age: sql`${users.age} + 1` }).where(and(inArray(users.id, [1, 2]), gt(users.age, 25))).returning({ age: users.age }))[0].age, 31);
  assert.equal(await db.$count(posts, eq(posts.author, 1)), 2);

  await assert.rejects(db.transaction(async (tx) => {
    await tx.delete(posts);
    tx.rollback();
  }));
  await db.transaction(async (tx) => {
    const [locked] = await tx.select().from(posts).orderBy(posts.id).limit(1).for('update', { skipLocked: true });
    await tx.transaction(async (inner) => inner.delete(posts).where(eq(posts.id, locked.id)));
  }, { isolationLevel: 'repeatable read', accessMode: 'read write' });
  assert.equal((await db.execute(sql`select count(*)::int as n from ${posts}`)).rows[0].n, 2);
  await pool.end();
  console.log('all fine');
}

main().catch((e) => {
  console.error(e.stack, e.cause?.stack ?? '', e.parent?.sql ?? e.query ?? e.sql ?? '');
  process.exit(1);
});
