pub mod definition;
pub mod request;
pub mod result;
pub mod retry;
pub mod sign;
pub mod unmade;
pub mod user_header;
pub mod verdict;
