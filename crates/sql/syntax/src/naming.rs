//! The names of result columns.

use crate::identifier::fold;
use sqlparser::ast;

/// The name of a result column without an alias, as PostgreSQL chooses it.
pub fn output_name(expr: &ast::Expr) -> String {
    strong_name(expr).map_or_else(|| "?column?".to_owned(), |(name, _)| name)
}

/// A name, and whether it is better than the name of a cast's type.
fn strong_name(expr: &ast::Expr) -> Option<(String, bool)> {
    use ast::Expr as E;
    let strong = |name: &str| Some((name.to_owned(), true));
    match expr {
        E::Identifier(ident) => Some((fold(ident), true)),
        E::CompoundIdentifier(parts) => parts.last().map(|ident| (fold(ident), true)),
        E::Function(function) => function.name.0.last()?.as_ident().map(|ident| (fold(ident), true)),
        E::Nested(inner) | E::Collate { expr: inner, .. } => strong_name(inner),
        E::Cast { expr, data_type, .. } => match strong_name(expr) {
            Some((name, true)) => Some((name, true)),
            _ => Some((type_name(data_type), false)),
        },
        // N'x' is a literal of char's type, under a name of its own.
        E::Value(value) if matches!(value.value, ast::Value::NationalStringLiteral(_)) => {
            Some(("bpchar".into(), false))
        }
        E::TypedString(typed) => Some((type_name(&typed.data_type), false)),
        E::Interval(_) => Some(("interval".into(), false)),
        // The last field, behind which there may be subscripts.
        E::CompoundFieldAccess { root, access_chain } => {
            let field = access_chain.iter().rev().find_map(|access| match access {
                ast::AccessExpr::Dot(E::Identifier(field)) => Some(fold(field)),
                _ => None,
            });
            field.map_or_else(|| strong_name(root), |field| Some((field, true)))
        }
        E::Case { else_result, .. } => match else_result.as_deref().and_then(strong_name) {
            Some((name, true)) => Some((name, true)),
            _ => Some(("case".into(), false)),
        },
        E::Array(_) => Some(("array".into(), true)),
        E::Tuple(_) => strong("row"),
        E::Extract { .. } => strong("extract"),
        E::Ceil { .. } => strong("ceil"),
        E::Floor { .. } => strong("floor"),
        E::Position { .. } => strong("position"),
        E::Substring { shorthand: true, .. } => strong("substr"),
        E::Substring { .. } => strong("substring"),
        E::Trim { trim_where, .. } => strong(match trim_where {
            Some(ast::TrimWhereField::Leading) => "ltrim",
            Some(ast::TrimWhereField::Trailing) => "rtrim",
            _ => "btrim",
        }),
        E::Overlay { .. } => strong("overlay"),
        E::AtTimeZone { .. } => strong("timezone"),
        E::Exists { .. } => strong("exists"),
        E::Subquery(query) => match query.body.as_ref() {
            ast::SetExpr::Select(select) => match select.projection.first() {
                Some(ast::SelectItem::ExprWithAlias { alias, .. }) => Some((fold(alias), true)),
                Some(ast::SelectItem::UnnamedExpr(expr)) => strong_name(expr),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

fn type_name(ty: &ast::DataType) -> String {
    match crate::types::SqlType::from_ast(ty) {
        Ok(ty) => ty.typname().trim_start_matches('_').to_owned(),
        Err(_) => ty.to_string().to_lowercase(),
    }
}
