//! Networks that drop packets, one way and both ways: what is cut off serves nothing that others have replaced, and no write is lost.
//!
//! Needs root and `ip` (Debian: iproute2); says so where they are missing. `TIMEBALL_E2E_ROUNDS` says how often everything happens (once).

use super::histories::rounds;
use super::lists::Load;
use super::network::Network;
use super::nodes::Nodes;
use crate::node::{Scratch, repeat_with};

/// A leader that nobody hears, one that hears nobody, one that is cut off, one that another does not hear.
#[test]
fn lists_are_strict_while_packets_are_dropped() {
    repeat_with("cluster::partition::lists_are_strict_while_packets_are_dropped");
    let Some(network) = Network::make(3) else { return };
    let scratch = Scratch::new();
    let nodes = Nodes::found_in(scratch.path(), 3, &network);
    let load = Load::start(&nodes);
    let all = [0, 1, 2];
    load.served_at(&all);
    for _ in 0..rounds() {
        for (unheard, deaf) in [(true, false), (false, true), (true, true)] {
            let leader = nodes.leader();
            let others = [(leader + 1) % 3, (leader + 2) % 3];
            for other in others {
                if unheard {
                    network.cut(leader, other);
                }
                if deaf {
                    network.cut(other, leader);
                }
            }
            load.served_at(&others);
            network.heal();
            load.served_at(&all);
        }
        // Whoever leads then, the third reaches it, and a majority.
        let leader = nodes.leader();
        network.cut(leader, (leader + 1) % 3);
        load.served_at(&[(leader + 2) % 3]);
        network.heal();
        load.served_at(&all);
    }
    load.judge(&nodes);
}
