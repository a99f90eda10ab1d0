pub mod repetition;
pub mod upkeep;
