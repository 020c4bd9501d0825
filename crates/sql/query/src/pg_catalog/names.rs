//! Objects by name and OIDs as names: what the reg-types (`regclass` and its kin) read and print.

use super::relations::indexes;
use super::{OWNER_OID, Objects, PG_CATALOG_OID, Source, TIMEBALL_INTERNAL, lookup, signatures, tables};
use crate::catalog::CatalogView;
use crate::catalog::{Oid, Relation};
use crate::identifier::{quote_identifier, quote_qualified, split_name};
use crate::types::EvalSettings;
use crate::types::{ObjectNames, RegKind, SqlType, Value};
use crate::{SqlError, SqlState};

/// The names that casts see.
pub struct Known<'a> {
    /// The catalog.
    pub catalog: &'a dyn CatalogView,
    /// Along whose `search_path` names resolve.
    pub settings: &'a EvalSettings,
}

impl Known<'_> {
    fn source(&self) -> Source<'_> {
        Source {
            catalog: self.catalog,
            settings: self.settings,
            backend: None,
            statement: None,
            kv: None,
            sequences: None,
            relation: None,
        }
    }
}

impl ObjectNames for Known<'_> {
    fn resolve(&self, kind: RegKind, name: &str) -> Result<Oid, SqlError> {
        resolve(kind, name, Some(&self.source()))
    }
    fn print(&self, kind: RegKind, oid: Oid) -> Result<String, SqlError> {
        print(kind, oid, Some(&self.source()))
    }
}

/// Place of `prokind` among the columns of `pg_proc`.
const PROC_KIND: usize = 9;
/// Place of `proargtypes` among the columns of `pg_proc`.
const PROC_ARGUMENTS: usize = 19;

/// `'name'::regclass` and its kin. Relations and schemas need a source; a type or a function is found without one.
///
/// # Errors
/// 42P01 and the like if there is no such object; 42602 if the text is no name.
pub fn resolve(kind: RegKind, name: &str, source: Option<&Source<'_>>) -> Result<Oid, SqlError> {
    if let Ok(oid) = name.trim().parse() {
        return Ok(oid);
    }
    if name.trim() == "-" && kind != RegKind::Operator {
        return Ok(0);
    }
    if kind == RegKind::Proc && same_name(name)? > 1 {
        let shown = split_name(name)?.join(".");
        let message = format!("more than one function named \"{shown}\"");
        return Err(SqlError::new(SqlState::AMBIGUOUS_FUNCTION, message));
    }
    if let Some(oid) = find(kind, name, source)? {
        return Ok(oid);
    }
    known_schema(kind, name, source)?;
    Err({
        let (state, what) = match kind {
            RegKind::Operator => {
                let message = format!("operator does not exist: {}", name.trim());
                return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message));
            }
            RegKind::Procedure => {
                let message = format!("function \"{}\" does not exist", name.trim());
                return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message));
            }
            RegKind::Role => (SqlState::UNDEFINED_OBJECT, "role"),
            RegKind::Class => (SqlState::UNDEFINED_TABLE, "relation"),
            RegKind::Type => (SqlState::UNDEFINED_OBJECT, "type"),
            RegKind::Proc => (SqlState::UNDEFINED_FUNCTION, "function"),
            RegKind::Namespace => (SqlState::INVALID_SCHEMA_NAME, "schema"),
        };
        let shown = split_name(name).map_or_else(|_| name.trim().to_owned(), |parts| parts.join("."));
        SqlError::new(state, format!("{what} \"{shown}\" does not exist"))
    })
}

/// How many functions have a name.
fn same_name(name: &str) -> Result<usize, SqlError> {
    let name = split_name(name)?.pop();
    Ok(functions().filter(|(_, function)| Some(*function) == name.as_deref()).count())
}

