use super::{Grants, SETTINGS, Texts, bird};
use crate::duration::{self, Length};
use crate::net::guard::Allowed;
use ipnet::IpNet;
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio_postgres::config::{Host as PgHost, SslMode};
use url::Url;

#[derive(Clone, Debug)]
pub struct Config {
    pub database: tokio_postgres::Config,
    pub listen: SocketAddr,
    /// If `None`, the API's listener serves /metrics too.
    pub listen_metrics: Option<SocketAddr>,
    pub name: String,
    pub credentials: PathBuf,
    pub grants: Grants,
    /// `None` means that the shortest period is the database's `awty.slot`.
    pub min_period: Option<Length>,
    pub max_period: Length,
    pub timeout: Length,
    pub max_timeout: Length,
    pub max_in_flight: usize,
    pub allow_networks: Vec<Allowed>,
    pub deny_networks: Vec<IpNet>,
    pub extra_roots: Vec<PathBuf>,
    pub listen_tls: Option<(PathBuf, PathBuf)>,
    pub drain: Length,
    pub allow_localhost: bool,
    pub behind_proxy: bool,
    pub log_json: bool,
    pub log_level: tracing::Level,
}

impl Config {
    pub fn read(texts: &Texts, grants: Grants, host: &str) -> Result<Self, String> {
        let text = |name: &str| texts.get(name).map(|(text, _)| text.trim()).filter(|text| !text.is_empty());
        let need =
            |name: &str| text(name).ok_or_else(|| format!("{name} is not set; write --{name} or {}", variable(name)));
        let length = |name: &str| duration::parse(need(name)?).map_err(|why| format!("{name}: {why}"));
        let list = |name: &str| listed(text(name).unwrap_or_default());
        let is = |name: &str| match text(name) {
            Some("true" | "1" | "yes" | "on") => Ok(true),
            Some("false" | "0" | "no" | "off") | None => Ok(false),
            Some(other) => Err(format!("{name} is {other}; write true or false")),
        };
        let address = |name: &str, port: u16| {
            let address = need(name)?.parse::<SocketAddr>();
            address.map_err(|_| format!("{name} must be an address and a port, such as 127.0.0.1:{port}"))
        };
        let listen = address("listen", 8470)?;
        // With port 0, equal addresses still mean two listeners, because the system chooses each listener's port.
        let own = text("listen_metrics").filter(|own| text("listen") != Some(own) || own.ends_with(":0"));
        let listen_metrics = own.map(|_| address("listen_metrics", 8471)).transpose()?;
        let (allow_localhost, behind_proxy) = (is("allow_localhost")?, is("behind_proxy")?);
        let listen_tls = match (text("tls_certificate"), text("tls_key")) {
            (Some(certificate), Some(key)) => Some((PathBuf::from(certificate), PathBuf::from(key))),
            (None, None) => None,
            _ => return Err("tls_certificate and tls_key belong together; write both".into()),
        };
        let outside = [Some(listen), listen_metrics].into_iter().flatten().find(|address| !address.ip().is_loopback());
        if let Some(outside) = outside {
            if !behind_proxy && listen_tls.is_none() {
                return Err(format!(
                    "{outside} is reached from outside; write tls_certificate and tls_key, or put a proxy that speaks TLS in front \
                     and say behind_proxy"
                ));
            }
            if allow_localhost {
                return Err(format!("allow_localhost works only while listening on loopback, not on {outside}"));
            }
        }
        let database = need("database")?.parse();
        let of_call = |name: &str| match length(name)? {
            given if (Length::millis(100)..=Length::seconds(900)).contains(&given) => Ok(given),
            given => Err(format!("{name} is {given}; write 100ms to 15m")),
        };
        let max_timeout = of_call("max_timeout")?;
        let timeout = of_call("timeout")?.min(max_timeout);
        let name = text("name").map_or_else(|| bird::name(host), str::to_owned);
        if name.len() > 63 || name.chars().any(char::is_control) {
            return Err("name must have at most 63 bytes and no control characters".into());
        }
        let max_in_flight = need("max_in_flight")?.parse().ok().filter(|max| (1..=1_000_000).contains(max));
        Ok(Config {
            database: database.map_err(|error: tokio_postgres::Error| format!("database: {error}"))?,
            listen,
            listen_metrics,
            name,
            credentials: need("credentials")?.into(),
            grants,
            min_period: text("min_period").map(|_| length("min_period")).transpose()?,
            max_period: length("max_period")?,
            timeout,
            max_timeout,
            max_in_flight: max_in_flight.ok_or("max_in_flight must be between 1 and 1000000")?,
            allow_networks: list("allow_networks").map(allowed).collect::<Result<_, _>>()?,
            deny_networks: list("deny_networks").map(denied).collect::<Result<_, _>>()?,
            extra_roots: files(text("extra_roots").unwrap_or_default()),
            listen_tls,
            drain: length("drain")?,
            allow_localhost,
            behind_proxy,
            log_json: match need("log")? {
                "json" => true,
                "text" => false,
                other => return Err(format!("log is {other}; write text or json")),
            },
            log_level: need("log_level")?
                .parse()
                .map_err(|_| "log_level must be error, warn, info or debug".to_owned())?,
        })
    }
}

fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|one| !one.is_empty())
}

pub fn files(text: &str) -> Vec<PathBuf> {
    listed(text).map(PathBuf::from).collect()
}

fn variable(name: &str) -> &'static str {
    let setting = super::SETTINGS.iter().find(|setting| setting.name == name);
    setting.and_then(|setting| setting.variables.first()).copied().unwrap_or_default()
}

fn allowed(text: &str) -> Result<Allowed, String> {
    let (origin, network) = match text.rsplit_once('=') {
        Some((origin, network)) => (Some(origin), network),
        None => (None, text),
    };
    let network =
        network.parse().map_err(|_| format!("allow_networks: {network} is not a network; write 10.1.0.0/16"))?;
    let spelled = |origin: &str| {
        let url = Url::parse(origin).map_err(|error| format!("allow_networks: {origin}: {error}"))?;
        Ok::<_, String>(url.origin().ascii_serialization())
    };
    Ok(Allowed { origin: origin.map(spelled).transpose()?, network })
}

fn denied(text: &str) -> Result<IpNet, String> {
    let wrong = || format!("deny_networks: {text} is not a network; write 203.0.113.0/24");
    match text.parse().map_err(|_| wrong())? {
        IpNet::V6(network) if network.prefix_len() >= 96 => match network.addr().to_ipv4_mapped() {
            Some(address) => IpNet::new(address.into(), network.prefix_len() - 96).map_err(|_| wrong()),
            None => Ok(network.into()),
        },
        network => Ok(network),
    }
}

/// Returns the parts of the database's URL that show no password. Parses the URL as the connection does, because other
/// parsers find the password elsewhere. With a second `@`, a part of the password could be in the host, and with other
/// marks in user or host, a part of the URL that the connection takes for these.
pub(super) fn masked(text: &str) -> String {
    const HIDDEN: &str = "•••";
    let Ok(config) = text.parse::<tokio_postgres::Config>() else { return HIDDEN.into() };
    if text.matches('@').count() > 1 {
        return HIDDEN.into();
    }
    let is_plain = |name: &str| !name.contains(['?', '=', '&', '/', '#']);
    let are_plain = config.get_hosts().iter().all(|host| !matches!(host, PgHost::Tcp(name) if !is_plain(name)));
    if !are_plain || !config.get_user().is_none_or(is_plain) {
        return HIDDEN.into();
    }
    let host = |host: &PgHost| match host {
        PgHost::Tcp(name) => name.clone(),
        PgHost::Unix(folder) => folder.display().to_string(),
    };
    let hosts: Vec<String> = config.get_hosts().iter().map(host).collect();
    let ports: Vec<String> = config.get_ports().iter().map(u16::to_string).collect();
    let addresses: Vec<String> = config.get_hostaddrs().iter().map(ToString::to_string).collect();
    let parts = [
        ("user", config.get_user().map(str::to_owned)),
        ("password", config.get_password().map(|_| HIDDEN.to_owned())),
        ("host", Some(hosts.join(","))),
        ("port", Some(ports.join(","))),
        ("hostaddr", Some(addresses.join(","))),
        ("dbname", config.get_dbname().map(str::to_owned)),
        ("sslmode", (config.get_ssl_mode() == SslMode::Require).then(|| "require".to_owned())),
    ];
    let shown = parts
        .into_iter()
        .filter_map(|(name, value)| value.filter(|value| !value.is_empty()).map(|value| format!("{name}={value}")));
    shown.collect::<Vec<_>>().join(" ")
}

pub fn show(texts: &Texts) -> String {
    let mut out = String::new();
    for setting in SETTINGS {
        let line = match texts.get(setting.name) {
            Some((text, source)) if setting.name == "database" => {
                format!("database = \"{}\"  # {source}", masked(text))
            }
            Some((text, source)) => format!("{} = \"{text}\"  # {source}", setting.name),
            None => format!("# {} is not set", setting.name),
        };
        out.push_str(&line);
        out.push('\n');
    }
    out
}
