use crate::markdown::table;
use crate::{Cluster, checkout};
use std::collections::BTreeMap;
use std::path::PathBuf;
use syn::visit::{self, Visit};
use syn::{Expr, ExprCall, ExprMacro, Lit};

fn read(path: PathBuf) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(checkout().join(folder)).expect("the folder");
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    paths
}

pub fn outcomes() -> String {
    let source = read(checkout().join("crates/awty-core/src/outcome.rs"));
    let list = source.split("Outcome for \"outcome\"").nth(1).expect("the list of outcomes");
    let list = list.split("\n}\n").next().expect("its end");
    let no_problem =
        source.split("!matches!(self,").nth(1).and_then(|rest| rest.split(')').next()).expect("the problems");
    let mut rows = Vec::new();
    let mut meaning: Vec<&str> = Vec::new();
    for line in list.lines().map(str::trim) {
        if let Some(words) = line.strip_prefix("///") {
            meaning.push(words.trim());
        } else if let Some((variant, label)) = line.split_once(" = ") {
            let is_problem = !no_problem.split('|').any(|name| name.trim() == format!("Self::{variant}"));
            let label = label.trim_end_matches(',').trim_matches('"');
            let problem = if is_problem { "yes" } else { "no" };
            rows.push(vec![format!("`{label}`"), problem.to_owned(), meaning.join(" ")]);
            meaning.clear();
        }
    }
    assert!(rows.len() >= 10, "outcomes are written in another way by now");
    table(&["outcome", "problem", "meaning"], &rows)
}

/// The texts of an error in awty's source code. An ellipsis replaces each inserted value.
#[derive(Default)]
struct Texts(Vec<String>);

impl<'ast> Visit<'ast> for Texts {
    fn visit_lit(&mut self, literal: &'ast Lit) {
        if let Lit::Str(text) = literal {
            self.0.push(text.value());
        }
    }

    fn visit_expr_macro(&mut self, call: &'ast ExprMacro) {
        let arguments = syn::punctuated::Punctuated::<Expr, syn::Token![,]>::parse_terminated;
        if let Ok(arguments) = call.mac.parse_body_with(arguments)
            && let Some(Expr::Lit(format)) = arguments.first()
            && let Lit::Str(text) = &format.lit
        {
            // The reference shows `call("awty.allow", …)` as `SELECT awty.allow(…);`.
            let mut calls = arguments.iter().skip(1).filter_map(called);
            self.0.push(dots(&text.value(), &mut calls));
        }
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        match called(&Expr::Call(call.clone())) {
            Some(name) => self.0.push(name),
            None => visit::visit_expr_call(self, call),
        }
    }
}

fn called(expression: &Expr) -> Option<String> {
    let Expr::Call(call) = expression else { return None };
    let Expr::Path(function) = &*call.func else { return None };
    let Some(Expr::Lit(name)) = call.args.first() else { return None };
    let Lit::Str(name) = &name.lit else { return None };
    function.path.is_ident("call").then(|| format!("SELECT {}(…);", name.value()))
}

fn dots(format: &str, calls: &mut impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    let mut letters = format.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '{' | '}' if letters.next_if_eq(&letter).is_some() => text.push(letter),
            '{' => {
                let value: String = letters.by_ref().take_while(|letter| *letter != '}').collect();
                let call = if value.is_empty() { calls.next() } else { None };
                text += call.as_deref().unwrap_or("…");
            }
            letter => text.push(letter),
        }
    }
    text
}

fn texts(expression: &Expr) -> String {
    let mut texts = Texts::default();
    texts.visit_expr(expression);
    texts.0.retain(|text| text.contains(' '));
    texts.0.dedup();
    if texts.0.is_empty() { "…".to_owned() } else { texts.0.join(" · ") }
}

#[derive(Default)]
struct Said(Vec<(String, String, String)>);

impl<'ast> Visit<'ast> for Said {
    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(function) = &*call.func
            && function.path.is_ident("say")
            && call.args.len() == 3
        {
            let code = match &call.args[0] {
                Expr::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
                _ => None,
            };
            self.0.push((code.unwrap_or_default(), texts(&call.args[1]), texts(&call.args[2])));
        }
        visit::visit_expr_call(self, call);
    }
}

pub fn of_the_library(cluster: &Cluster) -> Vec<Vec<String>> {
    let states = states(cluster);
    let mut said = Said::default();
    for path in files("src/error", "rs") {
        said.visit_file(&syn::parse_file(&read(path)).expect("Rust"));
    }
    assert!(said.0.len() > 80, "errors are written in another way by now: {}", said.0.len());
    let state = |code: &str| states.get(code).cloned().unwrap_or_else(|| "…".to_owned());
    let rows = said.0.into_iter().map(|(code, message, hint)| vec![state(&code), message, hint]);
    sorted(rows.filter(|row| row[1] != "…" || row[2] != "…").collect())
}

fn sorted(mut rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    rows.sort_by(|a, b| a[0].cmp(&b[0]));
    rows.dedup();
    rows
}

fn states(cluster: &Cluster) -> BTreeMap<String, String> {
    let config = cluster.value::<String>("postgres", "SELECT setting FROM pg_config WHERE name = 'SHAREDIR'");
    let list = read(PathBuf::from(config).join("errcodes.txt"));
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let (state, _, name) = (words.next()?, words.next()?, words.next()?);
        name.starts_with("ERRCODE_").then(|| (name.to_owned(), state.to_owned()))
    };
    list.lines().filter_map(row).collect()
}

pub fn of_awty_http() -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for path in files("http/sql", "sql") {
        for call in read(path).split("awty_http_internal.refuse(").skip(1) {
            let [state, message, hint, ..] = &*arguments(call) else { continue };
            if state.starts_with('\'') {
                rows.push(vec![state.trim_matches('\'').to_owned(), plain(message), plain(hint)]);
            }
        }
    }
    assert!(rows.len() > 20, "awty_http refuses in another way by now: {}", rows.len());
    sorted(rows)
}

fn arguments(call: &str) -> Vec<String> {
    let (mut arguments, mut depth, mut is_quoted) = (vec![String::new()], 0, false);
    for letter in call.chars() {
        match letter {
            '\'' => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted && depth == 0 => break,
            ')' if !is_quoted => depth -= 1,
            ',' if !is_quoted && depth == 0 => {
                arguments.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = arguments.last_mut() {
            last.push(letter);
        }
    }
    arguments.iter().map(|argument| argument.trim().to_owned()).collect()
}

fn plain(argument: &str) -> String {
    let literal = match argument.strip_prefix("format(") {
        Some(format) => arguments(format).swap_remove(0),
        None => argument.to_owned(),
    };
    match literal.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
        Some(text) => ["%s", "%L", "%I"].iter().fold(text.replace("''", "'"), |text, value| text.replace(value, "…")),
        None => "…".to_owned(),
    }
}
