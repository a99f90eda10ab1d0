//! Calls HTTP endpoints when awty says that it is time.
pub mod clock;
pub mod config;
pub mod deliver;
pub mod duration;
pub mod net;
pub mod sqlstate;
pub mod uri;
