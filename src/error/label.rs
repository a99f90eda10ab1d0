use std::fmt;

#[derive(Debug)]
pub struct Label {
    pub name: String,
    pub key: String,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "\"{}\" \"{}\"", self.name, self.key)
    }
}
