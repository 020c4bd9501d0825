//! A database without a session: tables made from a small DDL, statements planned and run one by one on the memory store.

use parking_lot::Mutex;
use sql::catalog::{
    Check, Column, Database, ForeignKey, Identity, Index, IndexColumn, Oid, ROW_ID_COLUMN, ReferentialAction, Relation,
    Schema, Table,
};
use sql::context::{CatalogView, EvalSettings, MemoryBudget, Sequences, StatementContext};
use sql::plan::{Execution, Plan, PlanContext, RowInserter, prepare, row_inserter};
use sql::transaction::memory::MemoryKv;
use sql::transaction::{BeginOptions, Interrupt, Kv, TxnRef};
use sql::types::{Row, SqlType, Value};
use sql::work::Pace;
use sql::{Field, SqlError, SqlState};
use sqlparser::ast::{self, ColumnOption, Statement, TableConstraint};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Default)]
pub struct Tables {
    tables: Mutex<BTreeMap<Oid, Arc<Relation>>>,
    /// How often a name was looked up.
    pub looked_up: AtomicUsize,
}

impl Tables {
    pub fn table(&self, name: &str) -> Option<Table> {
        self.tables.lock().values().find_map(|relation| match relation.as_ref() {
            Relation::Table(table) if table.name == name => Some(table.clone()),
            _ => None,
        })
    }

    fn put(&self, table: Table) {
        self.tables.lock().insert(table.id, Arc::new(Relation::Table(table)));
    }
}

impl CatalogView for Tables {
    fn relation(&self, _: Option<&str>, name: &str) -> Result<Option<Arc<Relation>>, SqlError> {
        self.looked_up.fetch_add(1, Ordering::Relaxed);
        Ok(self.table(name).map(|table| Arc::new(Relation::Table(table))))
    }
    fn relation_by_id(&self, id: u32) -> Result<Option<Arc<Relation>>, SqlError> {
        Ok(self.tables.lock().get(&id).cloned())
    }
    fn relations(&self) -> Result<Vec<Arc<Relation>>, SqlError> {
        Ok(self.tables.lock().values().cloned().collect())
    }
    fn schemas(&self) -> Result<Vec<Schema>, SqlError> {
        Ok(vec![Schema { id: 2200, database: 1, name: "public".into() }])
    }
    fn databases(&self) -> Result<Vec<Database>, SqlError> {
        Ok(vec![self.current_database()])
    }
    fn current_database(&self) -> Database {
        Database { id: 1, name: "postgres".into(), extensions: Vec::new() }
    }
}

#[derive(Default)]
struct Counters(Mutex<BTreeMap<u32, i64>>);

impl Sequences for Counters {
    fn next(&self, sequence: u32) -> Result<i64, SqlError> {
        let mut counters = self.0.lock();
        let counter = counters.entry(sequence).or_insert(0);
        *counter += 1;
        Ok(*counter)
    }
    fn current(&self, sequence: u32) -> Result<i64, SqlError> {
        Ok(self.0.lock().get(&sequence).copied().unwrap_or(0))
    }
    fn last(&self) -> Result<i64, SqlError> {
        Ok(0)
    }
    fn set(&self, sequence: u32, value: i64, _: bool) -> Result<i64, SqlError> {
        self.0.lock().insert(sequence, value);
        Ok(value)
    }
}

pub struct World {
    pub kv: Arc<MemoryKv>,
    pub catalog: Arc<Tables>,
    sequences: Arc<Counters>,
    next: Mutex<Oid>,
    pub hash_seed: u64,
}

/// What a statement gave.
#[derive(Debug)]
pub struct Answer {
    pub tag: String,
    pub fields: Vec<Field>,
    pub rows: Vec<Row>,
}

impl Answer {
    /// Rows as lines, values between bars.
    pub fn lines(&self) -> Vec<String> {
        let settings = EvalSettings::default();
        self.rows
            .iter()
            .map(|row| {
                let values: Vec<String> = row
                    .iter()
                    .zip(&self.fields)
                    .map(
                        |(value, field)| {
                            if value.is_null() { "NULL".into() } else { value.to_text(&field.ty, &settings) }
                        },
                    )
                    .collect();
                values.join("|")
            })
            .collect()
    }
}

impl World {
    pub fn new() -> Self {
        World {
            kv: Arc::new(MemoryKv::new()),
            catalog: Arc::default(),
            sequences: Arc::default(),
            next: Mutex::new(20_000),
            hash_seed: 0,
        }
    }

