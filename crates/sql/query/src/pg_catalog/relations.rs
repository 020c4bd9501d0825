//! Catalogs of schemas, relations and columns.

use super::rows::{RowBuilder, oid_vector, text_array};
use super::{OWNER_OID, Objects, Source, VirtualTable, listed};
use crate::SqlError;
use crate::catalog::{Collation, Column, Identity, Index, IndexColumn, Oid, Relation, Table};
use crate::types::{Row, SqlType, Value};

/// OID of `pg_class` as a catalog: what `pg_depend` and `pg_description` say an object is.
pub(super) const PG_CLASS_OID: Oid = 1259;
/// OID of `pg_namespace` as a catalog.
pub(super) const PG_NAMESPACE_OID: Oid = 2615;
/// The schema that each database has, and what is said of it.
const PUBLIC: &str = "public";
const PUBLIC_COMMENT: &str = "standard public schema";

/// The collation of a column.
fn column_collation(column: &Column) -> Oid {
    column.collation.map_or_else(|| collation(&column.ty), Collation::oid)
}

/// The collations of an index's keys.
fn index_collations(table: &Table, index: &Index) -> Vec<Oid> {
    let of = |(part, ty): (&IndexColumn, &SqlType)| {
        let column = table.columns.iter().find(|column| column.id == part.column);
        match (part.collation, column) {
            (Some(said), _) => said.oid(),
            (None, Some(column)) => column_collation(column),
            (None, None) => collation(ty),
        }
    };
    index.columns.iter().zip(&index_types(table, index)).map(of).collect()
}

/// The collation of a type: 0 if it has none.
pub(super) fn collation(ty: &SqlType) -> Oid {
    match ty {
        SqlType::Name => Collation::C.oid(),
        SqlType::Array(element) => collation(element),
        ty if ty.is_collatable() => Collation::Default.oid(),
        _ => 0,
    }
}

/// The indexes of a table that users see.
pub(super) fn indexes(table: &Table) -> impl Iterator<Item = &Index> {
    table.has_primary_key.then_some(&table.primary).into_iter().chain(&table.indexes)
}

pub(super) fn rows(table: &VirtualTable, source: &Source<'_>) -> Result<Option<Vec<Row>>, SqlError> {
    if table.name == "pg_sequences" {
        return sequences(table, source, &Objects::read(source)?).map(Some);
    }
    let produce = match table.name {
        "pg_class" => classes,
        "pg_attribute" => attributes,
        "pg_attrdef" => defaults,
        "pg_description" => descriptions,
        "pg_namespace" => namespaces,
        "pg_tables" => user_tables,
        "pg_views" => views,
        "pg_indexes" => index_definitions,
        "pg_sequence" => sequence_numbers,
        "pg_stat_user_indexes" | "pg_stat_all_indexes" => index_statistics,
        _ => return Ok(None),
    };
    let objects = Objects::read(source)?;
    Ok(Some(produce(table, source, &objects)))
}

fn namespaces(table: &VirtualTable, source: &Source<'_>, objects: &Objects) -> Vec<Row> {
    let owner = crate::identifier::quote_identifier(&source.settings.user);
    let row = |schema: &crate::catalog::Schema| {
        let row = RowBuilder::new(table).set("oid", Objects::schema_oid(schema)).set("nspname", schema.name.as_str());
        let row = match schema.name == PUBLIC {
            // As in a new PostgreSQL: pg_dump writes down what differs from that.
            true => row.set("nspacl", text_array([format!("{owner}=UC/{owner}"), format!("=U/{owner}")])),
            false => row,
        };
        row.set("nspowner", OWNER_OID).done()
    };
    objects.schemas.iter().map(row).collect()
}

struct Class<'a> {
    oid: Oid,
    name: &'a str,
    schema: Oid,
    kind: &'a str,
    columns: usize,
    access_method: Oid,
}

