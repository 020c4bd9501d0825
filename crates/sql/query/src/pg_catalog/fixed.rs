//! Catalogs that are the same in every database, or that describe the server and the session.

use super::rows::{RowBuilder, parse_file, text_array};
use super::{OWNER_OID, PG_CATALOG_OID, Source, TIMEBALL_INTERNAL_OID, TIMEBALL_OID, VirtualTable};
use crate::SqlError;
use crate::catalog::extension::{
    AVAILABLE, Available, LANGUAGE, LANGUAGE_OID, LANGUAGE_VERSION, OWN, OWN_VERSION, available,
};
use crate::types::{Row, Value};
use std::collections::BTreeSet;

pub(super) fn rows(table: &VirtualTable, source: &Source<'_>) -> Result<Vec<Row>, SqlError> {
    let file = match table.name {
        "pg_type" => include_str!("data/pg_type.tsv"),
        "pg_proc" => include_str!("data/pg_proc.tsv"),
        "pg_am" => include_str!("data/pg_am.tsv"),
        "pg_collation" => include_str!("data/pg_collation.tsv"),
        "pg_language" => include_str!("data/pg_language.tsv"),
        "pg_opclass" => include_str!("data/pg_opclass.tsv"),
        "pg_tablespace" => include_str!("data/pg_tablespace.tsv"),
        "pg_extension" => return Ok(extensions(table, source)),
        "pg_available_extensions" | "pg_available_extension_versions" => {
            return Ok(available_extensions(table, source));
        }
        "pg_db_role_setting" => return Ok(defaults(table, source)),
        "pg_settings" => return Ok(settings(table, source)),
        "pg_database" => return databases(table, source),
        "pg_roles" | "pg_authid" => return Ok(vec![role(table, source)]),
        "pg_user" | "pg_shadow" => return Ok(vec![user(table, source)]),
        "pg_stat_activity" => return super::sessions::activity(table, source),
        "pg_stat_progress_copy" => return super::sessions::copies(table, source),
        "pg_stat_progress_create_index" => return super::sessions::indexes(table, source),
        "pg_locks" => return super::sessions::locks(table, source),
        "pg_cursors" => return Ok(super::sessions::cursors(table, source)),
        "pg_stat_database" => return statistics(table, source),
        _ => return Ok(Vec::new()),
    };
    Ok(parse_file(table, file))
}

fn extensions(table: &VirtualTable, source: &Source<'_>) -> Vec<Row> {
    // As every database of PostgreSQL's begins: who asks for it goes on, and hears of the language when he uses it.
    let language = RowBuilder::new(table)
        .set("oid", LANGUAGE_OID)
        .set("extname", LANGUAGE)
        .set("extowner", OWNER_OID)
        .set("extnamespace", PG_CATALOG_OID)
        .set("extrelocatable", false)
        .set("extversion", LANGUAGE_VERSION)
        .done();
    let internal = RowBuilder::new(table)
        .set("oid", TIMEBALL_OID)
        .set("extname", OWN)
        .set("extowner", OWNER_OID)
        .set("extnamespace", TIMEBALL_INTERNAL_OID)
        .set("extrelocatable", false)
        .set("extversion", OWN_VERSION)
        .done();
    let row = |extension: &crate::catalog::Extension| {
        RowBuilder::new(table)
            .set("oid", extension.id)
            .set("extname", extension.name.as_str())
            .set("extowner", OWNER_OID)
            .set("extnamespace", extension.schema)
            .set("extrelocatable", true)
            .set("extversion", available(&extension.name).map(|e| e.version))
            .done()
    };
    let own = source.catalog.current_database().extensions;
    [language, internal].into_iter().chain(own.iter().map(row)).collect()
}

fn defaults(table: &VirtualTable, source: &Source<'_>) -> Vec<Row> {
    let row = |of: &crate::catalog::DefaultsOf| {
        let settings = of.settings.iter().map(|(name, value)| format!("{name}={value}"));
        let row = RowBuilder::new(table).set("setdatabase", of.database).set("setrole", of.role);
        row.set("setconfig", text_array(settings)).done()
    };
    source.catalog.defaults().rows().iter().map(row).collect()
}

