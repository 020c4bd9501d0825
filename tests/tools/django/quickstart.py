"""Django 5 over psycopg 3: the built-in applications' migrations, an application of our own whose migrations change its schema, the ORM."""
import importlib
import io
import os
import shutil
import sys
import tempfile
from urllib.parse import urlparse

import django
from django.conf import settings

url = urlparse(sys.argv[1])
work = tempfile.mkdtemp()
sys.path.insert(0, work)
app = os.path.join(work, "library")
os.makedirs(os.path.join(app, "migrations"))
for empty in ("__init__.py", "migrations/__init__.py"):
    open(os.path.join(app, empty), "w").close()

MODELS = """
import uuid
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

class Author(models.Model):
    name = models.CharField(max_length=40, unique=True)
    born = models.DateField(null=True)
    email = models.EmailField(blank=True, db_index=True)

class Tag(models.Model):
    label = models.SlugField(primary_key=True)

class Book(models.Model):
    key = models.UUIDField(default=uuid.uuid4, unique=True)
    title = models.CharField(max_length=200)
    price = models.DecimalField(max_digits=8, decimal_places=2, default=0)
    pages = models.PositiveIntegerField(default=0)
    rating = models.FloatField(null=True)
    added = models.DateTimeField(auto_now_add=True)
    lent = models.DurationField(null=True)
    facts = models.JSONField(default=dict)
    words = ArrayField(models.TextField(), default=list)
    cover = models.BinaryField(null=True)
    author = models.ForeignKey(Author, related_name="books", on_delete=models.CASCADE)
    tags = models.ManyToManyField(Tag, related_name="books")
{fields}
    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["title", "-pages"], name="book_title")]
        constraints = [{constraints}]

class Loan(models.Model):
    book = models.OneToOneField(Book, on_delete=models.PROTECT)
    due = models.DateField()
"""


def write_models(fields="", constraints=""):
    with open(os.path.join(app, "models.py"), "w") as out:
        out.write(MODELS.format(fields=fields, constraints=constraints))


write_models()
settings.configure(
    SECRET_KEY="x",
    USE_TZ=True,
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    INSTALLED_APPS=[f"django.contrib.{a}" for a in ("admin", "auth", "contenttypes", "sessions", "messages", "postgres")] + ["library"],
    MIDDLEWARE=[],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": url.path[1:] or "postgres",
            "USER": url.username,
            "HOST": url.hostname,
            "PORT": url.port,
            "OPTIONS": {"server_side_binding": "--server-side" in sys.argv},
        }
    },
)
django.setup()

from django.apps import apps  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import DataError, IntegrityError, connection, transaction  # noqa: E402
from django.db.migrations.questioner import NonInteractiveMigrationQuestioner  # noqa: E402
from django.db.models import Avg, Case, Count, Exists, F, Max, OuterRef, Prefetch, Q, Subquery, Sum, Value, When, Window  # noqa: E402
from django.db.models.functions import Coalesce, Concat, ExtractYear, Length, Lower, Now, RowNumber, TruncMonth, Upper  # noqa: E402

# Renames are not asked for, they are taken.
NonInteractiveMigrationQuestioner.ask_rename = lambda self, *a: True


def reload_models():
    """The application's models again, as a new process would see them."""
    for model in list(apps.all_models["library"]):
        del apps.all_models["library"][model]
    module = importlib.import_module("library.models")
    importlib.reload(module)
    apps.get_app_config("library").import_models()
    apps.clear_cache()
    return module


def migrate():
    call_command("makemigrations", "library", interactive=False, verbosity=0)
    importlib.invalidate_caches()
    call_command("migrate", verbosity=0, interactive=False)
    assert not call_command("makemigrations", check=True, dry_run=True, verbosity=0)


migrate()
tables = set(connection.introspection.table_names())
assert {"auth_user", "django_session", "django_admin_log", "library_book", "library_book_tags"} <= tables, tables

# The built-in applications.
from django.contrib.auth.models import Group, Permission, User  # noqa: E402
from django.contrib.sessions.backends.db import SessionStore  # noqa: E402

root = User.objects.create_superuser("root", "root@example.com", "secret")
assert User.objects.get(username="root").check_password("secret")
group = Group.objects.create(name="librarians")
group.permissions.set(Permission.objects.filter(content_type__app_label="library"))
root.groups.add(group)
User.objects.create_user("ada", password="x").groups.add(group)
assert User.objects.get(username="ada").has_perm("library.add_book")
session = SessionStore()
session["k"] = 1
session.save()
assert SessionStore(session.session_key)["k"] == 1
SessionStore.clear_expired()

from library.models import Author, Book, Loan, Tag  # noqa: E402