    fn oid(&self) -> Oid {
        let mut next = self.next.lock();
        *next += 1;
        *next
    }

    pub fn begin(&self) -> TxnRef {
        TxnRef::new(self.kv.begin(&BeginOptions::default()).unwrap())
    }

    pub fn plan_context(&self) -> PlanContext {
        PlanContext {
            catalog: self.catalog.clone(),
            kv: self.kv.clone(),
            statistics: Arc::default(),
            settings: Arc::new(EvalSettings::default()),
            parameter_hints: Vec::new(),
            pace: Pace::default(),
            overriding: None,
            inference: None,
            locates: false,
            keyed: Arc::default(),
            inside: false,
            given: Arc::default(),
            values: None,
        }
    }

    pub fn context(&self, txn: &TxnRef, params: Vec<Value>) -> Arc<StatementContext> {
        Arc::new(StatementContext {
            runtime_filters: Default::default(),
            meters: None,
            formats: Vec::new(),
            parts: None,
            deferred: Default::default(),
            claims: None,
            statement: self.statement(txn, params),
        })
    }

    fn statement(&self, txn: &TxnRef, params: Vec<Value>) -> sql::context::Statement {
        sql::context::Statement {
            lists: Default::default(),
            txn: txn.clone(),
            catalog: self.catalog.clone(),
            system: &sql::session::WholeSystem,
            kv: self.kv.clone(),
            sequences: self.sequences.clone(),
            params,
            settings: Arc::new(EvalSettings::default()),
            transaction_us: 0,
            statement_us: 0,
            interrupt: Interrupt::default(),
            deadline: Default::default(),
            memory: Arc::new(MemoryBudget::new(64 << 20)),
            hash_seed: self.hash_seed,
            backend: sql::Backend::alone(),
            modes: Default::default(),
        }
    }

    pub fn prepare(&self, text: &str) -> Result<Arc<dyn Plan>, SqlError> {
        let statement = parse(text);
        prepare(&statement, text, &self.plan_context())
    }

    /// Runs a statement in a transaction of its own.
    pub fn run(&self, text: &str) -> Result<Answer, SqlError> {
        self.run_with(text, Vec::new())
    }

    pub fn run_with(&self, text: &str, params: Vec<Value>) -> Result<Answer, SqlError> {
        let txn = self.begin();
        let answer = self.run_in(&txn, text, params)?;
        txn.with(|txn| txn.commit())?;
        Ok(answer)
    }

    pub fn run_in(&self, txn: &TxnRef, text: &str, params: Vec<Value>) -> Result<Answer, SqlError> {
        if let Some(done) = self.define(text)? {
            return Ok(done);
        }
        let plan = self.prepare(text)?;
        self.execute(txn, plan.as_ref(), params)
    }

    pub fn execute(&self, txn: &TxnRef, plan: &dyn Plan, params: Vec<Value>) -> Result<Answer, SqlError> {
        let context = self.context(txn, params);
        let fields = plan.fields().to_vec();
        match plan.execute(&context)? {
            Execution::Done { tag, rows } => Ok(Answer { tag, fields, rows }),
            Execution::Rows(mut source) => {
                let mut rows = Vec::new();
                loop {
                    let more = source.next(7)?;
                    if more.is_empty() {
                        break;
                    }
                    rows.extend(more);
                }
                Ok(Answer { tag: format!("SELECT {}", rows.len()), fields, rows })
            }
        }
    }

    #[allow(dead_code)] // for benches/direct.rs
    pub fn inserter(&self, table: &str) -> Box<dyn RowInserter> {
        let table = self.catalog.table(table).unwrap();
        let columns: Vec<u16> = table.columns.iter().map(|column| column.id).collect();
        row_inserter(&Arc::new(Relation::Table(table)), &columns, &self.plan_context()).unwrap()
    }

