//! One whole node behind one step function; no IO.
