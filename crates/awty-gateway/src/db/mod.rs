//! Invariant: the gateway only selects from views and calls functions. It keeps no state in database sessions, so that
//! it can use a pooler in transaction mode.

mod answers;
mod arguments;
mod attempt;
pub mod calls;
pub mod changes;
mod figures;
pub mod history;
mod leases;
mod readiness;
mod requests;
pub mod schedules;
pub mod sends;
pub mod status;
pub mod targets;
pub mod tokens;
pub mod views;

pub use answers::{Answer, Booking, Changes, Failure, Wait};
pub use arguments::{Argument, Arguments};
pub use figures::{Figures, Target};
pub use leases::{Endpoint, Lease};
pub use readiness::{Job, Standing};
pub use requests::{BY_INDEX, Request, Token};

use crate::files;
use crate::net::tls;
use deadpool_postgres::{ConfigConnectImpl, Connect, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod};
use rustls::RootCertStore;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, JoinSet};
use tokio_postgres::Client;
use tokio_postgres::config::Host;
use tokio_postgres::error::SqlState;
use tokio_postgres_rustls::MakeRustlsConnect;

const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum time to connect, and for which the database's host may acknowledge no data. After a network failure without
/// a reset, statements would otherwise wait for `PATIENCE`, and a look-up of a token would keep its place.
const CONNECT: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(20);
/// Maximum time for which a pool without connections waits until the server has ended one that the pool has closed.
const CLOSING: Duration = Duration::from_secs(2);
/// A pool closes extra connections that were idle for `REST` or are older than `AGE`, so that other pools can open
/// connections.
const REST: Duration = Duration::from_secs(10);
const AGE: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub struct Db {
    pool: Pool,
    config: tokio_postgres::Config,
}

#[derive(Debug)]
pub enum Trouble {
    Away(String),
    Refused { sqlstate: String, message: String, hint: Option<String> },
}

impl Trouble {
    pub fn is(&self, wanted: &str) -> bool {
        matches!(self, Trouble::Refused { sqlstate, .. } if sqlstate == wanted)
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Away(why) => write!(f, "the database is away: {why}"),
            Trouble::Refused { sqlstate, message, hint: None } => write!(f, "{sqlstate}: {message}"),
            Trouble::Refused { sqlstate, message, hint: Some(hint) } => write!(f, "{sqlstate}: {message} ({hint})"),
        }
    }
}

impl From<tokio_postgres::Error> for Trouble {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(refused) => Trouble::Refused {
                sqlstate: refused.code().code().into(),
                message: refused.message().into(),
                hint: refused.hint().map(str::to_owned),
            },
            // Only a bug in the gateway causes this error.
            None if std::error::Error::source(&error)
                .is_some_and(|cause| cause.is::<tokio_postgres::types::WrongType>()) =>
            {
                Trouble::Refused { sqlstate: "XX000".into(), message: error.to_string(), hint: None }
            }
            None => {
                let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
                Trouble::Away(format!("{error}{cause}"))
            }
        }
    }
}

type Opened = Result<(Client, JoinHandle<()>), tokio_postgres::Error>;

/// Opens all connections of a pool on the runtime that has made the pool. A connection that a listener has opened for a
/// request would otherwise be driven by the thread of that listener, and delay the other users of the pool while that
/// thread is busy.
struct OnRuntime {
    runtime: Handle,
    tls: MakeRustlsConnect,
}

impl Connect for OnRuntime {
    fn connect(&self, config: &tokio_postgres::Config) -> Pin<Box<dyn Future<Output = Opened> + Send + '_>> {
        let (config, tls) = (config.clone(), self.tls.clone());
        Box::pin(async move {
            let mut opening = JoinSet::new(); // aborts its task if the caller is cancelled
            opening.spawn_on(async move { ConfigConnectImpl { tls }.connect(&config).await }, &self.runtime);
            match opening.join_next().await {
                Some(Ok(opened)) => opened,
                _ => std::future::pending().await, // the runtime ends, and so does the gateway
            }
        })
    }
}