/// 3F000 if a name names a schema that there is not.
fn known_schema(kind: RegKind, name: &str, source: Option<&Source<'_>>) -> Result<(), SqlError> {
    let (RegKind::Class | RegKind::Type, Ok(parts), Some(source)) = (kind, split_name(name), source) else {
        return Ok(());
    };
    let [schema, _] = parts.as_slice() else { return Ok(()) };
    let built_in = ["pg_catalog", "information_schema", "pg_toast"].contains(&schema.as_str());
    if built_in || source.catalog.schemas()?.iter().any(|known| known.name == *schema) {
        return Ok(());
    }
    Err(SqlError::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{schema}\" does not exist")))
}

/// `to_regclass` and its kin: NULL if there is no such object.
pub(super) fn to_reg(kind: RegKind, name: &Value, source: &Source<'_>) -> Result<Value, SqlError> {
    let Value::Text(name) = name else { return Ok(Value::Null) };
    Ok(find(kind, name, Some(source))?.map_or(Value::Null, Value::Oid))
}

fn find(kind: RegKind, name: &str, source: Option<&Source<'_>>) -> Result<Option<Oid>, SqlError> {
    let needed = |what| source.ok_or_else(|| SqlError::unsupported(what));
    match kind {
        RegKind::Type => {
            let name = name.trim();
            let plain = name.strip_prefix("pg_catalog.").unwrap_or(name);
            let modified = plain.split_once('(').filter(|_| plain.ends_with(')'));
            let plain = modified.map_or(plain, |(name, _)| name.trim());
            match SqlType::from_name(plain) {
                Some(ty) => Ok(Some(ty.oid())),
                None => match split_name(name).as_deref() {
                    Ok([plain]) if listed_type(plain).is_some() => Ok(listed_type(plain)),
                    Ok([schema, plain]) if schema == "pg_catalog" && listed_type(plain).is_some() => {
                        Ok(listed_type(plain))
                    }
                    _ => type_in_sql(name),
                },
            }
        }
        RegKind::Proc => {
            if same_name(name)? > 1 {
                return Ok(None);
            }
            let name = split_name(name)?.pop();
            Ok(functions().find(|(_, function)| Some(*function) == name.as_deref()).map(|(oid, _)| oid))
        }
        RegKind::Procedure => procedure(name),
        // No operator has an OID here.
        RegKind::Operator => Ok(None),
        RegKind::Role => {
            let name = split_name(name)?.pop();
            let user = needed("the name of a role here")?.settings.user.as_str();
            Ok((name.as_deref() == Some(user)).then_some(OWNER_OID))
        }
        RegKind::Namespace => {
            let (name, schemas) = (split_name(name)?.pop(), needed("a schema name here")?.catalog.schemas()?);
            if name.as_deref() == Some("pg_catalog") {
                return Ok(Some(PG_CATALOG_OID));
            }
            Ok(schemas.iter().find(|schema| Some(&schema.name) == name.as_ref()).map(Objects::schema_oid))
        }
        RegKind::Class => {
            let mut parts = split_name(name)?;
            if parts.len() > 3 {
                let message = format!("improper relation name (too many dotted names): {}", name.trim());
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
            let name = parts.pop().unwrap_or_default();
            class(parts.last().map(String::as_str), &name, needed("a relation name here")?)
        }
    }
}

/// A type of `pg_type` by its name there: those that have no values too (`anyelement`).
fn listed_type(name: &str) -> Option<Oid> {
    types().find(|(_, known)| *known == name).map(|(oid, _)| oid)
}

/// A function with the types of its arguments: `substr(text, integer)`.
fn procedure(text: &str) -> Result<Option<Oid>, SqlError> {
    let malformed = |what: &str| SqlError::new(SqlState::INVALID_TEXT, format!("expected a {what}"));
    let (name, rest) = text.split_once('(').ok_or_else(|| malformed("left parenthesis"))?;
    let types = rest.trim_end().strip_suffix(')').ok_or_else(|| malformed("right parenthesis"))?;
    let name = split_name(name)?.pop();
    let types: Vec<String> = types.split(',').filter(|ty| !ty.trim().is_empty()).map(String::from).collect();
    let wanted = argument_types(&types)?;
    let mut named = signatures().filter(|(_, function, _)| Some(*function) == name.as_deref());
    Ok(named.find(|(_, _, arguments)| *arguments == wanted).map(|(oid, _, _)| oid))
}

/// OIDs of types, as `pg_proc` lists those of a function's arguments.
///
/// # Errors
/// 42704 for a type that is not there.
pub fn argument_types(types: &[String]) -> Result<String, SqlError> {
    let oid = |ty: &String| {
        let missing = || SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{}\" does not exist", ty.trim()));
        Ok(find(RegKind::Type, ty, None)?.ok_or_else(missing)?.to_string())
    };
    Ok(types.iter().map(oid).collect::<Result<Vec<_>, SqlError>>()?.join(" "))
}

