//! Catalogs of indexes, constraints and dependencies.

use super::names;
use super::relations::{PG_CLASS_OID, PG_NAMESPACE_OID, default_oid, index_vectors, indexes, user};
use super::rows::{RowBuilder, int2_array, int2_vector};
use super::{
    CHECK_OID_BASE, Objects, Source, TIMEBALL_INTERNAL, TIMEBALL_INTERNAL_OID, TIMEBALL_OID, VirtualTable, listed,
};
use crate::SqlError;
use crate::catalog::{Deferral, FIRST_USER_OID, ForeignKey, Index, Oid, ReferentialAction, Relation, Table, View};
use crate::syntax::regclass::{each_named_relation, may_name_relations};
use crate::types::{RegKind, Row};

/// OIDs of catalogs: what `pg_depend` says an object is.
const PG_ATTRDEF_OID: Oid = 2604;
const PG_REWRITE_OID: Oid = 2618;
const PG_EXTENSION_OID: Oid = 3079;

pub(super) fn rows(table: &VirtualTable, source: &Source<'_>) -> Result<Option<Vec<Row>>, SqlError> {
    Ok(Some(match table.name {
        "pg_index" => index_rows(table, &Objects::read(source)?),
        "pg_constraint" => constraint_rows(table, source, &Objects::read(source)?)?,
        "pg_depend" => dependencies(table, source, &Objects::read(source)?),
        "pg_rewrite" => rules(table, &Objects::read(source)?),
        _ => return Ok(None),
    }))
}

fn index_rows(table: &VirtualTable, objects: &Objects) -> Vec<Row> {
    let mut rows = Vec::new();
    for t in user(objects) {
        for index in indexes(t) {
            let (collations, classes) = index_vectors(t, index);
            let keys = index.columns.iter().map(|part| part.column).chain(index.include.iter().copied());
            // Bit 0: descending; bit 1: NULLs first.
            let options =
                index.columns.iter().map(|part| i16::from(part.descending) | i16::from(part.nulls_first()) << 1);
            let row = RowBuilder::new(table)
                .set("indexrelid", index.id)
                .set("indrelid", t.id)
                .set("indnatts", (index.columns.len() + index.include.len()) as i64)
                .set("indnkeyatts", index.columns.len() as i64)
                .set("indisunique", index.unique)
                .set("indisprimary", t.has_primary_key && index.id == t.primary.id)
                .set("indimmediate", true)
                .set("indisvalid", true)
                .set("indisready", true)
                .set("indislive", true)
                .set("indkey", int2_vector(keys.map(|id| id as i16)))
                .set("indcollation", collations)
                .set("indclass", classes)
                .set("indoption", int2_vector(options))
                .set("indexprs", super::definition::expressions(t, index))
                .set("indpred", super::definition::predicate(t, index, false));
            rows.push(row.done());
        }
    }
    rows
}

/// The relations that a default names.
fn named_in(default: &str) -> Vec<String> {
    let mut names = Vec::new();
    if may_name_relations(default)
        && let Ok(mut expr) = crate::syntax::parse_expression(default)
    {
        let _ = each_named_relation(&mut expr, |name| {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_string());
            }
            Ok(None)
        });
    }
    names
}

/// OID shown for the CHECK constraint at `place` of a table.
pub(super) fn check_oid(table: &Table, place: usize) -> Oid {
    let table = table.id.saturating_sub(FIRST_USER_OID).wrapping_mul(64);
    CHECK_OID_BASE.wrapping_add(table).wrapping_add(place as u32)
}

fn action_letter(action: ReferentialAction) -> &'static str {
    match action {
        ReferentialAction::NoAction => "a",
        ReferentialAction::Restrict => "r",
        ReferentialAction::Cascade => "c",
        ReferentialAction::SetNull => "n",
        ReferentialAction::SetDefault => "d",
    }
}

fn constraint<'t>(table: &'t VirtualTable, t: &Table, schema: Oid, oid: Oid, name: &str, kind: &str) -> RowBuilder<'t> {
    RowBuilder::new(table)
        .set("oid", oid)
        .set("conname", name)
        .set("connamespace", schema)
        .set("contype", kind)
        .set("convalidated", true)
        .set("conrelid", t.id)
        .set("confupdtype", if kind == "f" { "a" } else { " " })
        .set("confdeltype", if kind == "f" { "a" } else { " " })
        .set("confmatchtype", if kind == "f" { "s" } else { " " })
        .set("conislocal", true)
}

fn constraint_rows(table: &VirtualTable, source: &Source<'_>, objects: &Objects) -> Result<Vec<Row>, SqlError> {
    let mut rows = Vec::new();
    for t in user(objects) {
        let schema = objects.schemas.iter().find(|s| s.id == t.schema).map_or(t.schema, Objects::schema_oid);
        for index in indexes(t).filter(|index| index.constraint) {
            let kind = if t.has_primary_key && index.id == t.primary.id { "p" } else { "u" };
            let row = constraint(table, t, schema, index.id, &index.name, kind)
                .set("conindid", index.id)
                .set("connoinherit", true)
                .set("conkey", int2_array(index.columns.iter().map(|part| part.column as i16)));
            rows.push(row.done());
        }
        for (place, check) in t.checks.iter().enumerate() {
            let columns = super::functions::columns_of(&check.expression, t);
            let row = constraint(table, t, schema, check_oid(t, place), &check.name, "c")
                .set("conkey", int2_array(columns))
                .set("convalidated", !check.not_valid)
                .set("conbin", check.expression.as_str());
            rows.push(row.done());
        }
        for key in &t.foreign_keys {
            rows.push(foreign_key(table, source, t, schema, key)?);
        }
    }
    if source.relation.is_some() {
        // Keys that point at the relation belong to other tables.
        rows.extend(referencing(table, source, objects)?);
    }
    Ok(rows)
}

