//! Writes Markdown with lines of at most 140 columns. Rows of tables may be longer.

use std::fmt::Write as _;

/// Maximum width of a line, without the indent of a list item.
pub const WIDTH: usize = 138;

pub fn paragraph(text: &str) -> String {
    format!("\n{}", wrap(text))
}

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

pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut lines = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
        let _ = writeln!(lines, "| {} |", cells.join(" | "));
    }
    format!("\n{lines}")
}

pub fn between_markers(page: &str, [begin, end]: [&str; 2], text: &str) -> Result<String, String> {
    let parts = page.split_once(begin).and_then(|(head, rest)| Some((head, rest.split_once(end)?.1)));
    let (head, tail) = parts.ok_or_else(|| format!("the page lacks its markers: {begin} and {end}"))?;
    Ok(format!("{head}{begin}\n{text}{end}{tail}"))
}

pub fn sentence(comment: &str) -> String {
    let mut letters = comment.chars();
    let is_name = comment.split(' ').next().is_some_and(|word| word.contains('('));
    let text = match letters.next() {
        Some(first) if !is_name => first.to_uppercase().chain(letters).collect(),
        _ => comment.to_owned(),
    };
    if text.ends_with(['.', '!', '?']) { text } else { text + "." }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_around_the_markers_stays() {
        let page =
            |first: &str, second: &str| format!("# P\nby hand\n<a>\n{first}</a>\nalso by hand\n<b>\n{second}</b>\n");
        let old = page("old\n", "old\n");
        assert_eq!(between_markers(&old, ["<a>", "</a>"], "new\n").unwrap(), page("new\n", "old\n"));
        assert_eq!(between_markers(&old, ["<b>", "</b>"], "new\n").unwrap(), page("old\n", "new\n"));
        assert!(between_markers("without", ["<a>", "</a>"], "new").is_err());
    }
}