fn class<'t>(table: &'t VirtualTable, class: &Class<'_>) -> RowBuilder<'t> {
    RowBuilder::new(table)
        .set("oid", class.oid)
        .set("relname", class.name)
        .set("relnamespace", class.schema)
        .set("relowner", OWNER_OID)
        .set("relam", class.access_method)
        .set("relfilenode", if class.kind == "v" { 0 } else { class.oid })
        .set("reltuples", -1)
        .set("relpersistence", "p")
        .set("relkind", class.kind)
        .set("relnatts", class.columns as i64)
        .set("relispopulated", true)
        .set("relreplident", if class.kind == "r" { "d" } else { "n" })
}

fn classes(table: &VirtualTable, source: &Source<'_>, objects: &Objects) -> Vec<Row> {
    let mut rows = Vec::new();
    for relation in &objects.relations {
        match relation.as_ref() {
            Relation::Table(t) => {
                let kind = Class {
                    oid: t.id,
                    name: &t.name,
                    schema: schema(objects, t.schema),
                    kind: "r",
                    columns: usize::from(t.next_column.saturating_sub(1)),
                    access_method: 2,
                };
                let keys = !t.foreign_keys.is_empty() || !t.referenced_by.is_empty();
                let known = super::statistics::of(t.id, source);
                let row = class(table, &kind)
                    .set("reltuples", known.map_or(-1, |known| i64::try_from(known.rows).unwrap_or(i64::MAX)))
                    .set("relhasindex", indexes(t).next().is_some())
                    .set("relchecks", t.checks.len() as i64);
                let options = t.retention.iter().map(|retention| format!("retention={}", retention.text));
                let options = t.retention.is_some().then(|| text_array(options));
                rows.push(row.set("relhastriggers", keys).set("reloptions", options).done());
                for index in indexes(t) {
                    let columns = index.columns.len() + index.include.len();
                    let kind = Class {
                        oid: index.id,
                        name: &index.name,
                        schema: kind.schema,
                        kind: "i",
                        columns,
                        access_method: 403,
                    };
                    rows.push(class(table, &kind).done());
                }
            }
            Relation::View(v) => {
                let kind = Class {
                    oid: v.id,
                    name: &v.name,
                    schema: schema(objects, v.schema),
                    kind: "v",
                    columns: v.columns.len(),
                    access_method: 0,
                };
                rows.push(class(table, &kind).set("relhasrules", true).done());
            }
            Relation::Sequence(s) => {
                let kind = Class {
                    oid: s.id,
                    name: &s.name,
                    schema: schema(objects, s.schema),
                    kind: "S",
                    columns: 3,
                    access_method: 0,
                };
                rows.push(class(table, &kind).done());
            }
        }
    }
    for system in listed(source).filter(|system| source.relation.is_none_or(|oid| oid == system.oid)) {
        let kind = if system.is_view { "v" } else { "r" };
        let kind = Class {
            oid: system.oid,
            name: system.name,
            schema: system.schema_oid(),
            kind,
            columns: system.columns.len(),
            access_method: if system.is_view { 0 } else { 2 },
        };
        rows.push(class(table, &kind).done());
    }
    rows
}

fn schema(objects: &Objects, id: Oid) -> Oid {
    objects.schemas.iter().find(|schema| schema.id == id).map_or(id, Objects::schema_oid)
}

fn alignment(ty: &SqlType) -> &'static str {
    match ty {
        SqlType::Name | SqlType::Uuid => return "c",
        SqlType::Array(element) => return if alignment(element) == "d" { "d" } else { "i" },
        _ => {}
    }
    match ty.typlen() {
        1 => "c",
        2 => "s",
        8 | 12 | 16 => "d",
        _ => "i",
    }
}