    /// CREATE TABLE and CREATE INDEX (before there are rows).
    fn define(&self, text: &str) -> Result<Option<Answer>, SqlError> {
        let tag = match parse(text) {
            Statement::CreateTable(create) => {
                self.create_table(&create)?;
                "CREATE TABLE"
            }
            Statement::CreateIndex(create) => {
                let name = create.table_name.to_string();
                let mut table = self.catalog.table(&name).unwrap();
                let columns = create
                    .columns
                    .iter()
                    .map(|column| {
                        let descending = column.column.options.asc == Some(false);
                        match &column.column.expr {
                            ast::Expr::Identifier(name) => {
                                IndexColumn::column(column_id(&table, &name.to_string()), descending)
                            }
                            expr => IndexColumn {
                                column: 0,
                                descending,
                                nulls_first: None,
                                expression: Some(expr.to_string()),
                                collation: None,
                            },
                        }
                    })
                    .collect();
                let name = create.name.map(|name| name.to_string()).unwrap_or_default();
                let predicate = create.predicate.map(|predicate| predicate.to_string());
                let index =
                    Index { predicate, constraint: false, unique: create.unique, ..self.index(&name, Vec::new()) };
                table.indexes.push(Index { columns, ..index });
                self.catalog.put(table);
                "CREATE INDEX"
            }
            _ => return Ok(None),
        };
        Ok(Some(Answer { tag: tag.into(), fields: Vec::new(), rows: Vec::new() }))
    }

    fn create_table(&self, create: &ast::CreateTable) -> Result<(), SqlError> {
        let name = create.name.to_string();
        let id = self.oid();
        let mut table = Table {
            id,
            database: 1,
            schema: 2200,
            name: name.clone(),
            columns: Vec::new(),
            primary: self.index(&format!("{name}_pkey"), vec![ROW_ID_COLUMN]),
            has_primary_key: false,
            indexes: Vec::new(),
            building: None,
            pending: None,
            filling: None,
            gated: false,
            maker: 0,
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            referenced_by: Vec::new(),
            next_column: 1,
            comments: Default::default(),
            retention: None,
            version: 1,
        };
        for (i, column) in create.columns.iter().enumerate() {
            table.columns.push(Column {
                id: i as u16 + 1,
                name: column.name.value.clone(),
                ty: SqlType::from_ast(&column.data_type)?,
                nullable: true,
                default: None,
                missing: None,
                identity: None,
                owned_sequence: None,
                generated: None,
                stored: None,
                collation: None,
            });
        }
        for (i, column) in create.columns.iter().enumerate() {
            for option in &column.options {
                self.column_option(&mut table, i, &option.option);
            }
        }
        for constraint in &create.constraints {
            self.table_constraint(&mut table, constraint);
        }
        for key in &mut table.foreign_keys {
            if key.referenced_table == 0 {
                key.referenced_table = id;
            }
            if key.referenced_table == id {
                if !table.referenced_by.contains(&id) {
                    table.referenced_by.push(id);
                }
                continue;
            }
            let relation = self.catalog.relation_by_id(key.referenced_table)?.unwrap();
            let Relation::Table(mut parent) = relation.as_ref().clone() else { panic!() };
            if !parent.referenced_by.contains(&id) {
                parent.referenced_by.push(id);
            }
            self.catalog.put(parent);
        }
        self.catalog.put(table);
        Ok(())
    }

    fn index(&self, name: &str, columns: Vec<u16>) -> Index {
        let columns = columns.into_iter().map(|column| IndexColumn::column(column, false)).collect();
        Index {
            id: self.oid(),
            name: name.into(),
            columns,
            unique: true,
            constraint: true,
            include: Vec::new(),
            predicate: None,
        }
    }

    fn set_primary(&self, table: &mut Table, columns: Vec<u16>) {
        for column in &mut table.columns {
            column.nullable &= !columns.contains(&column.id);
        }
        table.primary = self.index(&format!("{}_pkey", table.name), columns);
        table.has_primary_key = true;
    }

    fn column_option(&self, table: &mut Table, at: usize, option: &ColumnOption) {
        let id = at as u16 + 1;
        let name = table.columns[at].name.clone();
        match option {
            ColumnOption::NotNull => table.columns[at].nullable = false,
            ColumnOption::Default(expr) => table.columns[at].default = Some(expr.to_string()),
            ColumnOption::PrimaryKey(_) => self.set_primary(table, vec![id]),
            ColumnOption::Unique(_) => {
                let index = self.index(&format!("{}_{name}_key", table.name), vec![id]);
                table.indexes.push(index);
            }
            ColumnOption::Check(check) => table.checks.push(Check {
                name: format!("{}_{name}_check", table.name),
                expression: check.expr.to_string(),
                not_valid: false,
            }),
            ColumnOption::ForeignKey(key) => {
                let (foreign, columns) = (key.foreign_table.to_string(), &key.referred_columns);
                self.foreign_key(table, vec![id], &foreign, columns, key.on_delete, key.on_update);
            }
            ColumnOption::Generated { generated_as, .. } => {
                table.columns[at].nullable = false;
                table.columns[at].owned_sequence = Some(self.oid());
                table.columns[at].identity = Some(match generated_as {
                    ast::GeneratedAs::Always => Identity::Always,
                    _ => Identity::ByDefault,
                });
            }
            other => panic!("column option {other}"),
        }
    }

