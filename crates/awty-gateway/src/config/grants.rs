//! A grant lists the origins to which the gateway may send a tenant's secret.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use url::Url;

pub const TABLE: &str = "secrets";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants(BTreeMap<String, BTreeSet<String>>);

pub fn path(role: &str, name: &str) -> Option<String> {
    let is_plain =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let is_folder = !role.is_empty() && !role.starts_with('.') && !role.contains(['/', '\0']);
    (is_plain && is_folder).then(|| format!("{role}/{name}"))
}

pub fn line(path: &str, origin: &str) -> String {
    format!("[{TABLE}.{}]\norigins = [{}]", quoted(path), quoted(origin))
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

impl Grants {
    pub(super) fn read(value: toml::Value) -> Result<Self, String> {
        let toml::Value::Table(tables) = value else {
            return Err(format!(
                "{TABLE} is not a setting; write {}",
                line("app/API_TOKEN", "https://api.example.com")
            ));
        };
        tables
            .into_iter()
            .map(|(name, value)| Ok((named(&name)?, origins(&name, value)?)))
            .collect::<Result<_, _>>()
            .map(Grants)
    }

    pub fn allows(&self, path: &str, origin: &str) -> bool {
        self.0.get(path).is_some_and(|origins| origins.contains(origin))
    }

    pub fn show(&self, credentials: Option<&Path>) -> String {
        let mut out = String::new();
        for (path, origins) in &self.0 {
            let file = match credentials.map(|folder| folder.join(path)) {
                Some(file) if file.is_file() => format!("in {}", file.display()),
                Some(file) => format!("{} is missing", file.display()),
                None => "credentials is not set".to_owned(),
            };
            let origins: Vec<_> = origins.iter().map(|origin| quoted(origin)).collect();
            out.push_str(&format!("[{TABLE}.{}]  # {file}\norigins = [{}]\n", quoted(path), origins.join(", ")));
        }
        if out.is_empty() {
            let permits = line("app/API_TOKEN", "https://api.example.com").replace('\n', "\n# ");
            out = format!("# no secret may be sent anywhere; this permits one:\n# {permits}\n");
        }
        out
    }
}

fn named(name: &str) -> Result<String, String> {
    let parts = name.rsplit_once('/').and_then(|(role, secret)| path(role, secret));
    parts.ok_or_else(|| {
        format!("{TABLE}: {name:?} is not a tenant's role and the name of a secret; write \"app/API_TOKEN\"")
    })
}

fn origins(name: &str, value: toml::Value) -> Result<BTreeSet<String>, String> {
    let wrong = || format!("{TABLE}: {name:?} takes one list; write {}", line(name, "https://api.example.com"));
    let toml::Value::Table(mut table) = value else { return Err(wrong()) };
    let Some(toml::Value::Array(list)) = table.remove("origins") else { return Err(wrong()) };
    if !table.is_empty() {
        return Err(wrong());
    }
    list.iter()
        .map(|origin| {
            let text = origin.as_str().ok_or_else(wrong)?;
            let no_origin = || format!("{TABLE}: {name:?}: {text:?} is not an origin; write https://api.example.com");
            let url = Url::parse(text).map_err(|_| no_origin())?;
            let spelled = url.origin().ascii_serialization();
            let is_origin = matches!(url.scheme(), "http" | "https") && url.as_str() == format!("{spelled}/");
            if is_origin { Ok(spelled) } else { Err(no_origin()) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Grants, String> {
        let mut table: toml::Table = text.parse().unwrap();
        Grants::read(table.remove(TABLE).unwrap())
    }

    #[test]
    fn a_secret_goes_to_its_origins_alone() {
        let text = "[secrets.\"app/T\"]\norigins = [\"https://A.example:443\", \"http://b.example:8080/\"]\n[secrets.\"app/NONE\"]\norigins = []";
        let grants = read(text).unwrap();
        for (path, origin, may) in [
            ("app/T", "https://a.example", true),
            ("app/T", "http://b.example:8080", true),
            ("app/T", "http://a.example", false),
            ("app/T", "https://a.example:8443", false),
            ("app/T", "https://a.example.evil.example", false),
            ("bob/T", "https://a.example", false),
            ("app/NONE", "https://a.example", false),
        ] {
            assert_eq!(grants.allows(path, origin), may, "{path} {origin}");
        }
        let shown = grants.show(Some(Path::new("/none")));
        assert!(shown.contains("[secrets.\"app/T\"]  # /none/app/T is missing\norigins = [\"http://b.example:8080\", \"https://a.example\"]"), "{shown}");
        assert_eq!(read(&shown).unwrap(), grants);
        let permitted = line("app/\"T", "https://a.example");
        assert!(permitted.parse::<toml::Table>().is_ok(), "a refusal names lines that can be pasted: {permitted}");
    }

    #[test]
    fn what_is_no_secret_is_refused_with_what_to_write() {
        for text in [
            "secrets = \"x\"",
            "[secrets.T]\norigins = []",
            "[secrets.\"app/T U\"]\norigins = []",
            "[secrets.\"../T\"]\norigins = []",
            "[secrets.\"app/T\"]\norigin = []",
            "[secrets.\"app/T\"]\norigins = [1]",
            "[secrets.\"app/T\"]\norigins = []\nmore = 1",
            "[secrets.\"app/T\"]\norigins = [\"https://a.example/path\"]",
            "[secrets.\"app/T\"]\norigins = [\"https://u@a.example\"]",
            "[secrets.\"app/T\"]\norigins = [\"ftp://a.example\"]",
            "[secrets.\"app/T\"]\norigins = [\"*\"]",
        ] {
            assert!(read(text).unwrap_err().contains("write"), "{text}");
        }
    }

    #[test]
    fn a_name_stays_in_the_folder_of_its_role() {
        assert_eq!(path("app", "API_TOKEN").as_deref(), Some("app/API_TOKEN"));
        for (role, name) in
            [("app", "../master-key"), ("app", ""), ("..", "T"), (".", "T"), ("", "master-key"), ("a/b", "T")]
        {
            assert_eq!(path(role, name), None, "{role} {name}");
        }
    }
}
