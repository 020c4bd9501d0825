//! The functions that read the catalogs: `pg_get_indexdef`, `format_type`, `pg_table_is_visible` and their kind.
//!
//! They need the statement's catalog, so they are not in the registry of plain scalar functions. All are strict but for those in
//! [`call`] that say otherwise.

use super::relations::indexes;
use super::{Objects, Source, definition, encodings, names, signatures};
use crate::catalog::{Oid, Relation, Table};
use crate::expr::function::CATALOG_SETS;
use crate::identifier::keyword::{KEYWORDS, Keyword};
use crate::identifier::quote_qualified;
use crate::statement::Statement;
use crate::syntax::view::view_definition;
use crate::types::{RegKind, Row, SqlType, Value};
use crate::{SqlError, SqlState};
use sqlparser::ast::Expr;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A function's result type, and how many arguments it takes.
#[derive(Debug)]
pub struct CatalogFunction {
    /// Its name, without a schema.
    pub name: &'static str,
    /// Fewest arguments.
    pub least: usize,
    /// Most arguments.
    pub most: usize,
    /// Its result's type.
    pub result: SqlType,
}

const fn function(name: &'static str, least: usize, most: usize, result: SqlType) -> CatalogFunction {
    CatalogFunction { name, least, most, result }
}

const FUNCTIONS: &[CatalogFunction] = &[
    function("format_type", 2, 2, SqlType::Text),
    function("oidvectortypes", 1, 1, SqlType::Text),
    function("pg_get_expr", 2, 3, SqlType::Text),
    function("pg_get_indexdef", 1, 3, SqlType::Text),
    function("pg_get_constraintdef", 1, 2, SqlType::Text),
    function("pg_get_viewdef", 1, 2, SqlType::Text),
    function("pg_get_triggerdef", 1, 2, SqlType::Text),
    function("pg_get_ruledef", 1, 2, SqlType::Text),
    function("pg_get_functiondef", 1, 1, SqlType::Text),
    function("pg_get_function_arguments", 1, 1, SqlType::Text),
    function("pg_get_function_identity_arguments", 1, 1, SqlType::Text),
    function("pg_get_function_result", 1, 1, SqlType::Text),
    function("pg_get_function_sqlbody", 1, 1, SqlType::Text),
    function("pg_get_partkeydef", 1, 1, SqlType::Text),
    function("pg_get_partition_constraintdef", 1, 1, SqlType::Text),
    function("pg_get_statisticsobjdef", 1, 1, SqlType::Text),
    function("pg_get_statisticsobjdef_columns", 1, 1, SqlType::Text),
    function("pg_get_userbyid", 1, 1, SqlType::Name),
    function("pg_get_serial_sequence", 2, 2, SqlType::Text),
    function("pg_table_is_visible", 1, 1, SqlType::Bool),
    function("pg_type_is_visible", 1, 1, SqlType::Bool),
    function("pg_function_is_visible", 1, 1, SqlType::Bool),
    function("pg_operator_is_visible", 1, 1, SqlType::Bool),
    function("pg_opclass_is_visible", 1, 1, SqlType::Bool),
    function("pg_opfamily_is_visible", 1, 1, SqlType::Bool),
    function("pg_collation_is_visible", 1, 1, SqlType::Bool),
    function("pg_conversion_is_visible", 1, 1, SqlType::Bool),
    function("pg_statistics_obj_is_visible", 1, 1, SqlType::Bool),
    function("pg_ts_config_is_visible", 1, 1, SqlType::Bool),
    function("pg_ts_dict_is_visible", 1, 1, SqlType::Bool),
    function("pg_ts_parser_is_visible", 1, 1, SqlType::Bool),
    function("pg_ts_template_is_visible", 1, 1, SqlType::Bool),
    function("obj_description", 1, 2, SqlType::Text),
    function("col_description", 2, 2, SqlType::Text),
    function("shobj_description", 2, 2, SqlType::Text),
    function("pg_encoding_to_char", 1, 1, SqlType::Name),
    function("pg_char_to_encoding", 1, 1, SqlType::Int4),
    function("getdatabaseencoding", 0, 0, SqlType::Name),
    function("pg_client_encoding", 0, 0, SqlType::Name),
    function("pg_relation_size", 1, 2, SqlType::Int8),
    function("pg_total_relation_size", 1, 1, SqlType::Int8),
    function("pg_table_size", 1, 1, SqlType::Int8),
    function("pg_indexes_size", 1, 1, SqlType::Int8),
    function("pg_database_size", 1, 1, SqlType::Int8),
    function("pg_tablespace_size", 1, 1, SqlType::Int8),
    function("pg_size_pretty", 1, 1, SqlType::Text),
    function("pg_relation_filenode", 1, 1, SqlType::Oid),
    function("pg_tablespace_location", 1, 1, SqlType::Text),
    function("pg_relation_is_publishable", 1, 1, SqlType::Bool),
    function("pg_relation_is_updatable", 2, 2, SqlType::Int4),
    function("pg_is_other_temp_schema", 1, 1, SqlType::Bool),
    function("pg_my_temp_schema", 0, 0, SqlType::Oid),
    function("pg_is_in_recovery", 0, 0, SqlType::Bool),
    function("pg_sequence_last_value", 1, 1, SqlType::Int8),
    function("pg_index_column_has_property", 3, 3, SqlType::Bool),
    function("has_table_privilege", 2, 3, SqlType::Bool),
    function("has_any_column_privilege", 2, 3, SqlType::Bool),
    function("has_column_privilege", 3, 4, SqlType::Bool),
    function("has_schema_privilege", 2, 3, SqlType::Bool),
    function("has_database_privilege", 2, 3, SqlType::Bool),
    function("has_sequence_privilege", 2, 3, SqlType::Bool),
    function("has_function_privilege", 2, 3, SqlType::Bool),
    function("has_tablespace_privilege", 2, 3, SqlType::Bool),
    function("has_type_privilege", 2, 3, SqlType::Bool),
    function("has_language_privilege", 2, 3, SqlType::Bool),
    function("pg_has_role", 2, 3, SqlType::Bool),
    function("acldefault", 2, 2, SqlType::Text),
    function("pg_describe_object", 3, 3, SqlType::Text),
    function("row_security_active", 1, 1, SqlType::Bool),
    function("to_regclass", 1, 1, SqlType::Reg(RegKind::Class)),
    function("to_regtype", 1, 1, SqlType::Reg(RegKind::Type)),
    function("to_regproc", 1, 1, SqlType::Reg(RegKind::Proc)),
    function("to_regnamespace", 1, 1, SqlType::Reg(RegKind::Namespace)),
    function("to_regprocedure", 1, 1, SqlType::Reg(RegKind::Procedure)),
    function("to_regrole", 1, 1, SqlType::Reg(RegKind::Role)),
    function("inet_server_addr", 0, 0, SqlType::Text),
    function("inet_server_port", 0, 0, SqlType::Int4),
    function("inet_client_addr", 0, 0, SqlType::Text),
    function("inet_client_port", 0, 0, SqlType::Int4),
    function("pg_stat_get_numscans", 1, 1, SqlType::Int8),
    function("pg_stat_get_live_tuples", 1, 1, SqlType::Int8),
    function("pg_stat_get_dead_tuples", 1, 1, SqlType::Int8),
];

