//! A flag overrides an environment variable, and an environment variable overrides the configuration file.
//!
//! Settings are read only at the start, so a change needs a restart.

mod bird;
pub mod grants;
pub mod secrets;
mod settings;
mod values;

pub use grants::Grants;
pub use secrets::Secrets;
pub use settings::{SETTINGS, Setting};
pub use values::{Config, files, show};

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Flag,
    Variable(&'static str),
    File(PathBuf),
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Flag => f.write_str("flag"),
            Source::Variable(name) => write!(f, "environment, {name}"),
            Source::File(path) => write!(f, "{}", path.display()),
            Source::Default => f.write_str("default"),
        }
    }
}

pub type Texts = BTreeMap<&'static str, (String, Source)>;

pub struct Places<'a> {
    pub flags: &'a dyn Fn(&str) -> Option<String>,
    pub variables: &'a dyn Fn(&str) -> Option<String>,
    pub file: Option<(&'a Path, &'a str)>,
}

pub fn texts(places: &Places<'_>) -> Result<Texts, String> {
    let file = places.file.map(|(path, content)| read_file(path, content)).transpose()?.unwrap_or_default();
    let mut texts = Texts::new();
    for setting in SETTINGS {
        let flag = || (places.flags)(setting.name).map(|text| (text, Source::Flag));
        let variable = || {
            let said = |name: &&'static str| {
                (places.variables)(name).filter(|text| !text.is_empty()).map(|text| (*name, text))
            };
            let (name, text) = setting.variables.iter().find_map(said)?;
            let text = if name == "PORT" { format!("0.0.0.0:{text}") } else { text };
            Some((text, Source::Variable(name)))
        };
        let in_file = || Some((file.get(setting.name)?.clone(), Source::File(places.file?.0.to_owned())));
        let default = || Some((setting.default?.to_owned(), Source::Default));
        if let Some(found) = flag().or_else(variable).or_else(in_file).or_else(default) {
            texts.insert(setting.name, found);
        }
    }
    Ok(texts)
}

pub fn grants(path: &Path, content: &str) -> Result<Grants, String> {
    let problem = |why: String| format!("{}: {why}", path.display());
    let mut table: toml::Table = content.parse().map_err(|error: toml::de::Error| problem(error.to_string()))?;
    table.remove(grants::TABLE).map_or(Ok(Grants::default()), Grants::read).map_err(problem)
}

fn read_file(path: &Path, content: &str) -> Result<BTreeMap<String, String>, String> {
    let problem = |why: String| format!("{}: {why}", path.display());
    let table: toml::Table = content.parse().map_err(|error: toml::de::Error| problem(error.to_string()))?;
    let mut values = BTreeMap::new();
    for (name, value) in table.into_iter().filter(|(name, _)| name != grants::TABLE) {
        if !SETTINGS.iter().any(|setting| setting.name == name) {
            let known: Vec<_> = SETTINGS.iter().map(|setting| setting.name).collect();
            return Err(problem(format!("{name} is not a setting; the settings are {}", known.join(", "))));
        }
        let text = match value {
            toml::Value::String(text) => text,
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Boolean(is) => is.to_string(),
            toml::Value::Array(all) if all.iter().all(toml::Value::is_str) => {
                all.iter().filter_map(toml::Value::as_str).collect::<Vec<_>>().join(",")
            }
            _ => return Err(problem(format!("{name} must be a text, a number, true, false, or a list of texts"))),
        };
        values.insert(name, text);
    }
    Ok(values)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
