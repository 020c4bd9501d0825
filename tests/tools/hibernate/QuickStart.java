// Hibernate: schema creation, update and validation, identifiers by sequence, identity and UUID, associations, HQL with its functions, criteria, locks, batches.
import jakarta.persistence.*;
import java.math.BigDecimal;
import java.time.*;
import java.util.*;
import org.hibernate.LockMode;
import org.hibernate.SessionFactory;
import org.hibernate.annotations.JdbcTypeCode;
import org.hibernate.cfg.Configuration;
import org.hibernate.type.SqlTypes;

public class QuickStart {
    static void same(Object want, Object got) {
        if (!Objects.deepEquals(want, got)) throw new AssertionError("want " + want + ", got " + got);
    }

    public enum Kind { SHORT, LONG }

    @Embeddable
    public static class Address {
        String street;
        String town;
    }

    @Entity(name = "Author")
    @Table(name = "author", indexes = @Index(name = "author_name", columnList = "name"))
    public static class Author {
        @Id @GeneratedValue Long id;
        @Column(nullable = false, length = 80) String name;
        @Embedded Address address;
        @OneToMany(mappedBy = "author", cascade = CascadeType.ALL, orphanRemoval = true) List<Book> books = new ArrayList<>();
        @ElementCollection Set<String> nicknames = new HashSet<>();
        @Version int version;
    }

    @Entity(name = "Book")
    @Table(name = "book", uniqueConstraints = @UniqueConstraint(name = "book_title", columnNames = {"title", "author_id"}))
    public static class Book {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        String title;
        @Enumerated(EnumType.STRING) Kind kind;
        @Column(precision = 10, scale = 2) BigDecimal price;
        LocalDate printed;
        LocalTime hour;
        LocalDateTime local;
        Instant at;
        OffsetDateTime zoned;
        Duration span;
        Boolean sold;
        Double weight;
        byte[] cover;
        @Lob @JdbcTypeCode(SqlTypes.LONGVARCHAR) String text;
        @JdbcTypeCode(SqlTypes.JSON) Map<String, Object> facts;
        @JdbcTypeCode(SqlTypes.ARRAY) String[] words;
        @ManyToOne(fetch = FetchType.LAZY) Author author;
        @ManyToMany Set<Tag> tags = new HashSet<>();
    }

    @Entity(name = "Tag")
    public static class Tag {
        @Id @GeneratedValue(strategy = GenerationType.UUID) UUID id;
        @Column(unique = true) String label;
        Tag() {}
        Tag(String label) { this.label = label; }
    }

    @Entity(name = "Animal") @Inheritance(strategy = InheritanceType.JOINED)
    public static class Animal { @Id Long id; String name; }

    @Entity(name = "Cat")
    public static class Cat extends Animal { int lives; }

    static SessionFactory open(String url, String ddl) {
        Configuration c = new Configuration();
        for (Class<?> k : List.of(Author.class, Book.class, Tag.class, Animal.class, Cat.class)) c.addAnnotatedClass(k);
        c.setProperty("hibernate.connection.url", url);
        c.setProperty("hibernate.hbm2ddl.auto", ddl);
        c.setProperty("hibernate.hbm2ddl.halt_on_error", "true");
        c.setProperty("hibernate.jdbc.batch_size", "20");
        c.setProperty("hibernate.order_inserts", "true");
        c.setProperty("hibernate.type.json_format_mapper", "QuickStart$Json");
        return c.buildSessionFactory();
    }

    /** JSON by hand: the usual mapper is a library of its own. */
    public static class Json implements org.hibernate.type.format.FormatMapper {
        public <T> T fromString(CharSequence text, org.hibernate.type.descriptor.java.JavaType<T> type, org.hibernate.type.descriptor.WrapperOptions options) {
            Map<String, Object> map = new TreeMap<>();
            for (String pair : text.toString().replaceAll("[{}\" \n]", "").split(",")) if (!pair.isEmpty()) map.put(pair.split(":")[0], pair.split(":")[1]);
            return type.getJavaTypeClass().cast(map);
        }
        public <T> String toString(T value, org.hibernate.type.descriptor.java.JavaType<T> type, org.hibernate.type.descriptor.WrapperOptions options) {
            List<String> pairs = new ArrayList<>();
            ((Map<?, ?>) value).forEach((k, v) -> pairs.add("\"" + k + "\": \"" + v + "\""));
            return "{" + String.join(", ", pairs) + "}";
        }
    }

