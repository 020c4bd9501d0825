//! Histories and verdicts; knows no product code.
