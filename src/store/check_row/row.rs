use super::{ARGS, ENTITY_KEY, ENTITY_NAME, FIRST_CHECK_AT, ID, JOB, NEXT_CHECK_AT, Row, SCHEDULED_AT, SCHEDULED_BY};
use crate::error::Label;
use crate::pg::clock::{self, Timestamp};
use crate::pg::text::Text;
use crate::store::statement::Arg;
use awty_core::{Check, Time};
use pgrx::FromDatum;

impl Row {
    pub fn label(&self) -> Label {
        Label { name: self.text(ENTITY_NAME).to_string(), key: self.key().to_string() }
    }

    pub fn key(&self) -> Text {
        self.text(ENTITY_KEY)
    }

    fn text(&self, column: usize) -> Text {
        // SAFETY: the column is a text, and its value lives until the transaction ends.
        let text = self.column(column).and_then(|datum| unsafe { Text::from_datum(datum, false) });
        text.unwrap_or_else(|| Text::from(""))
    }

    fn column(&self, column: usize) -> Arg {
        let (values, nulls) = &self.columns;
        (!nulls[column - 1]).then_some(values[column - 1])
    }

    pub fn subject(&self) -> [Arg; 3] {
        [ENTITY_NAME, ENTITY_KEY, JOB].map(|column| self.column(column))
    }

    pub fn first(&self) -> Time {
        self.column(FIRST_CHECK_AT).map_or(self.slot, |first| clock::clamped(first.value() as Timestamp))
    }

    pub fn scheduled_at(&self) -> Time {
        self.column(SCHEDULED_AT).map_or(self.slot, |at| clock::clamped(at.value() as Timestamp))
    }

    pub fn scheduled(&self) -> [Arg; 9] {
        [ID, JOB, ENTITY_NAME, ENTITY_KEY, ARGS, FIRST_CHECK_AT, NEXT_CHECK_AT, SCHEDULED_BY, SCHEDULED_AT]
            .map(|column| self.column(column))
    }

    pub fn check(&self) -> Check {
        Check { slot: self.slot, check_count: self.check_count.unsigned_abs(), attempt: self.attempt.unsigned_abs() }
    }
}
