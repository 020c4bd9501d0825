//! `information_schema`: the standard's views of the same objects.

use super::constraints::referenced_index;
use super::definition::column_name;
use super::relations::{collation, indexes, user};
use super::rows::RowBuilder;
use super::{Objects, Source, VirtualTable, listed};
use crate::SqlError;
use crate::catalog::{Column, Deferral, ForeignKey, Identity, Index, ReferentialAction, Relation, Table};
use crate::types::{Row, SqlType};

pub(super) fn rows(table: &VirtualTable, source: &Source<'_>) -> Result<Vec<Row>, SqlError> {
    let objects = Objects::read(source)?;
    Ok(match table.name {
        "information_schema_catalog_name" => {
            vec![RowBuilder::new(table).set("catalog_name", source.settings.database.as_str()).done()]
        }
        "enabled_roles" => vec![RowBuilder::new(table).set("role_name", source.settings.user.as_str()).done()],
        "schemata" => schemata(table, source, &objects),
        "tables" => relations(table, source, &objects),
        "views" => views(table, source, &objects),
        "columns" => columns(table, source, &objects),
        "sequences" => sequences(table, source, &objects),
        "table_constraints" => table_constraints(table, source, &objects),
        "check_constraints" => check_constraints(table, source, &objects),
        "key_column_usage" => key_columns(table, source, &objects)?,
        "referential_constraints" => referential(table, source, &objects)?,
        "constraint_column_usage" => constraint_columns(table, source, &objects)?,
        _ => Vec::new(),
    })
}

fn yes_no(yes: bool) -> &'static str {
    if yes { "YES" } else { "NO" }
}

fn schemata(table: &VirtualTable, source: &Source<'_>, objects: &Objects) -> Vec<Row> {
    let row = |schema: &crate::catalog::Schema| {
        RowBuilder::new(table)
            .set("catalog_name", source.settings.database.as_str())
            .set("schema_name", schema.name.as_str())
            .set("schema_owner", source.settings.user.as_str())
            .done()
    };
    objects.schemas.iter().map(row).collect()
}

/// A row that begins with the three parts of a relation's name.
fn named<'t>(table: &'t VirtualTable, source: &Source<'_>, schema: &str, name: &str) -> RowBuilder<'t> {
    RowBuilder::new(table)
        .set("table_catalog", source.settings.database.as_str())
        .set("table_schema", schema)
        .set("table_name", name)
}

fn relations(table: &VirtualTable, source: &Source<'_>, objects: &Objects) -> Vec<Row> {
    let row = |schema: &str, name: &str, is_view: bool, insertable: bool| {
        named(table, source, schema, name)
            .set("table_type", if is_view { "VIEW" } else { "BASE TABLE" })
            .set("is_insertable_into", yes_no(insertable))
            .set("is_typed", "NO")
            .done()
    };
    let mut rows: Vec<Row> =
        listed(source).map(|system| row(system.schema, system.name, system.is_view, false)).collect();
    for relation in &objects.relations {
        match relation.as_ref() {
            Relation::Table(t) => rows.push(row(objects.schema_name(t.schema), &t.name, false, true)),
            Relation::View(v) => rows.push(row(objects.schema_name(v.schema), &v.name, true, false)),
            Relation::Sequence(_) => {}
        }
    }
    rows
}

fn views(table: &VirtualTable, source: &Source<'_>, objects: &Objects) -> Vec<Row> {
    let mut rows = Vec::new();
    for relation in &objects.relations {
        if let Relation::View(v) = relation.as_ref() {
            let flags = [
                "is_updatable",
                "is_insertable_into",
                "is_trigger_updatable",
                "is_trigger_deletable",
                "is_trigger_insertable_into",
            ];
            let row = named(table, source, objects.schema_name(v.schema), &v.name)
                .set("view_definition", format!(" {};", v.query));
            rows.push(flags.iter().fold(row.set("check_option", "NONE"), |row, flag| row.set(flag, "NO")).done());
        }
    }
    rows
}

