//! CREATE and ALTER SEQUENCE.

use super::Run;
use super::expression::column_at;
use super::run::{undefined, wrong_kind};
use crate::catalog::{Oid, Relation, Sequence};
use crate::syntax::{Name, ObjectKind, SequenceOptions};
use crate::types::SqlType;
use crate::{SqlError, SqlState};

/// A sequence with nothing said.
pub(super) fn blank() -> Sequence {
    Sequence {
        id: 0,
        database: 0,
        schema: 0,
        name: String::new(),
        ty: SqlType::Int8,
        start: 1,
        increment: 1,
        min: 1,
        max: i64::MAX,
        cycle: false,
        cache: 1,
        owner: None,
    }
}

fn bounds(ty: &SqlType) -> Result<(i64, i64), SqlError> {
    match ty {
        SqlType::Int2 => Ok((i64::from(i16::MIN), i64::from(i16::MAX))),
        SqlType::Int4 => Ok((i64::from(i32::MIN), i64::from(i32::MAX))),
        SqlType::Int8 => Ok((i64::MIN, i64::MAX)),
        _ => Err(SqlError::new(SqlState::INVALID_PARAMETER, "sequence type must be smallint, integer, or bigint")),
    }
}

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER, message)
}

/// Applies options; a new sequence takes defaults for what is not said.
pub(super) fn with_options(mut s: Sequence, options: &SequenceOptions, new: bool) -> Result<Sequence, SqlError> {
    let old_bounds = bounds(&s.ty)?;
    if let Some(ty) = &options.ty {
        s.ty = SqlType::from_ast(ty)?;
    }
    let (least, greatest) = bounds(&s.ty)?;
    if let Some(increment) = options.increment {
        if increment == 0 {
            return Err(invalid("INCREMENT must not be zero".into()));
        }
        s.increment = increment;
    }
    let ascending = s.increment > 0;
    // The bounds of another type were said by nobody; others stay, in whichever direction the sequence runs now.
    let retyped = !new && options.ty.is_some();
    let (follows_max, follows_min) = (retyped && s.max == old_bounds.1, retyped && s.min == old_bounds.0);
    match options.max {
        Some(Some(max)) => s.max = max,
        None if !(new || follows_max) => {}
        _ => s.max = if ascending || follows_max { greatest } else { -1 },
    }
    match options.min {
        Some(Some(min)) => s.min = min,
        None if !(new || follows_min) => {}
        _ => s.min = if ascending && !follows_min { 1 } else { least },
    }
    if s.max > greatest {
        return Err(invalid(format!("MAXVALUE ({}) is out of range for sequence data type {}", s.max, s.ty)));
    }
    if s.min < least {
        return Err(invalid(format!("MINVALUE ({}) is out of range for sequence data type {}", s.min, s.ty)));
    }
    if s.min >= s.max {
        return Err(invalid(format!("MINVALUE ({}) must be less than MAXVALUE ({})", s.min, s.max)));
    }
    match options.start {
        Some(start) => s.start = start,
        None if new => s.start = if ascending { s.min } else { s.max },
        None => {}
    }
    if s.start < s.min {
        return Err(invalid(format!("START value ({}) cannot be less than MINVALUE ({})", s.start, s.min)));
    }
    if s.start > s.max {
        return Err(invalid(format!("START value ({}) cannot be greater than MAXVALUE ({})", s.start, s.max)));
    }
    if let Some(cache) = options.cache {
        if cache < 1 {
            return Err(invalid(format!("CACHE ({cache}) must be greater than zero")));
        }
        s.cache = cache;
    }
    if let Some(cycle) = options.cycle {
        s.cycle = cycle;
    }
    Ok(s)
}

