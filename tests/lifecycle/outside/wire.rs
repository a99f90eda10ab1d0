//! The client connects to the server through a socket that the test creates, so that the test can cut the connection.

use awty_testkit::Cluster;
use awty_testkit::postgres::{Client, Config, NoTls};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub struct Wire {
    directory: PathBuf,
    ends: [UnixStream; 2],
    is_deaf: Arc<AtomicBool>,
}

impl Wire {
    pub fn connect(cluster: &Cluster, name: &str) -> (Client, Self) {
        let directory = cluster.socket_directory().join(name);
        let socket = format!(".s.PGSQL.{}", Cluster::PORT);
        std::fs::create_dir(&directory).unwrap();
        let listener = UnixListener::bind(directory.join(&socket)).unwrap();
        let server = UnixStream::connect(cluster.socket_directory().join(&socket)).unwrap();
        let accepted = std::thread::spawn(move || listener.accept().unwrap().0);
        let host = directory.clone();
        let connecting = std::thread::spawn(move || {
            let mut config = Config::new();
            config.host_path(host).port(Cluster::PORT).dbname("postgres").user("shop").connect(NoTls)
        });
        let client = accepted.join().unwrap();
        let is_deaf = Arc::new(AtomicBool::new(false));
        carry(client.try_clone().unwrap(), server.try_clone().unwrap(), Arc::default());
        carry(server.try_clone().unwrap(), client.try_clone().unwrap(), Arc::clone(&is_deaf));
        (connecting.join().unwrap().unwrap(), Self { directory, ends: [client, server], is_deaf })
    }

    pub fn deafen(&self) {
        self.is_deaf.store(true, Ordering::SeqCst);
    }

    pub fn cut(&self) {
        self.ends.iter().for_each(|end| drop(end.shutdown(Shutdown::Both)));
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.cut();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn carry(mut from: UnixStream, mut to: UnixStream, lost: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let mut bytes = [0; 8192];
        while let Ok(n @ 1..) = from.read(&mut bytes) {
            if !lost.load(Ordering::SeqCst) && to.write_all(&bytes[..n]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}
