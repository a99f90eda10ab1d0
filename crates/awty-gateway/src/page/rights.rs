use std::sync::OnceLock;

tokio::task_local! {
    static ROLES: OnceLock<[String; 2]>;
}

pub async fn within<F: Future>(request: F) -> F::Output {
    ROLES.scope(OnceLock::new(), request).await
}

pub fn are(role: &str, gateway: &str) {
    // Outside of a page request, `try_with` fails. The error is ignored, because only page requests need the roles.
    let _ = ROLES.try_with(|roles| roles.set([role.to_owned(), gateway.to_owned()]));
}

/// If PostgreSQL's error message names a missing right, returns the command that grants the right.
pub fn command(message: &str) -> Option<String> {
    let [role, gateway] = ROLES.try_with(|roles| roles.get().cloned()).ok()??;
    if message.starts_with("permission denied to set role") {
        return Some(format!("GRANT {} TO {gateway};", quoted(&role)));
    }
    let is_schema = message.starts_with("permission denied for schema awty");
    is_schema.then(|| format!("GRANT USAGE ON SCHEMA awty, awty_http TO {};", quoted(&role)))
}

/// Quotes each name, because the name of a role may be a keyword.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_missing_right_has_its_command() {
        let found = within(async {
            are("An\"n", "gateway");
            [
                command("permission denied to set role \"An\"n\""),
                command("permission denied for schema awty_http"),
                command("permission denied for table orders"),
            ]
        });
        let wanted = ["GRANT \"An\"\"n\" TO gateway;", "GRANT USAGE ON SCHEMA awty, awty_http TO \"An\"\"n\";"];
        assert_eq!(found.await, [Some(wanted[0].to_owned()), Some(wanted[1].to_owned()), None]);
        let keyword = within(async {
            are("user", "gateway");
            command("permission denied to set role \"user\"")
        });
        assert_eq!(keyword.await.as_deref(), Some("GRANT \"user\" TO gateway;"));
        assert_eq!(command("permission denied to set role \"a\""), None);
    }
}
