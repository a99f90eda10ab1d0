//! A folder for servers that other programs start, for example Patroni.
//!
//! Invariant: dropping a [`Folder`] ends the processes that work in the folder, and removes the folder.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{account, files, stage};

#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    #[track_caller]
    #[allow(clippy::new_without_default)] // `new` writes to the disk
    pub fn new() -> Self {
        files::sweep();
        Self(files::new_directory())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    #[track_caller]
    pub fn directory(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        files::make_private(&path);
        path
    }

    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = account::direct(program);
        command.current_dir(&self.0);
        command
    }

    pub fn server_tool(&self, name: &str) -> Command {
        self.command(stage::directory().join("bin").join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        files::remove(&self.0);
    }
}
