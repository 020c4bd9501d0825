//! Mencius with acknowledgements that go to all (004 section 3.4.3): slots belong to the replicas in turn, so each proposes without asking.
//!
//! A replica that hears of a later slot skips its own unused ones below it and says so with its acknowledgement; whoever has heard of an owner's later slot
//! knows what of the earlier ones was used. A slot is executed when a majority has logged it and every slot below it is executed or skipped. So a command
//! waits for messages of *all* replicas, and for commands that others proposed at the same time in earlier slots: the delayed commit.

use super::world::{Command, Replica, Side};
use std::collections::BTreeMap;

/// What replicas say.
#[derive(Clone, Debug)]
pub enum Message {
    /// Log this at this slot, which is mine.
    Suggest(u64, Command),
    /// It is logged, and below the second slot I use none of mine any more.
    Accepted(u64, u64),
}

#[derive(Default)]
struct Slot {
    command: Option<Command>,
    accepted: usize,
}

/// A replica.
pub struct Mencius {
    replicas: u64,
    /// Its own next slot.
    next: u64,
    /// Of each owner: below this it uses no slot that was not heard of.
    heard: Vec<u64>,
    slots: BTreeMap<u64, Slot>,
    /// The next slot to be executed.
    executes: u64,
    /// It takes an owner's next slot for one that is not used, too: tests see that this is found out.
    #[cfg(test)]
    pub hasty: bool,
}

impl Mencius {
    /// One of so many.
    pub fn new(me: usize, replicas: usize) -> Self {
        let (slots, executes) = (BTreeMap::new(), 0);
        Mencius {
            replicas: replicas as u64,
            next: me as u64,
            heard: vec![0; replicas],
            slots,
            executes,
            #[cfg(test)]
            hasty: false,
        }
    }

    /// Below the second slot its owner uses none that was not heard of.
    fn hear(&mut self, owner: usize, below: u64) {
        #[cfg(test)]
        let below = if self.hasty { below + self.replicas } else { below };
        self.heard[owner] = self.heard[owner].max(below);
    }

    fn execute(&mut self, side: &mut Side<Message>) {
        let majority = self.replicas as usize / 2 + 1;
        loop {
            let owner = (self.executes % self.replicas) as usize;
            match self.slots.get(&self.executes) {
                Some(Slot { command: Some(command), accepted }) if *accepted >= majority => {
                    side.executes.push(*command);
                    self.slots.remove(&self.executes);
                }
                None if self.heard[owner] > self.executes => {}
                _ => return,
            }
            self.executes += 1;
        }
    }
}

impl Replica for Mencius {
    type Message = Message;

    fn request(&mut self, command: Command, side: &mut Side<Message>) {
        side.broadcast(self.replicas as usize, &Message::Suggest(self.next, command));
        self.next += self.replicas;
    }

    fn message(&mut self, from: usize, message: Message, side: &mut Side<Message>) {
        match message {
            Message::Suggest(number, command) => {
                self.slots.entry(number).or_default().command = Some(command);
                self.hear(from, number + 1);
                while self.next < number {
                    self.next += self.replicas;
                }
                side.broadcast(self.replicas as usize, &Message::Accepted(number, self.next));
            }
            Message::Accepted(number, next) => {
                self.hear(from, next);
                if number >= self.executes {
                    self.slots.entry(number).or_default().accepted += 1;
                }
            }
        }
        self.execute(side);
    }
}
