//! Catalogs that are the same in every database, or that describe the server and the session.

use super::rows::{RowBuilder, parse_file};
use super::{OWNER_OID, Source, VirtualTable};
use crate::SqlError;
use crate::types::Row;

pub(super) fn rows(table: &VirtualTable, source: &Source<'_>) -> Result<Vec<Row>, SqlError> {
    let file = match table.name {
        "pg_type" => include_str!("data/pg_type.tsv"),
        "pg_proc" => include_str!("data/pg_proc.tsv"),
        "pg_am" => include_str!("data/pg_am.tsv"),
        "pg_collation" => include_str!("data/pg_collation.tsv"),
        "pg_language" => include_str!("data/pg_language.tsv"),
        "pg_opclass" => include_str!("data/pg_opclass.tsv"),
        "pg_tablespace" => include_str!("data/pg_tablespace.tsv"),
        "pg_settings" => return Ok(settings(table, source)),
        "pg_database" => return databases(table, source),
        "pg_roles" | "pg_authid" => return Ok(vec![role(table, source)]),
        "pg_user" | "pg_shadow" => return Ok(vec![user(table, source)]),
        "pg_stat_activity" => return Ok(vec![activity(table, source)]),
        "pg_stat_database" => return statistics(table, source),
        _ => return Ok(Vec::new()),
    };
    Ok(parse_file(table, file))
}

fn databases(table: &VirtualTable, source: &Source<'_>) -> Result<Vec<Row>, SqlError> {
    let row = |database: crate::catalog::Database| {
        RowBuilder::new(table)
            .set("oid", database.id)
            .set("datname", database.name)
            .set("datdba", OWNER_OID)
            .set("encoding", 6)
            .set("datlocprovider", "c")
            .set("datallowconn", true)
            .set("datconnlimit", -1)
            .set("dattablespace", 1663)
            .set("datcollate", "C.UTF-8")
            .set("datctype", "C.UTF-8")
            .done()
    };
    Ok(source.catalog.databases()?.into_iter().map(row).collect())
}

fn statistics(table: &VirtualTable, source: &Source<'_>) -> Result<Vec<Row>, SqlError> {
    let row = |database: crate::catalog::Database| {
        RowBuilder::new(table).set("datid", database.id).set("datname", database.name).done()
    };
    Ok(source.catalog.databases()?.into_iter().map(row).collect())
}

fn role(table: &VirtualTable, source: &Source<'_>) -> Row {
    let flags =
        ["rolsuper", "rolinherit", "rolcreaterole", "rolcreatedb", "rolcanlogin", "rolreplication", "rolbypassrls"];
    let row = RowBuilder::new(table)
        .set("oid", OWNER_OID)
        .set("rolname", source.settings.user.as_str())
        .set("rolconnlimit", -1);
    flags.iter().fold(row, |row, flag| row.set(flag, true)).done()
}

fn user(table: &VirtualTable, source: &Source<'_>) -> Row {
    let row = RowBuilder::new(table).set("usesysid", OWNER_OID).set("usename", source.settings.user.as_str());
    ["usecreatedb", "usesuper", "userepl", "usebypassrls"].iter().fold(row, |row, flag| row.set(flag, true)).done()
}

fn activity(table: &VirtualTable, source: &Source<'_>) -> Row {
    let settings = source.settings;
    RowBuilder::new(table)
        .set("datid", source.catalog.current_database().id)
        .set("datname", settings.database.as_str())
        .set("pid", settings.backend_pid)
        .set("usesysid", OWNER_OID)
        .set("usename", settings.user.as_str())
        .set("application_name", settings.application_name.as_str())
        .set("state", "active")
        .set("backend_type", "client backend")
        .done()
}

/// Settings that tools look at: their names, units and defaults from PostgreSQL, the values that differ from ours.
fn settings(table: &VirtualTable, source: &Source<'_>) -> Vec<Row> {
    let zone = source.settings.time_zone.name().to_string();
    let float_digits = source.settings.extra_float_digits.to_string();
    let path = source.settings.search_path.join(", ");
    let current = |name: &str| {
        Some(match name {
            "application_name" => source.settings.application_name.as_str(),
            "TimeZone" => zone.as_str(),
            "extra_float_digits" => float_digits.as_str(),
            "search_path" => path.as_str(),
            "bytea_output" if source.settings.bytea_escape => "escape",
            "default_transaction_isolation" | "transaction_isolation" => "serializable",
            _ => return None,
        })
    };
    let mut rows = parse_file(table, include_str!("data/pg_settings.tsv"));
    for row in &mut rows {
        if let [crate::types::Value::Text(name), setting, ..] = row.as_mut_slice()
            && let Some(value) = current(name)
        {
            *setting = crate::types::Value::Text(value.into());
        }
    }
    rows
}
