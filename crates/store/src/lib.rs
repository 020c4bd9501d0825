//! Versions over an engine, and the durable log, over a disk that it is given.
