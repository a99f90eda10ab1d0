use super::arrows::Arrows;
use super::source::{Source, root};

const FOLDER: &str = "crates/awty-gateway/src";

/// A room is a top-level module. A room may use only rooms of lower layers. The list begins with the lowest layer.
const LAYERS: &[&[&str]] = &[
    &["clock", "duration", "files", "notify", "sqlstate"],
    &["net"],
    &["deliver"],
    &["config", "metrics"],
    &["secrets"],
    &["db"],
    &["lease", "listen"],
    &["api", "health", "scrape"],
    &["page"],
    &["serve"],
    &["main"],
];

#[test]
fn no_circle_of_files() {
    let circles = Arrows::of(Source::all(FOLDER)).circles();
    assert!(circles.is_empty(), "files in a circle:\n{}", circles.join("\n"));
}

#[test]
fn no_room_knows_one_of_its_own_layer_or_above() {
    let arrows = Arrows::of(Source::all(FOLDER));
    let mut broken = Vec::new();
    for (floor, rooms) in LAYERS.iter().enumerate() {
        let above = |from| LAYERS[floor..].iter().copied().flatten().filter(move |to| *to != from);
        broken.extend(rooms.iter().flat_map(|from| above(from).filter_map(|to| arrows.chain(from, to))));
    }
    assert!(broken.is_empty(), "arrows up:\n{}", broken.join("\n"));
}

#[test]
fn every_room_has_its_layer() {
    let mut rooms: Vec<String> = Source::all(FOLDER).iter().filter_map(Source::room).collect();
    rooms.sort();
    rooms.dedup();
    let mut layered: Vec<&str> = LAYERS.concat();
    layered.sort_unstable();
    assert_eq!(rooms, layered);
}

#[test]
fn no_file_of_the_gateway_has_250_lines() {
    let long: Vec<String> = Source::all("crates/awty-gateway")
        .iter()
        .filter(|source| source.lines >= 250)
        .map(|s| s.file.clone())
        .collect();
    assert!(long.is_empty(), "split by idea: {}", long.join(", "));
}

#[test]
fn delivery_and_network_of_the_gateway_know_no_database() {
    let mut found = Vec::new();
    let walled = |source: &&Source| ["/deliver/", "/net/"].iter().any(|room| source.file.contains(room));
    for source in Source::all(FOLDER).iter().filter(walled) {
        let knows = |path: &&Vec<String>| {
            let first = path.first().map(String::as_str);
            matches!(first, Some("tokio_postgres" | "deadpool_postgres"))
                || path.starts_with(&["crate".into(), "db".into()])
        };
        found.extend(source.paths().filter(knows).map(|path| format!("{}: {}", source.file, path.join("::"))));
    }
    assert!(found.is_empty(), "they know the database:\n{}", found.join("\n"));
}

#[test]
fn sql_of_the_gateway_stands_in_db_and_writes_nothing_itself() {
    let mut found = Vec::new();
    for source in Source::all(FOLDER) {
        let text = std::fs::read_to_string(root().join(&source.file)).unwrap();
        let words: &[&str] = match source.file.contains("/db/") {
            true => &["INSERT ", "UPDATE ", "DELETE ", "MERGE ", "TRUNCATE ", " awty_internal."],
            false => &["\"SELECT ", "\"WITH ", "INSERT INTO", "DELETE FROM"],
        };
        found.extend(words.iter().filter(|word| text.contains(*word)).map(|word| format!("{}: {word}", source.file)));
    }
    assert!(found.is_empty(), "SQL in the wrong place:\n{}", found.join("\n"));
}
