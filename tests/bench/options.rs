use crate::ROWS;

#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    pub full: bool,
    /// Factor for the sizes of all measurements. Results with a factor below 1 are stored separately.
    pub scale: f64,
    pub only: Vec<String>,
}

impl Options {
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Options { full: false, scale: 1.0, only: Vec::new() };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--full" => options.full = true,
                "--scale" => {
                    let scale = arguments.next().and_then(|given| given.parse().ok());
                    options.scale = scale.filter(|scale| *scale > 0.0).ok_or("--scale takes a number above 0")?;
                }
                "--only" => {
                    let names = arguments.next().ok_or("--only takes names of rows")?;
                    let names = names.split([',', ' ']).filter(|name| !name.is_empty());
                    options.only.extend(names.map(str::to_owned));
                }
                other => return Err(format!("unknown argument: {other}")),
            }
        }
        let known = || ROWS.iter().map(|row| row.name);
        match options.only.iter().find(|name| !known().any(|known| known == **name)) {
            Some(unknown) => {
                Err(format!("no such row: {unknown}; there are {}", known().collect::<Vec<_>>().join(", ")))
            }
            None => Ok(options),
        }
    }

    pub fn wants(&self, row: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == row)
    }

    pub fn is_try(&self) -> bool {
        self.scale < 1.0
    }

    pub fn size(&self, quick: u32, full: u32) -> u32 {
        let size = if self.full { full } else { quick };
        ((f64::from(size) * self.scale) as u32).max(3)
    }

    pub fn rounds(&self) -> usize {
        match (self.is_try(), self.full) {
            (true, _) => 2,
            (false, true) => 9,
            (false, false) => 5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &str) -> Result<Options, String> {
        Options::parse(arguments.split(' ').filter(|argument| !argument.is_empty()).map(str::to_owned))
    }

    #[test]
    fn rows_are_named_and_known() {
        let some = parse("--only ceiling,set --scale 0.5").unwrap();
        assert!(some.wants("set") && !some.wants("workers") && some.is_try());
        assert!(parse("").unwrap().wants("workers"));
        assert!(parse("--only ceilings").is_err());
    }

    #[test]
    fn a_try_is_smaller_and_full_is_larger() {
        assert_eq!(parse("").unwrap().size(1000, 5000), 1000);
        assert_eq!(parse("--full").unwrap().size(1000, 5000), 5000);
        assert_eq!(parse("--scale 0.1").unwrap().size(1000, 5000), 100);
        assert_eq!(parse("--scale 0.0001").unwrap().size(1000, 5000), 3);
        let rounds = ["--full --scale 0.1", "", "--full"].map(|arguments| parse(arguments).unwrap().rounds());
        assert_eq!(rounds, [2, 5, 9]);
    }
}