fn available_extensions(table: &VirtualTable, source: &Source<'_>) -> Vec<Row> {
    let created = source.catalog.current_database().extensions;
    let row = |extension: &Available| {
        let is_there = created.iter().any(|e| e.name == extension.name);
        let row = RowBuilder::new(table).set("name", extension.name).set("comment", extension.comment);
        if table.name == "pg_available_extensions" {
            let installed = is_there.then_some(extension.version);
            row.set("default_version", extension.version).set("installed_version", installed).done()
        } else {
            let row = row.set("version", extension.version).set("installed", is_there);
            row.set("superuser", true).set("trusted", true).set("relocatable", true).done()
        }
    };
    AVAILABLE.iter().map(row).collect()
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
    let backends = source.backend.map(|backend| backend.sessions.all()).unwrap_or_default();
    let row = |database: crate::catalog::Database| {
        let there = backends.iter().filter(|backend| backend.database == database.id).count();
        let row = RowBuilder::new(table).set("datid", database.id).set("datname", database.name);
        let (files, bytes) = source.backend.map_or((0, 0), |backend| backend.sessions.temporary.of(database.id));
        row.set("numbackends", there as i64).set("temp_files", files as i64).set("temp_bytes", bytes as i64).done()
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

/// Settings: what tools look at with units and words from PostgreSQL, the others by name; each with its value in this session.
fn settings(table: &VirtualTable, source: &Source<'_>) -> Vec<Row> {
    let mut rows = parse_file(table, include_str!("data/pg_settings.tsv"));
    let Some(statement) = source.statement else { return rows };
    let (system, modes) = (statement.system, &statement.modes);
    let mut known = BTreeSet::new();
    let place = |name: &str| table.columns.iter().position(|column| column.name == name);
    for row in &mut rows {
        if let [Value::Text(name), setting, ..] = row.as_mut_slice() {
            let name = name.to_lowercase();
            let of_transaction = modes.shown(&name).map(str::to_string);
            let shown = of_transaction.or_else(|| system.setting_listed(source.settings, &name));
            if let Some(shown) = shown {
                *setting = Value::Text(shown.into());
            }
            // What belongs to a transaction is PostgreSQL's "override" wherever it came from.
            let about = system.setting_about(source.settings, &name).filter(|_| !name.starts_with("transaction_"));
            let told = about.map(|about| {
                let from = Some(about.source.name().to_string());
                [("source", from), ("boot_val", about.boot), ("reset_val", about.reset)]
            });
            for (column, value) in told.into_iter().flatten() {
                if let (Some(cell), Some(value)) = (place(column).and_then(|at| row.get_mut(at)), value) {
                    *cell = Value::Text(value.into());
                }
            }
            known.insert(name);
        }
    }
    for (name, description) in system.settings(source.settings).into_iter().filter(|(name, _)| !known.contains(name)) {
        let of_transaction = modes.shown(&name).map(str::to_string);
        let shown = of_transaction.or_else(|| system.setting(source.settings, &name)).unwrap_or_default();
        let about = system.setting_about(source.settings, &name);
        let (context, vartype) = about.as_ref().map_or(("user", "string"), |about| (about.context, about.vartype));
        let from = about.as_ref().map_or_else(Default::default, |about| about.source);
        let row = RowBuilder::new(table)
            .set("name", name.as_str())
            .set("setting", shown)
            .set("category", "Others")
            .set("short_desc", description)
            .set("context", context)
            .set("vartype", vartype)
            .set("source", from.name())
            .set("pending_restart", false);
        let row = match about.as_ref().and_then(|about| about.boot.as_deref()) {
            Some(boot) => row.set("boot_val", boot),
            None => row,
        };
        let row = match about.as_ref().and_then(|about| about.reset.as_deref()) {
            Some(reset) => row.set("reset_val", reset),
            None => row,
        };
        rows.push(row.done());
    }
    rows
}
