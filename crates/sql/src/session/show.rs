//! SHOW.

use super::portal::{Buffered, Portal, PortalState};
use super::run::{How, Outcome};
use super::{Session, text_field};
use crate::SqlError;
use crate::output::{Field, Output};
use crate::types::{Row, Value};

/// The shape of SHOW ALL.
pub(super) fn all_fields() -> Vec<Field> {
    ["name", "setting", "description"].into_iter().map(text_field).collect()
}

/// The shape of SHOW.
pub(super) fn field(name: &str) -> Field {
    // PostgreSQL writes a few of its names with capitals.
    text_field(match name {
        "timezone" => "TimeZone",
        "datestyle" => "DateStyle",
        "intervalstyle" => "IntervalStyle",
        name => name,
    })
}

impl Session {
    pub(super) fn run_show(
        &mut self,
        name: &str,
        how: How,
        portal: &mut Portal,
        out: &mut dyn Output,
    ) -> Result<Outcome, SqlError> {
        let value = self.show(name)?;
        self.send_rows(vec![field(name)], vec![vec![Value::text(value)]], "SHOW", how, portal, out)
    }

    pub(super) fn run_show_all(
        &mut self,
        how: How,
        portal: &mut Portal,
        out: &mut dyn Output,
    ) -> Result<Outcome, SqlError> {
        let rows = self.settings.all().into_iter();
        let rows = rows.map(|(n, v, d)| vec![Value::text(n), Value::text(v), Value::text(d)]).collect();
        self.send_rows(all_fields(), rows, "SHOW", how, portal, out)
    }

    /// Sends rows that the session made itself.
    pub(super) fn send_rows(
        &mut self,
        fields: Vec<Field>,
        rows: Vec<Row>,
        tag: &str,
        how: How,
        portal: &mut Portal,
        out: &mut dyn Output,
    ) -> Result<Outcome, SqlError> {
        if matches!(portal.state, PortalState::Ready) {
            if how.describe {
                out.row_description(&fields, &portal.formats);
            }
            portal.fields = Some(fields);
            portal.state = PortalState::Buffered(Buffered::new(rows, Some(tag.into()), &self.planning_memory)?);
        }
        self.pull(portal, how.max_rows, out)
    }
}
