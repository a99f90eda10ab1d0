//! The credentials folder has one file for each secret, and one for the master key. The gateway never overwrites the
//! master key, because it derives signing keys from this key.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

pub const MASTER_KEY: &str = "master-key";
const SHORTEST: usize = 32;

pub fn init(folder: &Path) -> Result<bool, String> {
    let path = folder.join(MASTER_KEY);
    let problem = |error: std::io::Error| format!("{}: {error}", path.display());
    std::fs::create_dir_all(folder).map_err(problem)?;
    let mut file = match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return read(folder).map(|_| false),
        Err(error) => return Err(problem(error)),
    };
    let key: [u8; SHORTEST] = rand::random();
    writeln!(file, "{}", STANDARD.encode(key)).and_then(|()| file.sync_all()).map_err(problem)?;
    Ok(true)
}

pub fn read(folder: &Path) -> Result<Vec<u8>, String> {
    let path = folder.join(MASTER_KEY);
    let text = std::fs::read_to_string(&path).map_err(|error| {
        format!("{}: {error}; run: awty-gateway init --credentials {}", path.display(), folder.display())
    })?;
    let key = STANDARD.decode(text.trim()).ok().filter(|key| key.len() >= SHORTEST);
    key.ok_or_else(|| format!("{} has less than {SHORTEST} bytes in base64", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once() {
        let folder = std::env::temp_dir().join(format!("awty-gateway-{:016x}", rand::random::<u64>()));
        assert!(read(&folder).unwrap_err().contains("init"));
        assert_eq!(init(&folder), Ok(true));
        let key = read(&folder).unwrap();
        assert_eq!((init(&folder), read(&folder).unwrap().len()), (Ok(false), SHORTEST));
        assert_eq!(read(&folder).unwrap(), key);
        std::fs::write(folder.join(MASTER_KEY), "short").unwrap();
        assert!(init(&folder).is_err(), "a key that cannot be read is not replaced");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
