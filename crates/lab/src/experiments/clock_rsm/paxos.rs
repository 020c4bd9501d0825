//! Multi-Paxos with a leader that stays, and with acknowledgements that go to all (004 section 3.4.2).
//!
//! A replica forwards a command to the leader, which gives it the next slot and sends it to all; each logs and acknowledges it. *Paxos* acknowledges to the
//! leader, which tells all once a majority has; *Paxos-bcast* acknowledges to all, so that each finds out itself: a step less, and as many times the
//! messages as there are replicas. Nothing fails here: there is one ballot.

use super::world::{Command, Replica, Side};
use std::collections::BTreeMap;

/// What replicas say.
#[derive(Clone, Debug)]
pub enum Message {
    /// To the leader.
    Forward(Command),
    /// Of the leader: log this at this slot.
    Accept(u64, Command),
    /// It is logged.
    Accepted(u64),
    /// Of the leader: a majority has logged it.
    Commit(u64),
}

#[derive(Default)]
struct Slot {
    command: Option<Command>,
    accepted: usize,
    committed: bool,
}

/// A replica.
pub struct Paxos {
    replicas: usize,
    leader: usize,
    broadcast: bool,
    /// Of the leader: the next free slot.
    next: u64,
    slots: BTreeMap<u64, Slot>,
    /// The next slot to be executed.
    executes: u64,
}

impl Paxos {
    /// One of so many; `broadcast`: acknowledgements go to all.
    pub fn new(replicas: usize, leader: usize, broadcast: bool) -> Self {
        Paxos { replicas, leader, broadcast, next: 0, slots: BTreeMap::new(), executes: 0 }
    }

    fn execute(&mut self, side: &mut Side<Message>) {
        while let Some(slot) = self.slots.first_entry().filter(|slot| *slot.key() == self.executes) {
            let Some(command) = slot.get().command.filter(|_| slot.get().committed) else { return };
            side.executes.push(command);
            slot.remove();
            self.executes += 1;
        }
    }
}

impl Replica for Paxos {
    type Message = Message;

    fn request(&mut self, command: Command, side: &mut Side<Message>) {
        side.sends.push((self.leader, Message::Forward(command)));
    }

    fn message(&mut self, _from: usize, message: Message, side: &mut Side<Message>) {
        match message {
            Message::Forward(command) => {
                side.broadcast(self.replicas, &Message::Accept(self.next, command));
                self.next += 1;
            }
            Message::Accept(number, command) => {
                self.slots.entry(number).or_default().command = Some(command);
                match self.broadcast {
                    true => side.broadcast(self.replicas, &Message::Accepted(number)),
                    false => side.sends.push((self.leader, Message::Accepted(number))),
                }
            }
            // It was executed without this one.
            Message::Accepted(number) if number < self.executes => return,
            Message::Accepted(number) => {
                let slot = self.slots.entry(number).or_default();
                slot.accepted += 1;
                if slot.accepted == self.replicas / 2 + 1 {
                    match self.broadcast {
                        true => slot.committed = true,
                        false => side.broadcast(self.replicas, &Message::Commit(number)),
                    }
                }
            }
            Message::Commit(number) if number < self.executes => return,
            Message::Commit(number) => self.slots.entry(number).or_default().committed = true,
        }
        self.execute(side);
    }
}
