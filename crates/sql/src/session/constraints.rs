//! SET CONSTRAINTS, and what deferred checks ask of a change of the schema.

use super::run::Outcome;
use super::{Block, Session};
use crate::catalog::{Deferral, Oid, Relation};
use crate::context::CatalogView;
use crate::output::Output;
use crate::syntax::Name;
use crate::{SqlError, SqlState};

impl Session {
    /// SET CONSTRAINTS: of all, or of those named.
    pub(super) fn set_constraints(
        &mut self,
        names: Option<&[Name]>,
        deferred: bool,
        out: &mut dyn Output,
    ) -> Result<Outcome, SqlError> {
        let done = Outcome::Tag("SET CONSTRAINTS".into());
        if self.block == Block::None {
            self.warn(SqlState::NO_ACTIVE_TRANSACTION, "SET CONSTRAINTS can only be used in transaction blocks", out);
            if let Some(names) = names {
                self.ensure_active(None)?;
                self.constraints_named(names)?;
            }
            return Ok(done);
        }
        self.ensure_active(None)?;
        let constraints = names.map(|names| self.constraints_named(names)).transpose()?;
        if !deferred {
            self.deferred.clone().check(&self.statement_context(Vec::new())?, constraints.as_deref())?;
        }
        self.deferred.set(constraints.as_deref(), deferred);
        Ok(done)
    }

    /// Every constraint of these names in the first schema that has one.
    fn constraints_named(&self, names: &[Name]) -> Result<Vec<Oid>, SqlError> {
        let Some(active) = self.active.as_ref() else {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "constraints are looked for without a transaction"));
        };
        let mut out = Vec::new();
        for name in names {
            let path: Vec<String> = match &name.schema {
                Some(schema) => vec![schema.clone()],
                None => self.settings.eval.search_path.clone(),
            };
            let found = path.iter().map(|schema| constraints_in(active.view.as_ref(), schema, &name.name));
            let found = found.collect::<Result<Vec<_>, _>>()?.into_iter().find(|some| !some.is_empty());
            let Some(found) = found else {
                let message = format!("constraint \"{name}\" does not exist");
                return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
            };
            for (oid, deferral) in found {
                if deferral == Deferral::NotDeferrable {
                    let message = format!("constraint \"{name}\" is not deferrable");
                    return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
                }
                out.push(oid);
            }
        }
        Ok(out)
    }

    /// Before a change of the schema: nothing may be held, whose tables it might change.
    ///
    /// # Errors
    /// 55006 if something is.
    pub(super) fn settle_before_ddl(&mut self) -> Result<(), SqlError> {
        if self.deferred.is_empty() {
            return Ok(());
        }
        if self.active.as_ref().is_some_and(|active| active.savepoints.is_empty()) {
            self.deferred.clone().forget_mended(&self.statement_context(Vec::new())?)?;
        }
        if self.deferred.is_empty() {
            return Ok(());
        }
        Err(SqlError::new(
            SqlState::OBJECT_IN_USE,
            "cannot change the schema because the transaction has pending foreign key checks",
        )
        .hint("Write the referenced rows and release the savepoints first, or commit."))
    }
}

/// Constraints of a name in a schema, and when they are checked.
fn constraints_in(catalog: &dyn CatalogView, schema: &str, name: &str) -> Result<Vec<(Oid, Deferral)>, SqlError> {
    let schemas = catalog.schemas()?;
    let Some(schema) = schemas.iter().find(|s| s.name == schema) else { return Ok(Vec::new()) };
    let mut out = Vec::new();
    for relation in catalog.relations()? {
        let Relation::Table(table) = relation.as_ref() else { continue };
        if table.schema != schema.id {
            continue;
        }
        let keys = table.foreign_keys.iter().filter(|key| key.name == name);
        out.extend(keys.map(|key| (key.id, key.deferral)));
        let unique = std::iter::once(&table.primary).chain(&table.indexes);
        let unique = unique.filter(|index| index.constraint && index.name == name);
        out.extend(unique.map(|index| (index.id, Deferral::NotDeferrable)));
    }
    Ok(out)
}
