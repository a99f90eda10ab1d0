//! A macro for enums whose values SQL shows as lower-case names.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLabel {
    pub parameter: &'static str,
    pub value: String,
    pub allowed: &'static [&'static str],
}

impl fmt::Display for UnknownLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid value for parameter \"{}\": \"{}\"", self.parameter, self.value)
    }
}

impl std::error::Error for UnknownLabel {}

pub trait Word {
    fn as_str(&self) -> &'static str;

    fn set(&mut self, word: &str) -> Result<(), UnknownLabel>;
}

macro_rules! labels {
    ($(#[$meta:meta])* $name:ident for $parameter:literal {
        $($(#[$doc:meta])* $variant:ident = $label:literal,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $label)] $variant,)+
        }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            pub const LABELS: &'static [&'static str] = &[$($label,)+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $label,)+ }
            }
        }

        impl $crate::Word for $name {
            fn as_str(&self) -> &'static str {
                (*self).as_str()
            }

            fn set(&mut self, word: &str) -> Result<(), $crate::UnknownLabel> {
                *self = word.parse()?;
                Ok(())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::UnknownLabel;

            fn from_str(value: &str) -> Result<Self, Self::Err> {
                match value {
                    $($label => Ok(Self::$variant),)+
                    _ => Err($crate::UnknownLabel {
                        parameter: $parameter,
                        value: value.to_owned(),
                        allowed: Self::LABELS,
                    }),
                }
            }
        }
    };
}
pub(crate) use labels;

#[cfg(test)]
mod tests {
    use crate::{KeepHistory, OnConflict, OnMissed, Outcome};
    use serde::de::IntoDeserializer;
    use serde::{Deserialize, de::value::Error};
    use std::fmt::Debug;
    use std::str::FromStr;

    fn round_trip<T>(all: &[T], labels: &[&'static str])
    where
        T: FromStr + Debug + PartialEq + for<'de> Deserialize<'de>,
    {
        assert_eq!(all.len(), labels.len());
        for (value, label) in all.iter().zip(labels) {
            assert_eq!(T::from_str(label).ok().as_ref(), Some(value));
            let travelled: Result<T, Error> = T::deserialize((*label).into_deserializer());
            assert_eq!(travelled.as_ref(), Ok(value));
        }
    }

    #[test]
    fn every_label_reads_back_as_its_value() {
        round_trip(OnMissed::ALL, OnMissed::LABELS);
        round_trip(KeepHistory::ALL, KeepHistory::LABELS);
        round_trip(OnConflict::ALL, OnConflict::LABELS);
        round_trip(Outcome::ALL, Outcome::LABELS);
    }

    #[test]
    fn an_unknown_label_names_the_parameter_the_value_and_what_is_allowed() {
        let error = OnMissed::from_str("Run").unwrap_err();
        assert_eq!(error.to_string(), r#"invalid value for parameter "on_missed": "Run""#);
        assert_eq!(error.allowed, ["run", "next_slot", "skip"]);
    }
}
