//! The forms of a job's function.
//!
//! Does not: look a function up (see `function`).

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// `f(awty.future_job)`.
    Check,
    /// `f(awty.future_job[])`.
    Set,
    /// `f()`.
    Nothing,
}

impl Takes {
    pub fn signature(self) -> &'static str {
        match self {
            Takes::Check => "awty.future_job",
            Takes::Set => "awty.future_job[]",
            Takes::Nothing => "",
        }
    }
}
