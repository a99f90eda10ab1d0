//! Runs a command with a throwaway cluster: `with-cluster [--conf FILE] -- COMMAND...`. The command's `PGHOST`,
//! `PGPORT` and `PGUSER` point to the cluster. `with-cluster --sweep` removes the clusters of killed tests.

use std::path::Path;
use std::process::{Command, ExitCode};

use awty_testkit::{Cluster, sweep};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let mut builder = Cluster::builder();
    loop {
        match arguments.next().as_deref() {
            Some("--sweep") => {
                sweep();
                return ExitCode::SUCCESS;
            }
            Some("--conf") => builder = builder.conf_file(Path::new(&arguments.next().unwrap_or_default())),
            Some("--") => break,
            _ => {
                eprintln!("usage: with-cluster [--conf FILE] -- COMMAND...");
                return ExitCode::from(2);
            }
        }
    }
    let Some(program) = arguments.next() else {
        eprintln!("with-cluster: no command given");
        return ExitCode::from(2);
    };
    let cluster = builder.start();
    let status = Command::new(&program).args(arguments).envs(cluster.environment()).status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(status) => {
            eprintln!("{}", cluster.log_tail());
            ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
        }
        Err(error) => {
            eprintln!("with-cluster: cannot run {program}: {error}");
            ExitCode::from(127)
        }
    }
}