fn attribute<'t>(table: &'t VirtualTable, relation: Oid, name: &str, number: i64, ty: &SqlType) -> RowBuilder<'t> {
    let storage = match ty {
        SqlType::Numeric(_) => "m",
        _ if ty.typlen() < 0 => "x",
        _ => "p",
    };
    RowBuilder::new(table)
        .set("attrelid", relation)
        .set("attname", name)
        .set("atttypid", ty.oid())
        .set("attstattarget", -1)
        .set("attlen", i64::from(ty.typlen()))
        .set("attnum", number)
        .set("attndims", i64::from(matches!(ty, SqlType::Array(_))))
        .set("attcacheoff", -1)
        .set("atttypmod", ty.typmod())
        .set("attbyval", (1..=8).contains(&ty.typlen()))
        .set("attalign", alignment(ty))
        .set("attstorage", storage)
        .set("attislocal", true)
        .set("attcollation", collation(ty))
}

fn attributes(table: &VirtualTable, source: &Source<'_>, objects: &Objects) -> Vec<Row> {
    let mut rows = Vec::new();
    for relation in &objects.relations {
        match relation.as_ref() {
            Relation::Table(t) => table_attributes(table, t, &mut rows),
            Relation::View(v) => {
                let columns = v.columns.iter().zip(1..);
                rows.extend(columns.map(|((name, ty), number)| attribute(table, v.id, name, number, ty).done()));
            }
            Relation::Sequence(s) => {
                let columns = [("last_value", SqlType::Int8), ("log_cnt", SqlType::Int8), ("is_called", SqlType::Bool)];
                for ((name, ty), number) in columns.iter().zip(1..) {
                    rows.push(attribute(table, s.id, name, number, ty).set("attnotnull", true).done());
                }
            }
        }
    }
    for system in listed(source).filter(|system| source.relation.is_none_or(|oid| oid == system.oid)) {
        let columns = system.columns.iter().zip(1..);
        rows.extend(
            columns.map(|(column, number)| attribute(table, system.oid, column.name, number, &column.ty).done()),
        );
    }
    rows
}

fn table_attributes(table: &VirtualTable, t: &Table, rows: &mut Vec<Row>) {
    for column in &t.columns {
        let identity = match column.identity {
            Some(Identity::Always) => "a",
            Some(Identity::ByDefault) => "d",
            None => "",
        };
        let row = attribute(table, t.id, &column.name, i64::from(column.id), &column.ty)
            .set("attnotnull", !column.nullable)
            .set("atthasdef", column.generated.is_some() || column.default.is_some() && column.identity.is_none())
            .set("attgenerated", if column.generated.is_some() { "s" } else { "" })
            .set("attidentity", identity)
            .set("attcollation", column_collation(column));
        rows.push(row.done());
    }
    // Readers count columns by these numbers, so one that was dropped keeps its place.
    for id in (1..t.next_column).filter(|id| !t.columns.iter().any(|column| column.id == *id)) {
        let name = format!("........pg.dropped.{id}........");
        let row = attribute(table, t.id, &name, i64::from(id), &SqlType::Text);
        rows.push(row.set("atttypid", Oid::default()).set("attstattarget", 0).set("attisdropped", true).done());
    }
    for index in indexes(t) {
        let (names, types) = (super::definition::key_names(t, index), index_types(t, index));
        // What is included is not compared.
        let collations = index_collations(t, index).into_iter().chain(std::iter::repeat(0));
        for (((name, ty), collation), number) in names.iter().zip(&types).zip(collations).zip(1..) {
            rows.push(attribute(table, index.id, name, number, ty).set("attcollation", collation).done());
        }
    }
}

/// Comments on tables and their columns.
fn descriptions(table: &VirtualTable, _: &Source<'_>, objects: &Objects) -> Vec<Row> {
    let public = objects.schemas.iter().filter(|schema| schema.name == PUBLIC).map(|schema| {
        let row = RowBuilder::new(table).set("objoid", Objects::schema_oid(schema));
        row.set("classoid", PG_NAMESPACE_OID).set("objsubid", 0).set("description", PUBLIC_COMMENT).done()
    });
    let mut rows: Vec<Row> = public.collect();
    for t in user(objects) {
        let there = |place: u16| place == 0 || t.columns.iter().any(|column| column.id == place);
        for (place, text) in t.comments.iter().filter(|(place, _)| there(**place)) {
            let row = RowBuilder::new(table)
                .set("objoid", t.id)
                .set("classoid", PG_CLASS_OID)
                .set("objsubid", i64::from(*place))
                .set("description", text.as_str());
            rows.push(row.done());
        }
    }
    rows
}

