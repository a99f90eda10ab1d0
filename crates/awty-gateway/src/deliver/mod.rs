pub mod definition;
pub mod header;
pub mod request;
pub mod result;
pub mod retry;
pub mod sign;
pub mod unmade;
pub mod verdict;
