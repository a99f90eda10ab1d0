#[derive(Debug)]
pub struct Setting {
    /// Name of the setting. The command line flag has `-` instead of `_`.
    pub name: &'static str,
    pub variables: &'static [&'static str],
    pub default: Option<&'static str>,
    pub switch: bool,
    pub help: &'static str,
}

const fn setting(
    name: &'static str,
    variables: &'static [&'static str],
    default: Option<&'static str>,
    help: &'static str,
) -> Setting {
    Setting { name, variables, default, switch: false, help }
}

const fn switch(name: &'static str, variables: &'static [&'static str], help: &'static str) -> Setting {
    Setting { name, variables, default: Some("false"), switch: true, help }
}

pub const SETTINGS: &[Setting] = &[
    setting("database", &["AWTY_DATABASE", "DATABASE_URL"], None, "The database: postgresql://gateway@host/name"),
    setting("listen", &["AWTY_LISTEN", "PORT"], Some("127.0.0.1:8470"), "Where to listen"),
    setting(
        "listen_metrics",
        &["AWTY_LISTEN_METRICS"],
        Some("127.0.0.1:8471"),
        "Where /metrics, /livez and /readyz are served; may be the same as listen",
    ),
    setting("name", &["AWTY_NAME"], None, "The gateway's name in awty.lease; by default the host's name and a bird's"),
    setting(
        "credentials",
        &["AWTY_CREDENTIALS", "CREDENTIALS_DIRECTORY"],
        None,
        "The folder with master-key and the secrets",
    ),
    setting("min_period", &["AWTY_MIN_PERIOD"], None, "The shortest period of a schedule; by default a slot"),
    setting("max_period", &["AWTY_MAX_PERIOD"], Some("366 d"), "The longest period of a schedule"),
    setting("timeout", &["AWTY_TIMEOUT"], Some("30 s"), "Timeout of calls whose schedule has none, 100 ms to 15 min"),
    setting("max_timeout", &["AWTY_MAX_TIMEOUT"], Some("15 m"), "Longest timeout of any call, 100 ms to 15 min"),
    setting("max_in_flight", &["AWTY_MAX_IN_FLIGHT"], Some("2000"), "Calls at once, 1 to 1000000"),
    setting(
        "allow_networks",
        &["AWTY_ALLOW_NETWORKS"],
        Some(""),
        "Networks to open: 10.1.0.0/16, or https://one.example=10.1.0.0/16; separated by commas",
    ),
    setting(
        "deny_networks",
        &["AWTY_DENY_NETWORKS"],
        Some(""),
        "Networks that are never called, even if another setting opens them: 203.0.113.0/24",
    ),
    setting("extra_roots", &["AWTY_EXTRA_ROOTS"], Some(""), "Files with certificates to trust, separated by commas"),
    setting(
        "tls_certificate",
        &["AWTY_TLS_CERTIFICATE"],
        None,
        "The file with the certificate to listen with, and its chain",
    ),
    setting("tls_key", &["AWTY_TLS_KEY"], None, "The file with the key of the certificate"),
    setting("drain", &["AWTY_DRAIN"], Some("25 s"), "How long calls may go on after SIGTERM"),
    switch(
        "allow_localhost",
        &["AWTY_ALLOW_LOCALHOST"],
        "Allow calls to this machine; only while listening on loopback",
    ),
    switch(
        "behind_proxy",
        &["AWTY_BEHIND_PROXY"],
        "A proxy in front speaks TLS; needed to listen elsewhere than on loopback",
    ),
    setting("log", &["AWTY_LOG"], Some("text"), "text or json"),
    setting("log_level", &["AWTY_LOG_LEVEL"], Some("info"), "error, warn, info, debug"),
];