/// The functions of a name in `pg_proc`: their kind there, and the OIDs of their arguments.
pub fn routines(name: &str) -> impl Iterator<Item = (char, &'static str)> {
    include_str!("data/pg_proc.tsv").lines().filter_map(move |line| {
        let mut cells = line.split('\t').skip(1);
        if cells.next()? != name {
            return None;
        }
        let kind = cells.nth(PROC_KIND - 2)?.chars().next()?;
        Some((kind, cells.nth(PROC_ARGUMENTS - PROC_KIND - 1)?))
    })
}

/// `name(type, type)` of a function.
fn procedure_name(oid: Oid) -> Option<String> {
    let (_, name, arguments) = signatures().find(|(id, _, _)| *id == oid)?;
    let types = arguments.split_ascii_whitespace().filter_map(|ty| ty.parse().ok()).map(|ty| type_name(ty, -1));
    Some(format!("{}({})", quote_identifier(name), types.collect::<Vec<_>>().join(",")))
}

/// OID, name and OIDs of the arguments of each function.
fn signatures() -> impl Iterator<Item = (Oid, &'static str, &'static str)> {
    include_str!("data/pg_proc.tsv").lines().filter_map(|line| {
        let mut cells = line.split('\t');
        Some((cells.next()?.parse().ok()?, cells.next()?, cells.nth(PROC_ARGUMENTS - 2)?))
    })
}

/// A type as SQL writes it: `"pg_catalog"."int4"[]`, `interval second`.
fn type_in_sql(name: &str) -> Result<Option<Oid>, SqlError> {
    if name.is_empty() {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "invalid type name \"\""));
    }
    match SqlType::from_ast(&crate::syntax::parse_type(name)?) {
        Ok(ty) => Ok(Some(ty.oid())),
        Err(error) if error.state == SqlState::UNDEFINED_OBJECT => Ok(None),
        Err(error) => Err(error),
    }
}

fn class(schema: Option<&str>, name: &str, source: &Source<'_>) -> Result<Option<Oid>, SqlError> {
    let internal = || tables().find(|table| table.schema == TIMEBALL_INTERNAL && table.name == name);
    let system = lookup(schema, name).or_else(|| internal().filter(|_| schema == Some(TIMEBALL_INTERNAL)));
    if let Some(system) = system {
        return Ok(Some(system.oid));
    }
    if let Some(relation) = source.catalog.relation(schema, name)? {
        return Ok(Some(relation_parts(&relation).0));
    }
    let objects = Objects::read(source)?;
    for table in super::relations::user(&objects) {
        let home = objects.schema_name(table.schema);
        let reachable =
            schema.map_or_else(|| source.settings.search_path.iter().any(|s| s == home), |schema| schema == home);
        if let Some(index) = indexes(table).find(|index| reachable && index.name == name) {
            return Ok(Some(index.id));
        }
    }
    Ok(None)
}

/// OID, schema and name of a relation.
fn relation_parts(relation: &Relation) -> (Oid, Oid, &str) {
    match relation {
        Relation::Table(t) => (t.id, t.schema, &t.name),
        Relation::View(v) => (v.id, v.schema, &v.name),
        Relation::Sequence(s) => (s.id, s.schema, &s.name),
    }
}

/// Schema, name, and whether the bare name finds it.
struct Found {
    schema: String,
    name: String,
    visible: bool,
}

