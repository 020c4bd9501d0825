//! Random statements over small tables with NULLs, of one seed.
//!
//! Every statement has one right answer as a multiset of rows: no order is asked for that equal keys leave open, no LIMIT without an order of
//! all columns, no text that depends on a locale, no operation whose failure depends on which row is computed first.

use rand::Rng;
use rand::rngs::SmallRng;

/// How deep expressions and queries nest.
const DEPTH: u32 = 3;
/// The columns of every table, with their types.
pub const COLUMNS: [(&str, Type); 8] = [
    ("a", Type::Int),
    ("b", Type::Int),
    ("s", Type::Text),
    ("f", Type::Bool),
    ("n", Type::Numeric),
    ("d", Type::Date),
    ("r", Type::Real),
    ("x", Type::Double),
];
/// The tables, each with what stands behind its columns.
pub const TABLES: [(&str, &str); 3] = [("t1", ", PRIMARY KEY (id)"), ("t2", ", UNIQUE (a, b)"), ("t3", "")];

/// A type of the statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Int,
    Text,
    Bool,
    Numeric,
    Date,
    Real,
    Double,
}

impl Type {
    pub fn name(self) -> &'static str {
        match self {
            Type::Int => "int",
            Type::Text => "text",
            Type::Bool => "bool",
            Type::Numeric => "numeric",
            Type::Date => "date",
            Type::Real => "real",
            Type::Double => "double precision",
        }
    }
}

/// A column that can be named here.
#[derive(Clone, Debug)]
struct Column {
    name: String,
    ty: Type,
}

/// Draws statements.
pub struct Statements {
    rng: SmallRng,
    aliases: u32,
}

impl Statements {
    pub fn new(rng: SmallRng) -> Statements {
        Statements { rng, aliases: 0 }
    }

    /// Creates the tables and fills them with few values, so that they meet.
    pub fn tables(&mut self) -> Vec<String> {
        let mut out = Vec::new();
        for (table, key) in TABLES {
            let columns: Vec<String> = COLUMNS.iter().map(|(name, ty)| format!("{name} {}", ty.name())).collect();
            out.push(format!("CREATE TABLE {table} (id int, {}{key})", columns.join(", ")));
            let rows: Vec<String> = (0..self.rng.random_range(0..12)).map(|id| self.row(id, table == "t2")).collect();
            if !rows.is_empty() {
                out.push(format!("INSERT INTO {table} VALUES {}", rows.join(", ")));
            }
        }
        out.push("CREATE INDEX ON t1 (a)".into());
        out.push("CREATE INDEX ON t3 (s, b)".into());
        out.push("CREATE INDEX ON t3 (a) WHERE b IS NOT NULL".into());
        out.push("CREATE INDEX ON t1 (d)".into());
        out.push("CREATE INDEX ON t1 (r)".into());
        out.push("CREATE INDEX ON t2 (x, d)".into());
        out.push("CREATE INDEX ON t3 (d DESC, x)".into());
        out.push("CREATE VIEW v AS SELECT a, b, s, f, n, d, r, x FROM t1 WHERE a > 1 OR a IS NULL".into());
        out
    }

    fn row(&mut self, id: i32, distinct: bool) -> String {
        let values: Vec<String> = COLUMNS
            .iter()
            .map(|(name, ty)| if distinct && *name == "b" { id.to_string() } else { self.value(*ty) })
            .collect();
        format!("({id}, {})", values.join(", "))
    }

    fn value(&mut self, ty: Type) -> String {
        if self.chance(4) {
            return "NULL".into();
        }
        match ty {
            Type::Int => self.rng.random_range(-1..5).to_string(),
            Type::Text => self.of(&["''", "'a'", "'b'", "'ab'", "'B'"]),
            Type::Bool => self.of(&["true", "false"]),
            Type::Numeric => self.of(&["0", "1.5", "2.0", "-1.25", "3"]),
            Type::Date => {
                self.of(&["'2020-01-01'", "'2020-01-02'", "'2020-01-03'", "'2020-03-08'", "'infinity'", "'-infinity'"])
            }
            Type::Real => self.of(&["0", "1.5", "'0.1'", "-1.25", "'NaN'", "'infinity'"]),
            // 0.1 as a real, and as itself.
            Type::Double => self.of(&["0", "1.5", "'0.1'", "'0.10000000149011612'", "-1.25", "'NaN'", "'-infinity'"]),
        }
    }

