//! An operator says which node is to lead a range.
//!
//! Whoever is asked finds the range's leader and asks it, as for replicas ([`super::replicas`]); the leader hands over. It stays so until that node stops, loses its majority, or its clock, or somebody says
//! otherwise: nothing moves leaders about by itself.

use super::Inner;
use super::control::{self, Leadership, Reply, Request};
use crate::kv::{Shell, park};
use node::RangeId;
use node::cluster::{NodeId, Role};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use store::Engine;

/// It takes so long, at most; who was asked answers a moment later.
const LEAD_MAX: Duration = Duration::from_secs(10);
const ANSWER_MAX: Duration = Duration::from_secs(1);
const _: () = assert!(LEAD_MAX.as_secs() + ANSWER_MAX.as_secs() < control::PATIENCE_JOIN.as_secs());
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl<E: Engine> Inner<E> {
    /// Sees to it, wherever the range is led.
    pub(super) fn hand_lead(&self, asked: &Leadership) -> Reply {
        if self.charter().place(asked.to).is_none() {
            return Reply::No(format!("there is no n{} in this cluster", asked.to));
        }
        if !asked.asked_on && !self.hears_of(RangeId(asked.range)) {
            return Reply::No(format!("r{} is not known here: `timeball node status` shows the ranges", asked.range));
        }
        let until = Instant::now() + LEAD_MAX;
        let (mut why, mut turn) = (String::from("nobody leads it"), 0);
        while Instant::now() < until && !self.leaving.load(SeqCst) {
            match self.lead_once(asked, until, turn) {
                Reply::Later(later) if asked.asked_on => return Reply::Later(later),
                Reply::Later(later) => why = later,
                other => return other,
            }
            turn += 1;
            park::pause(LOOK_EVERY);
        }
        Reply::No(format!("r{} is not led by n{}: {why}; ask again", asked.range, asked.to))
    }

    /// One step, here or at whoever leads, or may know who does.
    fn lead_once(&self, asked: &Leadership, until: Instant, turn: usize) -> Reply {
        let (range, to) = (RangeId(asked.range), NodeId(asked.to));
        let status = self.member.status(range).filter(|status| status.role == Role::Leader);
        let Some(status) = status else {
            if asked.asked_on {
                return Reply::Later(format!("n{} does not lead it", self.node));
            }
            let Some(addr) = self.who_may_lead(range, turn) else {
                return Reply::Later("nobody is known to lead it".into());
            };
            let left = (until + ANSWER_MAX).saturating_duration_since(Instant::now());
            return control::ask_within(&addr, &Request::Lead(Leadership { asked_on: true, ..*asked }), left)
                .unwrap_or_else(Reply::Later);
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
