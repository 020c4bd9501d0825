//! The simulated world: virtual time, disks, faults, scenarios.
