//! What a statement without effect names must exist: otherwise it would pretend.

use super::Session;
use super::run::Outcome;
use crate::catalog::extension::built_in;
use crate::catalog::role::{is_role, unknown_role};
use crate::catalog::view::View;
use crate::catalog::{Named, Relation};
use crate::ddl::constraint_names;
use crate::expr::function::by_name;
use crate::output::Output;
use crate::syntax::{Mentions, Name, ObjectKind, Roles};
use crate::{SqlError, SqlState};

impl Session {
    fn check_role(&self, name: &str) -> Result<(), SqlError> {
        let user = &self.settings.eval.user;
        if is_role(name, user) { Ok(()) } else { Err(unknown_role(name, user)) }
    }

    /// Everything named must be there.
    pub(super) fn check_mentions(&mut self, mentions: &Mentions) -> Result<(), SqlError> {
        let Mentions { roles, relations, schemas, databases, extensions, kinds, constraints, functions } = mentions;
        let known = |name: &str| crate::pg_catalog::names::is_function(name) || !by_name(name).is_empty();
        if let Some((_, message)) = functions.iter().find(|(name, _)| !known(name)) {
            return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message.clone()));
        }
        let none = relations.is_empty() && schemas.is_empty() && databases.is_empty() && extensions.is_empty();
        if !(none && constraints.is_empty()) {
            let view = self.ensure_active(None)?.view.clone();
            let snapshot = view.snapshot();
            for name in relations {
                let schema = name.schema.as_deref();
                let fixed = schema.is_none_or(|s| s == "pg_catalog" || s == "information_schema");
                if view.named(schema, &name.name).is_none()
                    && !(fixed && crate::pg_catalog::lookup(schema, &name.name).is_some())
                {
                    let message = format!("relation \"{}\" does not exist", quote_free(name));
                    return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
                }
            }
            for (kind, name) in kinds {
                check_kind(&view, *kind, name)?;
            }
            for (constraint, table) in constraints {
                check_constraint(&view, constraint, table)?;
            }
            let database = view.database();
            let fixed = ["pg_catalog", "information_schema", "timeball_internal"];
            let lost = |name: &&String| {
                !fixed.contains(&name.as_str()) && snapshot.schema(database.id, name.as_str()).is_none()
            };
            if let Some(name) = schemas.iter().find(lost) {
                let message = format!("schema \"{name}\" does not exist");
                return Err(SqlError::new(SqlState::INVALID_SCHEMA_NAME, message));
            }
            if let Some(name) = databases.iter().find(|name| snapshot.database(name).is_none()) {
                let message = format!("database \"{name}\" does not exist");
                return Err(SqlError::new(SqlState::INVALID_CATALOG_NAME, message));
            }
            let created = |name: &str| built_in(name).is_some() || database.extensions.iter().any(|e| e.name == name);
            if let Some(name) = extensions.iter().find(|name| !created(name)) {
                let message = format!("extension \"{name}\" does not exist");
                return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
            }
        }
        roles.iter().try_for_each(|name| self.check_role(name))
    }

    /// DROP ROLE, DROP OWNED, REASSIGN OWNED.
    pub(super) fn run_roles(&mut self, roles: &Roles, out: &mut dyn Output) -> Result<Outcome, SqlError> {
        for name in &roles.names {
            match self.check_role(name) {
                Ok(()) => {
                    let message = format!("{} {name}", roles.refusal);
                    return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS, message)
                        .detail("It is the one role that there is, and everything is its own."));
                }
                Err(_) if roles.if_exists => {
                    let message = format!("role \"{name}\" does not exist, skipping");
                    self.tell(&SqlError::new(SqlState::SUCCESS, message), out);
                }
                Err(e) => return Err(e),
            }
        }
        Ok(Outcome::Tag(roles.tag.into()))
    }
}

/// 42809 if a relation or an index is of another kind.
fn check_kind(view: &View, kind: ObjectKind, name: &Name) -> Result<(), SqlError> {
    let Some(named) = view.named(name.schema.as_deref(), &name.name) else { return Ok(()) };
    let relation = match named {
        Named::Relation(id) => view.snapshot().relation(id),
        Named::Index { .. } => None,
    };
    let wanted = match (kind, relation.map(|relation| relation.as_ref())) {
        (ObjectKind::View, Some(Relation::View(_)))
        | (ObjectKind::Sequence, Some(Relation::Sequence(_)))
        | (ObjectKind::Index, None) => return Ok(()),
        (ObjectKind::View, _) => "a view",
        (ObjectKind::Sequence, _) => "a sequence",
        (ObjectKind::Index, _) => "an index",
        _ => "a materialized view or a foreign table",
    };
    Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{}\" is not {wanted}", name.name)))
}

/// Whether a table has a constraint.
fn check_constraint(view: &View, constraint: &str, table: &Name) -> Result<(), SqlError> {
    let found = match view.named(table.schema.as_deref(), &table.name) {
        None => {
            let message = format!("relation \"{}\" does not exist", quote_free(table));
            return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
        }
        Some(Named::Relation(id)) => view.snapshot().table(id),
        Some(Named::Index { .. }) => None,
    };
    if found.is_some_and(|table| constraint_names(table).any(|name| name == constraint)) {
        return Ok(());
    }
    let message = format!("constraint \"{constraint}\" for table \"{}\" does not exist", table.name);
    Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
}

fn quote_free(name: &crate::syntax::Name) -> String {
    match &name.schema {
        Some(schema) => format!("{schema}.{}", name.name),
        None => name.name.clone(),
    }
}
