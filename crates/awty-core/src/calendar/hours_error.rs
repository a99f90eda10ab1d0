use std::fmt;

const MOST_SHOWN: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoursError {
    element: String,
    fault: Fault,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Form,
    Day(String),
    Start(String),
    End(String),
    Empty,
    Backwards {
        /// Opening hours that the error's HINT suggests instead. Hours that pass midnight become two elements, one for
        /// each day.
        instead: Vec<String>,
    },
}

impl HoursError {
    pub(super) fn new(element: &str, fault: Fault) -> Self {
        Self { element: cut(element), fault }
    }

    pub fn hint(&self) -> String {
        match &self.fault {
            Fault::Backwards { instead } => format!("Write \"{}\".", instead.join("\" and \"")),
            _ => "Write days and times as in \"mon-fri 09:00-17:00\".".into(),
        }
    }
}

fn cut(text: &str) -> String {
    if text.len() <= MOST_SHOWN {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(MOST_SHOWN)])
}

impl fmt::Display for HoursError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let element = &self.element;
        if let Fault::Backwards { .. } = self.fault {
            return write!(f, "hours \"{element}\" end before they begin");
        }
        write!(f, "hours \"{element}\" cannot be read: ")?;
        match &self.fault {
            Fault::Form | Fault::Backwards { .. } => f.write_str("it has no days and times"),
            Fault::Day(word) => write!(f, "\"{}\" is not a day from mon to sun", cut(word)),
            Fault::Start(word) => write!(f, "\"{}\" is not a time from 00:00 to 23:59", cut(word)),
            Fault::End(word) => write!(f, "\"{}\" is not a time from 00:00 to 24:00", cut(word)),
            Fault::Empty => f.write_str("they end when they begin"),
        }
    }
}

impl std::error::Error for HoursError {}
