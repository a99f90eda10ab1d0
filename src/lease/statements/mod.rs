pub mod lease;
pub mod live;
pub mod target;
