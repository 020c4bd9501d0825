//! Workloads and experiments, against any database that speaks the Postgres protocol.
