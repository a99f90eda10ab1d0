//! Recognises, by its first word, an SQL command that was given instead of a function's name.

const ATOMIC: [&str; 6] = ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "VALUES"];
const QUOTED: [&str; 13] = [
    "MERGE", "CALL", "TRUNCATE", "REFRESH", "ANALYZE", "NOTIFY", "LOCK", "DO", "COPY", "CREATE", "ALTER", "DROP",
    "GRANT",
];

pub fn function_for(name: &str, text: &str) -> Option<String> {
    let command = text.trim().trim_end_matches(|c: char| c == ';' || c.is_whitespace());
    let (word, _) = command.split_once(char::is_whitespace)?;
    let is_word = |other: &&str| word.eq_ignore_ascii_case(other);
    if ATOMIC.iter().any(is_word) {
        return Some(format!("CREATE FUNCTION {name}() RETURNS void BEGIN ATOMIC {command}; END;"));
    }
    QUOTED.iter().any(is_word).then(|| {
        let quotes = if command.contains("$$") { "$awty$" } else { "$$" };
        format!("CREATE FUNCTION {name}() RETURNS void LANGUAGE sql AS {quotes} {command} {quotes};")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_function_is_no_command() {
        for name in ["tidy", "shop.tidy", "\"Odd Shop\".tidy", "delete", "update_all", "select()", "shop tidy", "", " "]
        {
            assert_eq!(function_for("x", name), None, "{name}");
        }
    }

    #[test]
    fn a_command_becomes_the_body_of_a_function() {
        let function = |text| function_for("x", text).unwrap_or_default();
        assert_eq!(
            function(" delete\nfrom a ; "),
            "CREATE FUNCTION x() RETURNS void BEGIN ATOMIC delete\nfrom a; END;"
        );
        assert_eq!(function("TRUNCATE a"), "CREATE FUNCTION x() RETURNS void LANGUAGE sql AS $$ TRUNCATE a $$;");
        let quoted = "CREATE FUNCTION x() RETURNS void LANGUAGE sql AS $awty$ DO $$ BEGIN END $$ $awty$;";
        assert_eq!(function("DO $$ BEGIN END $$"), quoted);
    }
}
