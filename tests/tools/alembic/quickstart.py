"""SQLAlchemy and alembic, deeper: every usual type, reflection, upserts, relationships, migrations that alembic writes by itself."""
import datetime
import decimal
import enum
import sys
import uuid

import sqlalchemy as sa
from alembic.autogenerate import compare_metadata, produce_migrations
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.orm import DeclarativeBase, Session, mapped_column, relationship, selectinload

driver = sys.argv[2] if len(sys.argv) > 2 else "psycopg"
engine = sa.create_engine(sys.argv[1].replace("postgresql://", f"postgresql+{driver}://"))


class Colour(enum.Enum):
    red = 1
    green = 2


class Base(DeclarativeBase):
    pass


class Kind(Base):
    __tablename__ = "kind"
    id = mapped_column(sa.BigInteger, sa.Identity(always=False), primary_key=True)
    small = mapped_column(sa.SmallInteger, server_default=sa.text("7"))
    flag = mapped_column(sa.Boolean, nullable=False, server_default=sa.true())
    price = mapped_column(sa.Numeric(12, 3))
    ratio = mapped_column(sa.Float)
    exact = mapped_column(sa.Double)
    short = mapped_column(sa.String(20), index=True)
    long = mapped_column(sa.Text, comment="as long as it takes")
    colour = mapped_column(sa.Enum(Colour, native_enum=False, length=10, create_constraint=True, name="known_colour"))
    day = mapped_column(sa.Date)
    clock = mapped_column(sa.Time)
    local = mapped_column(sa.DateTime)
    zoned = mapped_column(sa.DateTime(timezone=True), server_default=sa.func.now())
    span = mapped_column(sa.Interval)
    data = mapped_column(sa.LargeBinary)
    key = mapped_column(sa.Uuid, default=uuid.uuid4)
    doc = mapped_column(sa.JSON)
    docb = mapped_column(pg.JSONB)
    words = mapped_column(pg.ARRAY(sa.Text))
    __table_args__ = (sa.UniqueConstraint("short", "day", name="short_day"), sa.CheckConstraint("price >= 0", name="price_positive"))


class Node(Base):
    __tablename__ = "node"
    id = mapped_column(sa.Integer, primary_key=True)
    parent_id = mapped_column(sa.ForeignKey("node.id", ondelete="CASCADE", deferrable=True, initially="DEFERRED", name="node_parent"))
    kind_id = mapped_column(sa.ForeignKey("kind.id"), nullable=True)
    children = relationship("Node", backref=sa.orm.backref("parent", remote_side=[id]), cascade="all, delete-orphan", passive_deletes=True)
    kind = relationship(Kind)
    friends = relationship(
        "Node",
        secondary=sa.Table("friend", Base.metadata, sa.Column("a", sa.ForeignKey("node.id"), primary_key=True), sa.Column("b", sa.ForeignKey("node.id"), primary_key=True)),
        primaryjoin="Node.id == friend.c.a",
        secondaryjoin="Node.id == friend.c.b",
    )


Base.metadata.create_all(engine)
Base.metadata.create_all(engine)
utc = datetime.timezone.utc
values = dict(
    price=decimal.Decimal("1.250"), ratio=1.5, exact=2.25, short="s", long="tëxt", colour=Colour.green, day=datetime.date(1912, 6, 23),
    clock=datetime.time(8, 30, 0, 5), local=datetime.datetime(2026, 11, 20, 8, 30), zoned=datetime.datetime(2026, 11, 20, 8, 30, tzinfo=utc),
    span=datetime.timedelta(days=1, hours=2), data=b"\x00\xff", doc={"a": [1, None]}, docb={"k": {"n": 1}}, words=["a", None, 'q"x'],
)
with Session(engine) as session:
    kind = Kind(**values)
    session.add(kind)
    session.commit()
    session.expire_all()
    for name, value in values.items():
        assert getattr(kind, name) == value, (name, getattr(kind, name))
    assert (kind.small, kind.flag) == (7, True)
    assert session.scalar(sa.select(Kind.id).where(Kind.docb["k"]["n"].as_integer() == 1)) == 1
    assert session.scalar(sa.select(Kind.id).where(Kind.words.any("a"), Kind.docb.has_key("k"))) == 1
    assert session.scalar(sa.select(sa.func.count()).where(Kind.id.in_([1, 2, 3]))) == 1

    # A hundred rows with their keys, in pages of INSERT .. RETURNING.
    session.add_all([Kind(short=f"n{i}", day=datetime.date(2026, 1, 1)) for i in range(100)])
    session.commit()
    assert session.scalar(sa.select(sa.func.count(Kind.id.distinct()))) == 101

    # Upserts.
    rows = [dict(short="s", day=datetime.date(1912, 6, 23), long="again"), dict(short="t", day=datetime.date(1912, 6, 23), long="new")]
    upsert = pg.insert(Kind).values(rows)
    upsert = upsert.on_conflict_do_update(constraint="short_day", set_={"long": upsert.excluded.long}).returning(Kind.id, Kind.long)
    assert [r.long for r in session.execute(upsert)] == ["again", "new"]
    nothing = pg.insert(Kind).values(rows).on_conflict_do_nothing(index_elements=["short", "day"])
    assert session.execute(nothing.returning(Kind.id)).all() == []
    session.execute(sa.update(Kind), [dict(id=1, long="one"), dict(id=2, long="two")])
    assert session.execute(sa.delete(Kind).where(Kind.short.like("n%")).returning(Kind.id)).all().__len__() == 100
    session.commit()

    # Relationships: a tree whose children may come before their parents, many to many.
    root = Node(id=1, kind=kind, children=[Node(id=2, children=[Node(id=3)]), Node(id=4)])
    root.friends = [root.children[0]]
    session.add(root)
    session.commit()
    session.execute(sa.insert(Node), [dict(id=11, parent_id=12), dict(id=12, parent_id=1)])
    session.commit()
    session.expire_all()
    tree = session.scalars(sa.select(Node).where(Node.id == 1).options(selectinload(Node.children, recursion_depth=3), selectinload(Node.friends))).one()
    assert sorted(c.id for c in tree.children) == [2, 4, 12] and [f.id for f in tree.friends] == [2]
    below = sa.select(Node.id).where(Node.id == 1).cte(recursive=True)
    below = below.union_all(sa.select(Node.id).join(below, Node.parent_id == below.c.id))
    assert session.scalar(sa.select(sa.func.count()).select_from(below)) == 6
    session.execute(sa.insert(Node), [dict(id=99, parent_id=98)])
    try:
        session.commit()
        raise SystemExit("an orphan was committed")
    except sa.exc.IntegrityError as e:
        session.rollback()
    with session.begin_nested() as nested:
        session.add(Node(id=50))
        session.flush()
        nested.rollback()
    tree.friends = []
    session.delete(tree)
    session.commit()
    assert session.scalar(sa.select(sa.func.count()).select_from(Node)) == 0