/// A function of the catalogs by its name (lower case, without a schema).
pub fn find(name: &str) -> Option<&'static CatalogFunction> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

fn text(value: impl AsRef<str>) -> Value {
    Value::Text(Arc::from(value.as_ref()))
}

fn oid(value: &Value, context: &Statement) -> Result<Oid, SqlError> {
    Ok(match value {
        Value::Oid(oid) => *oid,
        Value::Int2(n) => *n as Oid,
        Value::Int4(n) => *n as Oid,
        Value::Int8(n) => *n as Oid,
        Value::Text(name) => names::resolve(RegKind::Class, name, Some(&Source::of(context)))?,
        _ => 0,
    })
}

/// Calls a function of the catalogs.
///
/// # Errors
/// 42P01 for a name that does not exist where a relation is asked for by name, and those of reading the catalog.
pub fn call(name: &str, args: &[Value], context: &Statement) -> Result<Value, SqlError> {
    if name == "format_type" {
        return Ok(format_type(args, context)?.map_or(Value::Null, text));
    }
    if args.contains(&Value::Null) {
        return Ok(Value::Null);
    }
    Ok(match name {
        "pg_get_expr" => match &args[0] {
            Value::Text(expr) if args.get(2) == Some(&Value::Bool(true)) => {
                let relation = context.catalog.relation_by_id(oid(&args[1], context)?)?;
                let table = match relation.as_deref() {
                    Some(Relation::Table(table)) => Some(table),
                    _ => None,
                };
                text(definition::pretty(table, expr))
            }
            expr => expr.clone(),
        },
        "oidvectortypes" => match &args[0] {
            Value::Array(types) => {
                let shown =
                    |ty: &Value| names::type_name(ty.as_i64().and_then(|n| Oid::try_from(n).ok()).unwrap_or(0), -1);
                text(types.values.iter().map(shown).collect::<Vec<_>>().join(", "))
            }
            _ => Value::Null,
        },
        "pg_get_indexdef" => index_definition(args, context)?.map_or(Value::Null, text),
        "pg_get_constraintdef" => {
            let pretty = args.get(1) == Some(&Value::Bool(true));
            constraint_definition(oid(&args[0], context)?, pretty, context)?.map_or(Value::Null, text)
        }
        "pg_get_viewdef" => match context.catalog.relation_by_id(oid(&args[0], context)?)?.as_deref() {
            Some(Relation::View(view)) => text(format!(" {};", view_definition(view)?)),
            _ => Value::Null,
        },
        "pg_get_userbyid" => text(if oid(&args[0], context)? == super::OWNER_OID {
            context.settings.user.clone()
        } else {
            format!("unknown (OID={})", oid(&args[0], context)?)
        }),
        "pg_get_serial_sequence" => serial_sequence(&args[0], &args[1], context)?,
        "pg_table_is_visible" => {
            names::is_visible(oid(&args[0], context)?, &Source::of(context))?.map_or(Value::Null, Value::Bool)
        }
        "pg_encoding_to_char" => text(args[0].as_i64().and_then(encodings::name).unwrap_or_default()),
        "pg_char_to_encoding" => {
            Value::Int4(args[0].as_str().and_then(encodings::number).map_or(-1, |number| number as i32))
        }
        "getdatabaseencoding" => text("UTF8"),
        "pg_client_encoding" => text(context.settings.values.get("client_encoding").map_or("UTF8", String::as_str)),
        "pg_get_function_arguments" => signatures::arguments(oid(&args[0], context)?).map_or(Value::Null, text),
        "pg_get_function_identity_arguments" => signatures::identity(oid(&args[0], context)?).map_or(Value::Null, text),
        "pg_get_function_result" => signatures::result(oid(&args[0], context)?).map_or(Value::Null, text),
        "pg_relation_size" | "pg_total_relation_size" | "pg_table_size" | "pg_indexes_size" => {
            oid(&args[0], context)?;
            Value::Int8(0)
        }
        "pg_database_size" => database_size(&args[0], context)?,
        "pg_tablespace_size" | "pg_stat_get_numscans" | "pg_stat_get_live_tuples" | "pg_stat_get_dead_tuples" => {
            Value::Int8(0)
        }
        "col_description" => description(oid(&args[0], context)?, args[1].as_i64().unwrap_or(-1), context)?,
        "obj_description" if args.get(1).is_none_or(|catalog| catalog.as_str() == Some("pg_class")) => {
            description(oid(&args[0], context)?, 0, context)?
        }
        "inet_server_addr" => context.backend.server_addr.map_or(Value::Null, |addr| text(addr.ip().to_string())),
        "inet_server_port" => {
            context.backend.server_addr.map_or(Value::Null, |addr| Value::Int4(i32::from(addr.port())))
        }
        "inet_client_addr" => context.backend.client_addr.map_or(Value::Null, |addr| text(addr.ip().to_string())),
        "inet_client_port" => {
            context.backend.client_addr.map_or(Value::Null, |addr| Value::Int4(i32::from(addr.port())))
        }
        "pg_size_pretty" => text(size_text(&args[0])),
        "pg_relation_filenode" => Value::Oid(oid(&args[0], context)?),
        "pg_tablespace_location" => text(""),
        "pg_relation_is_updatable" => Value::Int4(28),
        "pg_relation_is_publishable" => Value::Bool(oid(&args[0], context)? >= crate::catalog::FIRST_USER_OID),
        "pg_is_other_temp_schema" | "pg_is_in_recovery" | "row_security_active" => Value::Bool(false),
        "pg_my_temp_schema" => Value::Oid(0),
        "pg_sequence_last_value" => {
            let id = oid(&args[0], context)?;
            super::relations::last_value(id, &Source::of(context))?.map_or(Value::Null, Value::Int8)
        }
        "pg_describe_object" => {
            let (class, object) = (oid(&args[0], context)?, oid(&args[1], context)?);
            described(class, object, args[2].as_i64().unwrap_or(0), context)?.map_or(Value::Null, text)
        }
        "acldefault" => default_privileges(&args[0], oid(&args[1], context)?, context)?,
        "to_regclass" => names::to_reg(RegKind::Class, &args[0], &Source::of(context))?,
        "to_regtype" => names::to_reg(RegKind::Type, &args[0], &Source::of(context))?,
        "to_regproc" => names::to_reg(RegKind::Proc, &args[0], &Source::of(context))?,
        "to_regprocedure" => names::to_reg(RegKind::Procedure, &args[0], &Source::of(context))?,
        "to_regrole" => names::to_reg(RegKind::Role, &args[0], &Source::of(context))?,
        "to_regnamespace" => names::to_reg(RegKind::Namespace, &args[0], &Source::of(context))?,
        _ if name.ends_with("_is_visible") || name.starts_with("has_") || name == "pg_has_role" => Value::Bool(true),
        // Descriptions of other objects, statistics objects, functions' and triggers' texts: there are none.
        _ => Value::Null,
    })
}