    fn table_constraint(&self, table: &mut Table, constraint: &TableConstraint) {
        let ids = |table: &Table, columns: &[ast::IndexColumn]| -> Vec<u16> {
            columns.iter().map(|column| column_id(table, &column.column.expr.to_string())).collect()
        };
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                let columns = ids(table, &key.columns);
                self.set_primary(table, columns);
            }
            TableConstraint::Unique(key) => {
                let columns = ids(table, &key.columns);
                let name = key.columns.iter().map(|c| c.column.expr.to_string()).collect::<Vec<_>>().join("_");
                let index = self.index(&format!("{}_{name}_key", table.name), columns);
                table.indexes.push(index);
            }
            TableConstraint::Check(check) => {
                let name =
                    check.name.as_ref().map_or_else(|| format!("{}_check", table.name), |name| name.value.clone());
                table.checks.push(Check { name, expression: check.expr.to_string(), not_valid: false });
            }
            TableConstraint::ForeignKey(key) => {
                let columns = key.columns.iter().map(|column| column_id(table, &column.value)).collect();
                let foreign = key.foreign_table.to_string();
                self.foreign_key(table, columns, &foreign, &key.referred_columns, key.on_delete, key.on_update);
            }
            other => panic!("constraint {other}"),
        }
    }

    fn foreign_key(
        &self,
        table: &mut Table,
        columns: Vec<u16>,
        foreign: &str,
        referred: &[ast::Ident],
        on_delete: Option<ast::ReferentialAction>,
        on_update: Option<ast::ReferentialAction>,
    ) {
        let own = foreign == table.name;
        let parent = if own { table.clone() } else { self.catalog.table(foreign).unwrap() };
        let referenced_columns = if referred.is_empty() {
            parent.primary.columns.iter().map(|column| column.column).collect()
        } else {
            referred.iter().map(|column| column_id(&parent, &column.value)).collect()
        };
        let names: Vec<String> = columns
            .iter()
            .map(|id| table.columns.iter().find(|column| column.id == *id).unwrap().name.clone())
            .collect();
        table.foreign_keys.push(ForeignKey {
            id: self.oid(),
            name: format!("{}_{}_fkey", table.name, names.join("_")),
            columns,
            referenced_table: if own { 0 } else { parent.id },
            referenced_columns,
            on_delete: action(on_delete),
            on_update: action(on_update),
            deferral: Default::default(),
            not_valid: false,
        });
    }
}

fn action(action: Option<ast::ReferentialAction>) -> ReferentialAction {
    match action {
        None | Some(ast::ReferentialAction::NoAction) => ReferentialAction::NoAction,
        Some(ast::ReferentialAction::Restrict) => ReferentialAction::Restrict,
        Some(ast::ReferentialAction::Cascade) => ReferentialAction::Cascade,
        Some(ast::ReferentialAction::SetNull) => ReferentialAction::SetNull,
        Some(ast::ReferentialAction::SetDefault) => ReferentialAction::SetDefault,
    }
}

fn column_id(table: &Table, name: &str) -> u16 {
    table.columns.iter().find(|column| column.name == name).unwrap_or_else(|| panic!("column {name}")).id
}

pub fn parse(text: &str) -> Statement {
    let mut statements = sql::syntax::parse(text).unwrap_or_else(|e| panic!("{text}: {}", e.message));
    assert_eq!(statements.len(), 1, "{text}");
    match statements.remove(0).command {
        sql::syntax::Command::Planned(planned) => planned.statement,
        // What the crate reads by a grammar of its own, the scripts of plans read by the library's.
        _ => Parser::parse_sql(&PostgreSqlDialect {}, text).unwrap_or_else(|e| panic!("{text}: {e}")).remove(0),
    }
}

/// An error as a script shows it.
pub fn error_lines(error: &SqlError) -> Vec<String> {
    let mut out = vec![format!("ERROR {}: {}", error.state.as_str(), error.message)];
    out.extend(error.detail.iter().map(|detail| format!("DETAIL: {detail}")));
    out
}

/// The state of an error.
#[allow(dead_code)] // for benches/direct.rs
pub fn state<T: std::fmt::Debug>(result: Result<T, SqlError>) -> SqlState {
    result.unwrap_err().state
}