impl Run<'_> {
    pub(super) fn create_sequence(
        &mut self,
        name: &Name,
        if_not_exists: bool,
        options: &SequenceOptions,
    ) -> Result<&'static str, SqlError> {
        let schema = self.schema_for(name)?;
        if self.taken(&schema, &name.name, if_not_exists)? {
            return Ok("CREATE SEQUENCE");
        }
        let sequence = Sequence {
            id: self.new_oid()?,
            database: schema.database,
            schema: schema.id,
            name: name.name.clone(),
            ..blank()
        };
        let mut sequence = with_options(sequence, options, true)?;
        if let Some(owner) = &options.owned_by {
            self.set_owner(&mut sequence, owner.as_ref())?;
        }
        self.touch().put_relation(Relation::Sequence(sequence))?;
        Ok("CREATE SEQUENCE")
    }

    /// The sequence of a name.
    pub(super) fn sequence_named(&self, name: &Name) -> Result<Option<Sequence>, SqlError> {
        match self.relation(name)?.as_deref() {
            None => Ok(None),
            Some(Relation::Sequence(sequence)) => Ok(Some(sequence.clone())),
            Some(_) => Err(wrong_kind(name, "a sequence")),
        }
    }

    pub(super) fn alter_sequence(
        &mut self,
        name: &Name,
        if_exists: bool,
        options: &SequenceOptions,
    ) -> Result<&'static str, SqlError> {
        let Some(sequence) = self.sequence_named(name)? else {
            if if_exists {
                self.notice(format!("relation \"{name}\" does not exist, skipping"));
                return Ok("ALTER SEQUENCE");
            }
            return Err(undefined(ObjectKind::Sequence, name));
        };
        self.change_sequence(sequence, options)?;
        Ok("ALTER SEQUENCE")
    }

    /// Applies options to a sequence that exists.
    pub(super) fn change_sequence(&mut self, sequence: Sequence, options: &SequenceOptions) -> Result<(), SqlError> {
        let mut changed = with_options(sequence, options, false)?;
        if let Some(owner) = &options.owned_by {
            self.set_owner(&mut changed, owner.as_ref())?;
        }
        let next = match options.restart {
            Some(restart) => restart.unwrap_or(changed.start),
            None => self.statement.sequences.position(changed.id)?.0,
        };
        if next < changed.min {
            return Err(invalid(format!("RESTART value ({next}) cannot be less than MINVALUE ({})", changed.min)));
        }
        if next > changed.max {
            return Err(invalid(format!("RESTART value ({next}) cannot be greater than MAXVALUE ({})", changed.max)));
        }
        if options.restart.is_some() {
            let patience = self.statement.patience();
            self.db.numbers.set(self.db.kv.as_ref(), &patience, &changed, next, false)?;
        }
        self.touch().put_relation(Relation::Sequence(changed)).map(|_| ())
    }

    fn set_owner(&mut self, sequence: &mut Sequence, owner: Option<&(Name, String)>) -> Result<(), SqlError> {
        self.disown(sequence)?;
        let Some((table, column)) = owner else { return Ok(()) };
        let mut table = self.table_named(table)?;
        let at = column_at(&table, column)?;
        table.columns[at].owned_sequence = Some(sequence.id);
        sequence.owner = Some((table.id, table.columns[at].id));
        self.put_table(table)
    }

    fn disown(&mut self, sequence: &mut Sequence) -> Result<(), SqlError> {
        let Some((table, column)) = sequence.owner.take() else { return Ok(()) };
        let mut table = self.table(table)?;
        if let Some(column) = table.columns.iter_mut().find(|c| c.id == column) {
            if column.identity.is_some() {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "cannot change ownership of identity sequence",
                ));
            }
            column.owned_sequence = None;
        }
        self.put_table(table)
    }

    /// The sequence of an OID that a column owns.
    pub(super) fn owned(&self, id: Oid) -> Option<Sequence> {
        match self.catalog().relation(id).map(|r| &**r) {
            Some(Relation::Sequence(sequence)) => Some(sequence.clone()),
            _ => None,
        }
    }
}
