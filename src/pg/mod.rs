//! Only this module and `process` use PostgreSQL in unusual ways. README.md lists these ways.
//!
//! Invariant: no code in this module depends on jobs, checks or rules.

pub mod array;
pub mod caller;
pub mod catalog;
pub mod catch;
pub mod changes;
pub mod citus;
pub mod claim_lock;
pub mod clock;
pub mod column;
pub mod deletion;
pub mod expression;
pub mod insert;
pub mod jsonb;
pub mod owner;
pub mod partition;
pub mod primary_key;
pub mod procedure;
pub mod random;
pub mod relations;
pub mod report;
pub mod reraise;
pub mod role;
pub mod rows;
pub mod scalar;
pub mod snapshot;
pub mod sql_function;
pub mod sqlstate;
pub mod subtransaction;
pub mod table;
pub mod table_lock;
pub mod text;
pub mod trigger;
pub mod unbound;
pub mod zone;
