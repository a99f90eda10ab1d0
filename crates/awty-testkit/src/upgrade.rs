use std::process::Command;

use crate::{Cluster, account};

impl Cluster {
    /// Upgrades `old` into this cluster with pg_upgrade. This cluster must never have been started.
    pub fn upgrade_from(&self, old: &Cluster, options: &[&str]) -> Result<String, String> {
        let mut upgrade = self.server_tool("pg_upgrade");
        upgrade.current_dir(self.socket_directory()).args(["-U", "postgres", "-s"]).arg(self.socket_directory());
        upgrade.arg("-b").arg(old.stage().join("bin")).arg("-d").arg(old.data());
        upgrade.arg("-B").arg(self.stage().join("bin")).arg("-D").arg(self.data()).args(options);
        let output = upgrade.output().unwrap_or_else(|error| panic!("cannot run {upgrade:?}: {error}"));
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(printed);
        }
        Err(printed + &String::from_utf8_lossy(&output.stderr) + &self.upgrade_logs())
    }

    fn upgrade_logs(&self) -> String {
        let mut find = Command::new("find");
        find.arg(self.data().join("pg_upgrade_output.d"))
            .args(["-type", "f", "-exec", "tail", "-n", "20", "-v", "{}", "+"]);
        find.output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
    }

    /// Starts the server so that only superusers can connect and no background activity runs.
    #[track_caller]
    pub fn start_for_upgrade(&mut self) {
        let log = self.log_file();
        let mut start = self.pg_ctl(&["start", "-w", "-t", "180", "-o", "-b", "-l"]);
        account::run(start.arg(log));
    }
}
