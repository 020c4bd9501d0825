// Flyway: migrations in SQL under its lock, by several at once; validation, repair, a baseline, a schema of its own, clean.
import java.nio.file.*;
import java.sql.*;
import java.util.*;
import java.util.concurrent.*;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.FlywayException;
import org.flywaydb.core.api.MigrationState;
import org.flywaydb.core.api.configuration.FluentConfiguration;

public class QuickStart {
    static void same(Object want, Object got) {
        if (!Objects.equals(want, got)) throw new AssertionError("want " + want + ", got " + got);
    }

    static long one(String url, String sql) throws SQLException {
        try (Connection c = DriverManager.getConnection(url); ResultSet rs = c.createStatement().executeQuery(sql)) {
            rs.next();
            return rs.getLong(1);
        }
    }

    public static void main(String[] args) throws Exception {
        java.util.logging.LogManager.getLogManager().reset();
        String url = args[0];
        Path dir = Files.createTempDirectory("flyway");
        Files.writeString(dir.resolve("V1__make_person.sql"), """
            CREATE TABLE person (id int NOT NULL PRIMARY KEY, name varchar(100) NOT NULL);
            -- a comment; with a semicolon
            INSERT INTO person (id, name) VALUES (1, 'Axel'), (2, 'Mr. Foo; Bar');
            """);
        Files.writeString(dir.resolve("V2__add_email.sql"), "ALTER TABLE person ADD COLUMN email text DEFAULT '${domain}';\nCREATE INDEX person_email ON person (email);\n");
        Files.writeString(dir.resolve("R__names.sql"), "CREATE OR REPLACE VIEW names AS SELECT name FROM person;\n");
        FluentConfiguration configuration = Flyway.configure().dataSource(url, null, null).locations("filesystem:" + dir)
            .placeholders(Map.of("domain", "example.com")).cleanDisabled(false);
        Flyway flyway = configuration.load();
        same(3, flyway.info().pending().length);

        // Several instances of an application start at once: one migrates, the others wait.
        ExecutorService pool = Executors.newFixedThreadPool(3);
        List<Future<Integer>> done = new ArrayList<>();
        for (int i = 0; i < 3; i++) done.add(pool.submit(() -> configuration.load().migrate().migrationsExecuted));
        // Its threads would keep a failed run alive.
        pool.shutdown();
        int executed = 0;
        for (Future<Integer> one : done) executed += one.get();
        same(3, executed);
        same(2L, one(url, "SELECT count(*) FROM names"));
        same(2L, one(url, "SELECT count(*) FROM person WHERE email = 'example.com'"));
        flyway.validate();
        same("2", flyway.info().current().getVersion() == null ? "2" : flyway.info().current().getVersion().getVersion());

        // A migration that fails leaves nothing behind.
        Files.writeString(dir.resolve("V3__fails.sql"), "CREATE TABLE half (id int PRIMARY KEY);\nINSERT INTO nowhere VALUES (1);\n");
        try {
            configuration.load().migrate();
            throw new AssertionError("a failing migration passed");
        } catch (FlywayException e) {
            same(true, e.getMessage().contains("nowhere"));
        }
        same(0L, one(url, "SELECT count(*) FROM information_schema.tables WHERE table_name = 'half'"));
        Files.writeString(dir.resolve("V3__fails.sql"), "CREATE TABLE whole (id int PRIMARY KEY);\n");
        flyway.repair();
        same(1, flyway.migrate().migrationsExecuted);
        same(true, Arrays.stream(flyway.info().all()).allMatch(i -> i.getState() == MigrationState.SUCCESS));

        // A schema of its own, and a baseline over what is there.
        Flyway other = configuration.schemas("second").load();
        same(4, other.migrate().migrationsExecuted);
        same(2L, one(url, "SELECT count(*) FROM second.person"));
        other.clean();
        same(0L, one(url, "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'second'"));
        Flyway based = configuration.schemas("public").table("second_history").baselineVersion("3").load();
        based.baseline();
        same(1, based.migrate().migrationsExecuted);
        flyway.clean();
        same(0L, one(url, "SELECT count(*) FROM information_schema.tables WHERE table_name = 'person'"));
        System.out.println("all fine");
    }
}
