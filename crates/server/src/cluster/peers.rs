//! Questions to the SQL layers of all other nodes, at a time: whoever hangs keeps nobody waiting for the others, nor for longer than is bounded.

use super::control;
use sql::transaction::PeerAnswers;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// All that a node is asked takes at most so long.
const PATIENCE: Duration = Duration::from_secs(3);
/// Who waits looks this often whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Answers of one node, at most.
const ANSWERS_MAX: usize = 1_000;

/// See [`sql::Kv::ask_peers`]. One thread for each node, which ends with its last question: within the patience of one after the caller's.
pub(super) fn ask(
    nodes: Vec<(u32, String)>,
    questions: &[String],
    next: fn(&str) -> Option<String>,
    stop: &mut dyn FnMut() -> bool,
) -> Vec<PeerAnswers> {
    let (told, answers) = mpsc::channel();
    let mut all = Vec::with_capacity(nodes.len());
    let began = Instant::now();
    for (node, address) in nodes {
        let (told, questions, at) = (told.clone(), questions.to_vec(), all.len());
        let asking = move || {
            let mut left: Vec<String> = questions.into_iter().rev().collect();
            for _ in 0..ANSWERS_MAX {
                let Some(question) = left.pop() else { break };
                let answer = control::ask_sql(&address, &question);
                left.extend(answer.as_ref().ok().and_then(|answer| next(answer)));
                // Nobody listens any more, or there is nothing more to be said.
                if answer.is_err() | told.send((at, Some(answer))).is_err() || began.elapsed() >= PATIENCE {
                    return;
                }
            }
            // Nobody listens any more.
            let _ = told.send((at, None));
        };
        let spawned = std::thread::Builder::new().name(format!("ask-n{node}")).spawn(asking);
        let error = spawned.err().map(|e| format!("no thread for the question: {e}"));
        all.push((PeerAnswers { node, answers: Vec::new(), error: error.clone() }, error.is_some()));
    }
    drop(told);
    while all.iter().any(|(_, is_over)| !is_over) && began.elapsed() < PATIENCE && !stop() {
        match answers.recv_timeout(LOOK_EVERY) {
            Ok((at, Some(Ok(answer)))) => all[at].0.answers.push(answer),
            Ok((at, Some(Err(why)))) => (all[at].0.error, all[at].1) = (Some(why), true),
            Ok((at, None)) => all[at].1 = true,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let late = |(answers, is_over): (PeerAnswers, bool)| match is_over {
        true => answers,
        false => {
            let why = format!("the node has not said all that it was asked within {} s", PATIENCE.as_secs());
            PeerAnswers { error: answers.error.or(Some(why)), ..answers }
        }
    };
    all.into_iter().map(late).collect()
}
