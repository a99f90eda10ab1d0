//! Statements on `awty.repetition`.

pub mod repetition;
pub mod upkeep;
