// One token for a pool: what one connection has written any other sees, under "token", though they do not know of each other. Two URLs: two nodes.
import java.sql.*;
import java.util.concurrent.atomic.AtomicReference;
import org.postgresql.PGConnection;

public class TokenPool implements AutoCloseable {
    interface Use<T> { T of(Connection c) throws SQLException; }

    private final Connection[] connections;
    // The greatest token that any connection has heard of. Those of one cluster sort as texts.
    private final AtomicReference<String> greatest = new AtomicReference<>("");

    TokenPool(String[] urls) throws SQLException {
        connections = new Connection[2];
        for (int i = 0; i < connections.length; i++) {
            String url = urls[i % urls.length];
            String options = "options=-c%20timeball.report_token=on%20-c%20timeball.consistency=token";
            connections[i] = DriverManager.getConnection(url + (url.contains("?") ? "&" : "?") + options);
        }
    }

    // A pool of a library does the same where it gives a connection out, and where it takes it back.
    <T> T use(int number, Use<T> use) throws SQLException {
        Connection c = connections[number];
        PGConnection told = c.unwrap(PGConnection.class);
        String known = greatest.get();
        if (!known.isEmpty() && !known.equals(told.getParameterStatus("timeball.token"))) take(c, known);
        try {
            return use.of(c);
        } finally {
            String heard = told.getParameterStatus("timeball.token");
            if (heard != null) greatest.accumulateAndGet(heard, (a, b) -> a.compareTo(b) < 0 ? b : a);
        }
    }

    static void take(Connection c, String token) throws SQLException {
        try (PreparedStatement s = c.prepareStatement("SELECT set_config('timeball.token', ?, false)")) {
            s.setString(1, token);
            s.execute();
        }
    }

    int update(int number, String sql) throws SQLException {
        return use(number, c -> {
            try (Statement s = c.createStatement()) {
                return s.executeUpdate(sql);
            }
        });
    }

    int select(int number, String sql) throws SQLException {
        return use(number, c -> {
            try (Statement s = c.createStatement(); ResultSet rows = s.executeQuery(sql)) {
                rows.next();
                return rows.getInt(1);
            }
        });
    }

    public void close() throws SQLException {
        for (Connection c : connections) c.close();
    }

    public static void main(String[] urls) throws SQLException {
        try (TokenPool pool = new TokenPool(urls)) {
            pool.update(0, "CREATE TABLE passed_on (id int PRIMARY KEY, v int)");
            pool.update(0, "INSERT INTO passed_on VALUES (1, 0)");
            for (int n = 1; n <= 100; n++) {
                pool.update(n % 2, "UPDATE passed_on SET v = " + n);
                int seen = pool.select(1 - n % 2, "SELECT v FROM passed_on");
                if (seen != n) throw new AssertionError(n + " was written, and " + seen + " is seen");
            }
            pool.update(1, "DROP TABLE passed_on");
            // What was not given out by this cluster is refused, and says why.
            try {
                take(pool.connections[0], pool.greatest.get().substring(1));
                throw new AssertionError("a forged token was taken");
            } catch (SQLException e) {
                if (!"22023".equals(e.getSQLState())) throw e;
            }
        }
        System.out.println("all fine");
    }
}