/// Bits or digits of a number type, their base, and the scale.
fn precision(ty: &SqlType) -> Option<(i64, i64, Option<i64>)> {
    Some(match ty {
        SqlType::Int2 => (16, 2, Some(0)),
        SqlType::Int4 => (32, 2, Some(0)),
        SqlType::Int8 => (64, 2, Some(0)),
        SqlType::Float4 => (24, 2, None),
        SqlType::Float8 => (53, 2, None),
        SqlType::Numeric(Some((digits, scale))) => (i64::from(*digits), 10, Some(i64::from(*scale))),
        _ => return None,
    })
}

fn typed<'t>(row: RowBuilder<'t>, source: &Source<'_>, ty: &SqlType) -> RowBuilder<'t> {
    let length = match ty {
        SqlType::Varchar(length) => length.map(i64::from),
        SqlType::Char(length) => Some(i64::from(*length)),
        _ => None,
    };
    let octets = if collation(ty) == 100 { Some(length.map_or(1 << 30, |n| n * 4)) } else { None };
    let fraction = match ty {
        SqlType::Date => Some(0i64),
        SqlType::Time(digits) | SqlType::Timetz(digits) | SqlType::Timestamp(digits) | SqlType::Timestamptz(digits) => {
            Some(digits.map_or(6, i64::from))
        }
        SqlType::Interval(modifier) => Some(modifier.and_then(|modifier| modifier.precision).map_or(6, i64::from)),
        _ => None,
    };
    let base = match ty {
        SqlType::Array(_) | SqlType::Int2Vector | SqlType::OidVector => "ARRAY".to_string(),
        other => other.base().to_string(),
    };
    let numbers = precision(ty);
    row.set("data_type", base)
        .set("character_maximum_length", length)
        .set("character_octet_length", octets.filter(|_| !matches!(ty, SqlType::Array(_))))
        .set("numeric_precision", numbers.map(|n| n.0))
        .set("numeric_precision_radix", if matches!(ty, SqlType::Numeric(_)) { Some(10) } else { numbers.map(|n| n.1) })
        .set("numeric_scale", numbers.and_then(|n| n.2))
        .set("datetime_precision", fraction)
        .set("udt_catalog", source.settings.database.as_str())
        .set("udt_schema", "pg_catalog")
        .set("udt_name", ty.typname())
        .set("is_self_referencing", "NO")
        .set("is_generated", "NEVER")
}

fn column<'t>(
    table: &'t VirtualTable,
    source: &Source<'_>,
    relation: (&str, &str),
    name: &str,
    number: i64,
    ty: &SqlType,
) -> RowBuilder<'t> {
    let row = named(table, source, relation.0, relation.1)
        .set("column_name", name)
        .set("ordinal_position", number)
        .set("dtd_identifier", number.to_string())
        .set("is_nullable", "YES")
        .set("is_identity", "NO")
        .set("identity_cycle", "NO")
        .set("is_updatable", "NO");
    typed(row, source, ty)
}

fn columns(table: &VirtualTable, source: &Source<'_>, objects: &Objects) -> Vec<Row> {
    let mut rows = Vec::new();
    for relation in &objects.relations {
        match relation.as_ref() {
            Relation::Table(t) => {
                let name = (objects.schema_name(t.schema), t.name.as_str());
                rows.extend(t.columns.iter().map(|c| table_column(table, source, name, t, c)));
            }
            Relation::View(v) => {
                let name = (objects.schema_name(v.schema), v.name.as_str());
                let columns = v.columns.iter().zip(1..);
                rows.extend(
                    columns
                        .map(|((column_name, ty), number)| column(table, source, name, column_name, number, ty).done()),
                );
            }
            Relation::Sequence(_) => {}
        }
    }
    for system in listed(source) {
        let name = (system.schema, system.name);
        let columns = system.columns.iter().zip(1..);
        rows.extend(columns.map(|(c, number)| column(table, source, name, c.name, number, &c.ty).done()));
    }
    rows
}

fn table_column(
    table: &VirtualTable,
    source: &Source<'_>,
    relation: (&str, &str),
    t: &crate::catalog::Table,
    c: &Column,
) -> Row {
    let default = super::definition::default_text(c, &source.settings.search_path);
    let generation = c.identity.map(|identity| match identity {
        Identity::Always => "ALWAYS",
        Identity::ByDefault => "BY DEFAULT",
    });
    column(table, source, relation, &c.name, i64::from(c.id), &c.ty)
        .set("column_default", default)
        .set("is_nullable", yes_no(c.nullable))
        .set("is_identity", yes_no(c.identity.is_some()))
        .set("identity_generation", generation)
        .set("is_generated", if c.generated.is_some() { "ALWAYS" } else { "NEVER" })
        .set("generation_expression", super::definition::generated(t, c))
        .set("is_updatable", "YES")
        .set("collation_catalog", c.collation.map(|_| source.settings.database.as_str()))
        .set("collation_schema", c.collation.map(|_| "pg_catalog"))
        .set("collation_name", c.collation.map(|said| said.name()))
        .done()
}

