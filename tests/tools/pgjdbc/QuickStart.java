// pgjdbc against a node, with its default settings: both protocols, prepared statements, batches, cursors, types, metadata, COPY.
import java.io.ByteArrayOutputStream;
import java.io.StringReader;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.sql.*;
import java.time.*;
import java.util.*;
import org.postgresql.PGConnection;
import org.postgresql.jdbc.PgConnection;
import org.postgresql.util.PGobject;

public class QuickStart {
    static String url;

    interface Work { void run(Connection c) throws Exception; }

    static void same(Object want, Object got) {
        if (!Objects.deepEquals(want, got)) throw new AssertionError("want " + want + ", got " + got);
    }

    static void refused(String state, Work work, Connection c) throws Exception {
        try {
            work.run(c);
        } catch (SQLException e) {
            same(state, e.getSQLState());
            return;
        }
        throw new AssertionError("accepted, wanted SQLSTATE " + state);
    }

    static int failed = 0;

    static void part(String name, String options, Work work) {
        try (Connection c = DriverManager.getConnection(url + options)) {
            work.run(c);
        } catch (Throwable e) {
            failed++;
            System.out.println("FAILED " + name);
            e.printStackTrace(System.out);
        }
    }

    static List<List<String>> rows(ResultSet rs, String... columns) throws SQLException {
        List<List<String>> all = new ArrayList<>();
        while (rs.next()) {
            List<String> row = new ArrayList<>();
            for (String column : columns) row.add(rs.getString(column));
            all.add(row);
        }
        return all;
    }

    static long one(Connection c, String sql) throws SQLException {
        try (Statement s = c.createStatement(); ResultSet rs = s.executeQuery(sql)) {
            rs.next();
            return rs.getLong(1);
        }
    }