# Writing.
sobel, made = Author.objects.get_or_create(name="Sobel", defaults={"email": "d@example.com"})
assert made and not Author.objects.get_or_create(name="Sobel")[1]
lamport, _ = Author.objects.update_or_create(name="Lamport", defaults={"email": "l@example.com"})
Author.objects.bulk_create([Author(name="Sobel"), Author(name="Gray")], ignore_conflicts=True)
Author.objects.bulk_create(
    [Author(name="Sobel", email="new@example.com")], update_conflicts=True, unique_fields=["name"], update_fields=["email"]
)
assert Author.objects.count() == 3 and Author.objects.get(name="Sobel").email == "new@example.com"
for label in ("time", "logic", "history"):
    Tag.objects.create(label=label)
books = Book.objects.bulk_create(
    [
        Book(title="Longitude", price="9.50", pages=184, author=sobel, facts={"year": 1995, "prize": {"name": "x"}}, words=["sea", "clock"]),
        Book(title="Galileo", price="12", pages=420, author=sobel, rating=4.5, facts={"year": 1999}),
        Book(title="Time, Clocks", pages=8, author=lamport, cover=b"\x00\xff", facts={"year": 1978}),
    ]
)
assert all(book.pk for book in books)
books[0].tags.set(Tag.objects.filter(label__in=["time", "history"]))
books[2].tags.add("time", "logic")
Book.objects.filter(title="Galileo").update(pages=F("pages") + 1, lent=django.utils.timezone.timedelta(days=2))
books[1].rating = 4.75
Book.objects.bulk_update(books, ["rating"])

# Reading.
assert Book.objects.get(title="Galileo").lent.days == 2
assert [b.author.name for b in Book.objects.select_related("author")] == ["Sobel", "Sobel", "Lamport"]
with_books = Author.objects.prefetch_related(Prefetch("books", Book.objects.order_by("-pages")), "books__tags").order_by("name")
assert [[b.title for b in a.books.all()] for a in with_books] == [[], ["Time, Clocks"], ["Galileo", "Longitude"]]
counted = Author.objects.annotate(n=Count("books"), pages=Coalesce(Sum("books__pages"), 0)).order_by("-n", "name")
assert list(counted.values_list("name", "n", "pages")) == [("Sobel", 2, 605), ("Lamport", 1, 8), ("Gray", 0, 0)]
assert Book.objects.aggregate(Avg("pages"), top=Max("price"))["top"] == 12
assert Book.objects.filter(Q(tags="time") & ~Q(author__name="Lamport") | Q(pages__lt=0)).get().title == "Longitude"
assert Book.objects.filter(tags__label__in=["time", "logic"]).distinct().count() == 2
assert Author.objects.filter(Exists(Book.objects.filter(author=OuterRef("pk"), pages__gt=400))).get() == sobel
latest = Book.objects.filter(author=OuterRef("pk")).order_by("-pk").values("title")[:1]
assert Author.objects.annotate(last=Subquery(latest)).get(name="Sobel").last == "Galileo"
ranked = Book.objects.annotate(place=Window(RowNumber(), partition_by="author", order_by=F("pages").desc()))
assert [b.place for b in ranked.order_by("pk")] == [2, 1, 1]
size = Case(When(pages__gt=100, then=Value("long")), default=Value("short"))
assert list(Book.objects.annotate(size=size).values("size").annotate(n=Count("pk")).values_list("size", "n").order_by("n")) == [("short", 1), ("long", 2)]
assert Book.objects.filter(title__icontains="LONG").exists() and Book.objects.filter(title__iregex="^gal").exists()
assert Book.objects.filter(title__istartswith="time", author__name__iexact="LAMPORT").exists()
assert Book.objects.filter(facts__year__gt=1980).count() == 2 and Book.objects.filter(facts__prize__name="x").count() == 1
assert Book.objects.filter(facts__has_key="prize").get().title == "Longitude" and Book.objects.filter(facts__contains={"year": 1978}).exists()
assert Book.objects.filter(words__contains=["sea"]).count() == 1 and Book.objects.filter(words__len=2).count() == 1
assert bytes(Book.objects.get(pages=8).cover) == b"\x00\xff"
named = Book.objects.annotate(label=Concat(Upper("title"), Value("/"), Lower("author__name")), n=Length("title"))
assert named.first().label == "LONGITUDE/sobel" and named.first().n == 9
assert len(Book.objects.annotate(month=TruncMonth("added")).values("month").annotate(n=Count("pk"))) == 1
assert Book.objects.filter(added__lte=Now(), added__year__gte=2020, added__date__isnull=False).count() == 3
assert len(Book.objects.dates("added", "month")) == 1 and len(Book.objects.datetimes("added", "day")) == 1
assert Book.objects.annotate(y=ExtractYear("added")).filter(y__gt=2000).count() == 3
united = Author.objects.values_list("name").union(Tag.objects.values_list("label")).order_by("name")
assert united.count() == 6 and list(Book.objects.reverse()[1:2].values_list("title", flat=True)) == ["Galileo"]
assert set(Book.objects.in_bulk([b.pk for b in books])) == {b.pk for b in books}
assert len(list(Book.objects.iterator(chunk_size=2))) == 3
assert Author.objects.raw("SELECT * FROM library_author WHERE name = %s", ["Gray"])[0].name == "Gray"
assert "Scan" in Book.objects.filter(pk=1).explain() or Book.objects.filter(pk=1).explain()

