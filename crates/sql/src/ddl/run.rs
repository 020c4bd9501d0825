//! One DDL statement under way: the change, the names in it, what it will have left behind.

use crate::catalog::reliance::{Relying, token_of, tokens_in_use};
use crate::catalog::view::View;
use crate::catalog::{Change, Changed, Named, Oid, Overlay, Relation, Schema, Snapshot, Table, key, snapshot};
use crate::context::StatementContext;
use crate::database::Database;
use crate::plan::PlanContext;
use crate::sequence::SessionSequences;
use crate::syntax::{Ddl, Name, ObjectKind};
use crate::work::Pace;
use crate::{SqlError, SqlState};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;

/// See the module.
pub struct Run<'a> {
    pub(super) db: &'a Database,
    pub(super) statement: Arc<StatementContext>,
    pub(super) change: Change<'a>,
    pub(super) database: Arc<crate::catalog::Database>,
    pub(super) notices: Vec<SqlError>,
    pub(super) loads: Vec<Oid>,
    pub(super) fresh: Vec<Oid>,
    /// Tables that are known to be empty: what is read of them nobody has to certify.
    pub empty: Vec<Oid>,
    /// The statement is its whole transaction.
    pub alone: bool,
    /// What is added to a table is known to hold for all of its rows: see `online`.
    pub(super) holds: bool,
    changed: bool,
    /// The catalog as the statement found it.
    before: Snapshot,
}

/// What a statement came to.
pub struct Done {
    /// Its tag.
    pub tag: String,
    /// What the client is told.
    pub notices: Vec<SqlError>,
    /// The catalog to go on with, if it has changed.
    pub changed: Option<Changed>,
    /// Tables that are new or empty.
    pub fresh: Vec<Oid>,
}