    fn literal(&mut self, ty: Type) -> String {
        let value = self.value(ty);
        format!("({value})::{}", ty.name())
    }

    fn of<T: Clone + Into<String>>(&mut self, choices: &[T]) -> String {
        choices[self.rng.random_range(0..choices.len())].clone().into()
    }

    /// True once in `n`.
    fn chance(&mut self, n: u32) -> bool {
        self.rng.random_range(0..n) == 0
    }

    fn ty(&mut self) -> Type {
        use Type::*;
        [Int, Int, Int, Text, Text, Bool, Bool, Numeric, Numeric, Date, Real, Double][self.rng.random_range(0..12)]
    }

    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("q{}", self.aliases)
    }

    /// A query whose rows are compared.
    pub fn query(&mut self) -> String {
        self.aliases = 0;
        let with = if self.chance(6) { Some(self.alias()) } else { None };
        let mut given = Vec::new();
        let cte = with.as_ref().map(|name| {
            let (text, types) = self.select(&[], DEPTH - 1, None);
            given = types;
            format!("WITH {name} AS ({text}) ")
        });
        let (mut text, width) = match &with {
            Some(name) => {
                let outer = self.alias();
                let column = |(n, ty): (u32, &Type)| Column { name: format!("{outer}.c{n}"), ty: *ty };
                let columns: Vec<Column> = (1..).zip(&given).map(column).collect();
                let filter = self.bool(&columns, 2);
                (format!("SELECT {outer}.* FROM {name} {outer} WHERE {filter}"), 0)
            }
            None => self.set_operation(DEPTH),
        };
        if width > 0 && self.chance(3) {
            let keys: Vec<String> = (1..=width).map(|n| format!("{n}{}", self.direction())).collect();
            text = format!("{text} ORDER BY {} LIMIT {}", keys.join(", "), self.rng.random_range(0..6));
            if self.chance(3) {
                text = format!("{text} OFFSET {}", self.rng.random_range(0..4));
            }
        }
        format!("{}{text}", cte.unwrap_or_default())
    }

    fn direction(&mut self) -> String {
        self.of(&["", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"])
    }

    /// A write, with RETURNING.
    pub fn write(&mut self) -> String {
        self.aliases = 0;
        let (table, _) = TABLES[self.rng.random_range(0..TABLES.len())];
        let target: Vec<Column> = columns_of("x");
        match self.rng.random_range(0..4) {
            0 => {
                let filter = self.bool(&target, DEPTH - 1);
                format!("DELETE FROM {table} x WHERE {filter} RETURNING *")
            }
            1 => {
                let (from, more) = self.from(&[], 1);
                let scope = [target, more].concat();
                let filter = self.bool(&scope, 2);
                format!("DELETE FROM {table} x USING {from} WHERE {filter} RETURNING x.*")
            }
            2 => {
                let (set, filter) = (self.expr(Type::Text, &target, 2), self.bool(&target, 2));
                let number = self.expr(Type::Numeric, &target, 2);
                format!(
                    "UPDATE {table} x SET s = left({set}, 8), n = round(({number}) % 100, 2) WHERE {filter} RETURNING *"
                )
            }
            _ => {
                let (a, s) = (self.int(&target, 2), self.literal(Type::Text));
                let filter = self.bool(&target, 2);
                format!(
                    "INSERT INTO t3 (id, a, s) SELECT 100 + id, ({a}) % 7, {s} FROM {table} x WHERE {filter} RETURNING *"
                )
            }
        }
    }

    fn set_operation(&mut self, depth: u32) -> (String, usize) {
        if depth < 2 || !self.chance(5) {
            let (text, types) = self.select(&[], depth, None);
            return (text, types.len());
        }
        let types: Vec<Type> = (0..self.rng.random_range(1..4)).map(|_| self.ty()).collect();
        let (left, _) = self.select(&[], depth.saturating_sub(1), Some(&types));
        let (right, _) = self.select(&[], depth.saturating_sub(1), Some(&types));
        let word = self.of(&["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"]);
        (format!("({left}) {word} ({right})"), types.len())
    }

    /// A SELECT with names for its columns (`c1`, `c2`, ..), and their types.
    fn select(&mut self, outer: &[Column], depth: u32, types: Option<&[Type]>) -> (String, Vec<Type>) {
        let (from, inner) = self.from(outer, depth);
        let scope: Vec<Column> = inner.iter().cloned().chain(outer.iter().cloned()).collect();
        let filter = if self.chance(3) {
            String::new()
        } else {
            format!(" WHERE {}", self.bool(&scope, depth.saturating_sub(1)))
        };
        let types: Vec<Type> = match types {
            Some(types) => types.to_vec(),
            None => (0..self.rng.random_range(1..4)).map(|_| self.ty()).collect(),
        };
        if self.chance(3) {
            return (self.grouped(&from, &filter, &inner, &types, depth), types);
        }
        let list: Vec<String> = (1..)
            .zip(&types)
            .map(|(n, ty)| format!("{} AS c{n}", self.expr(*ty, &scope, depth.saturating_sub(1))))
            .collect();
        let distinct = if self.chance(4) { "DISTINCT " } else { "" };
        (format!("SELECT {distinct}{} FROM {from}{filter}", list.join(", ")), types)
    }

    /// Groups by some columns of its own FROM; every output is one of them or an aggregate.
    fn grouped(&mut self, from: &str, filter: &str, scope: &[Column], types: &[Type], depth: u32) -> String {
        let keys: Vec<Column> = (0..self.rng.random_range(0..3)).filter_map(|_| self.pick(scope, None)).collect();
        let mut list = Vec::new();
        for (n, ty) in (1..).zip(types) {
            let key = keys
                .iter()
                .find(|key| key.ty == *ty)
                .filter(|_| self.rng.random_range(0..2) == 0)
                .map(|k| k.name.clone());
            let text = match key {
                Some(name) => name,
                None => self.aggregate(*ty, scope, depth.saturating_sub(1)),
            };
            list.push(format!("{text} AS c{n}"));
        }
        let names: Vec<String> = keys.iter().map(|k| k.name.clone()).collect();
        let by = match (names.is_empty(), self.rng.random_range(0..5)) {
            (true, _) => String::new(),
            (false, 0) => format!(" GROUP BY ROLLUP ({})", names.join(", ")),
            (false, 1) => format!(" GROUP BY GROUPING SETS (({}), ())", names.join(", ")),
            (false, _) => format!(" GROUP BY {}", names.join(", ")),
        };
        let having = if self.chance(4) {
            let count = self.aggregate(Type::Int, scope, 1);
            format!(" HAVING {count} >= {}", self.rng.random_range(0..3))
        } else {
            String::new()
        };
        format!("SELECT {} FROM {from}{filter}{by}{having}", list.join(", "))
    }

    fn aggregate(&mut self, ty: Type, scope: &[Column], depth: u32) -> String {
        let depth = depth.min(1);
        let filter = |me: &mut Self| {
            if me.chance(5) { format!(" FILTER (WHERE {})", me.bool(scope, depth)) } else { String::new() }
        };
        match ty {
            Type::Int => match self.rng.random_range(0..4) {
                0 => format!("count(*){}::int", filter(self)),
                1 => format!("count(DISTINCT {}){}::int", self.expr(Type::Text, scope, depth), filter(self)),
                2 => format!("max({}){}", self.int(scope, depth), filter(self)),
                _ => format!("sum({}){}::int", self.int(scope, depth), filter(self)),
            },
            Type::Text => {
                let text = self.expr(Type::Text, scope, depth);
                match self.rng.random_range(0..3) {
                    0 => format!("min({text}){}", filter(self)),
                    1 => format!("string_agg({text}, ',' ORDER BY {text}){}", filter(self)),
                    _ => format!("array_agg({text} ORDER BY {text}){}::text", filter(self)),
                }
            }
            Type::Bool => {
                let word = self.of(&["bool_and", "bool_or", "every"]);
                format!("{word}({}){}", self.bool(scope, depth), filter(self))
            }
            Type::Numeric => {
                let word = self.of(&["sum", "min", "max"]);
                format!("{word}({}){}", self.expr(Type::Numeric, scope, depth), filter(self))
            }
            Type::Date | Type::Real | Type::Double => {
                let word = self.of(&["min", "max"]);
                format!("{word}({}){}", self.expr(ty, scope, depth), filter(self))
            }
        }
    }

    /// Items of FROM, and the columns that they give.
    fn from(&mut self, outer: &[Column], depth: u32) -> (String, Vec<Column>) {
        let (mut text, mut scope) = self.item(outer, &[], depth);
        for _ in 0..self.rng.random_range(0..3) {
            let word =
                self.of(&[",", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "JOIN", "LEFT JOIN"]);
            let lateral =
                if matches!(word.as_str(), "," | "JOIN" | "LEFT JOIN" | "CROSS JOIN") && self.chance(5) && depth > 1 {
                    scope.clone()
                } else {
                    Vec::new()
                };
            let (item, more) = self.item(outer, &lateral, depth.saturating_sub(1));
            let (left, right) = (scope.clone(), more.clone());
            scope.extend(more);
            let how = match word.as_str() {
                "," | "CROSS JOIN" => String::new(),
                // Other conditions are not supported there by PostgreSQL.
                "FULL JOIN" => self.equality(&left, &right),
                _ if self.chance(2) => self.equality(&left, &right),
                _ => format!(" ON {}", self.bool(&scope, depth.clamp(1, 2) - 1)),
            };
            text = if word == "," { format!("{text}, {item}") } else { format!("{text} {word} {item}{how}") };
            // What stands before a comma cannot be named by the conditions of a JOIN behind it.
            if word == "," {
                break;
            }
        }
        (text, scope)
    }

    fn equality(&mut self, left: &[Column], right: &[Column]) -> String {
        let ty = [Type::Int, Type::Int, Type::Text, Type::Date, Type::Double][self.rng.random_range(0..5)];
        match (self.pick(left, Some(ty)), self.pick(right, Some(ty))) {
            (Some(l), Some(r)) => format!(" ON {} = {}", l.name, r.name),
            _ => " ON true".into(),
        }
    }

    fn item(&mut self, outer: &[Column], lateral: &[Column], depth: u32) -> (String, Vec<Column>) {
        let alias = self.alias();
        if !lateral.is_empty() || (depth > 1 && self.chance(4)) {
            let scope: Vec<Column> = lateral.iter().chain(outer).cloned().collect();
            let (text, types) = self.select(&scope, depth.saturating_sub(1), None);
            let columns = (1..).zip(&types).map(|(n, ty)| Column { name: format!("{alias}.c{n}"), ty: *ty }).collect();
            let word = if lateral.is_empty() { "" } else { "LATERAL " };
            return (format!("{word}({text}) {alias}"), columns);
        }
        if self.chance(10) {
            let rows: Vec<String> =
                (0..3).map(|_| format!("({}, {})", self.literal(Type::Int), self.literal(Type::Text))).collect();
            let columns = vec![
                Column { name: format!("{alias}.c1"), ty: Type::Int },
                Column { name: format!("{alias}.c2"), ty: Type::Text },
            ];
            return (format!("(VALUES {}) {alias} (c1, c2)", rows.join(", ")), columns);
        }
        let table = self.of(&["t1", "t2", "t3", "v"]);
        (format!("{table} {alias}"), columns_of(&alias))
    }

    fn pick(&mut self, scope: &[Column], ty: Option<Type>) -> Option<Column> {
        let fitting: Vec<&Column> = scope.iter().filter(|c| ty.is_none_or(|ty| c.ty == ty)).collect();
        if fitting.is_empty() { None } else { Some(fitting[self.rng.random_range(0..fitting.len())].clone()) }
    }

    fn expr(&mut self, ty: Type, scope: &[Column], depth: u32) -> String {
        if depth == 0 || self.chance(3) {
            return match self.pick(scope, Some(ty)) {
                Some(column) if !self.chance(5) => column.name,
                _ => self.literal(ty),
            };
        }
        let depth = depth - 1;
        match self.rng.random_range(0..8) {
            0 => format!(
                "CASE WHEN {} THEN {} ELSE {} END",
                self.bool(scope, depth),
                self.expr(ty, scope, depth),
                self.expr(ty, scope, depth)
            ),
            1 => format!("coalesce({}, {})", self.expr(ty, scope, depth), self.expr(ty, scope, depth)),
            2 => format!("nullif({}, {})", self.expr(ty, scope, depth), self.expr(ty, scope, depth)),
            3 if depth > 0 => self.scalar_query(ty, scope, depth),
            4 => {
                let word = self.of(&["greatest", "least"]);
                format!("{word}({}, {})", self.expr(ty, scope, depth), self.expr(ty, scope, depth))
            }
            _ => match ty {
                Type::Int => self.int(scope, depth),
                Type::Bool => self.bool(scope, depth),
                Type::Text => match self.rng.random_range(0..3) {
                    0 => format!("({} || {})", self.expr(ty, scope, depth), self.expr(ty, scope, depth)),
                    1 => format!("upper({})", self.expr(ty, scope, depth)),
                    _ => format!("({})::text", self.expr(Type::Int, scope, depth)),
                },
                Type::Numeric => {
                    let word = self.of(&["+", "-", "*"]);
                    format!("({} {word} {})", self.expr(ty, scope, depth), self.expr(ty, scope, depth))
                }
                Type::Date | Type::Real => self.expr(ty, scope, 0),
                Type::Double => format!("({})::double precision", self.expr(Type::Real, scope, depth)),
            },
        }
    }

    /// Dates beside moments, reals beside double precision.
    fn mixed(&mut self, scope: &[Column]) -> String {
        let word = self.of(&["=", "<>", "<", "<=", ">", ">="]);
        if self.chance(3) {
            return format!("{} {word} {}", self.expr(Type::Real, scope, 0), self.expr(Type::Double, scope, 0));
        }
        let moment = match self.rng.random_range(0..3) {
            0 => self.of(&["timestamp '2020-01-02'", "timestamp '2020-01-02 12:00'", "timestamp 'infinity'"]),
            1 => self.of(&["timestamptz '2020-01-02 00:00Z'", "timestamptz '2020-03-08 05:00Z'"]),
            _ => {
                let span = self.of(&["1 day", "1 month", "-36 hours", "0"]);
                // What is infinite has no month after it in PostgreSQL's older versions: literals only.
                let day = self.of(&["2020-01-01", "2020-01-02", "2020-02-08"]);
                format!("date '{day}' + interval '{span}'")
            }
        };
        format!("{} {word} {moment}", self.expr(Type::Date, scope, 0))
    }

    fn int(&mut self, scope: &[Column], depth: u32) -> String {
        if depth == 0 {
            return self.expr(Type::Int, scope, 0);
        }
        let depth = depth - 1;
        match self.rng.random_range(0..4) {
            0 => format!("length({})", self.expr(Type::Text, scope, depth)),
            1 => format!("abs({})", self.expr(Type::Int, scope, depth)),
            _ => {
                let word = self.of(&["+", "-"]);
                format!("({} {word} {})", self.expr(Type::Int, scope, depth), self.expr(Type::Int, scope, depth))
            }
        }
    }

    fn scalar_query(&mut self, ty: Type, scope: &[Column], depth: u32) -> String {
        let (from, inner) = self.from(&[], 1);
        let both: Vec<Column> = inner.iter().chain(scope).cloned().collect();
        let filter = self.bool(&both, depth.min(1));
        let tie = self.tie(&inner, scope);
        let value = self.aggregate(ty, &inner, 1);
        format!("(SELECT {value} FROM {from} WHERE {tie}{filter})")
    }

    /// What ties a subquery to the row around it, or nothing.
    fn tie(&mut self, inner: &[Column], outer: &[Column]) -> String {
        let mut out = String::new();
        while self.chance(2) {
            let ty = self.ty();
            if let (Some(l), Some(r)) = (self.pick(inner, Some(ty)), self.pick(outer, Some(ty))) {
                out += &format!("{} = {} AND ", l.name, r.name);
            }
        }
        out
    }

    fn bool(&mut self, scope: &[Column], depth: u32) -> String {
        // In parentheses: comparisons do not associate.
        format!("({})", self.condition(scope, depth))
    }

    fn condition(&mut self, scope: &[Column], depth: u32) -> String {
        if depth == 0 {
            let ty = self.ty();
            let word = self.of(&["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM"]);
            return format!("{} {word} {}", self.expr(ty, scope, 0), self.expr(ty, scope, 0));
        }
        let depth = depth - 1;
        let ty = self.ty();
        match self.rng.random_range(0..14) {
            0 | 1 => format!("({} AND {})", self.bool(scope, depth), self.bool(scope, depth)),
            2 => format!("({} OR {})", self.bool(scope, depth), self.bool(scope, depth)),
            3 => format!("NOT ({})", self.bool(scope, depth)),
            4 => {
                let word = self.of(&["IS NULL", "IS NOT NULL"]);
                format!("{} {word}", self.expr(ty, scope, depth))
            }
            5 => {
                let word = self.of(&["IS TRUE", "IS NOT TRUE", "IS UNKNOWN", "IS NOT FALSE"]);
                format!("({}) {word}", self.bool(scope, depth))
            }
            6 => {
                let word = self.of(&["BETWEEN", "NOT BETWEEN", "BETWEEN SYMMETRIC"]);
                format!("{} {word} {} AND {}", self.expr(ty, scope, depth), self.literal(ty), self.expr(ty, scope, 0))
            }
            7 => {
                let word = self.of(&["IN", "NOT IN"]);
                format!("{} {word} ({}, {})", self.expr(ty, scope, depth), self.literal(ty), self.expr(ty, scope, 0))
            }
            8 | 9 if depth > 0 => {
                let (text, _) = self.select(scope, 1, Some(&[ty]));
                let word = self.of(&["IN", "NOT IN", "= ANY", "< ALL", "<> ALL"]);
                format!("{} {word} ({text})", self.expr(ty, scope, 0))
            }
            10 if depth > 0 => {
                let text = if self.chance(2) {
                    let (from, inner) = self.from(&[], 1);
                    let both: Vec<Column> = inner.iter().chain(scope).cloned().collect();
                    let (tie, filter) = (self.tie(&inner, scope), self.bool(&both, depth.min(1)));
                    format!("SELECT 1 FROM {from} WHERE {tie}{filter}")
                } else {
                    self.select(scope, 1, None).0
                };
                let word = self.of(&["EXISTS", "NOT EXISTS"]);
                format!("{word} ({text})")
            }
            12 => self.mixed(scope),
            11 => {
                let word = self.of(&["=", "<", ">=", "<>"]);
                let (l, r) = (self.expr(ty, scope, 0), self.expr(ty, scope, 0));
                format!("({l}, {}) {word} ({r}, {})", self.int(scope, 0), self.int(scope, 0))
            }
            _ => {
                let word = self.of(&["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]);
                format!("{} {word} {}", self.expr(ty, scope, depth), self.expr(ty, scope, depth))
            }
        }
    }
}

fn columns_of(alias: &str) -> Vec<Column> {
    COLUMNS.iter().map(|(name, ty)| Column { name: format!("{alias}.{name}"), ty: *ty }).collect()
}