/// `pg_describe_object`, of relations and their columns, schemas, types and functions.
fn described(class: Oid, object: Oid, part: i64, context: &Statement) -> Result<Option<String>, SqlError> {
    let catalog = super::by_oid(class).map_or("", |table| table.name);
    let source = Source::of(context);
    let print = |kind| names::print(kind, object, Some(&source));
    let known = |kind: &str, name: String| (name != object.to_string()).then(|| format!("{kind} {name}"));
    Ok(match catalog {
        "pg_class" => {
            let name = print(RegKind::Class)?;
            let relation = context.catalog.relation_by_id(object)?;
            let kind = match relation.as_deref() {
                Some(Relation::Table(_)) => "table",
                Some(Relation::View(_)) => "view",
                Some(Relation::Sequence(_)) => "sequence",
                None if object < crate::catalog::FIRST_USER_OID => "table",
                None => "index",
            };
            let column = match relation.as_deref() {
                Some(Relation::Table(table)) => table.columns.iter().find(|column| i64::from(column.id) == part),
                _ => None,
            };
            known(kind, name)
                .map(|whole| column.map_or(whole.clone(), |column| format!("column {} of {whole}", column.name)))
        }
        "pg_namespace" => known("schema", print(RegKind::Namespace)?),
        "pg_type" => known("type", print(RegKind::Type)?),
        "pg_proc" => known("function", print(RegKind::Procedure)?),
        _ => None,
    })
}

