//! Reads real clocks and says how wrong they may be.
