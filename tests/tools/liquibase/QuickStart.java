// Liquibase: a changelog of its own change types, status, rollback, tags, checksums, a second schema.
import java.io.StringWriter;
import java.nio.file.*;
import java.sql.*;
import java.util.*;
import liquibase.Contexts;
import liquibase.LabelExpression;
import liquibase.Liquibase;
import liquibase.database.Database;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.resource.DirectoryResourceAccessor;

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

    static final String CHANGES = """
        <databaseChangeLog xmlns="http://www.liquibase.org/xml/ns/dbchangelog" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
            xsi:schemaLocation="http://www.liquibase.org/xml/ns/dbchangelog http://www.liquibase.org/xml/ns/dbchangelog/dbchangelog-latest.xsd">
          <changeSet id="1" author="ada">
            <createTable tableName="person">
              <column name="id" type="int" autoIncrement="true"><constraints primaryKey="true"/></column>
              <column name="name" type="varchar(50)"><constraints nullable="false" unique="true" uniqueConstraintName="person_name"/></column>
              <column name="state" type="char(2)"/>
              <column name="born" type="datetime"/>
              <column name="active" type="boolean" defaultValueBoolean="true"/>
              <column name="picture" type="blob"/>
              <column name="story" type="clob"/>
              <column name="wage" type="decimal(10,2)"/>
            </createTable>
            <createTable tableName="team">
              <column name="id" type="bigint"><constraints primaryKey="true" primaryKeyName="team_key"/></column>
              <column name="lead" type="int"/>
              <column name="title" type="varchar(50)" remarks="as on the door"/>
            </createTable>
          </changeSet>
          <changeSet id="2" author="ada">
            <addForeignKeyConstraint baseTableName="team" baseColumnNames="lead" constraintName="team_lead" referencedTableName="person" referencedColumnNames="id" onDelete="CASCADE"/>
            <createIndex tableName="team" indexName="team_title"><column name="title"/><column name="lead" descending="true"/></createIndex>
            <insert tableName="person"><column name="name" value="Sobel"/><column name="wage" valueNumeric="1.5"/><column name="born" valueDate="1947-06-15T00:00:00"/></insert>
            <createSequence sequenceName="tickets" startValue="100" incrementBy="5"/>
            <createView viewName="names">SELECT name FROM person</createView>
          </changeSet>
          <changeSet id="3" author="ada">
            <preConditions onFail="MARK_RAN"><not><columnExists tableName="person" columnName="country"/></not><tableExists tableName="team"/></preConditions>
            <addColumn tableName="person"><column name="country" type="varchar(2)" defaultValue="GB"><constraints nullable="false"/></column></addColumn>
            <renameColumn tableName="person" oldColumnName="state" newColumnName="county" columnDataType="char(2)"/>
            <modifyDataType tableName="person" columnName="wage" newDataType="decimal(12,3)"/>
            <addNotNullConstraint tableName="team" columnName="title" defaultNullValue="none"/>
            <addUniqueConstraint tableName="team" columnNames="lead,title" constraintName="team_once"/>
          </changeSet>
          <changeSet id="4" author="ada">
            <createTable tableName="gone"><column name="id" type="uuid" defaultValueComputed="gen_random_uuid()"><constraints primaryKey="true"/></column><column name="at" type="timestamp with time zone" defaultValueComputed="now()"/></createTable>
            <sql splitStatements="true">INSERT INTO gone DEFAULT VALUES; INSERT INTO gone DEFAULT VALUES;</sql>
            <update tableName="person"><column name="county" value="NY"/><where>name = 'Sobel'</where></update>
            <rollback><dropTable tableName="gone"/></rollback>
          </changeSet>
        </databaseChangeLog>
        """;

    static Liquibase open(String url, Path dir, String schema) throws Exception {
        Connection c = DriverManager.getConnection(url);
        Database database = DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(c));
        if (schema != null) {
            database.setDefaultSchemaName(schema);
            database.setLiquibaseSchemaName(schema);
        }
        return new Liquibase("changes.xml", new DirectoryResourceAccessor(dir), database);
    }

    public static void main(String[] args) throws Exception {
        java.util.logging.LogManager.getLogManager().reset();
        String url = args[0];
        Path dir = Files.createTempDirectory("liquibase");
        Files.writeString(dir.resolve("changes.xml"), CHANGES);
        Contexts all = new Contexts();
        LabelExpression any = new LabelExpression();
        try (Liquibase runner = open(url, dir, null)) {
            same(4, runner.listUnrunChangeSets(all, any).size());
            StringWriter script = new StringWriter();
            runner.update(all, any, script);
            same(true, script.toString().contains("CREATE TABLE"));
            runner.update(3, all, any);
            runner.tag("three");
            runner.update(all, any);
            runner.update(all, any);
            same(0, runner.listUnrunChangeSets(all, any).size());
            runner.validate();
            same(2L, one(url, "SELECT count(*) FROM gone"));
            same(1L, one(url, "SELECT count(*) FROM person WHERE county = 'NY' AND country = 'GB'"));
            same(100L, one(url, "SELECT nextval('tickets')"));
            runner.rollback("three", all, any);
            same(0L, one(url, "SELECT count(*) FROM information_schema.tables WHERE table_name = 'gone'"));
            runner.update(all, any);
            runner.clearCheckSums();
            runner.update(all, any);
            same(0, runner.listLocks().length);
        }
        try (Connection c = DriverManager.getConnection(url); Statement s = c.createStatement()) {
            s.execute("CREATE SCHEMA copy");
        }
        try (Liquibase runner = open(url, dir, "copy")) {
            runner.update(3, all, any);
        }
        same(9L, one(url, "SELECT count(*) FROM information_schema.columns WHERE table_schema = 'copy' AND table_name = 'person'"));
        try (Liquibase runner = open(url, dir, null)) {
            runner.dropAll();
        }
        same(0L, one(url, "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public' AND table_name IN ('person', 'team', 'gone')"));
        System.out.println("all fine");
    }
}