/// OID shown for the default of a column.
pub(super) fn default_oid(table: &Table, column: &Column) -> Oid {
    table.id.wrapping_mul(1024).wrapping_add(u32::from(column.id))
}

fn defaults(table: &VirtualTable, source: &Source<'_>, objects: &Objects) -> Vec<Row> {
    let mut rows = Vec::new();
    for t in user(objects) {
        for column in &t.columns {
            let generated = super::definition::generated(t, column);
            if let Some(default) =
                generated.or_else(|| super::definition::default_text(column, &source.settings.search_path))
            {
                let row = RowBuilder::new(table)
                    .set("oid", default_oid(t, column))
                    .set("adrelid", t.id)
                    .set("adnum", i64::from(column.id))
                    .set("adbin", default);
                rows.push(row.done());
            }
        }
    }
    rows
}

/// The user's tables.
pub(super) fn user(objects: &Objects) -> impl Iterator<Item = &Table> {
    objects.relations.iter().filter_map(|relation| match relation.as_ref() {
        Relation::Table(table) => Some(table),
        _ => None,
    })
}

fn user_tables(table: &VirtualTable, source: &Source<'_>, objects: &Objects) -> Vec<Row> {
    let row = |schema: &str, name: &str, has_indexes: bool| {
        let row = RowBuilder::new(table).set("schemaname", schema).set("tablename", name);
        row.set("tableowner", source.settings.user.as_str()).set("hasindexes", has_indexes)
    };
    let users = user(objects).map(|t| row(objects.schema_name(t.schema), &t.name, indexes(t).next().is_some()));
    let system = listed(source).filter(|system| !system.is_view).map(|system| row(system.schema, system.name, false));
    users.chain(system).map(RowBuilder::done).collect()
}

fn views(table: &VirtualTable, source: &Source<'_>, objects: &Objects) -> Vec<Row> {
    let row = |schema: &str, name: &str, query: Option<&str>| {
        let row = RowBuilder::new(table).set("schemaname", schema).set("viewname", name);
        row.set("viewowner", source.settings.user.as_str()).set("definition", query).done()
    };
    let mut rows: Vec<Row> =
        listed(source).filter(|system| system.is_view).map(|system| row(system.schema, system.name, None)).collect();
    for relation in &objects.relations {
        if let Relation::View(v) = relation.as_ref() {
            rows.push(row(objects.schema_name(v.schema), &v.name, Some(&format!(" {};", v.query))));
        }
    }
    rows
}

fn index_definitions(table: &VirtualTable, _: &Source<'_>, objects: &Objects) -> Vec<Row> {
    let mut rows = Vec::new();
    for t in user(objects) {
        let schema = objects.schema_name(t.schema);
        for index in indexes(t) {
            let row = RowBuilder::new(table)
                .set("schemaname", schema)
                .set("tablename", t.name.as_str())
                .set("indexname", index.name.as_str())
                .set("indexdef", super::definition::index(Some(schema), t, index, 0, false));
            rows.push(row.done());
        }
    }
    rows
}

fn user_sequences(objects: &Objects) -> impl Iterator<Item = &crate::catalog::Sequence> {
    objects.relations.iter().filter_map(|relation| match relation.as_ref() {
        Relation::Sequence(sequence) => Some(sequence),
        _ => None,
    })
}