fn sequences(table: &VirtualTable, source: &Source<'_>, objects: &Objects) -> Vec<Row> {
    let mut rows = Vec::new();
    for relation in &objects.relations {
        if let Relation::Sequence(s) = relation.as_ref() {
            let row = RowBuilder::new(table)
                .set("sequence_catalog", source.settings.database.as_str())
                .set("sequence_schema", objects.schema_name(s.schema))
                .set("sequence_name", s.name.as_str())
                .set("data_type", s.ty.to_string())
                .set("numeric_precision", precision(&s.ty).map(|p| p.0))
                .set("numeric_precision_radix", 2)
                .set("numeric_scale", 0)
                .set("start_value", s.start.to_string())
                .set("minimum_value", s.min.to_string())
                .set("maximum_value", s.max.to_string())
                .set("increment", s.increment.to_string())
                .set("cycle_option", yes_no(s.cycle));
            rows.push(row.done());
        }
    }
    rows
}

fn constrained<'t>(table: &'t VirtualTable, source: &Source<'_>, schema: &str, name: &str) -> RowBuilder<'t> {
    RowBuilder::new(table)
        .set("constraint_catalog", source.settings.database.as_str())
        .set("constraint_schema", schema)
        .set("constraint_name", name)
}

fn is_primary(t: &Table, index: &Index) -> bool {
    t.has_primary_key && index.id == t.primary.id
}

/// The name under which PostgreSQL 15 shows a NOT NULL constraint.
fn not_null_name(schema: u32, t: &Table, column: &Column) -> String {
    format!("{schema}_{}_{}_not_null", t.id, column.id)
}

fn table_constraints(table: &VirtualTable, source: &Source<'_>, objects: &Objects) -> Vec<Row> {
    let mut rows = Vec::new();
    for t in user(objects) {
        let schema = objects.schema_name(t.schema);
        let mut add = |name: &str, kind: &str, deferral: Deferral| {
            let row = constrained(table, source, schema, name)
                .set("table_catalog", source.settings.database.as_str())
                .set("table_schema", schema)
                .set("table_name", t.name.as_str())
                .set("constraint_type", kind)
                .set("is_deferrable", yes_no(deferral != Deferral::NotDeferrable))
                .set("initially_deferred", yes_no(deferral == Deferral::InitiallyDeferred))
                .set("enforced", "YES")
                .set("nulls_distinct", (kind == "UNIQUE").then_some("YES"));
            rows.push(row.done());
        };
        for index in indexes(t).filter(|index| index.constraint) {
            add(&index.name, if is_primary(t, index) { "PRIMARY KEY" } else { "UNIQUE" }, Deferral::NotDeferrable);
        }
        t.checks.iter().for_each(|check| add(&check.name, "CHECK", Deferral::NotDeferrable));
        t.foreign_keys.iter().for_each(|key| add(&key.name, "FOREIGN KEY", key.deferral));
        for column in t.columns.iter().filter(|c| !c.nullable) {
            add(&not_null_name(t.schema, t, column), "CHECK", Deferral::NotDeferrable);
        }
    }
    rows
}

fn check_constraints(table: &VirtualTable, source: &Source<'_>, objects: &Objects) -> Vec<Row> {
    let mut rows = Vec::new();
    for t in user(objects) {
        let schema = objects.schema_name(t.schema);
        for check in &t.checks {
            let text = super::definition::check(check, false);
            let clause = text.strip_prefix("CHECK ").unwrap_or(&text);
            rows.push(constrained(table, source, schema, &check.name).set("check_clause", clause).done());
        }
        for column in t.columns.iter().filter(|column| !column.nullable) {
            let clause = format!("{} IS NOT NULL", crate::identifier::quote_identifier(&column.name));
            rows.push(
                constrained(table, source, schema, &not_null_name(t.schema, t, column))
                    .set("check_clause", clause)
                    .done(),
            );
        }
    }
    rows
}