fn referencing(table: &VirtualTable, source: &Source<'_>, objects: &Objects) -> Result<Vec<Row>, SqlError> {
    let mut rows = Vec::new();
    for t in user(objects) {
        for other in t.referenced_by.iter().filter(|oid| **oid != t.id) {
            if let Some(relation) = source.catalog.relation_by_id(*other)?
                && let Relation::Table(other) = relation.as_ref()
            {
                for key in other.foreign_keys.iter().filter(|key| key.referenced_table == t.id) {
                    rows.push(foreign_key(table, source, other, other.schema, key)?);
                }
            }
        }
    }
    Ok(rows)
}

fn foreign_key(
    table: &VirtualTable,
    source: &Source<'_>,
    t: &Table,
    schema: Oid,
    key: &ForeignKey,
) -> Result<Row, SqlError> {
    let target = source.catalog.relation_by_id(key.referenced_table)?;
    let index = match target.as_deref() {
        Some(Relation::Table(target)) => referenced_index(target, key).map_or(0, |index| index.id),
        _ => 0,
    };
    Ok(constraint(table, t, schema, key.id, &key.name, "f")
        .set("conindid", index)
        .set("confrelid", key.referenced_table)
        .set("convalidated", !key.not_valid)
        .set("confupdtype", action_letter(key.on_update))
        .set("confdeltype", action_letter(key.on_delete))
        .set("connoinherit", true)
        .set("condeferrable", key.deferral != Deferral::NotDeferrable)
        .set("condeferred", key.deferral == Deferral::InitiallyDeferred)
        .set("conkey", int2_array(key.columns.iter().map(|id| *id as i16)))
        .set("confkey", int2_array(key.referenced_columns.iter().map(|id| *id as i16)))
        .done())
}

/// The unique index that a foreign key points at.
pub(super) fn referenced_index<'a>(target: &'a Table, key: &ForeignKey) -> Option<&'a Index> {
    let mut wanted = key.referenced_columns.clone();
    wanted.sort_unstable();
    indexes(target).filter(|index| index.unique && index.is_plain()).find(|index| {
        let mut columns: Vec<u16> = index.columns.iter().map(|part| part.column).collect();
        columns.sort_unstable();
        columns == wanted
    })
}

/// The rule of each view: its OID is the view's.
fn rules(table: &VirtualTable, objects: &Objects) -> Vec<Row> {
    let row = |view: &View| {
        let row = RowBuilder::new(table).set("oid", view.id).set("rulename", "_RETURN").set("ev_class", view.id);
        row.set("ev_type", "1").set("ev_enabled", "O").set("is_instead", true).set("ev_qual", "<>").done()
    };
    views(objects).map(row).collect()
}

fn views(objects: &Objects) -> impl Iterator<Item = &View> {
    objects.relations.iter().filter_map(|relation| match relation.as_ref() {
        Relation::View(view) => Some(view),
        _ => None,
    })
}

fn dependencies(table: &VirtualTable, source: &Source<'_>, objects: &Objects) -> Vec<Row> {
    let mut rows = Vec::new();
    let depends = |class: Oid, object: Oid, on: Oid, column: u16, kind: &str| {
        RowBuilder::new(table)
            .set("classid", class)
            .set("objid", object)
            .set("refclassid", PG_CLASS_OID)
            .set("refobjid", on)
            .set("refobjsubid", i64::from(column))
            .set("deptype", kind)
            .done()
    };
    // What an extension owns is in no dump.
    let owned = |class: Oid, object: Oid| {
        RowBuilder::new(table)
            .set("classid", class)
            .set("objid", object)
            .set("refclassid", PG_EXTENSION_OID)
            .set("refobjid", TIMEBALL_OID)
            .set("deptype", "e")
            .done()
    };
    rows.push(owned(PG_NAMESPACE_OID, TIMEBALL_INTERNAL_OID));
    let internal = listed(source).filter(|listed| listed.schema == TIMEBALL_INTERNAL);
    rows.extend(internal.map(|listed| owned(PG_CLASS_OID, listed.oid)));
    for view in views(objects) {
        rows.push(depends(PG_REWRITE_OID, view.id, view.id, 0, "i"));
        rows.extend(view.reads.iter().map(|read| depends(PG_REWRITE_OID, view.id, *read, 0, "n")));
    }
    for t in user(objects) {
        for (column, text) in t.columns.iter().filter_map(|column| Some((column, column.default.as_deref()?))) {
            rows.push(depends(PG_ATTRDEF_OID, default_oid(t, column), t.id, column.id, "a"));
            let named =
                named_in(text).into_iter().filter_map(|name| names::resolve(RegKind::Class, &name, Some(source)).ok());
            rows.extend(named.map(|oid| depends(PG_ATTRDEF_OID, default_oid(t, column), oid, 0, "n")));
        }
    }
    for relation in &objects.relations {
        if let Relation::Sequence(sequence) = relation.as_ref()
            && let Some((owner, column)) = sequence.owner
        {
            let identity = user(objects)
                .find(|t| t.id == owner)
                .and_then(|t| t.columns.iter().find(|c| c.id == column))
                .is_some_and(|column| column.identity.is_some());
            rows.push(depends(PG_CLASS_OID, sequence.id, owner, column, if identity { "i" } else { "a" }));
        }
    }
    rows
}