impl<'a> Run<'a> {
    /// Begins: waits for other changes of what this one names; `own` is what the transaction has changed already.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn begin(
        db: &'a Database,
        database: &Arc<crate::catalog::Database>,
        statement: Arc<StatementContext>,
        own: &Overlay,
        ddl: &Ddl,
    ) -> Result<Run<'a>, SqlError> {
        let path = &statement.settings.search_path.clone();
        let about = |catalog: &Snapshot| super::about::keys(ddl, catalog, database.id, path);
        Run::begin_about(db, database, statement, own, &about)
    }

    /// As [`Run::begin`], about these keys.
    ///
    /// # Errors
    /// Those of the transaction.
    pub(super) fn begin_about(
        db: &'a Database,
        database: &Arc<crate::catalog::Database>,
        statement: Arc<StatementContext>,
        own: &Overlay,
        about: &dyn Fn(&Snapshot) -> BTreeSet<Bytes>,
    ) -> Result<Run<'a>, SqlError> {
        let (kv, patience) = (db.kv.as_ref(), statement.patience());
        let change = Change::begin(&statement.txn, kv, &db.catalog, &patience, own, about)?;
        let before = change.snapshot().clone();
        Ok(Run {
            before,
            db,
            statement,
            change,
            database: database.clone(),
            notices: Vec::new(),
            loads: Vec::new(),
            fresh: Vec::new(),
            empty: Vec::new(),
            alone: false,
            holds: false,
            changed: false,
        })
    }

    /// Ends.
    pub fn finish(self, tag: String) -> Done {
        let changed = self.changed.then(|| self.change.finish());
        Done { tag, notices: self.notices, changed, fresh: self.fresh }
    }

    /// The tokens that the statement ends: of the relations that it changes or removes, or whose schema it renames, and of the version before, which may still be in use. But for those that its
    /// transaction has changed before (`own`): others do not go by them.
    pub fn ended(&self, own: &Overlay) -> Vec<Bytes> {
        if !self.changed {
            return Vec::new();
        }
        let stays =
            |schema: &&Arc<Schema>| self.catalog().schema_by_id(schema.id).is_some_and(|now| Arc::ptr_eq(now, schema));
        let schemas = self.before.schemas(self.database.id).filter(|schema| !stays(schema));
        // Who went by the name of one.
        let renamed: BTreeSet<Oid> = schemas.map(|schema| schema.id).collect();
        let mut tokens = Vec::new();
        for relation in self.before.all_relations() {
            let id = snapshot::id_of(relation);
            let stays = self.catalog().relation(id).is_some_and(|now| Arc::ptr_eq(now, relation));
            if own.has_changed(id) || stays && !renamed.contains(&snapshot::schema_of(relation)) {
                continue;
            }
            tokens.extend(tokens_in_use(relation));
        }
        tokens
    }

    /// Indexes loaded outside the transaction, whether the statement worked or failed: to be reported as ended with it.
    pub fn take_loads(&mut self) -> Vec<Oid> {
        std::mem::take(&mut self.loads)
    }

    /// The catalog as changed so far.
    pub fn catalog(&self) -> &Snapshot {
        self.change.snapshot()
    }
    pub(super) fn touch(&mut self) -> &mut Change<'a> {
        self.changed = true;
        &mut self.change
    }
    pub(super) fn new_oid(&self) -> Result<Oid, SqlError> {
        self.db.oids.next(self.db.kv.as_ref(), &self.statement.patience())
    }
    pub(super) fn notice(&mut self, message: impl Into<String>) {
        self.notices.push(SqlError::new(SqlState::SUCCESS, message));
    }

    /// The catalog as changed so far.
    fn view(&self) -> Arc<View> {
        let path = &self.statement.settings.search_path;
        Arc::new(View::new(Arc::new(self.catalog().clone()), self.database.clone(), path))
    }
    /// The same, as planning and evaluation look things up.
    fn relying(&self, view: Arc<View>) -> Arc<Relying> {
        let (txn, relied) = (self.statement.txn.clone(), self.statement.backend.relied.clone());
        Arc::new(Relying::new(view, txn, self.change.since(), relied).of_a_change())
    }
    /// What statements would be planned over if a relation were another.
    pub(super) fn plan_context_with(&self, relation: Relation) -> PlanContext {
        let path = &self.statement.settings.search_path;
        let view = View::new(Arc::new(self.catalog().with_relation(relation)), self.database.clone(), path);
        PlanContext { catalog: self.relying(Arc::new(view)), ..self.plan_context() }
    }

    pub(super) fn plan_context(&self) -> PlanContext {
        PlanContext {
            catalog: self.relying(self.view()),
            kv: self.statement.kv.clone(),
            statistics: self.statement.backend.sessions.statistics.clone(),
            settings: self.statement.settings.clone(),
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

    /// The statement's context with the catalog as changed so far: expressions may draw from new sequences.
    pub(super) fn statement_now(&self) -> Arc<StatementContext> {
        let old = &self.statement;
        let view = self.view();
        let sequences = SessionSequences::new(old.kv.clone(), self.db.numbers.clone(), old.patience());
        sequences.use_catalog(view.snapshot());
        let mut now = StatementContext::clone(old);
        now.catalog = self.relying(view);
        now.sequences = Arc::new(sequences);
        now.params = Vec::new();
        Arc::new(now)
    }

    /// The schema of a name that is to be created.
    pub(super) fn schema_for(&self, name: &Name) -> Result<Arc<Schema>, SqlError> {
        self.check_database(name)?;
        match &name.schema {
            Some(schema) => self.schema_named(schema),
            None => {
                let path = &self.statement.settings.search_path;
                let first = path.iter().find_map(|s| self.catalog().schema(self.database.id, s));
                first.cloned().ok_or_else(|| {
                    SqlError::new(SqlState::INVALID_SCHEMA_NAME, "no schema has been selected to create in")
                        .hint("Name the schema, or SET search_path.")
                })
            }
        }
    }

    pub(super) fn schema_named(&self, name: &str) -> Result<Arc<Schema>, SqlError> {
        if matches!(name, "pg_catalog" | "information_schema" | "timeball_internal") {
            return Err(SqlError::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                format!("permission denied for schema {name}"),
            ));
        }
        self.catalog()
            .schema(self.database.id, name)
            .cloned()
            .ok_or_else(|| SqlError::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{name}\" does not exist")))
    }

    fn check_database(&self, name: &Name) -> Result<(), SqlError> {
        match &name.database {
            Some(database) if *database != self.database.name => {
                Err(SqlError::unsupported(format!("a reference to another database ({database})"))
                    .hint(format!("Connect to {database}.")))
            }
            _ => Ok(()),
        }
    }

    /// What a name stands for, which the change relies on.
    pub(super) fn named(&self, name: &Name) -> Result<Option<Named>, SqlError> {
        self.check_database(name)?;
        let (catalog, mut tokens) = (self.catalog(), Vec::new());
        let mut find = |schema: &str| {
            let found = catalog.schema(self.database.id, schema);
            let named = found.and_then(|schema| catalog.named(schema.id, &name.name));
            tokens.push(match (named, found) {
                (Some(Named::Relation(id) | Named::Index { table: id, .. }), _) => token_of(catalog.relation(id)?),
                (None, Some(schema)) => key::absence(schema.id, &name.name),
                (None, None) => key::absence(self.database.id, schema),
            });
            named
        };
        let named = match &name.schema {
            Some(schema) => find(schema),
            None => self.statement.settings.search_path.iter().find_map(|s| find(s)),
        };
        let since = self.change.since();
        self.statement.txn.with(|t| tokens.iter().try_for_each(|token| t.rely(token, since, true)))?;
        Ok(named)
    }

    /// The relation of a name.
    pub(super) fn relation(&self, name: &Name) -> Result<Option<Arc<Relation>>, SqlError> {
        Ok(match self.named(name)? {
            Some(Named::Relation(id)) => self.catalog().relation(id).cloned(),
            _ => None,
        })
    }

    /// The table of a name.
    pub(super) fn table_named(&self, name: &Name) -> Result<Table, SqlError> {
        match self.named(name)? {
            None => Err(undefined(ObjectKind::Table, name)),
            Some(Named::Relation(id)) => match self.catalog().table(id) {
                Some(table) => Ok(table.clone()),
                None => Err(wrong_kind(name, "a table")),
            },
            Some(Named::Index { .. }) => Err(wrong_kind(name, "a table")),
        }
    }

    /// The table of an OID that a descriptor names.
    pub(super) fn table(&self, id: Oid) -> Result<Table, SqlError> {
        self.catalog().table(id).cloned().ok_or_else(|| {
            SqlError::new(SqlState::INTERNAL_ERROR, format!("the catalog names a table {id} that does not exist"))
        })
    }

    /// 42P07 if a schema has the name already; with IF NOT EXISTS a notice, and `true`.
    pub(super) fn taken(&mut self, schema: &Schema, name: &str, if_not_exists: bool) -> Result<bool, SqlError> {
        if self.catalog().named(schema.id, name).is_none() {
            return Ok(false);
        }
        if if_not_exists {
            self.notice(format!("relation \"{name}\" already exists, skipping"));
            return Ok(true);
        }
        Err(SqlError::new(SqlState::DUPLICATE_TABLE, format!("relation \"{name}\" already exists")))
    }

    /// Puts a table into the catalog.
    pub(super) fn put_table(&mut self, table: Table) -> Result<(), SqlError> {
        self.check_kept(&table)?;
        if self.holds {
            return self.touch().step_table(table);
        }
        self.touch().put_relation(Relation::Table(table)).map(|_| ())
    }

    /// A name with its schema, unless that is the first of the search path.
    pub(super) fn shown(&self, relation: &Relation) -> String {
        let schema = self.catalog().schema_by_id(snapshot::schema_of(relation));
        let name = snapshot::name_of(relation);
        match schema {
            Some(schema) if self.statement.settings.search_path.contains(&schema.name) => name.to_string(),
            Some(schema) => format!("{}.{name}", schema.name),
            None => name.to_string(),
        }
    }
}

/// 42P01 and its kind.
pub(super) fn undefined(kind: ObjectKind, name: &Name) -> SqlError {
    match kind {
        ObjectKind::Table | ObjectKind::View | ObjectKind::Sequence => no_relation(name),
        ObjectKind::Index => SqlError::new(SqlState::UNDEFINED_OBJECT, format!("index \"{name}\" does not exist")),
        ObjectKind::Schema => SqlError::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{name}\" does not exist")),
        ObjectKind::Database => {
            SqlError::new(SqlState::INVALID_CATALOG_NAME, format!("database \"{name}\" does not exist"))
        }
    }
}

/// 42P01: ALTER says it of an index, too.
pub(super) fn no_relation(name: &Name) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"))
}

/// 42809
pub(super) fn wrong_kind(name: &Name, wanted: &str) -> SqlError {
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{}\" is not {wanted}", name.name))
}
