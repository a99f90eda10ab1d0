use super::{Request, Trouble};
use serde_json::Value;
use tokio_postgres::types::ToSql;

#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    Text(String),
    Interval(String),
    Time(String),
    Json(Value),
    JsonText(String),
    Switch(bool),
    Texts(Vec<String>),
}

impl Argument {
    const fn cast(&self) -> &'static str {
        match self {
            Argument::Interval(_) => "::text::interval",
            Argument::Time(_) => "::text::timestamptz",
            Argument::JsonText(_) => "::text::jsonb",
            _ => "",
        }
    }

    fn value(&self) -> &(dyn ToSql + Sync) {
        match self {
            Argument::Text(text) | Argument::Interval(text) | Argument::Time(text) | Argument::JsonText(text) => text,
            Argument::Json(json) => json,
            Argument::Switch(switch) => switch,
            Argument::Texts(texts) => texts,
        }
    }
}

/// A missing argument gets the default of the SQL function.
pub type Arguments = Vec<(&'static str, Argument)>;

fn statement(function: &str, arguments: &Arguments) -> String {
    let numbered = arguments.iter().zip(1..);
    let named = numbered.map(|((name, argument), number)| format!("\"{name}\" => ${number}{}", argument.cast()));
    format!("SELECT {function}({})", named.collect::<Vec<_>>().join(", "))
}

pub(super) async fn call(request: &Request, function: &str, arguments: &Arguments) -> Result<(), Trouble> {
    let values: Vec<_> = arguments.iter().map(|(_, argument)| argument.value()).collect();
    request.maybe(&statement(function, arguments), &values).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_named_and_cast() {
        let arguments = vec![
            ("uri", Argument::Text("http://a/".into())),
            ("every", Argument::Interval("1 h".into())),
            ("replace", Argument::Switch(true)),
        ];
        let sql = "SELECT awty_http.schedule(\"uri\" => $1, \"every\" => $2::text::interval, \"replace\" => $3)";
        assert_eq!(statement("awty_http.schedule", &arguments), sql);
    }
}
