use super::*;
use crate::catalog::{
    Check, Column, Database, FIRST_USER_OID, ForeignKey, Identity, Index, IndexColumn, ReferentialAction, Sequence,
    Table, View,
};
use crate::types::Value;

struct Fixed(Vec<Arc<Relation>>);

impl CatalogView for Fixed {
    fn relation(&self, _: Option<&str>, _: &str) -> Result<Option<Arc<Relation>>, SqlError> {
        Ok(None)
    }
    fn relation_by_id(&self, id: u32) -> Result<Option<Arc<Relation>>, SqlError> {
        let id_of = |relation: &Relation| match relation {
            Relation::Table(t) => t.id,
            Relation::View(v) => v.id,
            Relation::Sequence(s) => s.id,
        };
        Ok(self.0.iter().find(|relation| id_of(relation) == id).cloned())
    }
    fn relations(&self) -> Result<Vec<Arc<Relation>>, SqlError> {
        Ok(self.0.clone())
    }
    fn schemas(&self) -> Result<Vec<Schema>, SqlError> {
        Ok(vec![Schema { id: 2200, database: 5, name: "public".into() }])
    }
    fn databases(&self) -> Result<Vec<Database>, SqlError> {
        Ok(vec![self.current_database()])
    }
    fn current_database(&self) -> Database {
        Database { id: 5, name: "postgres".into(), extensions: Vec::new() }
    }
}

fn table() -> Table {
    let column = |id: u16, name: &str, ty: SqlType, identity| Column {
        id,
        name: name.into(),
        ty,
        nullable: id > 1,
        default: Some("'x'".into()),
        missing: None,
        identity,
        owned_sequence: None,
        generated: None,
        stored: None,
        collation: None,
    };
    let index = |id, name: &str, column, constraint| Index {
        id,
        name: name.into(),
        columns: vec![IndexColumn::column(column, true)],
        unique: true,
        constraint,
        include: Vec::new(),
        predicate: None,
    };
    let id = FIRST_USER_OID;
    Table {
        id,
        database: 5,
        schema: 2200,
        name: "t".into(),
        columns: vec![
            column(1, "id", SqlType::Int4, Some(Identity::Always)),
            column(3, "Name", SqlType::Varchar(Some(9)), None),
        ],
        primary: index(id + 1, "t_pkey", 1, true),
        has_primary_key: true,
        indexes: vec![index(id + 2, "t_name", 3, false)],
        building: None,
        pending: None,
        filling: None,
        gated: false,
        maker: 0,
        checks: vec![Check {
            name: "t_check".into(),
            expression: "id > 0 AND \"Name\" <> ''".into(),
            not_valid: false,
        }],
        foreign_keys: vec![ForeignKey {
            id: id + 3,
            name: "t_fkey".into(),
            columns: vec![3],
            referenced_table: id,
            referenced_columns: vec![1],
            on_delete: ReferentialAction::SetNull,
            on_update: ReferentialAction::Cascade,
            deferral: Default::default(),
            not_valid: false,
        }],
        referenced_by: vec![id],
        next_column: 4,
        comments: Default::default(),
        retention: None,
        version: 1,
    }
}

fn world() -> Fixed {
    let sequence = Sequence {
        id: FIRST_USER_OID + 4,
        database: 5,
        schema: 2200,
        name: "s".into(),
        ty: SqlType::Int8,
        start: 1,
        increment: 1,
        min: 1,
        max: 9,
        cycle: true,
        cache: 1,
        owner: Some((FIRST_USER_OID, 1)),
    };
    let view = View {
        id: FIRST_USER_OID + 5,
        database: 5,
        schema: 2200,
        name: "v".into(),
        columns: vec![("n".into(), SqlType::Int8)],
        query: "SELECT 1".into(),
        reads: vec![],
    };
    let relations = [Relation::Table(table()), Relation::View(view), Relation::Sequence(sequence)];
    Fixed(relations.into_iter().map(Arc::new).collect())
}

/// Whether a value may stand in a column of a type.
fn fits(value: &Value, ty: &SqlType) -> bool {
    match (value, ty) {
        (Value::Null, _) => true,
        (Value::Bool(_), SqlType::Bool) => true,
        (Value::Int2(_), SqlType::Int2) => true,
        (Value::Int4(_), SqlType::Int4) => true,
        (Value::Int8(_), SqlType::Int8) => true,
        (Value::Float4(_), SqlType::Float4) => true,
        (Value::Float8(_), SqlType::Float8) => true,
        (Value::Oid(_), SqlType::Oid | SqlType::Reg(_)) => true,
        (Value::Text(_), ty) => ty.is_string(),
        (Value::Array(_), SqlType::Int2Vector | SqlType::OidVector | SqlType::Array(_)) => true,
        _ => false,
    }
}

#[test]
fn every_row_of_every_table_fits_its_columns() {
    let (catalog, settings) = (world(), EvalSettings::default());
    for relation in [None, Some(FIRST_USER_OID), Some(1259)] {
        let source = Source {
            catalog: &catalog,
            settings: &settings,
            backend: None,
            statement: None,
            kv: None,
            sequences: None,
            relation,
        };
        for table in tables() {
            for row in table.rows(&source).unwrap() {
                assert_eq!(row.len(), table.columns.len(), "{}", table.name);
                for (value, column) in row.iter().zip(&table.columns) {
                    assert!(fits(value, &column.ty), "{}.{}: {value:?} is no {}", table.name, column.name, column.ty);
                }
            }
        }
    }
}

#[test]
fn tables_are_found_by_name_and_by_oid() {
    let class = lookup(None, "pg_class").unwrap();
    assert_eq!((class.oid, class.schema), (1259, "pg_catalog"));
    assert_eq!(lookup(Some("information_schema"), "columns").unwrap().schema, "information_schema");
    assert!(lookup(None, "columns").is_none());
    assert!(lookup(Some("public"), "pg_class").is_none());
    assert_eq!(by_oid(1247).unwrap().name, "pg_type");
}

#[test]
fn asking_for_one_relation_leaves_the_others_out() {
    let (catalog, settings) = (world(), EvalSettings::default());
    let source = Source {
        catalog: &catalog,
        settings: &settings,
        backend: None,
        statement: None,
        kv: None,
        sequences: None,
        relation: Some(FIRST_USER_OID),
    };
    let names = lookup(None, "pg_attribute").unwrap().rows(&source).unwrap();
    // Two columns, and between them the number of one that was dropped.
    let of_table = names.iter().filter(|row| row[0] == Value::Oid(FIRST_USER_OID)).count();
    assert_eq!(of_table, 3);
    assert!(!names.iter().any(|row| row[0] == Value::Oid(1259)));
}

#[test]
fn aggregates_that_are_run_are_in_pg_proc() {
    let listed: std::collections::BTreeSet<&str> = include_str!("data/pg_proc.tsv")
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>())
        .filter(|row| row.get(9) == Some(&"a"))
        .map(|row| row[1])
        .collect();
    // `grouping` is syntax in PostgreSQL, `any_value` of its next version.
    let own = ["any_value", "grouping"];
    for name in crate::expr::aggregate::names().filter(|name| !own.contains(name)) {
        assert!(listed.contains(name), "{name}");
    }
}