fn find_class(oid: Oid, source: &Source<'_>) -> Result<Option<Found>, SqlError> {
    if let Some(system) = super::by_oid(oid) {
        let visible = system.schema_oid() == PG_CATALOG_OID;
        return Ok(Some(Found { schema: system.schema.into(), name: system.name.into(), visible }));
    }
    let schemas = source.catalog.schemas()?;
    let schema_name = |id: Oid| schemas.iter().find(|s| s.id == id).map_or("public", |s| s.name.as_str()).to_string();
    if let Some(relation) = source.catalog.relation_by_id(oid)? {
        let (_, schema, name) = relation_parts(&relation);
        let first = source.catalog.relation(None, name)?;
        let visible = first.is_some_and(|first| relation_parts(&first).0 == oid);
        return Ok(Some(Found { schema: schema_name(schema), name: name.into(), visible }));
    }
    let objects = Objects::read(source)?;
    for table in super::relations::user(&objects) {
        if let Some(index) = indexes(table).find(|index| index.id == oid) {
            let schema = schema_name(table.schema);
            let visible = source.settings.search_path.contains(&schema);
            return Ok(Some(Found { schema, name: index.name.clone(), visible }));
        }
    }
    Ok(None)
}

/// `pg_table_is_visible`: `None` if there is no such relation.
pub(super) fn is_visible(oid: Oid, source: &Source<'_>) -> Result<Option<bool>, SqlError> {
    Ok(find_class(oid, source)?.map(|found| found.visible))
}

/// What an OID of a reg-type prints as: a name, with its schema if the bare name would not find it, or the number if it names nothing.
///
/// # Errors
/// Those of reading the catalog.
pub fn print(kind: RegKind, oid: Oid, source: Option<&Source<'_>>) -> Result<String, SqlError> {
    if oid == 0 && kind != RegKind::Operator {
        return Ok("-".into());
    }
    let name = match (kind, source) {
        (RegKind::Class, Some(source)) => find_class(oid, source)?
            .map(|found| quote_qualified(Some(found.schema.as_str()).filter(|_| !found.visible), &found.name)),
        (RegKind::Namespace, _) if oid == PG_CATALOG_OID => Some("pg_catalog".into()),
        (RegKind::Namespace, Some(source)) => {
            let schemas = source.catalog.schemas()?;
            let found = schemas.iter().find(|schema| Objects::schema_oid(schema) == oid);
            found.map(|schema| quote_identifier(&schema.name))
        }
        (RegKind::Class | RegKind::Namespace | RegKind::Role, None) | (RegKind::Operator, _) => None,
        (RegKind::Role, Some(source)) => (oid == OWNER_OID).then(|| quote_identifier(&source.settings.user)),
        (RegKind::Procedure, _) => procedure_name(oid),
        (RegKind::Type, _) => Some(type_name(oid, -1)).filter(|name| name != "???"),
        (RegKind::Proc, _) => functions().find(|(id, _)| *id == oid).map(|(_, name)| name.to_string()),
    };
    Ok(name.unwrap_or_else(|| oid.to_string()))
}

/// `format_type`
pub(super) fn type_name(oid: Oid, typmod: i32) -> String {
    match SqlType::from_oid(oid) {
        _ if oid == 0 => "-".into(),
        Some(ty) => ty.with_typmod(typmod).to_string(),
        // Types that we list but do not have: their name in pg_type.
        None => match types().find(|(id, _)| *id == oid) {
            Some((_, name)) => quote_identifier(name),
            None => signatures::unlisted_type(oid).unwrap_or("???").into(),
        },
    }
}

fn first_two(text: &'static str) -> impl Iterator<Item = (Oid, &'static str)> {
    text.lines().filter_map(|line| {
        let mut cells = line.split('\t');
        Some((cells.next()?.parse().ok()?, cells.next()?))
    })
}

fn functions() -> impl Iterator<Item = (Oid, &'static str)> {
    first_two(include_str!("data/pg_proc.tsv"))
}

fn types() -> impl Iterator<Item = (Oid, &'static str)> {
    first_two(include_str!("data/pg_type.tsv"))
}