/// `acldefault`: what the owner and everybody may do with a new object of a kind, as the text of an `aclitem[]`.
fn default_privileges(kind: &Value, owner: Oid, context: &Statement) -> Result<Value, SqlError> {
    let kind = kind.as_str().unwrap_or_default();
    let (all, own) = match kind {
        "c" => return Ok(text("{}")),
        "r" => ("", "arwdDxt"),
        "s" => ("", "rwU"),
        "d" => ("Tc", "CTc"),
        "f" => ("X", "X"),
        "l" | "T" => ("U", "U"),
        "L" => ("", "rw"),
        "n" => ("", "UC"),
        "p" => ("", "sA"),
        "t" => ("", "C"),
        "F" | "S" => ("", "U"),
        _ => {
            let message = format!("unrecognized objtype abbreviation: {kind}");
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, message));
        }
    };
    let owner = match owner {
        super::OWNER_OID => crate::identifier::quote_identifier(&context.settings.user),
        other => other.to_string(),
    };
    let everybody = if all.is_empty() { String::new() } else { format!("={all}/{owner},") };
    Ok(text(format!("{{{everybody}{owner}={own}/{owner}}}")))
}

/// The comment on a table (place 0) or on one of its columns.
fn description(relation: Oid, place: i64, context: &Statement) -> Result<Value, SqlError> {
    let relation = context.catalog.relation_by_id(relation)?;
    let Some(Relation::Table(table)) = relation.as_deref() else { return Ok(Value::Null) };
    let there = place == 0 || table.columns.iter().any(|column| i64::from(column.id) == place);
    let comment = u16::try_from(place).ok().filter(|_| there).and_then(|place| table.comments.get(&place));
    Ok(comment.map_or(Value::Null, |comment| text(comment.as_str())))
}

