//! Strictly serializable, whatever happens to processes: histories of clients at all nodes, judged by `crates/checker`.
//!
//! `TIMEBALL_E2E_ROUNDS` says how often everything happens (once).

use super::lists::Load;
use super::nodes::Nodes;
use crate::node::{Scratch, repeat_with};

/// How often a test breaks everything that it breaks.
pub fn rounds() -> u32 {
    std::env::var("TIMEBALL_E2E_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1)
}

/// Leaders die, sleep and stop; all die at once. Who was asleep serves nothing that others have replaced meanwhile.
#[test]
fn lists_are_strict_while_nodes_die_and_sleep() {
    repeat_with("cluster::histories::lists_are_strict_while_nodes_die_and_sleep");
    let scratch = Scratch::new();
    let mut nodes = Nodes::found(scratch.path(), 3);
    let load = Load::start(&nodes);
    let all = [0, 1, 2];
    load.served_at(&all);
    for _ in 0..rounds() {
        let leader = nodes.leader();
        let others = [(leader + 1) % 3, (leader + 2) % 3];
        nodes.kill(leader);
        load.served_at(&others);
        nodes.restart(leader);
        load.served_at(&all);

        let leader = nodes.leader();
        let others = [(leader + 1) % 3, (leader + 2) % 3];
        nodes.sleep(leader);
        load.served_at(&others);
        nodes.wake(leader);
        load.served_at(&all);

        for at in all {
            nodes.stop(at);
            nodes.restart(at);
            load.served_at(&all);
        }

        all.iter().for_each(|at| nodes.kill(*at));
        nodes.restart_all();
        load.served_at(&all);
    }
    load.judge(&nodes);
}
