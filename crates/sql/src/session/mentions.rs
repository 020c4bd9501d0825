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
use crate::pg_catalog::names;
use crate::syntax::{Mentions, Name, ObjectKind, Roles, Routine, no_privilege};
use crate::{SqlError, SqlState};

impl Session {
    fn check_role(&self, name: &str) -> Result<(), SqlError> {
        let user = &self.settings.eval.user;
        if is_role(name, user) { Ok(()) } else { Err(unknown_role(name, user)) }
    }

    /// Everything named must be there.
    pub(super) fn check_mentions(&mut self, mentions: &Mentions) -> Result<(), SqlError> {
        let none = mentions.relations.is_empty()
            && mentions.schemas.is_empty()
            && mentions.databases.is_empty()
            && mentions.extensions.is_empty();
        mentions.functions.iter().try_for_each(check_routine)?;
        for (name, what) in &mentions.classes {
            check_class(name, what)?;
        }
        for name in &mentions.parameters {
            if !name.contains('.') && self.settings.show(name).is_none() {
                let message = format!("invalid parameter name \"{name}\"");
                return Err(SqlError::new(SqlState(*b"42602"), message));
            }
        }
        if !(none && mentions.constraints.is_empty()) {
            self.check_objects(mentions)?;
        }
        if let Some(missing) = &mentions.missing {
            return Err(missing.clone());
        }
        mentions.roles.iter().try_for_each(|name| self.check_role(name))?;
        if let Some(privilege) = &mentions.privilege {
            return Err(privilege.clone());
        }
        if mentions.granted.iter().any(|(_, usage)| *usage) {
            let view = self.ensure_active(None)?.view.clone();
            for (name, _) in mentions.granted.iter().filter(|(_, usage)| *usage) {
                if !matches!(relation_of(&view, name), Some(Relation::Sequence(_))) {
                    return Err(no_privilege("USAGE", "table"));
                }
            }
        }
        Ok(())
    }

    fn check_objects(&mut self, mentions: &Mentions) -> Result<(), SqlError> {
        let Mentions { relations, schemas, databases, extensions, kinds, constraints, columns, granted, .. } = mentions;
        let view = self.ensure_active(None)?.view.clone();
        let snapshot = view.snapshot();
        let database = view.database();
        let no_schema = |name: &str| {
            let message = format!("schema \"{name}\" does not exist");
            SqlError::new(SqlState::INVALID_SCHEMA_NAME, message)
        };
        let fixed = ["pg_catalog", "information_schema", "timeball_internal"];
        let lost = |name: &str| !fixed.contains(&name) && snapshot.schema(database.id, name).is_none();
        for name in relations {
            let schema = name.schema.as_deref();
            let fixed = schema.is_none_or(|s| s == "pg_catalog" || s == "information_schema");
            if view.named(schema, &name.name).is_none()
                && !(fixed && crate::pg_catalog::lookup(schema, &name.name).is_some())
            {
                if let Some(schema) = schema.filter(|schema| lost(schema)) {
                    return Err(no_schema(schema));
                }
                let message = format!("relation \"{}\" does not exist", quote_free(name));
                return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
            }
        }
        for (name, _) in granted {
            if matches!(view.named(name.schema.as_deref(), &name.name), Some(Named::Index { .. })) {
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{}\" is an index", name.name)));
            }
        }
        for (name, column) in columns {
            let there = match relation_of(&view, name) {
                Some(Relation::Table(table)) => table.columns.iter().any(|c| c.name == *column),
                Some(Relation::View(view)) => view.columns.iter().any(|(name, _)| name == column),
                Some(Relation::Sequence(_)) => ["last_value", "log_cnt", "is_called"].contains(&column.as_str()),
                // The system's: it is not looked which.
                None => true,
            };
            if !there {
                let message = format!("column \"{column}\" of relation \"{}\" does not exist", name.name);
                return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
            }
        }
        for (kind, name) in kinds {
            check_kind(&view, *kind, name)?;
        }
        for (constraint, table) in constraints {
            check_constraint(&view, constraint, table)?;
        }
        if let Some(name) = schemas.iter().find(|name| lost(name)) {
            return Err(no_schema(name));
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
        Ok(())
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

fn relation_of<'v>(view: &'v View, name: &Name) -> Option<&'v Relation> {
    match view.named(name.schema.as_deref(), &name.name)? {
        Named::Relation(id) => view.snapshot().relation(id).map(|relation| relation.as_ref()),
        Named::Index { .. } => None,
    }
}

/// Functions of a name that PostgreSQL lets nobody call but its superuser, and that are not here: files, replication, statistics to be
/// forgotten. Those are what tools revoke and grant, and what a dump has of a database whose administrator did so; the rest of what is
/// not here nobody grants.
fn restricted(name: &str) -> impl Iterator<Item = (char, &'static str)> {
    let lines = include_str!("restricted_functions.tsv").lines();
    lines.filter_map(move |line| {
        line.split_once('\t').filter(|(known, _)| *known == name).map(|(_, types)| ('f', types))
    })
}

/// 42883, 42725 or 42809 if there is no such function, or not one, or it is of another kind.
fn check_routine(routine: &Routine) -> Result<(), SqlError> {
    let Routine { word, name, arguments } = routine;
    let here = name.schema.as_deref().is_none_or(|schema| schema == "pg_catalog" || schema == "public");
    let all = names::routines(&name.name).chain(restricted(&name.name));
    let all: Vec<(char, &str)> = all.filter(|_| here).collect();
    if all.is_empty() && here && !by_name(&name.name).is_empty() && !matches!(*word, "procedure" | "aggregate") {
        // One of ours, which no list of PostgreSQL's knows.
        return Ok(());
    }
    let undefined = |message| Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message));
    let of_word = |kind: char| match *word {
        "procedure" => kind == 'p',
        "aggregate" => kind == 'a',
        _ => true,
    };
    let function = if *word == "routine" { "function" } else { word };
    let Some(types) = arguments else {
        return match all.iter().filter(|(kind, _)| of_word(*kind)).count() {
            0 => undefined(format!("could not find a {function} named \"{}\"", quote_free(name))),
            1 => Ok(()),
            _ => {
                let message = format!("{word} name \"{}\" is not unique", quote_free(name));
                Err(SqlError::new(SqlState::AMBIGUOUS_FUNCTION, message)
                    .hint(format!("Specify the argument list to select the {word} unambiguously.")))
            }
        };
    };
    let shown = format!("{}({})", quote_free(name), types.join(", "));
    let wanted = names::argument_types(types)?;
    match all.iter().find(|(_, arguments)| *arguments == wanted) {
        None => undefined(format!("{function} {shown} does not exist")),
        Some((kind, _)) if of_word(*kind) => Ok(()),
        Some(_) => {
            let message = match *word {
                "procedure" => format!("{shown} is not a procedure"),
                _ => format!("function {shown} is not an aggregate"),
            };
            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
        }
    }
}

/// 42704 for an operator class, or family, that there is not.
fn check_class(name: &Name, what: &str) -> Result<(), SqlError> {
    if crate::ddl::is_operator_class(name) || what == "operator family" && FAMILIES.contains(&name.name.as_str()) {
        return Ok(());
    }
    let message = format!("{what} \"{}\" does not exist for access method \"btree\"", quote_free(name));
    Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
}

/// Operator families that are called otherwise than a class of theirs.
const FAMILIES: [&str; 3] = ["datetime_ops", "integer_ops", "network_ops"];

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
