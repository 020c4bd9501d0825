//! The functions that read the catalogs, for statements that do not need the engine. What they do is said in `pg_catalog`.

use super::super::function::{Function, Sig};
use crate::types::{RegKind, SqlType as T};

const TEXT: Sig = Sig::Is(T::Text);
const NAME: Sig = Sig::Is(T::Name);
const BOOL: Sig = Sig::Is(T::Bool);
const I4: Sig = Sig::Is(T::Int4);
const OID: Sig = Sig::Is(T::Oid);
const TYPE: Sig = Sig::Is(T::Reg(RegKind::Type));
const CLASS: Sig = Sig::Is(T::Reg(RegKind::Class));

/// A function that asks the catalogs by its own name.
macro_rules! asks {
    ($name:literal, $args:expr, $result:expr) => {
        Function::stable($name, &$args, $result, |values, arguments| {
            let statement = arguments.statement()?;
            statement.system.call($name, values, statement)
        })
    };
}

pub(super) static TABLE: &[Function] = &[
    asks!("inet_server_addr", [], TEXT),
    asks!("inet_client_addr", [], TEXT),
    asks!("inet_server_port", [], I4),
    asks!("pg_is_in_recovery", [], BOOL),
    asks!("pg_is_other_temp_schema", [OID], BOOL),
    asks!("pg_my_temp_schema", [], OID),
    asks!("format_type", [OID, I4], TEXT).lax(),
    asks!("to_regclass", [TEXT], CLASS),
    asks!("to_regtype", [TEXT], TYPE),
    asks!("to_regproc", [TEXT], Sig::Is(T::Reg(RegKind::Proc))),
    asks!("to_regprocedure", [TEXT], Sig::Is(T::Reg(RegKind::Procedure))),
    asks!("to_regrole", [TEXT], Sig::Is(T::Reg(RegKind::Role))),
    asks!("to_regnamespace", [TEXT], Sig::Is(T::Reg(RegKind::Namespace))),
    asks!("pg_table_is_visible", [OID], BOOL),
    asks!("pg_type_is_visible", [OID], BOOL),
    asks!("pg_function_is_visible", [OID], BOOL),
    asks!("pg_encoding_to_char", [I4], NAME),
    asks!("pg_client_encoding", [], NAME),
    asks!("getdatabaseencoding", [], NAME),
    asks!("pg_get_userbyid", [OID], NAME),
    asks!("obj_description", [OID, NAME], TEXT),
    asks!("obj_description", [OID], TEXT),
    asks!("shobj_description", [OID, NAME], TEXT),
    asks!("col_description", [OID, I4], TEXT),
    asks!("has_table_privilege", [Sig::Any, TEXT], BOOL),
    asks!("has_table_privilege", [NAME, Sig::Any, TEXT], BOOL),
    asks!("has_schema_privilege", [Sig::Any, TEXT], BOOL),
    asks!("has_schema_privilege", [NAME, Sig::Any, TEXT], BOOL),
    asks!("has_database_privilege", [Sig::Any, TEXT], BOOL),
    asks!("has_database_privilege", [NAME, Sig::Any, TEXT], BOOL),
    asks!("has_column_privilege", [Sig::Any, Sig::Any, TEXT], BOOL),
    asks!("has_sequence_privilege", [Sig::Any, TEXT], BOOL),
    asks!("pg_get_serial_sequence", [TEXT, TEXT], TEXT),
];
