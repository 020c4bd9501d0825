"""SQLAlchemy 2 over psycopg 3: create_all, ORM, reflection."""
import sys

from sqlalchemy import ForeignKey, Index, MetaData, String, create_engine, inspect, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship


class Base(DeclarativeBase):
    pass


class Author(Base):
    __tablename__ = "author"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(40), unique=True)
    books: Mapped[list["Book"]] = relationship(back_populates="author")


class Book(Base):
    __tablename__ = "book"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    author_id: Mapped[int] = mapped_column(ForeignKey("author.id"))
    author: Mapped[Author] = relationship(back_populates="books")
    __table_args__ = (Index("book_author", "author_id"),)


engine = create_engine(sys.argv[1].replace("postgresql://", "postgresql+psycopg://"))
Base.metadata.create_all(engine)
Base.metadata.create_all(engine)  # sees that all is there
with Session(engine) as session:
    session.add(Author(name="Sobel", books=[Book(title="Longitude"), Book(title="The Glass Universe")]))
    session.commit()
    titles = session.scalars(select(Book.title).join(Author).where(Author.name == "Sobel").order_by(Book.title)).all()
    assert titles == ["Longitude", "The Glass Universe"], titles

seen = inspect(engine)
assert {"author", "book"} <= set(seen.get_table_names())
assert [c["name"] for c in seen.get_columns("book")] == ["id", "title", "author_id"]
assert seen.get_pk_constraint("book")["constrained_columns"] == ["id"]
assert seen.get_foreign_keys("book")[0]["referred_table"] == "author"
assert "book_author" in {i["name"] for i in seen.get_indexes("book")}
reflected = MetaData()
reflected.reflect(engine)
assert "author" in reflected.tables
Base.metadata.drop_all(engine)
print("all fine")
