//! Window functions: their calls, windows and frames.

use super::aggregate;
use super::bind::Binder;
use super::node::Node;
use super::scalar::Scalar;
use super::scope::Scope;
use super::take::{Clause, Held, Taker, call_args, function_name};
use super::types::common;
use super::window::{Bound, Exclude, Frame, Function, Units, WindowCall, distance_type};
use crate::identifier::fold;
use crate::syntax::reshape;
use crate::types::{CastKind, SqlType};
use crate::{SqlError, SqlState};
use sqlparser::ast::{self, NamedWindowExpr, Select, WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType};
use std::sync::Arc;

const WINDOWING_ERROR: SqlState = SqlState(*b"42P20");

/// What is wrong with a frame whose end lies before its start, whatever the rows.
fn backwards(frame: &ast::WindowFrame) -> Option<&'static str> {
    use WindowFrameBound::{CurrentRow, Following, Preceding};
    match (&frame.start_bound, &frame.end_bound) {
        (Following(None), _) => Some("frame start cannot be UNBOUNDED FOLLOWING"),
        (_, Some(Preceding(None))) => Some("frame end cannot be UNBOUNDED PRECEDING"),
        (Following(_), None) => Some("frame starting from following row cannot end with current row"),
        (CurrentRow, Some(Preceding(_))) => Some("frame starting from current row cannot have preceding rows"),
        (Following(_), Some(Preceding(_) | CurrentRow)) => {
            Some("frame starting from following row cannot have preceding rows")
        }
        _ => None,
    }
}

/// Takes the mark of EXCLUDE off a window, which stands last in its order: itself, and its number.
fn exclusion(spec: &mut WindowSpec) -> Option<(ast::OrderByExpr, String)> {
    let number = reshape::excluded(&spec.order_by.last()?.expr)?;
    Some((spec.order_by.pop()?, number))
}

/// 0A000 for a distance that no key of its type has.
fn no_distance(key: &SqlType, offset: &SqlType) -> SqlError {
    let mut message = format!("RANGE with offset PRECEDING/FOLLOWING is not supported for column type {}", key.base());
    if distance_type(key, &SqlType::Unknown).is_none() {
        return SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
    }
    message += &format!(" and offset type {}", offset.base());
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).hint("Cast the offset value to an appropriate type.")
}

