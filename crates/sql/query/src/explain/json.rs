//! A plan as JSON, in PostgreSQL's shape: what tools that draw plans read.

use super::{Explained, Fact, Meters, Operator, Options, Role, Shown};
use serde_json::Value;

/// An object under way, and how deep it stands.
struct Object {
    out: String,
    depth: usize,
    empty: bool,
}

impl Object {
    fn new(depth: usize) -> Object {
        Object { out: "{".to_owned(), depth, empty: true }
    }

    fn put(&mut self, name: &str, value: &str) {
        let comma = if std::mem::take(&mut self.empty) { "" } else { "," };
        self.out += &format!("{comma}\n{}{}: {value}", "  ".repeat(self.depth + 1), quoted(name));
    }

    fn end(mut self) -> String {
        self.out += &format!("\n{}}}", "  ".repeat(self.depth));
        self.out
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn list(items: &[String], depth: usize) -> String {
    let inner = "  ".repeat(depth + 1);
    let items: Vec<String> = items.iter().map(|item| format!("\n{inner}{item}")).collect();
    format!("[{}\n{}]", items.join(","), "  ".repeat(depth))
}

/// The document of EXPLAIN (FORMAT JSON).
pub(super) fn document(explained: &Explained, options: &Options) -> String {
    let meters = explained.total.as_ref().map(|total| total.meters.as_ref());
    let mut whole = Object::new(1);
    whole.put("Plan", &operator(&explained.plan, None, options, meters, 2));
    let ms = |us: i64| format!("{:.3}", us as f64 / 1000.0);
    if options.summary.unwrap_or(explained.total.is_some()) {
        whole.put("Planning Time", &ms(explained.planning_us));
    }
    if let Some(total) = &explained.total {
        whole.put("Triggers", "[\n    ]");
        if options.summary.unwrap_or(true) {
            whole.put("Execution Time", &ms(total.execution_us));
        }
        total.time.iter().for_each(|(name, value)| whole.put(name, &quoted(value)));
    }
    list(&[whole.end()], 0)
}

fn operator(one: &Operator, role: Option<&Role>, options: &Options, meters: Option<&Meters>, depth: usize) -> String {
    let mut object = Object::new(depth);
    object.put("Node Type", &quoted(one.kind));
    match role {
        None => {}
        Some(Role::Outer) => object.put("Parent Relationship", "\"Outer\""),
        Some(Role::Inner) => object.put("Parent Relationship", "\"Inner\""),
        Some(Role::Member) => object.put("Parent Relationship", "\"Member\""),
        Some(Role::SubPlan(name)) => {
            object.put("Parent Relationship", "\"SubPlan\"");
            object.put("Subplan Name", &quoted(name));
        }
        Some(Role::InitPlan(name)) => {
            object.put("Parent Relationship", "\"InitPlan\"");
            object.put("Subplan Name", &quoted(name));
        }
    }
    object.put("Parallel Aware", "false");
    object.put("Async Capable", "false");
    let says = |object: &mut Object, json: bool| {
        for (name, fact, shown) in &one.facts {
            if *name == "Sort Method" && meters.is_some_and(|meters| one.written(meters).is_some()) {
                continue;
            }
            if (*shown == Shown::Json) != json || *shown == Shown::Verbose && !options.verbose {
                continue;
            }
            let value = match fact {
                Fact::Text(text) => quoted(text),
                Fact::List(items) => list(&items.iter().map(|item| quoted(item)).collect::<Vec<_>>(), object.depth + 1),
                Fact::Flag(on) => on.to_string(),
            };
            object.put(name, &value);
            if let Some((name, rows)) = meters.and_then(|meters| one.removed(name, meters)) {
                object.put(name, &format!("{rows:.0}"));
            }
        }
    };
    says(&mut object, true);
    if options.costs {
        object.put("Startup Cost", "0.00");
        object.put("Total Cost", &format!("{:.2}", one.cost));
        object.put("Plan Rows", &format!("{:.0}", one.rows));
        object.put("Plan Width", "0");
    }
    if let Some(done) = meters.and_then(|meters| one.done(meters)) {
        let per_loop = |sum: f64| sum / done.loops.max(1) as f64;
        if options.timing {
            object.put("Actual Startup Time", &format!("{:.3}", per_loop(done.first_us as f64) / 1000.0));
            object.put("Actual Total Time", &format!("{:.3}", per_loop(done.us as f64) / 1000.0));
        }
        object.put("Actual Rows", &format!("{:.0}", per_loop(done.rows as f64)));
        object.put("Actual Loops", &done.loops.to_string());
    }
    let written = meters.and_then(|meters| one.written(meters));
    says(&mut object, false);
    if let Some(rows) = meters.and_then(|meters| one.removed_ahead(meters)) {
        object.put("Rows Removed by Runtime Filter", &format!("{rows:.0}"));
    }
    for (name, value) in written.iter().flat_map(|(_, facts)| facts) {
        object.put(name, &value.to_string());
    }
    if !one.inputs.is_empty() {
        let inputs: Vec<String> =
            one.inputs.iter().map(|(role, input)| operator(input, Some(role), options, meters, depth + 2)).collect();
        object.put("Plans", &list(&inputs, depth + 1));
    }
    object.end()
}