/// The referenced table of a foreign key.
fn target(source: &Source<'_>, key: &ForeignKey) -> Result<Option<std::sync::Arc<Relation>>, SqlError> {
    source.catalog.relation_by_id(key.referenced_table)
}

fn key_columns(table: &VirtualTable, source: &Source<'_>, objects: &Objects) -> Result<Vec<Row>, SqlError> {
    let mut rows = Vec::new();
    for t in user(objects) {
        let schema = objects.schema_name(t.schema);
        let mut add = |constraint: &str, id: u16, place: i64, unique_place: Option<i64>| {
            let row = constrained(table, source, schema, constraint)
                .set("table_catalog", source.settings.database.as_str())
                .set("table_schema", schema)
                .set("table_name", t.name.as_str())
                .set("column_name", column_name(t, id))
                .set("ordinal_position", place)
                .set("position_in_unique_constraint", unique_place);
            rows.push(row.done());
        };
        for index in indexes(t).filter(|index| index.constraint) {
            index.columns.iter().zip(1..).for_each(|(part, place)| add(&index.name, part.column, place, None));
        }
        for key in &t.foreign_keys {
            let relation = target(source, key)?;
            let index = match relation.as_deref() {
                Some(Relation::Table(target)) => referenced_index(target, key),
                _ => None,
            };
            for ((id, referenced), place) in key.columns.iter().zip(&key.referenced_columns).zip(1..) {
                let unique = index.and_then(|index| index.columns.iter().position(|part| part.column == *referenced));
                add(&key.name, *id, place, unique.map(|place| place as i64 + 1));
            }
        }
    }
    Ok(rows)
}

fn rule(action: ReferentialAction) -> &'static str {
    match action {
        ReferentialAction::NoAction => "NO ACTION",
        ReferentialAction::Restrict => "RESTRICT",
        ReferentialAction::Cascade => "CASCADE",
        ReferentialAction::SetNull => "SET NULL",
        ReferentialAction::SetDefault => "SET DEFAULT",
    }
}

fn referential(table: &VirtualTable, source: &Source<'_>, objects: &Objects) -> Result<Vec<Row>, SqlError> {
    let mut rows = Vec::new();
    for t in user(objects) {
        for key in &t.foreign_keys {
            let relation = target(source, key)?;
            let Some(Relation::Table(target)) = relation.as_deref() else { continue };
            let unique = referenced_index(target, key).filter(|index| index.constraint);
            let row = constrained(table, source, objects.schema_name(t.schema), &key.name)
                .set("unique_constraint_catalog", unique.map(|_| source.settings.database.as_str()))
                .set("unique_constraint_schema", unique.map(|_| objects.schema_name(target.schema)))
                .set("unique_constraint_name", unique.map(|index| index.name.as_str()))
                .set("match_option", "NONE")
                .set("update_rule", rule(key.on_update))
                .set("delete_rule", rule(key.on_delete));
            rows.push(row.done());
        }
    }
    Ok(rows)
}

fn constraint_columns(table: &VirtualTable, source: &Source<'_>, objects: &Objects) -> Result<Vec<Row>, SqlError> {
    let mut rows = Vec::new();
    for t in user(objects) {
        let schema = objects.schema_name(t.schema);
        let mut add = |owner: &Table, constraint: &str, id: u16| {
            let row = constrained(table, source, schema, constraint)
                .set("table_catalog", source.settings.database.as_str())
                .set("table_schema", objects.schema_name(owner.schema))
                .set("table_name", owner.name.as_str())
                .set("column_name", column_name(owner, id));
            rows.push(row.done());
        };
        for index in indexes(t).filter(|index| index.constraint) {
            index.columns.iter().for_each(|part| add(t, &index.name, part.column));
        }
        for check in &t.checks {
            super::functions::columns_of(&check.expression, t)
                .into_iter()
                .for_each(|id| add(t, &check.name, id as u16));
        }
        for key in &t.foreign_keys {
            let relation = target(source, key)?;
            if let Some(Relation::Table(target)) = relation.as_deref() {
                key.referenced_columns.iter().for_each(|id| add(target, &key.name, *id));
            }
        }
    }
    Ok(rows)
}
