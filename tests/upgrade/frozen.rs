use crate::made_up::{AWTY, Extension, HERE, HTTP, change, copy, last_line, script};
use std::fs;
use std::path::Path;
use std::process::Output;

fn freeze(copy: &Path) -> Output {
    script(copy, "freeze", &[], &[])
}

#[track_caller]
fn refused(output: &Output, said: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains(said), "{stderr}");
}

#[test]
fn a_released_script_stays_as_it_is() {
    let copy = copy("frozen");
    let check = || script(&copy, "freeze", &["--check"], &[]);
    last_line(&check());
    let released =
        |extension: &Extension| copy.join(format!("{}/released/{}--{HERE}.sql", extension.folder, extension.name));
    if !released(&AWTY).exists() {
        last_line(&freeze(&copy));
    }
    last_line(&check());
    refused(&freeze(&copy), "is released");

    for extension in [AWTY, HTTP] {
        let released = released(&extension);
        let text = fs::read_to_string(&released).unwrap();
        fs::write(&released, format!("{text}\n")).unwrap();
        refused(&check(), &format!("released/{}--{HERE}.sql", extension.name));
        fs::write(&released, text).unwrap();
        last_line(&check());

        let sql = copy.join(extension.folder).join(extension.file);
        let text = fs::read_to_string(&sql).unwrap();
        fs::write(&sql, format!("{text}SELECT 1;\n")).unwrap();
        refused(&check(), "needs another version");
        fs::write(&sql, text).unwrap();
    }

    change(&copy);
    last_line(&check());
    let upgrades = [AWTY, HTTP].map(|extension| extension.upgrade_in(&copy));
    for upgrade in &upgrades {
        let text = fs::read_to_string(upgrade).unwrap();
        fs::remove_file(upgrade).unwrap();
        refused(&freeze(&copy), "no upgrade script");
        fs::write(upgrade, &text).unwrap();
    }
    last_line(&freeze(&copy));
    last_line(&check());
    for upgrade in &upgrades {
        let text = fs::read_to_string(upgrade).unwrap();
        fs::write(upgrade, format!("{text}SELECT 1;\n")).unwrap();
        refused(&check(), upgrade.file_name().unwrap().to_str().unwrap());
        fs::write(upgrade, &text).unwrap();
    }
    last_line(&check());
}