    public static void main(String[] args) throws Exception {
        java.util.logging.LogManager.getLogManager().reset();
        String url = args[0];
        open(url, "create").close();
        open(url, "update").close();
        SessionFactory factory = open(url, "validate");
        OffsetDateTime zoned = OffsetDateTime.of(2026, 11, 20, 8, 30, 0, 123456000, ZoneOffset.UTC);

        factory.inTransaction(s -> {
            Author a = new Author();
            a.name = "Sobel";
            a.address = new Address();
            a.address.town = "London";
            a.nicknames.addAll(List.of("x", "y"));
            Tag sea = new Tag("sea");
            s.persist(sea);
            for (int i = 0; i < 30; i++) {
                Book b = new Book();
                b.title = "Longitude " + i;
                b.kind = i % 2 == 0 ? Kind.SHORT : Kind.LONG;
                b.price = new BigDecimal(i + ".50");
                b.printed = LocalDate.of(1995, 1, 1).plusDays(i);
                b.hour = LocalTime.of(8, 30);
                b.local = LocalDateTime.of(1970, 1, 1, 0, 0);
                b.at = zoned.toInstant();
                b.zoned = zoned;
                b.span = Duration.ofMinutes(90);
                b.sold = i > 10;
                b.weight = i / 4.0;
                b.cover = new byte[] {0, -1};
                b.text = "tëxt";
                b.facts = new TreeMap<>(Map.of("a", "1", "n", "" + i));
                b.words = new String[] {"a", null, "b" + i};
                b.author = a;
                b.tags.add(sea);
                a.books.add(b);
            }
            s.persist(a);
            Cat cat = new Cat();
            cat.id = 1L;
            cat.name = "Tom";
            cat.lives = 9;
            s.persist(cat);
        });
        factory.inSession(s -> {
            Book b = s.createSelectionQuery("from Book b join fetch b.author where b.title = :t", Book.class).setParameter("t", "Longitude 7").getSingleResult();
            same(List.of(new BigDecimal("7.50"), LocalDate.of(1995, 1, 8), LocalTime.of(8, 30), zoned.toInstant(), Duration.ofMinutes(90), Kind.LONG, "Sobel", "London"),
                List.of(b.price, b.printed, b.hour, b.at, b.span, b.kind, b.author.name, b.author.address.town));
            same(zoned.toInstant(), b.zoned.toInstant());
            same(new byte[] {0, -1}, b.cover);
            same(new String[] {"a", null, "b7"}, b.words);
            same(Map.of("a", "1", "n", "7"), b.facts);
            same("tëxt", b.text);
            same(Set.of("x", "y"), b.author.nicknames);
            same(9, s.find(Cat.class, 1L).lives);
            same("Tom", s.createSelectionQuery("select name from Animal a where type(a) = Cat", String.class).getSingleResult());

            // HQL and its functions, paged, grouped, with subqueries and set operations.
            for (String hql : List.of(
                "select count(*) from Book b where trim(both from b.title) like 'Long%' and length(b.title) > 3 and lower(b.title) <> upper(b.title)",
                "select sum(b.price) from Book b where year(b.printed) = 1995 and b.printed < current_date and b.at < current_timestamp + 1 day",
                "select avg(b.weight) from Book b where coalesce(b.text, '') = 'tëxt' and nullif(b.sold, false) is null or b.sold",
                "select count(*) from Book b where timestampdiff(day, b.local, b.zoned) > 1 and b.local + 1 hour > b.local",
                "select count(*) from Book b where timestampadd(month, 2, b.printed) > {d '1995-03-01'} and extract(day from b.printed) > 1",
                "select count(b) from Book b where b.local >= {ts '1970-01-01 00:00:00'} and cast(b.zoned as LocalDate) > cast('1970-01-01' as LocalDate)",
                "select count(*) from Book b where trunc(b.weight) = floor(b.weight) and abs(b.weight) >= 0 and round(b.weight, 1) >= 0 and mod(b.id, 2) = 0",
                "select count(*) from Book b where substring(b.title, 1, 4) = 'Long' and locate('g', b.title) = 4 and replace(b.title, 'L', 'l') like 'l%' and left(b.title, 1) = 'L' and pad(b.title with 20 leading '*') like '*%'",
                "select count(*) from Book b where b.title in ('Longitude 1', 'Longitude 2') and b.kind = LONG and b.author.name ilike 'sob%'",
                "select count(*) from Book b where array_contains(b.words, 'a') and array_length(b.words) = 3",
                "select count(distinct b.kind) from Book b where exists (select 1 from b.tags t where t.label = 'sea') and b.tags is not empty",
                "select listagg(b.title, ',') within group (order by b.title) from Book b where b.price < any (select max(price) from Book)",
                "select count(*) from (select b.kind as k, count(*) as n from Book b group by b.kind having count(*) > 1 union all select b.kind as k, 1L as n from Book b where b.id = 1) q",
                "with cheap as (select b.id as id from Book b where b.price < 5) select count(*) from cheap c",
                "select count(*) from Book b where format(b.printed as 'yyyy/MM') = '1995/01'",
                "select count(*) from Book b where truncate(b.zoned, month) < b.zoned"))
                same(hql, s.createSelectionQuery(hql, Object.class).getSingleResult() == null ? "NULL from " + hql : hql);
            same(List.of("Longitude 29", "Longitude 28"), s.createSelectionQuery("select b.title from Book b order by b.price desc nulls last", String.class).setMaxResults(2).getResultList());
            same(List.of("Longitude 27"), s.createSelectionQuery("select b.title from Book b order by b.price desc offset 2 rows fetch first 1 rows only", String.class).getResultList());
            same(2, s.createSelectionQuery("select b.kind, count(*), rank() over (order by count(*)) from Book b group by b.kind", Object[].class).getResultList().size());
            var cb = s.getCriteriaBuilder();
            var q = cb.createQuery(Book.class);
            var root = q.from(Book.class);
            q.select(root).where(cb.and(cb.between(root.get("price"), new BigDecimal("2"), new BigDecimal("4")), cb.isTrue(root.get("sold")).not())).orderBy(cb.asc(root.get("id")));
            same(2, s.createQuery(q).getResultList().size());
            same(1, ((Number) s.createNativeQuery("select 1 where current_date > :d", Integer.class).setParameter("d", LocalDate.of(2000, 1, 1)).getSingleResult()).intValue());
        });

        // Writing: locks, optimistic versions, bulk statements.
        factory.inTransaction(s -> {
            Author a = s.find(Author.class, 1L, LockMode.PESSIMISTIC_WRITE);
            a.books.removeIf(b -> b.title.endsWith("9"));
            a.name = "Dava Sobel";
            same(27, s.createMutationQuery("update Book b set b.price = b.price + 1, b.sold = true where b.title not like '%9'").executeUpdate());
            s.createSelectionQuery("from Book b where b.id < 5", Book.class).setHibernateLockMode(LockMode.UPGRADE_SKIPLOCKED).setMaxResults(1).getResultList();
            same(1, s.createMutationQuery("insert into Tag (id, label) values (:id, 'time') on conflict (label) do update set label = excluded.label").setParameter("id", UUID.randomUUID()).executeUpdate());
        });
        factory.inTransaction(s -> {
            same(1, s.find(Author.class, 1L).version);
            same(27L, s.createSelectionQuery("select count(*) from Book", Long.class).getSingleResult());
            same(1, s.createMutationQuery("delete from Cat").executeUpdate());
        });
        try {
            factory.inTransaction(s -> s.persist(new Tag("sea")));
            throw new AssertionError("a duplicate was accepted");
        } catch (org.hibernate.exception.ConstraintViolationException e) {
            same("tag_label_key", e.getConstraintName().toLowerCase().startsWith("uk") ? "tag_label_key" : e.getConstraintName());
        }
        factory.getSchemaManager().truncate();
        factory.getSchemaManager().drop(false);
        factory.close();
        System.out.println("all fine");
    }
}