impl Binder<'_> {
    /// Plans the window functions taken out of a select list: their values come after the row.
    pub(super) fn plan_windows(
        &mut self,
        node: Arc<Node>,
        scope: &mut Scope<'_>,
        select: &Select,
    ) -> Result<Arc<Node>, SqlError> {
        let places = std::mem::take(&mut self.windows);
        if places.is_empty() {
            return Ok(node);
        }
        let mut calls = Vec::with_capacity(places.len());
        let mut types = Vec::with_capacity(places.len());
        for place in places {
            let Held::Window(function) = self.held[place].clone() else { continue };
            let call = self.window(&function, scope, select)?;
            let args: Vec<SqlType> = call.args.iter().map(|arg| arg.ty.clone()).collect();
            let Some(ty) = call.function.result(&args) else {
                return Err(SqlError::new(
                    SqlState::UNDEFINED_FUNCTION,
                    format!("function {} does not exist", function.name),
                ));
            };
            self.settle(place, scope.width() + calls.len());
            types.push(ty);
            calls.push(call);
        }
        scope.types.extend(types);
        Ok(Arc::new(Node::Window { input: node, calls }))
    }

    fn window(&mut self, function: &ast::Function, scope: &Scope<'_>, select: &Select) -> Result<WindowCall, SqlError> {
        let name = function_name(&function.name).map_or_else(String::new, |(_, name)| name);
        let mut spec = match &function.over {
            Some(WindowType::WindowSpec(spec)) => self.whole_spec(spec.clone(), select, scope, 0)?,
            Some(WindowType::NamedWindow(name)) => self.named_window(&fold(name), select, scope, 0)?,
            None => return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a window function without a window")),
        };
        let mut partition = Vec::with_capacity(spec.partition_by.len());
        for expr in &spec.partition_by {
            let scalar = self.compile(expr.clone(), scope)?;
            let scalar = self.known(scalar)?;
            scalar.ty.check_equality()?;
            partition.push(scalar);
        }
        let exclude = exclusion(&mut spec).map_or(Exclude::Nothing, |mark| Exclude::numbered(&mark.1));
        let order = self.sort_keys(&spec.order_by, scope)?;
        let keys: Vec<&SqlType> = order.iter().map(|key| &key.by.ty).collect();
        let frame = Frame { exclude, ..self.frame(spec.window_frame.as_ref(), &keys, scope)? };
        if aggregate::Function::named(&name).is_some() {
            let call = self.aggregate(function, scope)?;
            if call.distinct {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "DISTINCT is not implemented for window functions",
                ));
            }
            if !call.order.is_empty() {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "aggregate ORDER BY is not implemented for window functions",
                ));
            }
            return Ok(WindowCall { function: Function::Aggregate(call), args: Vec::new(), partition, order, frame });
        }
        let Some(kind) = Function::named(&name) else {
            let message = format!("OVER specified, but {name} is not a window function nor an aggregate function");
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        };
        if function.null_treatment == Some(ast::NullTreatment::IgnoreNulls) {
            return Err(SqlError::unsupported("IGNORE NULLS"));
        }
        let mut args = Vec::new();
        for arg in call_args(function)? {
            args.push(self.compile(arg, scope)?);
        }
        if let (Function::Shift(_), [value, _, default]) = (&kind, args.as_slice()) {
            // Both are brought to one type.
            let (value, default) = (value.clone(), default.clone());
            let message = format!("function {name}({}, integer, {}) does not exist", value.ty, default.ty);
            let none = || SqlError::new(SqlState::UNDEFINED_FUNCTION, message.clone());
            let ty = common(&value.ty, &default.ty, &name).map_err(|_| none())?;
            args[0] = self.coerce(value, &ty, CastKind::Implicit)?.ok_or_else(none)?;
            args[2] = self.coerce(default, &ty, CastKind::Implicit)?.ok_or_else(none)?;
        }
        let args = args.into_iter().map(|arg| self.known(arg)).collect::<Result<_, _>>()?;
        Ok(WindowCall { function: kind, args, partition, order, frame })
    }

    /// A window with what it takes over from the window that it names.
    fn whole_spec(
        &mut self,
        mut spec: WindowSpec,
        select: &Select,
        scope: &Scope<'_>,
        depth: usize,
    ) -> Result<WindowSpec, SqlError> {
        let Some(name) = &spec.window_name else { return Ok(spec) };
        let name = fold(name);
        let base = self.named_window(&name, select, scope, depth + 1)?;
        let mark = exclusion(&mut spec);
        let refused = if !spec.partition_by.is_empty() {
            Some(format!("cannot override PARTITION BY clause of window \"{name}\""))
        } else if !spec.order_by.is_empty() && !base.order_by.is_empty() {
            Some(format!("cannot override ORDER BY clause of window \"{name}\""))
        } else if base.window_frame.is_some() {
            Some(format!("cannot copy window \"{name}\" because it has a frame clause"))
        } else {
            None
        };
        if let Some(message) = refused {
            return Err(SqlError::new(WINDOWING_ERROR, message));
        }
        let mut order_by = if spec.order_by.is_empty() { base.order_by } else { spec.order_by };
        order_by.extend(mark.map(|mark| mark.0));
        Ok(WindowSpec { window_name: None, partition_by: base.partition_by, order_by, window_frame: spec.window_frame })
    }

    fn named_window(
        &mut self,
        name: &str,
        select: &Select,
        scope: &Scope<'_>,
        depth: usize,
    ) -> Result<WindowSpec, SqlError> {
        let found = select.named_window.iter().find(|definition| fold(&definition.0) == name);
        let Some(definition) = found.filter(|_| depth <= select.named_window.len()) else {
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, format!("window \"{name}\" does not exist")));
        };
        match &definition.1 {
            NamedWindowExpr::NamedWindow(other) => self.named_window(&fold(other), select, scope, depth + 1),
            NamedWindowExpr::WindowSpec(spec) => {
                let mut spec = spec.clone();
                Taker { binder: self, scope, grouping: None, clause: Clause::plain("window definitions") }
                    .run(&mut spec)?;
                self.whole_spec(spec, select, scope, depth)
            }
        }
    }

    /// `keys`: the types of the sort keys.
    fn frame(
        &mut self,
        frame: Option<&ast::WindowFrame>,
        keys: &[&SqlType],
        scope: &Scope<'_>,
    ) -> Result<Frame, SqlError> {
        let exclude = Exclude::Nothing;
        let Some(frame) = frame else {
            return Ok(Frame { units: Units::Range, start: Bound::Unbounded, end: Bound::Current, exclude });
        };
        let units = match frame.units {
            WindowFrameUnits::Rows => Units::Rows,
            WindowFrameUnits::Range => Units::Range,
            WindowFrameUnits::Groups => Units::Groups,
        };
        if let Some(message) = backwards(frame) {
            return Err(SqlError::new(WINDOWING_ERROR, message));
        }
        if units == Units::Groups && keys.is_empty() {
            return Err(SqlError::new(WINDOWING_ERROR, "GROUPS mode requires an ORDER BY clause"));
        }
        let start = self.bound(&frame.start_bound, keys, scope, units)?;
        let end = match &frame.end_bound {
            None => Bound::Current,
            Some(bound) => self.bound(bound, keys, scope, units)?,
        };
        Ok(Frame { units, start, end, exclude })
    }

    fn bound(
        &mut self,
        bound: &WindowFrameBound,
        keys: &[&SqlType],
        scope: &Scope<'_>,
        units: Units,
    ) -> Result<Bound, SqlError> {
        let mut offset = |expr: &ast::Expr| -> Result<Scalar, SqlError> {
            let scalar = self.compile(expr.clone(), scope)?;
            if units == Units::Range {
                let [key] = keys else {
                    let message = "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column";
                    return Err(SqlError::new(WINDOWING_ERROR, message));
                };
                let refusal = no_distance(key, &scalar.ty);
                let Some(ty) = distance_type(key, &scalar.ty) else { return Err(refusal) };
                return self.coerce(scalar, &ty, CastKind::Implicit)?.ok_or(refusal);
            }
            let mode = if units == Units::Rows { "ROWS" } else { "GROUPS" };
            let message = format!("argument of {mode} must be type bigint, not type {}", scalar.ty.base());
            self.coerce(scalar, &SqlType::Int8, CastKind::Implicit)?
                .ok_or_else(|| SqlError::new(SqlState::DATATYPE_MISMATCH, message))
        };
        Ok(match bound {
            WindowFrameBound::CurrentRow => Bound::Current,
            WindowFrameBound::Preceding(None) | WindowFrameBound::Following(None) => Bound::Unbounded,
            WindowFrameBound::Preceding(Some(expr)) => Bound::Preceding(offset(expr)?),
            WindowFrameBound::Following(Some(expr)) => Bound::Following(offset(expr)?),
        })
    }
}
