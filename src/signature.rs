#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signature {
    Check,
    Set,
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
