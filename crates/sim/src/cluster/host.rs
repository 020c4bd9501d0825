//! One machine of many: its clock, disk and cores, and whether anything runs on it.

use super::network::Class;
use super::place::Input;
use super::service::{Cores, Device};
use crate::clock::SimClock;
use std::collections::VecDeque;
use store::disk::fake::FakeDisk;

/// Whether what runs on a machine gets to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It does.
    Awake,
    /// Its process is stopped (SIGSTOP): what comes in waits, timers and syncs go on unseen.
    Paused,
    /// The machine is suspended, since this true time: what comes in is lost, and its clocks jump.
    Asleep(u64),
}

/// A machine.
pub struct Host<B, T> {
    /// Its clock.
    pub clock: SimClock,
    /// Its disk.
    pub disk: FakeDisk,
    /// What it held a while ago, if it is to go back to that.
    pub before: Option<FakeDisk>,
    /// How fast that is.
    pub device: Device,
    /// Its cores.
    pub cores: Cores,
    /// What runs on it; `None`: it is off.
    pub body: Option<B>,
    /// Counts its lives: what was planned for an earlier one is void.
    pub era: u64,
    /// Whether it gets to run.
    pub standing: Standing,
    /// What comes while it does not.
    pub mail: VecDeque<Input<T>>,
    /// Messages that wait for a core.
    pub waiting: usize,
    /// A sync is on its way.
    pub syncing: bool,
    /// It loses power in the middle of a sync, after so many others, for so long, nanoseconds.
    pub dies_at_sync: Option<(u64, u64)>,
    /// A sync is over, but the disk stalls.
    pub held_sync: bool,
    /// Faults by which its disk is full.
    pub full: usize,
    /// It lost power: its clock comes from a battery.
    pub cold: bool,
}

impl<B, T> Host<B, T> {
    /// A machine that is off.
    pub fn new(clock: SimClock, disk_seed: u64, cores: usize) -> Self {
        Host {
            clock,
            disk: FakeDisk::new(disk_seed),
            before: None,
            device: Device::default(),
            cores: Cores::new(cores),
            body: None,
            era: 0,
            standing: Standing::Awake,
            mail: VecDeque::new(),
            waiting: 0,
            syncing: false,
            dies_at_sync: None,
            held_sync: false,
            full: 0,
            cold: true,
        }
    }

    /// Nothing runs any more, and all that was on its way in is forgotten.
    pub fn clear(&mut self) {
        self.era += 1;
        self.mail.clear();
        self.device.reset();
        self.cores.reset();
        (self.standing, self.waiting) = (Standing::Awake, 0);
        (self.syncing, self.held_sync, self.dies_at_sync) = Default::default();
    }
}

/// What is on its way through the network.
#[derive(Clone, Debug)]
pub enum Load<T> {
    /// Between machines.
    Peer(Class, bytes::Bytes),
    /// Between a client and a machine.
    Talk(T),
}