/// The size of a database that there is.
fn database_size(which: &Value, context: &Statement) -> Result<Value, SqlError> {
    let databases = context.catalog.known_databases();
    match which {
        Value::Text(name) if !databases.iter().any(|database| database.name == **name) => {
            let message = format!("database \"{}\" does not exist", &**name);
            Err(SqlError::new(SqlState::INVALID_CATALOG_NAME, message))
        }
        Value::Oid(oid) if !databases.iter().any(|database| database.id == *oid) => Ok(Value::Null),
        _ => Ok(Value::Int8(0)),
    }
}

/// `pg_size_pretty`: in the greatest unit that leaves at least five digits' worth, rounded half away from zero.
fn size_text(size: &Value) -> String {
    let mut size = match size {
        Value::Numeric(n) => n.trunc(0).ok().and_then(|n| n.to_i64()).unwrap_or(i64::MAX),
        other => other.as_i64().unwrap_or(0),
    };
    let mut unit = "bytes";
    // From kB on the number is kept doubled, so that half a unit is not lost.
    for next in ["kB", "MB", "GB", "TB", "PB"] {
        let (limit, shift) = if unit == "bytes" { (10 * 1024, 9) } else { (20 * 1024 - 1, 10) };
        if size.unsigned_abs() < limit {
            break;
        }
        size /= 1 << shift;
        unit = next;
    }
    if unit != "bytes" {
        size = (size + size.signum()) / 2;
    }
    format!("{size} {unit}")
}

fn format_type(args: &[Value], context: &Statement) -> Result<Option<String>, SqlError> {
    if args[0] == Value::Null {
        return Ok(None);
    }
    let typmod = match args[1] {
        Value::Int4(n) => n,
        Value::Int8(n) => n as i32,
        Value::Int2(n) => i32::from(n),
        _ => -1,
    };
    let oid = oid(&args[0], context)?;
    Ok(Some(names::type_name(oid, typmod)))
}

fn find_index<R>(
    context: &Statement,
    wanted: Oid,
    f: impl Fn(&Objects, &Table, &crate::catalog::Index) -> R,
) -> Result<Option<R>, SqlError> {
    let source = Source::of(context);
    let objects = Objects::read(&source)?;
    for table in super::relations::user(&objects) {
        if let Some(index) = indexes(table).find(|index| index.id == wanted) {
            return Ok(Some(f(&objects, table, index)));
        }
    }
    Ok(None)
}

fn index_definition(args: &[Value], context: &Statement) -> Result<Option<String>, SqlError> {
    let part = match args.get(1) {
        Some(Value::Int4(n)) => usize::try_from(*n).unwrap_or(0),
        Some(Value::Int2(n)) => usize::try_from(*n).unwrap_or(0),
        Some(Value::Int8(n)) => usize::try_from(*n).unwrap_or(0),
        _ => 0,
    };
    // Pretty: without the schema where the bare name finds the table.
    let pretty = args.get(2) == Some(&Value::Bool(true));
    find_index(context, oid(&args[0], context)?, |objects, table, index| {
        let schema = objects.schema_name(table.schema);
        let hidden = pretty && context.settings.search_path.iter().any(|s| s == schema);
        definition::index((!hidden).then_some(schema), table, index, part, pretty)
    })
}

