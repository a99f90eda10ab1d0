use crate::made_up::library;
use awty_testkit::checkout;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

const OWN: [&str; 5] = ["Pg_magic_func", "_PG_init", "awty_launcher_main", "awty_maintainer_main", "awty_worker_main"];

fn named_in_sql() -> BTreeSet<String> {
    let mut symbols = BTreeSet::new();
    for directory in ["sql", "sql/released", "http/sql", "http/sql/released"] {
        for file in fs::read_dir(checkout().join(directory)).into_iter().flatten() {
            let file = file.unwrap().path();
            if file.extension().is_some_and(|extension| extension == "sql") {
                let text = fs::read_to_string(file).unwrap();
                let named =
                    text.split("'MODULE_PATHNAME', '").skip(1).map(|rest| rest.split('\'').next().unwrap().to_owned());
                symbols.extend(named);
            }
        }
    }
    symbols
}

/// A symbol that is not exported cannot collide with another library.
#[test]
fn the_library_exports_what_sql_names_and_no_more() {
    let named = named_in_sql();
    assert!(
        named.len() >= 14 && named.iter().all(|symbol| symbol.ends_with("_wrapper") || symbol == "awty_with_caller"),
        "{named:?}"
    );
    let nm = Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(library()).output().unwrap();
    assert!(nm.status.success(), "{}", String::from_utf8_lossy(&nm.stderr));
    let printed = String::from_utf8_lossy(&nm.stdout).into_owned();
    let exported: BTreeSet<String> = printed.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    let expected = named.iter().flat_map(|symbol| [symbol.clone(), format!("pg_finfo_{symbol}")]);
    let expected: BTreeSet<String> = expected.chain(OWN.map(String::from)).collect();
    let missing: Vec<&String> = expected.difference(&exported).collect();
    let too_much: Vec<&String> = exported.difference(&expected).collect();
    assert!(missing.is_empty() && too_much.is_empty(), "missing: {missing:?}; too much: {too_much:?}");
}