fn sequence_numbers(table: &VirtualTable, _: &Source<'_>, objects: &Objects) -> Vec<Row> {
    let row = |s: &crate::catalog::Sequence| {
        RowBuilder::new(table)
            .set("seqrelid", s.id)
            .set("seqtypid", s.ty.oid())
            .set("seqstart", s.start)
            .set("seqincrement", s.increment)
            .set("seqmax", s.max)
            .set("seqmin", s.min)
            .set("seqcache", s.cache)
            .set("seqcycle", s.cycle)
            .done()
    };
    user_sequences(objects).map(row).collect()
}

/// Where a sequence stands, once it gave a number.
pub(super) fn last_value(sequence: Oid, source: &Source<'_>) -> Result<Option<i64>, SqlError> {
    let position = source.sequences.map(|sequences| sequences.position(sequence)).transpose()?;
    Ok(position.filter(|(_, is_called)| *is_called).map(|(value, _)| value))
}

fn sequences(table: &VirtualTable, source: &Source<'_>, objects: &Objects) -> Result<Vec<Row>, SqlError> {
    let row = |s: &crate::catalog::Sequence| {
        let row = RowBuilder::new(table)
            .set("schemaname", objects.schema_name(s.schema))
            .set("sequencename", s.name.as_str())
            .set("sequenceowner", source.settings.user.as_str())
            .set("data_type", s.ty.oid())
            .set("start_value", s.start)
            .set("min_value", s.min)
            .set("max_value", s.max)
            .set("increment_by", s.increment)
            .set("cycle", s.cycle)
            .set("cache_size", s.cache)
            .set("last_value", last_value(s.id, source)?);
        Ok(row.done())
    };
    user_sequences(objects).map(row).collect()
}

fn index_statistics(table: &VirtualTable, _: &Source<'_>, objects: &Objects) -> Vec<Row> {
    let mut rows = Vec::new();
    for t in user(objects) {
        for index in indexes(t) {
            let row = RowBuilder::new(table)
                .set("relid", t.id)
                .set("indexrelid", index.id)
                .set("schemaname", objects.schema_name(t.schema))
                .set("relname", t.name.as_str())
                .set("indexrelname", index.name.as_str());
            rows.push(row.done());
        }
    }
    rows
}

/// The default operator class of an index column's type.
pub(super) fn operator_class(ty: &SqlType) -> Oid {
    match ty {
        SqlType::Bool => 10_003,
        SqlType::Bytea => 10_006,
        SqlType::Char(_) => 10_004,
        SqlType::Date => 3122,
        SqlType::Float4 => 10_012,
        SqlType::Float8 => 3123,
        SqlType::Int2 => 1979,
        SqlType::Int4 => 1978,
        SqlType::Int8 => 3124,
        SqlType::Interval(_) => 10_022,
        SqlType::Name => 10_028,
        SqlType::Numeric(_) => 3125,
        SqlType::Oid => 1981,
        SqlType::Time(_) => 10_038,
        SqlType::Timetz(_) => 10_041,
        SqlType::Timestamp(_) => 3128,
        SqlType::Timestamptz(_) => 3127,
        SqlType::Uuid => 10_065,
        SqlType::Jsonb => 10_088,
        SqlType::Array(_) => 10_000,
        _ => 3126,
    }
}

/// Types of an index's columns, INCLUDE's behind the keys.
fn index_types(table: &Table, index: &Index) -> Vec<SqlType> {
    let column = |part: &IndexColumn| match &part.expression {
        Some(_) => super::definition::expression(table, part).map(|expr| expr.ty()),
        None => table.columns.iter().find(|column| column.id == part.column).map(|column| column.ty.clone()),
    };
    let included = index.include.iter().map(|id| IndexColumn::column(*id, false)).collect::<Vec<_>>();
    index.columns.iter().chain(&included).map(|part| column(part).unwrap_or(SqlType::Text)).collect()
}

/// Vectors of an index's keys: collations and operator classes.
pub(super) fn index_vectors(table: &Table, index: &Index) -> (Value, Value) {
    let mut types = index_types(table, index);
    types.truncate(index.columns.len());
    (oid_vector(index_collations(table, index)), oid_vector(types.iter().map(operator_class)))
}
