use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

pub fn notify(state: &str) {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let told = || {
        let text = path.to_string_lossy();
        let address = match text.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(&path)?,
        };
        UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)
    };
    if let Err(error) = told() {
        tracing::warn!(%error, "systemd cannot be told");
    }
}
