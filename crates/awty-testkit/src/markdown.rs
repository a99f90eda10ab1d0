//! Lines of Markdown, at most 140 columns wide where they are no rows of a table.

use std::fmt::Write as _;

/// The widest line: 140 columns with the indent of a list.
pub const WIDTH: usize = 138;

/// A paragraph, wrapped, after an empty line.
pub fn paragraph(text: &str) -> String {
    format!("\n{}", wrap(text))
}

/// Words in lines of at most `WIDTH` columns.
pub fn wrap(text: &str) -> String {
    let mut lines = String::new();
    let mut line = String::new();
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(lines, "{line}");
            line.clear();
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line += word;
        is_empty = false;
    }
    let _ = writeln!(lines, "{line}");
    lines
}

/// A table; a row is one line however long it is.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut lines = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
        let _ = writeln!(lines, "| {} |", cells.join(" | "));
    }
    format!("\n{lines}")
}

/// As a sentence of its own. A sentence may begin with a function's name, which stays as it is.
pub fn sentence(comment: &str) -> String {
    let mut letters = comment.chars();
    let is_name = comment.split(' ').next().is_some_and(|word| word.contains('('));
    let text = match letters.next() {
        Some(first) if !is_name => first.to_uppercase().chain(letters).collect(),
        _ => comment.to_owned(),
    };
    if text.ends_with(['.', '!', '?']) { text } else { text + "." }
}
