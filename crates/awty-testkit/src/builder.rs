use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Once;

use crate::{Cluster, account, files, preload, stage};

#[derive(Debug, Default)]
pub struct Builder {
    settings: Vec<(String, String)>,
    conf: String,
    own_identity: bool,
    without_preload: bool,
    movable_clock: bool,
    failing_disk: bool,
    lasting: Option<PathBuf>,
    stage: Option<PathBuf>,
}

impl Builder {
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    pub fn conf(mut self, lines: &str) -> Self {
        self.conf.push_str(lines);
        self
    }

    /// Gives the cluster its own system identifier. By default, a cluster has the identifier of the template that it
    /// copies.
    pub fn own_identity(mut self) -> Self {
        self.own_identity = true;
        self
    }

    pub fn without_preload(mut self) -> Self {
        self.without_preload = true;
        self
    }

    pub fn with_movable_clock(mut self) -> Self {
        self.movable_clock = true;
        self
    }

    pub fn with_failing_disk(mut self) -> Self {
        self.failing_disk = true;
        self
    }

    /// Makes a cluster that outlives the test process. The cluster's directory must not exist yet.
    pub fn lasting_at(mut self, directory: &Path) -> Self {
        self.lasting = Some(directory.into());
        self
    }

    pub fn stage(mut self, directory: &Path) -> Self {
        self.stage = Some(directory.into());
        self
    }

    #[track_caller]
    pub fn start(self) -> Cluster {
        let mut cluster = self.create();
        cluster.start();
        cluster
    }

    #[track_caller]
    pub fn create(self) -> Cluster {
        static SWEPT: Once = Once::new();
        SWEPT.call_once(files::sweep);

        let directory = match &self.lasting {
            Some(directory) => {
                files::make_private(directory);
                directory.clone()
            }
            None => files::new_directory(),
        };
        let stage = self.stage.clone().unwrap_or_else(|| stage::directory().into());
        let cluster = Cluster::at(directory, self.lasting.is_some(), stage);
        if self.own_identity {
            let mut initdb = account::command(cluster.executable("initdb"));
            initdb.args(["-k", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D"]);
            account::run(initdb.arg(cluster.data()));
        } else {
            let template = cluster.stage().join("template");
            account::run(account::command("cp").arg("-a").arg(template).arg(cluster.data()));
        }
        append(&cluster.data().join("postgresql.conf"), &self.lines(&cluster));
        if self.movable_clock {
            preload::CLOCK.install(&cluster, 1);
        }
        if self.failing_disk {
            preload::DISK.install(&cluster, 4);
        }
        cluster
    }

    fn lines(&self, cluster: &Cluster) -> String {
        let mut lines = network(cluster);
        if !self.without_preload {
            lines.push_str("shared_preload_libraries = 'awty'\nawty.slot = '1s'\n");
        }
        lines.push_str("log_line_prefix = '%m [%p] %b %q%u@%d '\n");
        if !self.failing_disk {
            // fsync can be off, because tests never crash the machine, and the kernel keeps a crashed server's written
            // data.
            lines.push_str("fsync = off\n");
        }
        lines.push_str(&self.conf);
        for (name, value) in &self.settings {
            let _ = writeln!(lines, "\n{name} = '{}'", value.replace('\'', "''"));
        }
        lines
    }
}

pub(crate) fn network(cluster: &Cluster) -> String {
    let directory = cluster.socket_directory().display();
    format!("\nlisten_addresses = ''\nunix_socket_directories = '{directory}'\nport = {}\n", Cluster::PORT)
}

#[track_caller]
pub(crate) fn append(file: &Path, lines: &str) {
    let written = OpenOptions::new().append(true).open(file).and_then(|mut open| open.write_all(lines.as_bytes()));
    written.unwrap_or_else(|error| panic!("cannot write to {}: {error}", file.display()));
}

#[track_caller]
pub(crate) fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()))
}

impl Builder {
    #[track_caller]
    pub fn conf_file(self, file: &Path) -> Self {
        let lines = read(file);
        self.conf(&lines)
    }
}
