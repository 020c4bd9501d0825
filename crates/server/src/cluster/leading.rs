//! An operator says which node is to lead a range.
//!
//! Whoever is asked finds the range's leader and asks it, as for replicas ([`super::replicas`]); the leader hands over. It stays so until that node stops, loses its majority, or its clock, or somebody says
//! otherwise: nothing moves leaders about by itself.

use super::Inner;
use super::control::{self, Leadership, Reply, Request};
use super::replicas::ANSWER_MAX;
use crate::kv::Shell;
use node::RangeId;
use node::cluster::{NodeId, Role};
use std::time::{Duration, Instant};
use store::Engine;

/// It takes so long, at most; who was asked answers a moment later.
const LEAD_MAX: Duration = Duration::from_secs(10);
const _: () = assert!(LEAD_MAX.as_secs() + ANSWER_MAX.as_secs() < control::PATIENCE_JOIN.as_secs());

impl<E: Engine> Inner<E> {
    /// Sees to it, wherever the range is led.
    pub(super) fn hand_lead(&self, asked: &Leadership) -> Reply {
        if let Some(refused) = self.refuse_unknown(asked.range, Some(asked.to), asked.asked_on) {
            return refused;
        }
        let until = Instant::now() + LEAD_MAX;
        let settled = self.until_settled(asked.asked_on, until, |turn| self.lead_once(asked, until, turn));
        settled
            .unwrap_or_else(|why| Reply::No(format!("r{} is not led by n{}: {why}; ask again", asked.range, asked.to)))
    }

    /// One step, here or at whoever leads, or may know who does.
    fn lead_once(&self, asked: &Leadership, until: Instant, turn: usize) -> Reply {
        let (range, to) = (RangeId(asked.range), NodeId(asked.to));
        let Some(status) = self.member.status(range).filter(|status| status.role == Role::Leader) else {
            let request = Request::Lead(Leadership { asked_on: true, ..*asked });
            return self.ask_on(range, asked.asked_on, &request, until, turn);
        };
        if to.0 == self.node {
            return match status.lease {
                Some(_) => Reply::Ok(format!("r{} is led by {to}\n", asked.range)),
                None => Reply::Later(format!("{to} was elected, and has no lease yet")),
            };
        }
        if !status.voters.contains(&to) {
            return Reply::No(format!(
                "{to} has no replica with a vote of r{0}, so it cannot lead it: give it one with `timeball range move {0} --to {1}`",
                asked.range, to.0
            ));
        }
        let handed = self.member.hand_over(&self.clock.read(), range, to);
        self.settle(false);
        Reply::Later(handed.map_or_else(|refused| refused.to_string(), |()| format!("n{} hands it over", self.node)))
    }
}