    static void statements(Connection c) throws Exception {
        try (Statement s = c.createStatement()) {
            s.execute("CREATE TABLE item (id serial PRIMARY KEY, name text NOT NULL, price numeric(10,2))");
            s.execute("INSERT INTO item (name) VALUES ('x'); UPDATE item SET name = 'y'; SELECT name FROM item");
            same(1, s.getUpdateCount());
            same(true, !s.getMoreResults() && s.getUpdateCount() == 1);
            same(true, s.getMoreResults());
            same(List.of(List.of("y")), rows(s.getResultSet(), "name"));
            s.execute("DELETE FROM item");
        }
        try (PreparedStatement p = c.prepareStatement("SELECT ?::int + 1, ?::text")) {
            for (int i = 0; i < 20; i++) {
                p.setInt(1, i);
                p.setString(2, "s" + i);
                ResultSet rs = p.executeQuery();
                rs.next();
                same(i + 1, rs.getInt(1));
                same("s" + i, rs.getString(2));
            }
        }
        // A prepared statement outlives a change of its table.
        try (PreparedStatement p = c.prepareStatement("SELECT * FROM item WHERE id = ?"); Statement s = c.createStatement()) {
            for (int i = 0; i < 10; i++) {
                p.setInt(1, i);
                p.executeQuery().close();
            }
            s.execute("ALTER TABLE item ADD COLUMN note text");
            p.setInt(1, 1);
            same(4, p.executeQuery().getMetaData().getColumnCount());
        }
        try (PreparedStatement p = c.prepareStatement("INSERT INTO item (name, price) VALUES (?, ?)", Statement.RETURN_GENERATED_KEYS)) {
            p.setString(1, "one");
            p.setBigDecimal(2, new BigDecimal("1.50"));
            same(1, p.executeUpdate());
            ResultSet keys = p.getGeneratedKeys();
            keys.next();
            same(2L, keys.getLong("id"));
            for (int i = 0; i < 100; i++) {
                p.setString(1, "b" + i);
                p.setBigDecimal(2, null);
                p.addBatch();
            }
            int[] counts = p.executeBatch();
            same(100, counts.length);
            same(1, counts[99]);
            keys = p.getGeneratedKeys();
            int n = 0;
            while (keys.next()) n++;
            same(100, n);
        }
        try (Statement s = c.createStatement()) {
            s.addBatch("INSERT INTO item (name) VALUES ('a')");
            s.addBatch("UPDATE item SET price = 3 WHERE name = 'a'");
            s.addBatch("DELETE FROM item WHERE name = 'a'");
            same(new int[] {1, 1, 1}, s.executeBatch());
            s.addBatch("INSERT INTO item (name) VALUES ('a')");
            s.addBatch("INSERT INTO item (name) VALUES (NULL)");
            try {
                s.executeBatch();
                throw new AssertionError("a NULL was accepted");
            } catch (BatchUpdateException e) {
                same("23502", e.getSQLState());
            }
        }
        PreparedStatement p = c.prepareStatement("UPDATE item SET name = ? WHERE id = ?");
        same("int4", p.getParameterMetaData().getParameterTypeName(2));
        p = c.prepareStatement("SELECT id, name, price, id + 1 AS next FROM item");
        ResultSetMetaData m = p.getMetaData();
        same("item", m.getTableName(1));
        same("numeric", m.getColumnTypeName(3));
        same(10, m.getPrecision(3));
        same(2, m.getScale(3));
        same(true, m.isAutoIncrement(1));
        same(ResultSetMetaData.columnNoNulls, m.isNullable(2));
        same("next", m.getColumnLabel(4));
        // An updatable result set writes through its primary key.
        try (Statement s = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE)) {
            ResultSet rs = s.executeQuery("SELECT id, name FROM item WHERE id = 2");
            rs.next();
            rs.updateString("name", "two");
            rs.updateRow();
        }
        same(1L, one(c, "SELECT count(*) FROM item WHERE name = 'two'"));
        // The escapes of JDBC.
        try (Statement s = c.createStatement()) {
            ResultSet rs = s.executeQuery("SELECT {fn ucase('x')}, {fn concat('a', 'b')}, {d '2026-11-20'}, {fn now()}, {fn timestampdiff(SQL_TSI_DAY, {ts '2026-11-18 00:00:00'}, {ts '2026-11-20 00:00:00'})}");
            rs.next();
            same("X", rs.getString(1));
            same("ab", rs.getString(2));
            same("2", rs.getString(5));
        }
    }

    static void types(Connection c) throws Exception {
        try (Statement s = c.createStatement()) {
            s.execute("CREATE TABLE kind (id int PRIMARY KEY, i2 smallint, i8 bigint, f4 real, f8 double precision, n numeric, b boolean,"
                + " t text, v varchar(20), ch char(3), by bytea, d date, ti time, ts timestamp, tz timestamptz, u uuid, j json, jb jsonb,"
                + " ai int[], at text[], iv interval)");
        }
        UUID uuid = UUID.fromString("00112233-4455-6677-8899-aabbccddeeff");
        OffsetDateTime zoned = OffsetDateTime.of(2026, 11, 20, 8, 30, 0, 123456000, ZoneOffset.ofHours(2));
        String columns = "?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?";
        // Past prepareThreshold (5), values travel in binary.
        try (PreparedStatement p = c.prepareStatement("INSERT INTO kind VALUES (" + columns + ")");
             PreparedStatement q = c.prepareStatement("SELECT * FROM kind WHERE id = ?")) {
            for (int i = 0; i < 12; i++) {
                PGobject json = new PGobject();
                json.setType("json");
                json.setValue("{\"a\": 1}");
                PGobject jsonb = new PGobject();
                jsonb.setType("jsonb");
                jsonb.setValue("{\"a\": [1, null]}");
                int k = 1;
                p.setInt(k++, i);
                p.setShort(k++, (short) -3);
                p.setLong(k++, 1L << 40);
                p.setFloat(k++, 1.5f);
                p.setDouble(k++, 2.25);
                p.setBigDecimal(k++, new BigDecimal("12345678901234567890.0123456789"));
                p.setBoolean(k++, true);
                p.setString(k++, "tëxt");
                p.setString(k++, "var");
                p.setString(k++, "c");
                p.setBytes(k++, new byte[] {0, -1, 92, 39});
                p.setObject(k++, LocalDate.of(1912, 6, 23));
                p.setObject(k++, LocalTime.of(8, 30, 1, 5000));
                p.setObject(k++, LocalDateTime.of(2026, 11, 20, 8, 30, 0, 123456000));
                p.setObject(k++, zoned);
                p.setObject(k++, uuid);
                p.setObject(k++, json);
                p.setObject(k++, jsonb);
                p.setArray(k++, c.createArrayOf("int4", new Integer[] {1, null, 3}));
                p.setArray(k++, c.createArrayOf("text", new String[] {"a", null, "q\"x"}));
                p.setObject(k++, new org.postgresql.util.PGInterval("1 mon 2 days 03:00:00"));
                same(1, p.executeUpdate());
                q.setInt(1, i);
                ResultSet rs = q.executeQuery();
                same(true, rs.next());
                same((short) -3, rs.getShort("i2"));
                same(1L << 40, rs.getLong("i8"));
                same(1.5f, rs.getFloat("f4"));
                same(2.25, rs.getDouble("f8"));
                same(new BigDecimal("12345678901234567890.0123456789"), rs.getBigDecimal("n"));
                same(true, rs.getBoolean("b"));
                same("tëxt", rs.getString("t"));
                same("c  ", rs.getString("ch"));
                same(new byte[] {0, -1, 92, 39}, rs.getBytes("by"));
                same(LocalDate.of(1912, 6, 23), rs.getObject("d", LocalDate.class));
                same(LocalTime.of(8, 30, 1, 5000), rs.getObject("ti", LocalTime.class));
                same(LocalDateTime.of(2026, 11, 20, 8, 30, 0, 123456000), rs.getObject("ts", LocalDateTime.class));
                same(zoned.toInstant(), rs.getObject("tz", OffsetDateTime.class).toInstant());
                same(zoned.toInstant(), rs.getTimestamp("tz").toInstant());
                same(uuid, rs.getObject("u"));
                same("{\"a\": [1, null]}", rs.getString("jb"));
                same(new Integer[] {1, null, 3}, rs.getArray("ai").getArray());
                same(new String[] {"a", null, "q\"x"}, rs.getArray("at").getArray());
                same(new org.postgresql.util.PGInterval("1 mon 2 days 03:00:00"), rs.getObject("iv"));
            }
        }
        try (PreparedStatement p = c.prepareStatement("SELECT count(*) FROM kind WHERE id = ANY (?)")) {
            p.setArray(1, c.createArrayOf("int4", new Integer[] {1, 2, 99}));
            ResultSet rs = p.executeQuery();
            rs.next();
            same(2L, rs.getLong(1));
        }
        try (PreparedStatement p = c.prepareStatement("INSERT INTO kind (id, tz, ts) VALUES (?, ?, ?)")) {
            Timestamp t = Timestamp.from(Instant.parse("2026-03-29T01:30:00Z"));
            for (int i = 100; i < 110; i++) {
                p.setInt(1, i);
                p.setTimestamp(2, t);
                p.setNull(3, Types.TIMESTAMP);
                p.executeUpdate();
            }
            same(10L, one(c, "SELECT count(*) FROM kind WHERE tz = '2026-03-29 01:30:00+00' AND ts IS NULL"));
        }
        // getArray of rows, a type's own array through the catalog
        try (ResultSet rs = c.createStatement().executeQuery("SELECT array_agg(u), array_agg(tz) FROM kind WHERE id < 2")) {
            rs.next();
            same(uuid, ((Object[]) rs.getArray(1).getArray())[0]);
        }
    }

    static void transactions(Connection c) throws Exception {
        same(Connection.TRANSACTION_SERIALIZABLE, c.getTransactionIsolation());
        try (Statement s = c.createStatement()) {
            s.execute("CREATE TABLE account (id int PRIMARY KEY, balance int)");
        }
        for (int level : new int[] {Connection.TRANSACTION_READ_COMMITTED, Connection.TRANSACTION_REPEATABLE_READ, Connection.TRANSACTION_SERIALIZABLE}) {
            c.setTransactionIsolation(level);
            same(level, c.getTransactionIsolation());
            c.setAutoCommit(false);
            try (Statement s = c.createStatement()) {
                s.executeUpdate("INSERT INTO account VALUES (1, 10)");
                Savepoint named = c.setSavepoint("before");
                refused("23505", x -> s.executeUpdate("INSERT INTO account VALUES (1, 20)"), c);
                refused("25P02", x -> s.executeQuery("SELECT 1"), c);
                c.rollback(named);
                Savepoint unnamed = c.setSavepoint();
                s.executeUpdate("INSERT INTO account VALUES (2, 20)");
                c.releaseSavepoint(unnamed);
            }
            c.commit();
            same(2L, one(c, "SELECT count(*) FROM account"));
            try (Statement s = c.createStatement()) {
                s.executeUpdate("DELETE FROM account");
            }
            c.rollback();
            same(2L, one(c, "SELECT count(*) FROM account"));
            c.createStatement().executeUpdate("DELETE FROM account");
            c.commit();
            c.setAutoCommit(true);
        }
        c.setReadOnly(true);
        c.setAutoCommit(false);
        refused("25006", x -> c.createStatement().executeUpdate("DELETE FROM account"), c);
        c.rollback();
        c.setAutoCommit(true);
        c.setReadOnly(false);
        same(true, c.isValid(5));
        c.setSchema("public");
        same("public", c.getSchema());
        same("postgres", c.getCatalog());
        c.setClientInfo("ApplicationName", "billing");
        same("billing", c.getClientInfo("ApplicationName"));
        c.setNetworkTimeout(Runnable::run, 60000);
        // A write conflict reaches the program as 40001.
        c.createStatement().executeUpdate("INSERT INTO account VALUES (1, 0)");
        try (Connection other = DriverManager.getConnection(url)) {
            c.setAutoCommit(false);
            one(c, "SELECT balance FROM account WHERE id = 1");
            other.createStatement().executeUpdate("UPDATE account SET balance = 5 WHERE id = 1");
            refused("40001", x -> {
                c.createStatement().executeUpdate("UPDATE account SET balance = balance + 1 WHERE id = 1");
                c.commit();
            }, c);
            c.rollback();
            c.setAutoCommit(true);
        }
    }

    static void cursors(Connection c) throws Exception {
        try (Statement s = c.createStatement()) {
            s.execute("CREATE TABLE many (id int PRIMARY KEY)");
            s.execute("INSERT INTO many SELECT g FROM generate_series(1, 1000) g");
        }
        c.setAutoCommit(false);
        try (Statement s = c.createStatement(); Statement inner = c.createStatement()) {
            s.setFetchSize(64);
            ResultSet rs = s.executeQuery("SELECT id FROM many ORDER BY id");
            int n = 0;
            while (rs.next()) {
                same(++n, rs.getInt(1));
                if (n % 100 == 0) same(1000L, one(c, "SELECT count(*) FROM many"));
            }
            same(1000, n);
        }
        try (PreparedStatement p = c.prepareStatement("SELECT id FROM many WHERE id > ? ORDER BY id")) {
            p.setFetchSize(10);
            for (int i = 0; i < 10; i++) {
                p.setInt(1, 1000 - 25);
                ResultSet rs = p.executeQuery();
                int n = 0;
                while (rs.next()) n++;
                same(25, n);
            }
            p.setMaxRows(7);
            ResultSet rs = p.executeQuery();
            int n = 0;
            while (rs.next()) n++;
            same(7, n);
        }
        c.commit();
        c.setAutoCommit(true);
        try (Statement s = c.createStatement()) {
            // The driver sends one cancel request after the second, and where the statement came later than that, none that counts.
            s.setQueryTimeout(1);
            for (boolean cancelled = false; !cancelled;) {
                try {
                    s.executeQuery("SELECT pg_sleep(10)");
                } catch (SQLException e) {
                    same("57014", e.getSQLState());
                    cancelled = true;
                }
            }
        }
        same(1L, one(c, "SELECT 1"));
        try (Statement s = c.createStatement()) {
            Thread cancel = new Thread(() -> {
                try {
                    // Statement.cancel sends one request, which may come before the statement does; this sends one each time.
                    while (true) {
                        c.unwrap(PgConnection.class).cancelQuery();
                        Thread.sleep(20); // poll: the statement is under way
                    }
                } catch (InterruptedException | SQLException e) {
                    // the statement has ended
                }
            });
            cancel.start();
            refused("57014", x -> s.executeQuery("SELECT pg_sleep(600)"), c);
            cancel.interrupt();
            cancel.join();
        }
    }

    static void metadata(Connection c) throws Exception {
        try (Statement s = c.createStatement()) {
            s.execute("CREATE TABLE parent (a int, b varchar(30) NOT NULL, note text DEFAULT 'none', PRIMARY KEY (b, a))");
            s.execute("CREATE TABLE child (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, pa int, pb varchar(30), amount numeric(8,3), tags text[],"
                + " seen timestamptz, CONSTRAINT child_parent FOREIGN KEY (pb, pa) REFERENCES parent (b, a) ON DELETE CASCADE ON UPDATE RESTRICT)");
            s.execute("CREATE UNIQUE INDEX child_amount ON child (amount, pa DESC)");
            s.execute("COMMENT ON TABLE child IS 'children'");
            s.execute("COMMENT ON COLUMN child.pa IS 'first half'");
            s.execute("CREATE VIEW grown AS SELECT id, amount FROM child");
        }
        DatabaseMetaData m = c.getMetaData();
        same("PostgreSQL", m.getDatabaseProductName());
        same(true, m.getDatabaseMajorVersion() >= 15);
        same(List.of(List.of("child", "TABLE", "children"), List.of("parent", "TABLE", "")).toString().replace(", ]", ", null]"),
            rows(m.getTables(null, "public", "%", new String[] {"TABLE"}), "TABLE_NAME", "TABLE_TYPE", "REMARKS").stream()
                .filter(r -> r.get(0).equals("child") || r.get(0).equals("parent")).toList().toString());
        same(List.of(List.of("grown")), rows(m.getTables(null, null, "gro%", new String[] {"VIEW"}), "TABLE_NAME"));
        same(true, rows(m.getTables(null, null, null, null), "TABLE_NAME").size() > 20);
        same(true, rows(m.getSchemas(), "TABLE_SCHEM").contains(List.of("public")));
        same(List.of(List.of("postgres")), rows(m.getCatalogs(), "TABLE_CAT").stream().filter(r -> r.get(0).equals("postgres")).toList());
        same("[[id, -5, int8, NO, YES, null], [pa, 4, int4, YES, NO, null], [pb, 12, varchar, YES, NO, null], [amount, 2, numeric, YES, NO, null],"
            + " [tags, 2003, _text, YES, NO, null], [seen, 93, timestamptz, YES, NO, null]]",
            rows(m.getColumns(null, "public", "child", "%"), "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "IS_NULLABLE", "IS_AUTOINCREMENT", "COLUMN_DEF").toString());
        same("[[30, null], [8, 3]]", rows(m.getColumns(null, "public", "child", "%"), "COLUMN_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS").stream()
            .filter(r -> r.get(0).equals("pb") || r.get(0).equals("amount"))
            .map(r -> r.get(0).equals("pb") ? Arrays.asList(r.get(1), null) : r.subList(1, 3)).toList().toString());
        same("[['none'::text]]", rows(m.getColumns(null, "public", "parent", "note"), "COLUMN_DEF").toString());
        same("[[first half]]", rows(m.getColumns(null, "public", "child", "pa"), "REMARKS").toString());
        same("[[b, 1, parent_pkey], [a, 2, parent_pkey]]", rows(m.getPrimaryKeys(null, "public", "parent"), "COLUMN_NAME", "KEY_SEQ", "PK_NAME").toString());
        same("[[f, child_amount, 1, amount, A], [f, child_amount, 2, pa, D], [f, child_pkey, 1, id, A]]",
            rows(m.getIndexInfo(null, "public", "child", false, false), "NON_UNIQUE", "INDEX_NAME", "ORDINAL_POSITION", "COLUMN_NAME", "ASC_OR_DESC").toString());
        String links = "[[parent, b, child, pb, 1, 1, 0, child_parent, parent_pkey], [parent, a, child, pa, 2, 1, 0, child_parent, parent_pkey]]";
        String[] link = {"PKTABLE_NAME", "PKCOLUMN_NAME", "FKTABLE_NAME", "FKCOLUMN_NAME", "KEY_SEQ", "UPDATE_RULE", "DELETE_RULE", "FK_NAME", "PK_NAME"};
        same(links, rows(m.getImportedKeys(null, "public", "child"), link).toString());
        same(links, rows(m.getExportedKeys(null, "public", "parent"), link).toString());
        same(links, rows(m.getCrossReference(null, "public", "parent", null, "public", "child"), link).toString());
        same(true, rows(m.getTypeInfo(), "TYPE_NAME", "DATA_TYPE").contains(List.of("jsonb", "1111")));
        same("[[id, 2, -5]]", rows(m.getBestRowIdentifier(null, "public", "child", DatabaseMetaData.bestRowSession, false), "COLUMN_NAME", "SCOPE", "DATA_TYPE").toString());
        m.getTableTypes().close();
        m.getProcedures(null, null, "%").close();
        m.getProcedureColumns(null, null, "%", "%").close();
        m.getFunctions(null, null, "lower").close();
        m.getFunctionColumns(null, null, "lower", "%").close();
        m.getUDTs(null, null, "%", null).close();
        m.getTablePrivileges(null, "public", "child").close();
        m.getColumnPrivileges(null, "public", "child", "%").close();
        m.getVersionColumns(null, "public", "child").close();
        m.getClientInfoProperties().close();
        same(true, m.getMaxConnections() > 0);
        same(63, m.getMaxTableNameLength());
        same(true, m.getSQLKeywords().length() > 100);
        m.getNumericFunctions();
        m.getStringFunctions();
        m.getUserName();
    }

    static void copies(Connection c) throws Exception {
        try (Statement s = c.createStatement()) {
            s.execute("CREATE TABLE loaded (id int PRIMARY KEY, s text)");
        }
        var copy = c.unwrap(PGConnection.class).getCopyAPI();
        same(3L, copy.copyIn("COPY loaded FROM STDIN WITH (FORMAT csv, HEADER)", new StringReader("id,s\n1,one\n2,\"t,wo\"\n3,\n")));
        var out = new ByteArrayOutputStream();
        same(3L, copy.copyOut("COPY loaded TO STDOUT", out));
        same("1\tone\n2\tt,wo\n3\t\\N\n", out.toString(StandardCharsets.UTF_8));
        refused("22P02", x -> copy.copyIn("COPY loaded FROM STDIN", new StringReader("x\tone\n")), c);
        same(3L, one(c, "SELECT count(*) FROM loaded"));
        refused("0A000", x -> c.createStatement().execute("LISTEN channel"), c);
        same(1L, one(c, "SELECT 1"));
    }

    public static void main(String[] args) {
        url = args[0];
        part("statements", "", QuickStart::statements);
        part("types", "", QuickStart::types);
        part("types in binary from the first", "&prepareThreshold=-1&binaryTransfer=true", c -> {
            c.createStatement().execute("DROP TABLE kind");
            types(c);
        });
        part("types in simple queries", "&preferQueryMode=simple", c -> {
            c.createStatement().execute("DROP TABLE kind");
            types(c);
        });
        part("transactions", "", QuickStart::transactions);
        part("savepoints by the driver", "&autosave=always&cleanupSavepoints=true", c -> {
            c.setAutoCommit(false);
            one(c, "SELECT 1");
            refused("42P01", x -> one(c, "SELECT 1 FROM nowhere"), c);
            same(1L, one(c, "SELECT 1"));
            c.commit();
        });
        part("cursors", "", QuickStart::cursors);
        part("metadata", "", QuickStart::metadata);
        part("copies", "", QuickStart::copies);
        part("batches as one INSERT", "&reWriteBatchedInserts=true", c -> {
            c.createStatement().execute("CREATE TABLE rewritten (id int PRIMARY KEY, s text)");
            try (PreparedStatement p = c.prepareStatement("INSERT INTO rewritten VALUES (?, ?)")) {
                for (int i = 0; i < 300; i++) {
                    p.setInt(1, i);
                    p.setString(2, "s");
                    p.addBatch();
                }
                same(300, p.executeBatch().length);
            }
            same(300L, one(c, "SELECT count(*) FROM rewritten"));
        });
        if (failed > 0) System.exit(1);
        System.out.println("all fine");
    }
}
