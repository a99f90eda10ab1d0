use super::*;
use crate::duration::Length;

fn read(flags: &[(&str, &str)], variables: &[(&str, &str)], file: &str) -> Result<(Config, Texts), String> {
    let find =
        |all: &[(&str, &str)], name: &str| all.iter().find(|(n, _)| *n == name).map(|(_, text)| (*text).to_owned());
    let places = Places {
        flags: &|name| find(flags, name),
        variables: &|name| find(variables, name),
        file: Some((Path::new("gateway.toml"), file)),
    };
    let texts = texts(&places)?;
    let grants = grants(Path::new("gateway.toml"), file)?;
    Ok((Config::read(&texts, grants, "db1.example.com")?, texts))
}

const NEEDED: &[(&str, &str)] = &[("DATABASE_URL", "postgresql://g:s3cret@h/d"), ("AWTY_CREDENTIALS", "/c")];

fn refused(flags: &[(&str, &str)]) -> String {
    read(flags, NEEDED, "").map(|_| ()).unwrap_err()
}

#[test]
fn flags_come_before_the_environment_and_that_before_the_file() {
    let file = "timeout = \"3 s\"\nmax_in_flight = 7\nname = \"filed\"\nallow_networks = [\"10.0.0.0/8\", \"https://A.example:443=192.168.0.0/16\"]";
    let with = |more: &[(&'static str, &'static str)]| NEEDED.iter().chain(more).copied().collect::<Vec<_>>();
    let (config, texts) =
        read(&[("timeout", "1 s")], &with(&[("AWTY_TIMEOUT", "2 s"), ("AWTY_MAX_IN_FLIGHT", "5")]), file).unwrap();
    assert_eq!((config.timeout, config.max_in_flight, config.name.as_str()), (Length::seconds(1), 5, "filed"));
    assert_eq!(config.allow_networks[1].origin.as_deref(), Some("https://a.example"));
    let source = |name| texts[name].1.to_string();
    assert_eq!(
        [source("timeout"), source("max_in_flight"), source("name"), source("drain")],
        ["flag", "environment, AWTY_MAX_IN_FLIGHT", "gateway.toml", "default"]
    );
}

#[test]
fn a_platform_needs_its_environment_only() {
    let variables: Vec<_> = NEEDED.iter().copied().chain([("PORT", "5000"), ("AWTY_BEHIND_PROXY", "true")]).collect();
    let (config, _) = read(&[], &variables, "").unwrap();
    assert_eq!(config.listen, "0.0.0.0:5000".parse().unwrap());
    assert!(config.name.starts_with("db1-"), "{}", config.name);
}

#[test]
fn a_refusal_names_the_setting_and_what_to_write() {
    assert!(read(&[], &[], "").map(|_| ()).unwrap_err().contains("AWTY_DATABASE"));
    assert!(refused(&[("timeout", "30")]).contains("timeout: 30 has no unit"));
    assert!(refused(&[("timeout", "1 h")]).contains("15m"));
    assert!(refused(&[("max_timeout", "50 ms")]).contains("max_timeout is 50ms; write 100ms to 15m"));
    assert_eq!(read(&[("max_timeout", "5 s")], NEEDED, "").unwrap().0.timeout, Length::seconds(5));
    assert!(refused(&[("max_in_flight", "0")]).contains("max_in_flight"));
    assert!(refused(&[("listen", "0.0.0.0:8470")]).contains("behind_proxy"));
    assert!(refused(&[("listen_metrics", "0.0.0.0:8471")]).contains("0.0.0.0:8471"));
    let listens = |flags: &[(&str, &str)]| read(flags, NEEDED, "").unwrap().0.listen_metrics.map(|own| own.port());
    assert_eq!(listens(&[]), Some(8471));
    assert_eq!(listens(&[("listen_metrics", "127.0.0.1:8470")]), None);
    assert!(refused(&[("listen_metrics", "8471")]).contains("listen_metrics must be an address"));
    assert!(refused(&[("listen", "0.0.0.0:8470"), ("tls_key", "/k")]).contains("tls_certificate"));
    assert!(read(&[("listen", "0.0.0.0:8470"), ("tls_key", "/k"), ("tls_certificate", "/c")], NEEDED, "").is_ok());
    assert!(
        refused(&[("listen", "0.0.0.0:80"), ("behind_proxy", "true"), ("allow_localhost", "true")])
            .contains("loopback")
    );
    assert!(refused(&[("allow_networks", "10.0.0.0")]).contains("10.1.0.0/16"));
    assert!(refused(&[("deny_networks", "10.0.0.0")]).contains("203.0.113.0/24"));
    let (config, _) = read(&[("deny_networks", "10.0.0.0/8, ::ffff:127.0.0.1/128")], NEEDED, "").unwrap();
    assert_eq!(config.deny_networks, ["10.0.0.0/8".parse().unwrap(), "127.0.0.1/32".parse().unwrap()]);
    assert!(refused(&[("log", "xml")]).contains("json"));
    assert!(read(&[], NEEDED, "tiemout = 1").map(|_| ()).unwrap_err().contains("timeout"));
    assert!(read(&[], NEEDED, "secrets = 1").map(|_| ()).unwrap_err().contains("gateway.toml: secrets"));
    let (config, _) =
        read(&[], NEEDED, "log = \"json\"\n[secrets.\"app/T\"]\norigins = [\"https://a.example\"]").unwrap();
    assert!(config.log_json && config.grants.allows("app/T", "https://a.example"));
    assert!(read(&[], NEEDED, "timeout = ").map(|_| ()).unwrap_err().contains("gateway.toml"));
}

#[test]
fn a_password_is_not_shown() {
    let (_, texts) = read(&[], NEEDED, "").unwrap();
    assert!(!show(&texts).contains("s3cret"), "{}", show(&texts));
    assert!(show(&texts).contains("# environment, DATABASE_URL"));
    for (url, shown) in [
        ("host=h password=s3cret", "password=••• host=h"),
        ("postgresql://h/d?user=g&password=s3cret", "user=g password=••• host=h port=5432 dbname=d"),
        ("postgresql://g:s3cret@h/d", "user=g password=••• host=h port=5432 dbname=d"),
        ("postgresql://g:s3cret@/d?host=/run/postgresql", "user=g password=••• host=/run/postgresql dbname=d"),
        ("postgresql://g:s3cret@db1:5432,db2:5433/d", "user=g password=••• host=db1,db2 port=5432,5433 dbname=d"),
        ("postgresql://g:x/s3cret@h/d", "user=g password=••• host=h port=5432 dbname=d"),
        ("postgresql://g:x#s3cret@h/d", "user=g password=••• host=h port=5432 dbname=d"),
        ("postgresql://g:1/s3cret@h/d", "user=g password=••• host=h port=5432 dbname=d"),
        (
            "postgresql://g:s3cret@h/d?sslmode=require&hostaddr=10.0.0.5",
            "user=g password=••• host=h port=5432 hostaddr=10.0.0.5 dbname=d sslmode=require",
        ),
        ("postgresql:///d?host=/run&user=g&password=s3cret@home", "•••"),
        ("postgresql://g:x@s3cret@h/d", "•••"),
        ("postgresql://g:s3cret@h:port/d", "•••"),
        ("g:s3cret", "•••"),
    ] {
        assert_eq!(values::masked(url), shown, "{url}");
    }
}

#[test]
fn each_setting_has_a_variable_of_its_own() {
    for setting in SETTINGS {
        assert_eq!(setting.variables[0], format!("AWTY_{}", setting.name.to_uppercase()));
    }
}
