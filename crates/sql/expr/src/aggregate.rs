//! The aggregate functions that there are: names, arguments, types of results. Both paths, and who refuses aggregates in a clause, take them from here;
//! what runs them is theirs. Each is also a window function under OVER.

use crate::types::SqlType;

/// Which aggregate function; several names may mean one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "most say what they are by their names")]
pub enum Function {
    Count,
    Sum,
    Avg,
    Min,
    Max,
    BoolAnd,
    BoolOr,
    BitAnd,
    BitOr,
    BitXor,
    AnyValue,
    StringAgg,
    ArrayAgg,
    /// json_agg, jsonb_agg: the argument is already json.
    JsonAgg {
        binary: bool,
    },
    /// json_object_agg, jsonb_object_agg: key as text, value as json.
    JsonObjectAgg {
        binary: bool,
    },
    /// var_pop, var_samp, stddev_pop, stddev_samp.
    Variance {
        sample: bool,
        root: bool,
    },
    /// corr, covar_pop, regr_slope and their kin.
    Regression(Measure),
    /// percentile_cont, percentile_disc, mode: over WITHIN GROUP's one key.
    PercentileCont,
    PercentileDisc,
    Mode,
    /// Counts of parts put together.
    Counts,
    /// grouping(): which of some keys the row's grouping set leaves out.
    Grouping,
}

impl Function {
    /// By name.
    pub fn named(name: &str) -> Option<Function> {
        let place = AGGREGATES.binary_search_by_key(&name, |(name, _)| name).ok()?;
        Some(AGGREGATES[place].1)
    }

    /// Its name; where it has several, the one that says most.
    pub fn name(self) -> &'static str {
        let known = AGGREGATES.iter().find(|(name, function)| *function == self && !SYNONYMS.contains(name));
        // Counts of parts are a count.
        known.map_or("count", |(name, _)| name)
    }

    /// Type of the result for types of arguments; `None` if there is no such function.
    pub fn result(self, args: &[SqlType]) -> Option<SqlType> {
        use SqlType as T;
        if !self.takes(args.len()) {
            return None;
        }
        let first = args.first();
        Some(match (self, first) {
            (Function::Count, _) => T::Int8,
            (Function::Sum, Some(T::Int2 | T::Int4)) => T::Int8,
            (Function::Sum, Some(T::Int8 | T::Numeric(_))) => T::Numeric(None),
            (Function::Sum, Some(T::Float4)) => T::Float4,
            (Function::Sum | Function::Avg, Some(T::Float8)) => T::Float8,
            (Function::Sum | Function::Avg, Some(T::Interval(_))) => T::Interval(None),
            (Function::Avg, Some(T::Int2 | T::Int4 | T::Int8 | T::Numeric(_))) => T::Numeric(None),
            (Function::Avg, Some(T::Float4)) => T::Float8,
            (Function::Min | Function::Max, Some(T::Varchar(_) | T::Name | T::Unknown)) => T::Text,
            (Function::Min | Function::Max, Some(T::Bool | T::Json | T::Jsonb | T::Uuid | T::Record | T::Void)) => {
                return None;
            }
            (Function::Min | Function::Max, Some(ty)) => ty.base(),
            (Function::BoolAnd | Function::BoolOr, Some(T::Bool | T::Unknown)) => T::Bool,
            (Function::BitAnd | Function::BitOr | Function::BitXor, Some(ty @ (T::Int2 | T::Int4 | T::Int8))) => {
                ty.clone()
            }
            (Function::AnyValue | Function::Mode, Some(ty)) => ty.clone(),
            (Function::StringAgg, Some(ty)) if ty.is_string() => T::Text,
            (Function::ArrayAgg, Some(ty @ T::Array(_))) => ty.base(),
            (Function::ArrayAgg, Some(T::Unknown)) => T::Array(Box::new(T::Text)),
            (Function::ArrayAgg, Some(ty)) => T::Array(Box::new(ty.base())),
            (Function::JsonAgg { binary }, Some(_)) => {
                if binary {
                    T::Jsonb
                } else {
                    T::Json
                }
            }
            (Function::JsonObjectAgg { binary }, Some(_)) => {
                if binary {
                    T::Jsonb
                } else {
                    T::Json
                }
            }
            (Function::Regression(measure), _) if args.iter().all(SqlType::is_number) => match measure {
                Measure::Count => T::Int8,
                _ => T::Float8,
            },
            (Function::Variance { .. }, Some(T::Float4 | T::Float8)) => T::Float8,
            (Function::Variance { .. }, Some(ty)) if ty.is_number() => T::Numeric(None),
            (Function::PercentileCont | Function::PercentileDisc, Some(_))
                if matches!(args.get(1), Some(T::Array(_))) =>
            {
                return None;
            }
            (Function::PercentileCont, Some(T::Interval(_))) => return None,
            (Function::PercentileCont, Some(ty)) if ty.is_number() => T::Float8,
            (Function::PercentileDisc, Some(ty)) => ty.clone(),
            _ => return None,
        })
    }

    /// Whether it has so many arguments, that of WITHIN GROUP among them.
    pub fn takes(self, arguments: usize) -> bool {
        match self {
            Function::Count => arguments <= 1,
            Function::StringAgg
            | Function::JsonObjectAgg { .. }
            | Function::Regression(_)
            | Function::PercentileCont
            | Function::PercentileDisc => arguments == 2,
            _ => arguments == 1,
        }
    }

    /// Whether its argument comes from WITHIN GROUP.
    pub fn is_ordered_set(self) -> bool {
        matches!(self, Function::PercentileCont | Function::PercentileDisc | Function::Mode)
    }

    /// Whether its accumulator grows with its rows.
    pub fn holds_values(self) -> bool {
        self.is_ordered_set()
            || matches!(
                self,
                Function::StringAgg | Function::ArrayAgg | Function::JsonAgg { .. } | Function::JsonObjectAgg { .. }
            )
    }

    /// Whether its result may be another for another order of its rows.
    pub fn heeds_order(self, args: &[SqlType]) -> bool {
        let float = matches!(args.first(), Some(SqlType::Float4 | SqlType::Float8));
        match self {
            Function::Regression(_) => true,
            Function::Sum | Function::Avg | Function::Variance { .. } => float,
            _ => self.holds_values() && !self.is_ordered_set(),
        }
    }

    /// Whether a NULL is a value to it.
    pub fn keeps_nulls(self) -> bool {
        matches!(self, Function::ArrayAgg | Function::JsonAgg { .. } | Function::JsonObjectAgg { .. })
    }
}

