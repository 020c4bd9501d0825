//! The tools, and how each is installed and started.

use crate::run::root;
use std::path::PathBuf;

/// How a tool comes onto the machine, and so how its quick start is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `quickstart.py`; the packages of `tests/tools/requirements.txt` in one virtual environment.
    Python,
    /// `quickstart.js` beside a `package.json`.
    Node,
    /// `QuickStart.java` beside a `pom.xml`.
    Java,
    /// `main.go` beside a `go.mod`.
    Go,
    /// `quickstart.sh`, which uses programs of the system.
    Program,
}

/// One tool; its quick start is the folder of its name below `tests/tools`.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// Its name, and its folder's.
    pub name: &'static str,
    /// How it is installed.
    pub kind: Kind,
    /// The package whose pin is its version; for a program the program, all others that it needs, and Debian's package of them.
    pub package: &'static [&'static str],
    /// What its quick start does, in the table of `docs/tools.md`.
    pub does: &'static str,
}

/// Every tool, in the order in which they run: the cheap ones first.
pub const TOOLS: &[Tool] = &[
    tool(
        "psql",
        Kind::Program,
        &["psql", "postgresql-client"],
        "every backslash command that asks the server, `\\copy`, scripts",
    ),
    tool(
        "pg_dump",
        Kind::Program,
        &["pg_dump", "psql", "postgresql-client"],
        "a dump restored into another database and dumped again: the same text; as an archive, by its parts, as INSERTs",
    ),
    tool(
        "pgbench",
        Kind::Program,
        &["pgbench", "psql", "postgresql-contrib"],
        "its built-in scripts in its three protocols, a script of one's own",
    ),
    tool("sysbench", Kind::Program, &["sysbench", "sysbench"], "its OLTP and select scripts"),
    tool(
        "psycopg",
        Kind::Python,
        &["psycopg[binary]"],
        "types in text and binary, automatic prepare, COPY, pipelines, savepoints",
    ),
    tool(
        "asyncpg",
        Kind::Python,
        &["asyncpg"],
        "its start-up, types, cursors, pool, copies; SQLAlchemy's async engine",
    ),
    tool("sqlalchemy", Kind::Python, &["SQLAlchemy"], "`create_all`, ORM, reflection"),
    tool("alembic", Kind::Python, &["alembic"], "every usual type, a migration that it writes itself and its way back"),
    tool(
        "django",
        Kind::Python,
        &["Django"],
        "its own applications' migrations, an application whose models change, the ORM",
    ),
    tool("node-postgres", Kind::Node, &["pg"], "pool, parameters, types, cursors, cancel, transactions"),
    tool("knex", Kind::Node, &["knex"], "migrations and their lock, queries, upserts, transactions, streams"),
    tool(
        "drizzle",
        Kind::Node,
        &["drizzle-orm"],
        "its migrator, relations, upserts, prepared statements, transactions",
    ),
    tool(
        "sequelize",
        Kind::Node,
        &["sequelize"],
        "sync and alter, associations, upserts, transactions, its query interface",
    ),
    tool(
        "typeorm",
        Kind::Node,
        &["typeorm"],
        "schema synchronisation and its difference, migrations, relations, trees, locks",
    ),
    tool("pgx", Kind::Go, &["github.com/jackc/pgx/v5"], "prepared in binary, batches, transactions, copies"),
    tool(
        "lib-pq",
        Kind::Go,
        &["github.com/lib/pq"],
        "`database/sql`: statements, isolation levels, arrays, COPY, cancel",
    ),
    tool("gorm", Kind::Go, &["gorm.io/gorm"], "AutoMigrate there and back, associations, upserts, locks, its migrator"),
    tool(
        "golang-migrate",
        Kind::Go,
        &["github.com/golang-migrate/migrate/v4"],
        "up, down, three at once under its lock, a failure; both drivers",
    ),
    tool("pgjdbc", Kind::Java, &["postgresql"], "both protocols, batches, cursors, all types, its metadata, COPY"),
    tool(
        "flyway",
        Kind::Java,
        &["flyway-core"],
        "migrations, three at once under its lock, a failure, repair, baseline, clean",
    ),
    tool(
        "liquibase",
        Kind::Java,
        &["liquibase-core"],
        "its change types, tags, rollback, preconditions, a second schema, dropAll",
    ),
    tool(
        "hibernate",
        Kind::Java,
        &["hibernate-core"],
        "schema creation and validation, associations, HQL and its functions, locks",
    ),
    tool(
        "db-scheduler",
        Kind::Java,
        &["db-scheduler"],
        "a job queue: three schedulers with SKIP LOCKED, each job once",
    ),
];

/// What was looked at and has no quick start, and why.
pub const LEFT_OUT: &[(&str, &str)] = &[
    ("prisma", "its command line downloads its engines from a host of its own, not from npm"),
    ("go-tpc", "the Go module proxy does not serve it"),
    (
        "pg-boss, graphile-worker, procrastinate, River",
        "they need triggers, functions in PL/pgSQL, enums or LISTEN, which are not there",
    ),
];

const fn tool(name: &'static str, kind: Kind, package: &'static [&'static str], does: &'static str) -> Tool {
    Tool { name, kind, package, does }
}

impl Tool {
    /// Its files.
    pub fn sources(&self) -> PathBuf {
        root().join("tests/tools").join(self.name)
    }

    /// The file that pins its versions; a program has none.
    pub fn manifest(&self) -> Option<PathBuf> {
        match self.kind {
            Kind::Python => Some(root().join("tests/tools/requirements.txt")),
            Kind::Node => Some(self.sources().join("package.json")),
            Kind::Java => Some(self.sources().join("pom.xml")),
            Kind::Go => Some(self.sources().join("go.mod")),
            Kind::Program => None,
        }
    }

    /// Its version: the pin in its manifest, or what the program says of itself.
    pub fn version(&self) -> String {
        let package = self.package[0];
        let text = match self.manifest() {
            Some(path) => std::fs::read_to_string(path).unwrap_or_default(),
            None => std::process::Command::new(package)
                .arg("--version")
                .output()
                .map(|o| String::from_utf8_lossy(&o.stdout).into_owned())
                .unwrap_or_default(),
        };
        let quoted = [format!("\"{package}\":"), format!("<artifactId>{package}</artifactId>"), format!("{package}==")];
        // The last one: a pom may have the name of its only dependency.
        let after = quoted.iter().find_map(|mark| text.rsplit_once(mark.as_str())).map(|(_, after)| after);
        let after =
            after.or_else(|| text.split_once(&format!("{package} ")).map(|(_, after)| after)).unwrap_or_default();
        let version = after.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '-'));
        let bare = version.map(|w| w.trim_start_matches('v')).find(|w| w.starts_with(|c: char| c.is_ascii_digit()));
        bare.unwrap_or("unknown").into()
    }
}
