//! Finds the SQL examples in README.md and docs/. A block of `text` directly after a block of `sql` is the expected
//! output. A block without an end fails the test.

use std::path::{Path, PathBuf};

pub struct Page {
    pub name: String,
    pub blocks: Vec<Block>,
}

pub struct Block {
    pub line: usize,
    pub sql: String,
    pub printed: Option<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

pub fn pages() -> Vec<Page> {
    let docs = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = docs.filter(|path| path.extension().is_some_and(|found| found == "md")).collect();
    files.push(root().join("README.md"));
    files.sort();
    let read = |path: PathBuf| {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        Page { blocks: blocks(&name, &std::fs::read_to_string(&path).unwrap()), name }
    };
    files.into_iter().map(read).filter(|page| !page.blocks.is_empty()).collect()
}

fn blocks(name: &str, text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open: Option<(String, usize, String)> = None;
    let mut last_was_sql = false;
    for (index, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(kind), None) => open = Some((kind.to_owned(), index + 1, String::new())),
            (Some(_), Some(_)) => {
                let (kind, line, body) = open.take().unwrap();
                match kind.as_str() {
                    "sql" => blocks.push(Block { line, sql: body, printed: None }),
                    "text" if last_was_sql => blocks.last_mut().unwrap().printed = Some(body),
                    _ => {}
                }
                last_was_sql = kind == "sql";
            }
            (None, Some((_, _, body))) => *body += &format!("{line}\n"),
            (None, None) => last_was_sql &= line.trim().is_empty(),
        }
    }
    assert!(open.is_none(), "{name}: a block is not closed");
    blocks
}
