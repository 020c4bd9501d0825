//! What READ COMMITTED does with rows that changed while their locks were waited for: it asks WHERE again of each, and computes SET
//! anew. The answers in `tests/e2e/rechecks` are PostgreSQL's where they do not say otherwise.

use crate::node::{Node, Scratch, repeat_with};
use crate::script;
use std::path::Path;

#[test]
fn rows_that_changed_are_looked_at_again() {
    repeat_with("rechecks");
    let scratch = Scratch::new();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/e2e/rechecks");
    for name in ["update_from_query", "delete_where_exists"] {
        let node = Node::start(&scratch.path().join(name), &[]);
        script::play(&node, &dir.join(name).with_extension("txt"));
    }
}