/// A cancelled caller's connection is closed instead of returned to the pool, because the caller's statement may still
/// run.
struct Loan(Option<Object>);

impl Drop for Loan {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(Object::take(client));
        }
    }
}

fn has_none_left(error: &tokio_postgres::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
    error.code() == Some(&SqlState::TOO_MANY_CONNECTIONS) || cause.is_some_and(files::are_used_up)
}

impl Db {
    pub fn new(
        mut config: tokio_postgres::Config,
        name: &str,
        size: usize,
        roots: RootCertStore,
    ) -> Result<Self, String> {
        config.connect_timeout(CONNECT).application_name(format!("awty-gateway {name}"));
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(CONNECT);
        }
        let manager = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let on_runtime = OnRuntime { runtime: Handle::current(), tls: MakeRustlsConnect::new(tls::config(roots)?) };
        let manager = Manager::from_connect(config.clone(), on_runtime, manager);
        let pool = Pool::builder(manager).max_size(size).build().map_err(|error| error.to_string())?;
        Ok(Db { pool, config })
    }

    async fn client(&self) -> Result<Object, Trouble> {
        let got = tokio::time::timeout(PATIENCE, self.free()).await;
        match got.map_err(|_| Trouble::Away("no connection is free".into()))? {
            Ok(client) => Ok(client),
            Err(PoolError::Backend(error)) => Err(error.into()),
            Err(error) => Err(Trouble::Away(error.to_string())),
        }
    }

    /// Waits if the server has no connection left, or the gateway no file descriptor, because one of this pool becomes
    /// free, or the server still counts one that this pool has closed.
    async fn free(&self) -> Result<Object, PoolError> {
        let begun = Instant::now();
        loop {
            match self.pool.get().await {
                Err(PoolError::Backend(error))
                    if has_none_left(&error) && (self.pool.status().size > 0 || begun.elapsed() < CLOSING) =>
                {
                    tokio::time::sleep(AGAIN).await;
                }
                got => return got,
            }
        }
    }

    /// Closes idle connections, except one in each pool, because the gateway must work with only three connections.
    pub fn shrink(&self) {
        let mut first = true;
        self.pool.retain(|_, use_of| std::mem::take(&mut first) || use_of.last_used() < REST && use_of.age() < AGE);
    }

    async fn on<T>(
        &self,
        work: impl AsyncFnOnce(&mut Object) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, Trouble> {
        let mut loan = Loan(Some(self.client().await?));
        let Some(client) = &mut loan.0 else { return Err(Trouble::Away("no connection is free".into())) };
        let Ok(done) = tokio::time::timeout(PATIENCE, work(client)).await else {
            return Err(Trouble::Away(format!("a statement took longer than {PATIENCE:?}")));
        };
        drop(loan.0.take());
        Ok(done?)
    }

    pub fn connections(&self) -> (usize, usize) {
        let status = self.pool.status();
        (status.size, status.available)
    }

    /// Returns the addresses of the database, so that the guard refuses calls to them.
    ///
    /// A database behind a socket or loopback may listen on all addresses of this machine. The unspecified address then
    /// stands for all these addresses.
    pub async fn addresses(&self) -> Vec<SocketAddr> {
        let ports = self.config.get_ports();
        let port = |index: usize| ports.get(index).or(ports.first()).copied().unwrap_or(5432);
        let until = tokio::time::Instant::now() + Duration::from_secs(2);
        let mut found = Vec::new();
        for (index, address) in self.config.get_hostaddrs().iter().enumerate() {
            found.push(SocketAddr::new(*address, port(index)));
        }
        for (index, host) in self.config.get_hosts().iter().enumerate() {
            let Host::Tcp(name) = host else {
                found.push(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port(index))));
                continue;
            };
            let looked_up = tokio::net::lookup_host((name.as_str(), port(index)));
            found.extend(tokio::time::timeout_at(until, looked_up).await.into_iter().flatten().flatten());
        }
        let here: Vec<u16> = found.iter().filter(|one| one.ip().is_loopback()).map(SocketAddr::port).collect();
        found.extend(here.into_iter().map(|port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))));
        found
    }
}
