//! A plan in lines.

use super::{Explained, Fact, Meters, Operator, Options, Role, Shown};

/// The lines of EXPLAIN.
pub(super) fn lines(explained: &Explained, options: &Options) -> Vec<String> {
    let meters = explained.total.as_ref().map(|total| total.meters.as_ref());
    let mut out = Vec::new();
    Writer { options, meters, out: &mut out }.operator(&explained.plan, 0, false);
    let ms = |us: i64| us as f64 / 1000.0;
    if options.summary.unwrap_or(explained.total.is_some()) {
        out.push(format!("Planning Time: {:.3} ms", ms(explained.planning_us)));
        if let Some(total) = &explained.total {
            out.push(format!("Execution Time: {:.3} ms", ms(total.execution_us)));
        }
    }
    if let Some(total) = &explained.total {
        out.push(format!("Rows: {}", total.rows));
        out.extend(total.time.iter().map(|(name, value)| format!("{name}: {value}")));
    }
    out
}

struct Writer<'a> {
    options: &'a Options,
    meters: Option<&'a Meters>,
    out: &'a mut Vec<String>,
}

impl Writer<'_> {
    fn operator(&mut self, one: &Operator, indent: usize, below: bool) {
        let arrow = if below { "->  " } else { "" };
        let line = format!("{}{arrow}{}{}{}", " ".repeat(indent), one.title, self.estimate(one), self.measured(one));
        self.out.push(line);
        let indent = indent + arrow.len() + 2;
        let written = self.meters.and_then(|meters| one.written(meters));
        for (name, fact, shown) in &one.facts {
            let says = match (shown, fact) {
                _ if *name == "Sort Method" && written.is_some() => continue,
                (Shown::Json, _) => continue,
                (Shown::Verbose, _) if !self.options.verbose => continue,
                (_, Fact::Text(text)) => format!("{name}: {text}"),
                (_, Fact::List(list)) => format!("{name}: {}", list.join(", ")),
                (_, Fact::Flag(true)) => (*name).to_owned(),
                (_, Fact::Flag(false)) => continue,
            };
            self.out.push(format!("{}{says}", " ".repeat(indent)));
            let removed = self.meters.and_then(|meters| one.removed(name, meters)).filter(|(_, rows)| *rows > 0.0);
            self.out.extend(removed.map(|(name, rows)| format!("{}{name}: {rows:.0}", " ".repeat(indent))));
        }
        let ahead = self.meters.and_then(|meters| one.removed_ahead(meters));
        let says = |rows: f64| format!("{}Rows Removed by Runtime Filter: {rows:.0}", " ".repeat(indent));
        self.out.extend(ahead.map(says));
        self.out.extend(written.map(|(text, _)| format!("{}{text}", " ".repeat(indent))));
        let (named, plain): (Vec<_>, Vec<_>) =
            one.inputs.iter().partition(|(role, _)| matches!(role, Role::SubPlan(_) | Role::InitPlan(_)));
        let (first, last): (Vec<_>, Vec<_>) =
            named.into_iter().partition(|(role, _)| matches!(role, Role::InitPlan(_)));
        for (role, input) in first.into_iter().chain(plain).chain(last) {
            match role {
                Role::SubPlan(name) | Role::InitPlan(name) => {
                    self.out.push(format!("{}{name}", " ".repeat(indent)));
                    self.operator(input, indent + 2, true);
                }
                _ => self.operator(input, indent, true),
            }
        }
    }

    fn estimate(&self, one: &Operator) -> String {
        match self.options.costs {
            true => format!("  (cost=0.00..{:.2} rows={:.0} width=0)", one.cost, one.rows),
            false => String::new(),
        }
    }

    fn measured(&self, one: &Operator) -> String {
        let Some(done) = self.meters.and_then(|meters| one.done(meters)) else { return String::new() };
        if done.loops == 0 {
            return " (never executed)".to_owned();
        }
        let per_loop = |sum: f64| sum / done.loops as f64;
        let rows = format!("rows={:.0} loops={}", per_loop(done.rows as f64), done.loops);
        let ms = |us: i64| per_loop(us as f64) / 1000.0;
        match self.options.timing {
            true => format!(" (actual time={:.3}..{:.3} {rows})", ms(done.first_us), ms(done.us)),
            false => format!(" (actual {rows})"),
        }
    }
}
