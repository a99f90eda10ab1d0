//! Remembers whether a background worker or a client is calling a job's function in this process.

use std::cell::Cell;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    Worker,
    /// A client's transaction calls the function in a subtransaction. An ERROR then undoes only the subtransaction, and
    /// the client's cursors stay open.
    Client,
    /// Like [`Client`](Self::Client), but in a security-restricted operation, which keeps the function from switching
    /// to the session's role.
    Confined,
}

thread_local! {
    static CALLER: Cell<Option<Caller>> = const { Cell::new(None) };
}

pub fn of_function() -> Option<Caller> {
    CALLER.get()
}

pub fn during<R>(caller: Caller, call: impl FnOnce() -> R) -> R {
    struct Over;
    impl Drop for Over {
        fn drop(&mut self) {
            CALLER.set(None);
        }
    }
    let _over = Over;
    CALLER.set(Some(caller));
    call()
}