fn constraint_definition(wanted: Oid, pretty: bool, context: &Statement) -> Result<Option<String>, SqlError> {
    let source = Source::of(context);
    let objects = Objects::read(&source)?;
    for table in super::relations::user(&objects) {
        if let Some(index) = indexes(table).find(|index| index.id == wanted && index.constraint) {
            return Ok(Some(definition::unique(table, index)));
        }
        if let Some(key) = table.foreign_keys.iter().find(|key| key.id == wanted) {
            let path = &context.settings.search_path;
            return definition::foreign_key(context.catalog.as_ref(), &objects, path, table, key).map(Some);
        }
        for (place, check) in table.checks.iter().enumerate() {
            if super::constraints::check_oid(table, place) == wanted {
                return Ok(Some(definition::check(check, pretty)));
            }
        }
    }
    Ok(None)
}

fn serial_sequence(table: &Value, column: &Value, context: &Statement) -> Result<Value, SqlError> {
    let relation = context.catalog.relation_by_id(oid(table, context)?)?;
    let (Some(Relation::Table(table)), Value::Text(column)) = (relation.as_deref(), column) else {
        return Ok(Value::Null);
    };
    let Some(found) = table.columns.iter().find(|c| c.name == **column) else {
        let message = format!("column \"{column}\" of relation \"{}\" does not exist", table.name);
        return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
    };
    let Some(sequence) = found.owned_sequence else { return Ok(Value::Null) };
    let sequence = context.catalog.relation_by_id(sequence)?;
    let Some(Relation::Sequence(sequence)) = sequence.as_deref() else { return Ok(Value::Null) };
    let schemas = context.catalog.schemas()?;
    let schema = schemas.iter().find(|s| s.id == sequence.schema).map_or("public", |s| s.name.as_str());
    Ok(text(quote_qualified(Some(schema), &sequence.name)))
}

/// Numbers of the columns of a table that an expression's text names.
pub(super) fn columns_of(expression: &str, table: &Table) -> Vec<i16> {
    let Ok(parsed) = crate::syntax::parse_expression(expression) else { return Vec::new() };
    let mut found = Vec::new();
    let _ = sqlparser::ast::visit_expressions(&parsed, |expr| {
        let name = match expr {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(parts) => parts.last(),
            _ => None,
        };
        if let Some(name) = name {
            let matches = |c: &&crate::catalog::Column| {
                c.name == name.value || (name.quote_style.is_none() && c.name == name.value.to_lowercase())
            };
            if let Some(column) = table.columns.iter().find(matches)
                && !found.contains(&(column.id as i16))
            {
                found.push(column.id as i16);
            }
        }
        ControlFlow::<()>::Continue(())
    });
    found
}

/// Rows of a function of the catalogs that returns a set, with the names and types of its columns; `None` if it is not one.
pub(crate) fn set_columns(name: &str) -> Option<Vec<(&'static str, SqlType)>> {
    Some(match name {
        "pg_partition_ancestors" => vec![("relid", SqlType::Reg(RegKind::Class))],
        "pg_get_keywords" => vec![
            ("word", SqlType::Text),
            ("catcode", SqlType::SingleChar),
            ("barelabel", SqlType::Bool),
            ("catdesc", SqlType::Text),
            ("baredesc", SqlType::Text),
        ],
        "pg_options_to_table" => vec![("option_name", SqlType::Text), ("option_value", SqlType::Text)],
        "aclexplode" => vec![
            ("grantor", SqlType::Oid),
            ("grantee", SqlType::Oid),
            ("privilege_type", SqlType::Text),
            ("is_grantable", SqlType::Bool),
        ],
        "pg_listening_channels" => vec![("pg_listening_channels", SqlType::Text)],
        _ => return None,
    })
}

/// The name of a function of [`set_columns`].
pub(crate) fn find_set(name: &str) -> Option<&'static str> {
    CATALOG_SETS.iter().copied().find(|known| *known == name)
}

/// The rows of a function of [`set_columns`].
pub(crate) fn set_rows(name: &str) -> Vec<Row> {
    if name != "pg_get_keywords" {
        return Vec::new();
    }
    let row = |keyword: &Keyword| {
        let (category, bare_label) = (keyword.category, Value::Bool(keyword.bare_label));
        vec![text(keyword.word), text(category.code()), bare_label, text(category.description()), text(keyword.label())]
    };
    KEYWORDS.iter().map(row).collect()
}
