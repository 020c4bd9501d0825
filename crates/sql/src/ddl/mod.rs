//! Changes of the catalog, and of the data that follows from them.
//!
//! Problem: DDL is to be transactional with what it touches, yet an index over a million rows cannot sit in a transaction's
//! buffer. Idea: descriptors change inside the transaction ([`crate::catalog::Change`]); data that a change must write goes
//! below *fresh* index ids, which nobody can see before the descriptor commits, so large amounts of it are written by
//! transactions of their own ([`load`]).
//!
//! 1. Rows are read certified while a change looks at all of them: a row that is written meanwhile restarts the change.
//! 2. What a change leaves behind (dropped or rewritten indexes, an unfinished load) is on record as garbage.
//! 3. A change relies on what it looked up, and waits for changes of what it names: see [`crate::catalog::Change`].
//! 4. A constraint is in a descriptor only if every row satisfies it (unless NOT VALID was said).
//!
//! CREATE INDEX alone goes another way, beside writers: [`online`].
//!
//! ALTER TABLE that reads all rows, alone, lets their writers wait: [`exclusive`]. A table that is empty is taken over by who fills it: [`takeover`]; one
//! is written anew by a statement that changes more rows than a transaction may hold: [`rewriting`].
//!
//! What a change inside a block ends keeps writers waiting until the block does: [`barrier`].
//!
//! Caveats: inside a block a change that reads a whole table starves under steady writes to it and then fails with 40001; SPLIT AT, RESTART
//! of a sequence, and the numbers of sequences are not undone by a rollback.

mod about;
mod alter;
mod alter_column;
mod barrier;
mod column;
mod comment;
mod constraint;
mod create_table;
mod default;
mod drop;
mod exclusive;
mod expression;
mod extension;
mod filling;
mod follow;
mod foreign_key;
mod index;
mod load;
mod naming;
mod online;
mod operator_class;
mod orphans;
mod permit;
mod rename;
mod retention;
mod rewriting;
mod rows;
mod run;
mod sequence;
mod sorter;
mod space;
mod split;
mod table_as;
mod takeover;
mod token;
mod truncate;
mod users;
mod view;
mod view_names;
mod view_text;

pub(crate) use about::tokens as tokens_named;
pub(crate) use barrier::Barrier;

pub use exclusive::{alter_exclusively, reads_rows};
pub use filling::{fill_column_online, fills_column};
pub use load::Loader;
pub(crate) use load::held_bytes_max;
pub(crate) use naming::constraint_names;
pub use online::{Making, add_condition_online, adds_condition, create_index_online, is_large};
pub(crate) use operator_class::is_operator_class;
pub(crate) use orphans::Writers;
pub use orphans::take_back_orphans;
pub(crate) use rewriting::{Rewriting, keeps_longer, rewrite_exclusively};
pub use run::{Done, Run};
pub(crate) use takeover::{Gate, Refused, Taken, Takeover, may_be_taken};
pub(crate) use users::{All as UsersFound, Ending, Holds, Users};

use crate::SqlError;
use crate::syntax::Ddl;

/// Most columns of an index, as in PostgreSQL.
pub const INDEX_COLUMNS_MAX: usize = 32;
/// Most columns of a table, as in PostgreSQL.
pub const TABLE_COLUMNS_MAX: usize = 1600;

impl Run<'_> {
    /// Runs one statement; gives its tag.
    ///
    /// # Errors
    /// PostgreSQL's; 0A000 with a remedy for what is not offered.
    pub fn execute(&mut self, ddl: &Ddl) -> Result<String, SqlError> {
        let tag = match ddl {
            Ddl::CreateTable(table) => self.create_table(table)?,
            Ddl::CreateTableAs { name, columns, if_not_exists, query, text, no_data } => {
                return self.create_table_as(name, columns, *if_not_exists, query, text, *no_data);
            }
            Ddl::Comment { table, column, text } => self.comment(table, column.as_deref(), text.as_deref())?,
            Ddl::AlterTable { name, if_exists, actions } => self.alter_table(name, *if_exists, actions)?,
            Ddl::CreateIndex(index) => self.create_index(index)?,
            Ddl::CreateSequence { name, if_not_exists, options } => {
                self.create_sequence(name, *if_not_exists, options)?
            }
            Ddl::AlterSequence { name, if_exists, options } => self.alter_sequence(name, *if_exists, options)?,
            Ddl::CreateSchema { name, if_not_exists, owner } => {
                self.check_owner(owner.as_deref())?;
                self.create_schema(name, *if_not_exists)?
            }
            Ddl::CreateDatabase { name, if_not_exists, owner, template } => {
                self.check_owner(owner.as_deref())?;
                self.create_database(name, *if_not_exists, template.as_deref())?
            }
            Ddl::CreateExtension { name, if_not_exists, schema, version } => {
                self.create_extension(name, *if_not_exists, schema.as_deref(), version.as_deref())?
            }
            Ddl::UpdateExtension { name, version } => self.update_extension(name, version.as_deref())?,
            Ddl::DropExtension { names, if_exists } => self.drop_extensions(names, *if_exists)?,
            Ddl::CreateView { name, or_replace, if_not_exists, columns, query, text } => {
                self.create_view(name, *or_replace, *if_not_exists, columns, query, text)?
            }
            Ddl::Drop { kind, names, if_exists, cascade } => self.drop(*kind, names, *if_exists, *cascade)?,
            Ddl::Truncate { names, restart_identity, cascade } => self.truncate(names, *restart_identity, *cascade)?,
            Ddl::Rename { kind, name, if_exists, to } => self.rename(*kind, name, *if_exists, to)?,
            Ddl::SplitIndex { name, if_exists, rows } => self.split_index(name, *if_exists, rows)?,
            Ddl::RenewTokens { rotate } => self.renew_tokens(*rotate)?,
            Ddl::SetDefault { of, change } => self.set_default(of, change)?,
            Ddl::SetSchema { kind, name, if_exists, schema } => self.set_schema(*kind, name, *if_exists, schema)?,
        };
        Ok(tag.to_string())
    }
}
