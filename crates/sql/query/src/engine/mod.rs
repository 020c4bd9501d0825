//! The query engine: every SELECT, VALUES, WITH and set operation that the direct path does not take.
//!
//! ```text
//! syntax tree --bind--> nodes --open--> rows
//!   scope: names         joins, groups,   pulled one at a time,
//!   take, compile:       sorts, windows   within the statement's memory
//!   expressions
//! ```
//!
//! **Idea.** Rows of [`Value`](crate::types::Value)s are pulled through a tree of nodes; scalar expressions are those of
//! [`crate::expr`], so types, casts, errors and functions are the same as on the direct path, and the same as PostgreSQL's. A row
//! carries the row of the query around it as its prefix ([`scope`]), so correlated subqueries and LATERAL are ordinary: a subquery
//! is a plan that is run with a prefix. What is not correlated is run once. A row is put where its reader says, so a row that
//! nobody keeps costs no allocation ([`run::Rows`]); keys of groups, joins and sets are bytes in one table ([`key_table`]).
//!
//! **Why not only DataFusion**: docs/decisions/0071-own-query-engine.md.
//!
//! **Invariants.**
//! 1. Every row of a node has the prefix of its query, then the columns that the node declares.
//! 2. What a node holds is within the memory of the statement: beyond it sorts, groups, distinct rows, joins and divided windows go to temporary files
//!    ([`crate::exec::spill`]), the rest is 53200; a leaf asks for cancellation.
//! 3. Nothing in the syntax tree is dropped silently: what is not planned is refused (0A000, or 42601 for what is not PostgreSQL's).
//!
//! **Caveats.** Windows of one partition, shared subqueries and the right sides of INTERSECT and EXCEPT are in memory or not at all. Statistics decide the order of joins ([`arrange`]); the way of each is chosen while it runs ([`run`]).

mod aggregate;
mod arrange;
mod bind;
mod bind_from;
mod bind_query;
mod bind_select;
mod bind_set;
mod bind_window;
mod bounds;
mod copies;
mod early;
mod estimate;
mod explain;
mod group_by;
mod in_order;
mod item_set;
mod join_tree;
pub mod journal;
mod key_table;
mod keys;
mod lazy;
mod lift;
mod literals;
mod lockable;
mod lower;
mod merged;
mod named_items;
mod node;
mod order;
mod presence;
mod probe;
mod push;
mod query;
mod reach;
mod recursive;
mod reduce;
mod regression;
mod run;
mod same;
mod scalar;
mod scan;
mod scope;
mod set_function;
pub(crate) mod short;
mod spread;
mod take;
mod types;
mod unused;
mod walk;
mod window;

pub use bounds::recursion;
pub use query::prepare;
use query::words_of;
