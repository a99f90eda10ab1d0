use awty_gateway::config::{self, Config, Grants, Places, SETTINGS, Texts};
use awty_gateway::db::Db;
use awty_gateway::net::tls;
use awty_gateway::{listen, secrets, serve};
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::runtime::{Handle, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

fn command() -> Command {
    let flags = || {
        let file = Arg::new("config").long("config").env("AWTY_CONFIG").help("The TOML file with settings");
        let flag = |setting: &'static config::Setting| {
            let long: &'static str = setting.name.replace('_', "-").leak();
            let arg = Arg::new(setting.name).long(long).help(setting.help);
            if setting.switch { arg.num_args(0..=1).default_missing_value("true") } else { arg }.action(ArgAction::Set)
        };
        std::iter::once(file).chain(SETTINGS.iter().map(flag))
    };
    Command::new("awty-gateway")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Calls HTTP endpoints when awty says that it is time")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(Command::new("serve").about("Claim, call, answer, until SIGTERM").args(flags()))
        .subcommand(Command::new("config").about("Print each setting and where it comes from").args(flags()))
        .subcommand(
            Command::new("token").about("Tokens of the API").subcommand_required(true).subcommand(
                Command::new("create")
                    .about("Make a token, which is shown this once only")
                    .args(flags())
                    .arg(Arg::new("role").long("role").required(true).help("With whose rights its requests run"))
                    .arg(Arg::new("scope").long("scope").default_value("read").help("read, write or admin"))
                    .arg(Arg::new("expires").long("expires").default_value("90 days").help("How long it is good")),
            ),
        )
        .subcommand(Command::new("init").about("Make the master key, if there is none").args(flags()))
}

fn texts(matches: &ArgMatches) -> Result<(Texts, Grants), String> {
    let path = matches.get_one::<String>("config").map(PathBuf::from);
    let content = path.as_ref().map(std::fs::read_to_string).transpose();
    let content = content.map_err(|error| format!("{}: {error}", path.clone().unwrap_or_default().display()))?;
    let file = path.as_deref().zip(content.as_deref());
    let texts = config::texts(&Places {
        flags: &|name| matches.get_one::<String>(name).cloned(),
        variables: &|name| std::env::var(name).ok(),
        file,
    })?;
    let grants = file.map(|(path, content)| config::grants(path, content)).transpose()?.unwrap_or_default();
    Ok((texts, grants))
}

/// Logs only the gateway's own entries, because libraries log statements with their values, which may be secret.
fn logs(config: &Config) {
    let own = tracing_subscriber::filter::Targets::new().with_target("awty_gateway", config.log_level);
    let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let layer = tracing_subscriber::fmt::layer().with_ansi(colours).with_writer(std::io::stderr);
    let registry = tracing_subscriber::registry();
    if config.log_json {
        registry.with(layer.json().with_filter(own)).init();
    } else {
        registry.with(layer.with_filter(own)).init();
    }
}

fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

fn run() -> Result<(), String> {
    let matches = command().get_matches();
    let Some((name, mut matches)) = matches.subcommand() else { return Ok(()) };
    if let Some((_, create)) = matches.subcommand() {
        matches = create;
    }
    let (texts, grants) = texts(matches)?;
    match name {
        "config" => {
            let credentials = texts.get("credentials").map(|(folder, _)| PathBuf::from(folder));
            print!("{}\n{}", config::show(&texts), grants.show(credentials.as_deref()));
        }
        "init" => {
            let folder = texts.get("credentials").ok_or("credentials is not set; write --credentials FOLDER")?;
            let path = PathBuf::from(&folder.0);
            let made = secrets::init(&path)?;
            println!("{} {}", if made { "made" } else { "there already:" }, path.join(secrets::MASTER_KEY).display());
        }
        "token" => println!("{}", runtime()?.block_on(create_token(matches, &texts))?),
        _ => {
            let config = Config::read(&texts, grants, &host())?;
            logs(&config);
            let (runtime, clients, scrapers) = (runtime()?, listen::runtime("clients")?, listen::runtime("metrics")?);
            let served = runtime.block_on(until_told(config, [clients.handle(), scrapers.handle()]));
            [runtime, clients, scrapers].into_iter().for_each(Runtime::shutdown_background);
            served?;
        }
    }
    Ok(())
}

fn runtime() -> Result<Runtime, String> {
    Runtime::new().map_err(|error| error.to_string())
}

async fn create_token(matches: &ArgMatches, texts: &Texts) -> Result<String, String> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    let (url, _) = texts.get("database").ok_or("database is not set; write --database URL")?;
    let config = url.parse().map_err(|error: tokio_postgres::Error| format!("database: {error}"))?;
    let extra = texts.get("extra_roots").map(|(files, _)| files.as_str()).unwrap_or_default();
    let db = Db::new(config, "token", 1, tls::roots(&config::files(extra))?)?;
    let made = db.create_token(text("role"), text("scope"), text("expires")).await;
    made.map_err(|trouble| trouble.to_string())
}

async fn until_told(config: Config, listeners: [&Handle; 2]) -> Result<(), String> {
    let listen = |kind| signal(kind).map_err(|error| error.to_string());
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let told = tokio::sync::Notify::new();
    let signals = async {
        loop {
            tokio::select! { _ = terminate.recv() => {} _ = interrupt.recv() => {} }
            told.notify_one();
        }
    };
    tokio::select! {
        done = serve::serve(config, listeners, told.notified(), told.notified()) => done,
        () = signals => Ok(()),
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("awty-gateway: {why}");
            ExitCode::FAILURE
        }
    }
}