# Reflection tells what was declared.
seen = sa.inspect(engine)
columns = {c["name"]: c for c in seen.get_columns("kind")}
assert isinstance(columns["price"]["type"], sa.NUMERIC) and (columns["price"]["type"].precision, columns["price"]["type"].scale) == (12, 3)
assert isinstance(columns["docb"]["type"], pg.JSONB) and isinstance(columns["words"]["type"], pg.ARRAY)
assert columns["zoned"]["type"].timezone and not columns["local"]["type"].timezone
assert columns["id"]["identity"]["always"] is False and columns["small"]["default"] == "7"
assert columns["long"]["comment"] == "as long as it takes", columns["long"]
assert [u["name"] for u in seen.get_unique_constraints("kind")] == ["short_day"]
assert {c["name"] for c in seen.get_check_constraints("kind")} == {"price_positive", "known_colour"}
parent = [k for k in seen.get_foreign_keys("node") if k["name"] == "node_parent"][0]
assert parent["options"] == {"ondelete": "CASCADE", "deferrable": True, "initially": "DEFERRED"}, parent
reflected = sa.MetaData()
reflected.reflect(engine)
assert {"kind", "node", "friend"} <= set(reflected.tables)

# Alembic sees no difference, writes a migration for one, and sees none afterwards; then the way back.
wanted = sa.MetaData()
for table in Base.metadata.tables.values():
    table.to_metadata(wanted)
options = {"compare_type": True, "compare_server_default": True}
with engine.connect() as conn:
    context = MigrationContext.configure(conn, opts=options)
    same = compare_metadata(context, wanted)
    assert same == [], same

kind = wanted.tables["kind"]
kind.append_column(sa.Column("note", sa.String(50), nullable=False, server_default="none"))
kind.append_column(sa.Column("owner_id", sa.ForeignKey("node.id", name="kind_owner", deferrable=True, initially="DEFERRED", use_alter=True)))
kind.c.short.type = sa.String(40)
kind.c.small.nullable = False
kind.c.small.server_default = sa.DefaultClause(sa.text("8"))
sa.Index("kind_days", kind.c.day, kind.c.clock.desc(), unique=False)
sa.UniqueConstraint(kind.c.key, name="kind_key")
sa.Table("extra", wanted, sa.Column("id", sa.Integer, primary_key=True), sa.Column("kind_id", sa.ForeignKey("kind.id")))


def apply(operations, container):
    for op in container.ops:
        if hasattr(op, "ops"):
            apply(operations, op)
        else:
            operations.invoke(op)


with engine.begin() as conn:
    context = MigrationContext.configure(conn, opts=options)
    script = produce_migrations(context, wanted)
    apply(Operations(context), script.upgrade_ops)
with engine.begin() as conn:
    context = MigrationContext.configure(conn, opts=options)
    left = compare_metadata(context, wanted)
    assert left == [], left
    apply(Operations(context), script.downgrade_ops)
with engine.begin() as conn:
    left = compare_metadata(MigrationContext.configure(conn, opts=options), Base.metadata)
    assert left == [], left
Base.metadata.drop_all(engine)
print("all fine")
