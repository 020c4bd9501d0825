//! The real world: sockets, files, threads, configuration, metrics.
