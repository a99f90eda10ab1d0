#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signature {
    /// The function takes a check: `f(awty.future_job)`.
    Check,
    /// The function takes an array of checks: `f(awty.future_job[])`.
    Set,
    /// The function takes no arguments: `f()`.
    Nothing,
}

impl Signature {
    pub fn signature(self) -> &'static str {
        match self {
            Signature::Check => "awty.future_job",
            Signature::Set => "awty.future_job[]",
            Signature::Nothing => "",
        }
    }
}