# Transactions.
try:
    with transaction.atomic():
        Author.objects.create(name="Outer")
        try:
            with transaction.atomic():
                Author.objects.create(name="Inner")
                Author.objects.create(name="Sobel")
        except IntegrityError:
            pass
        with transaction.atomic():
            locked = Author.objects.select_for_update().get(name="Outer")
            locked.email = "o@example.com"
            locked.save()
        Author.objects.select_for_update(skip_locked=True).filter(name="Outer").first()
        Author.objects.select_for_update(of=("self",)).select_related().filter(name="Outer").first()
        raise KeyError
except KeyError:
    pass
assert not Author.objects.filter(name__in=["Outer", "Inner"]).exists()
committed = []
with transaction.atomic(durable=True):
    Author.objects.create(name="Kept")
    transaction.on_commit(lambda: committed.append(1))
assert committed == [1] and Author.objects.get(name="Kept").delete()[0] == 1
try:
    Book.objects.create(title="x" * 201, author=sobel)
    raise SystemExit("a text too long was accepted")
except DataError:
    pass
# A child before its parent: Django's foreign keys are DEFERRABLE INITIALLY DEFERRED.
with transaction.atomic():
    Book.objects.create(title="Early", author_id=1000)
    Author.objects.create(pk=1000, name="Late")
try:
    with transaction.atomic():
        Book.objects.create(title="Orphan", author_id=4711)
    raise SystemExit("an orphan was committed")
except IntegrityError:
    pass
try:
    with transaction.atomic():
        Book.objects.create(title="Orphan", author_id=4711)
        connection.check_constraints()
    raise SystemExit("check_constraints saw no orphan")
except IntegrityError:
    pass
Author.objects.get(pk=1000).delete()

# Schema changes by migrations.
write_models("    isbn = models.CharField(max_length=13, null=True)\n    stock = models.IntegerField(default=3)")
reload_models()
migrate()
write_models(
    "    code = models.CharField(max_length=20, null=True, db_index=True)\n    stock = models.BigIntegerField(default=4, db_comment='copies')",
    "models.UniqueConstraint(fields=['author', 'title'], name='one_title'), models.CheckConstraint(condition=Q(pages__gte=0), name='real_pages')",
)
reload_models()
migrate()
described = {c.name: c for c in connection.introspection.get_table_description(connection.cursor(), "library_book")}
assert "code" in described and "isbn" not in described, described
found = connection.introspection.get_constraints(connection.cursor(), "library_book")
assert found["one_title"]["unique"] and found["real_pages"]["check"] and found["book_title"]["orders"] == ["ASC", "DESC"], found
with connection.cursor() as cursor:
    cursor.execute("SELECT DISTINCT stock FROM library_book")
    assert cursor.fetchall() == [(3,)]
write_models("    stock = models.TextField(default='many')")
reload_models()
migrate()
with connection.cursor() as cursor:
    cursor.execute("SELECT DISTINCT stock FROM library_book")
    assert cursor.fetchall() == [("3",)]
said = io.StringIO()
call_command("inspectdb", stdout=said)
assert "class LibraryBook(models.Model):" in said.getvalue() and "author = models.ForeignKey(LibraryAuthor" in said.getvalue(), said.getvalue()
assert "unable" not in said.getvalue().lower(), said.getvalue()
call_command("sqlsequencereset", "library", stdout=io.StringIO())
with connection.cursor() as cursor:
    for statement in connection.ops.sequence_reset_sql(__import__("django.core.management.color").core.management.color.no_style(), [Author]):
        cursor.execute(statement)
call_command("migrate", "library", "0001", verbosity=0)
call_command("migrate", "library", "zero", verbosity=0)
call_command("flush", interactive=False, verbosity=0)
assert User.objects.count() == 0
shutil.rmtree(work)
print("all fine")