/// What is asked of the pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "they say what they are by their names")]
pub enum Measure {
    Correlation,
    CovariancePopulation,
    CovarianceSample,
    AverageX,
    AverageY,
    Count,
    Intercept,
    R2,
    Slope,
    Sxx,
    Sxy,
    Syy,
}

/// Every aggregate by its name, sorted.
const AGGREGATES: &[(&str, Function)] = &[
    ("any_value", Function::AnyValue),
    ("array_agg", Function::ArrayAgg),
    ("avg", Function::Avg),
    ("bit_and", Function::BitAnd),
    ("bit_or", Function::BitOr),
    ("bit_xor", Function::BitXor),
    ("bool_and", Function::BoolAnd),
    ("bool_or", Function::BoolOr),
    ("corr", Function::Regression(Measure::Correlation)),
    ("count", Function::Count),
    ("covar_pop", Function::Regression(Measure::CovariancePopulation)),
    ("covar_samp", Function::Regression(Measure::CovarianceSample)),
    ("every", Function::BoolAnd),
    ("grouping", Function::Grouping),
    ("json_agg", Function::JsonAgg { binary: false }),
    ("json_object_agg", Function::JsonObjectAgg { binary: false }),
    ("jsonb_agg", Function::JsonAgg { binary: true }),
    ("jsonb_object_agg", Function::JsonObjectAgg { binary: true }),
    ("max", Function::Max),
    ("min", Function::Min),
    ("mode", Function::Mode),
    ("percentile_cont", Function::PercentileCont),
    ("percentile_disc", Function::PercentileDisc),
    ("regr_avgx", Function::Regression(Measure::AverageX)),
    ("regr_avgy", Function::Regression(Measure::AverageY)),
    ("regr_count", Function::Regression(Measure::Count)),
    ("regr_intercept", Function::Regression(Measure::Intercept)),
    ("regr_r2", Function::Regression(Measure::R2)),
    ("regr_slope", Function::Regression(Measure::Slope)),
    ("regr_sxx", Function::Regression(Measure::Sxx)),
    ("regr_sxy", Function::Regression(Measure::Sxy)),
    ("regr_syy", Function::Regression(Measure::Syy)),
    ("stddev", Function::Variance { sample: true, root: true }),
    ("stddev_pop", Function::Variance { sample: false, root: true }),
    ("stddev_samp", Function::Variance { sample: true, root: true }),
    ("string_agg", Function::StringAgg),
    ("sum", Function::Sum),
    ("var_pop", Function::Variance { sample: false, root: false }),
    ("var_samp", Function::Variance { sample: true, root: false }),
    ("variance", Function::Variance { sample: true, root: false }),
];

/// Second names.
const SYNONYMS: &[&str] = &["every", "stddev", "variance"];

/// Names of all aggregates.
pub fn names() -> impl Iterator<Item = &'static str> {
    AGGREGATES.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::{AGGREGATES, Function, SYNONYMS};

    #[test]
    fn each_name_is_found() {
        assert!(AGGREGATES.windows(2).all(|pair| pair[0].0 < pair[1].0), "they are searched by halves");
        for (name, function) in AGGREGATES {
            assert_eq!(Function::named(name), Some(*function));
            assert_eq!(function.name() == *name, !SYNONYMS.contains(name), "{name}");
        }
        assert_eq!(Function::named("median"), None);
    }
}
