use proc_macro2::{TokenStream, TokenTree};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{ExprMethodCall, FnArg, ItemFn, ItemMod, ItemUse, Macro, UseTree, Visibility};

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[derive(Default)]
pub struct Source {
    pub file: String,
    pub lines: usize,
    /// The module of src/store/job.rs is `["store", "job"]`.
    pub module: Vec<String>,
    pub children: Vec<String>,
    pub exports: HashMap<String, Vec<String>>,
    pub named: Vec<(Vec<String>, Vec<String>)>,
    /// Places that take texts from SQL as `String` or `&str`. A `#[pg_extern]` function is listed by its name, and a
    /// call such as `get::<String>` as "get".
    pub strings: Vec<String>,
    inline: Vec<String>,
}

impl Source {
    pub fn all(folder: &str) -> Vec<Self> {
        let base = root().join(folder);
        let mut sources = Vec::new();
        let mut folders = vec![base.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    sources.push(Self::read(&base, &path));
                }
            }
        }
        assert!(!sources.is_empty(), "no source in {folder}");
        sources.sort_by(|a, b| a.file.cmp(&b.file));
        sources
    }

    fn read(base: &Path, path: &Path) -> Self {
        let name = |path: &Path| path.to_string_lossy().into_owned();
        let mut module: Vec<String> =
            path.strip_prefix(base).unwrap().with_extension("").iter().map(|part| name(Path::new(part))).collect();
        if ["mod", "lib"].contains(&module.last().unwrap().as_str()) {
            module.pop();
        }
        // A file x_tests.rs belongs to x.rs, because x.rs has `#[path = "x_tests.rs"] mod tests;`.
        if let Some(tested) = module.last().and_then(|last| last.strip_suffix("_tests")).map(str::to_owned) {
            module.splice(module.len() - 1.., [tested, "tests".to_owned()]);
        }
        let mut source = Self { file: name(path.strip_prefix(root()).unwrap()), module, ..Self::default() };
        let text = std::fs::read_to_string(path).unwrap();
        source.lines = text.lines().count();
        source.visit_file(&syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", source.file)));
        source
    }

    pub fn room(&self) -> Option<String> {
        self.module.first().cloned()
    }

    pub fn paths(&self) -> impl Iterator<Item = &Vec<String>> {
        self.named.iter().map(|(path, _)| path).chain(self.exports.values())
    }

    fn add(&mut self, path: Vec<String>) {
        let within = self.module.iter().chain(&self.inline).cloned().collect();
        self.named.push((path, within));
    }

    fn search(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Ident(name) => {
                    if colons != 2 && !path.is_empty() {
                        self.add(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                other => {
                    if !path.is_empty() {
                        self.add(std::mem::take(&mut path));
                    }
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.search(group.stream());
                    }
                }
            }
        }
        if !path.is_empty() {
            self.add(path);
        }
    }
}

impl<'ast> Visit<'ast> for Source {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if item.content.is_none() {
            self.children.push(item.ident.to_string());
            return;
        }
        self.inline.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.inline.pop();
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let mut paths = Vec::new();
        flatten(&item.tree, &mut Vec::new(), &mut paths);
        for (path, name) in paths {
            if matches!(item.vis, Visibility::Inherited) || !self.inline.is_empty() {
                self.add(path);
            } else if path.len() > 1 {
                self.exports.insert(name, path);
            }
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if item.attrs.iter().any(|attribute| attribute.path().is_ident("pg_extern")) {
            let takes = |arg: &FnArg| matches!(arg, FnArg::Typed(arg) if Strings::are_in(|v| v.visit_type(&arg.ty)));
            if item.sig.inputs.iter().any(takes) {
                self.strings.push(item.sig.ident.to_string());
            }
        }
        visit::visit_item_fn(self, item);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        if call.method == "get"
            && let Some(kind) = &call.turbofish
            && Strings::are_in(|visitor| visitor.visit_angle_bracketed_generic_arguments(kind))
        {
            self.strings.push("get".into());
        }
        visit::visit_expr_method_call(self, call);
    }

    /// Skips the path in `pub(super)`, because this path only limits who may use the item.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.add(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.visit_path(&called.path);
        self.search(called.tokens.clone());
    }
}

#[derive(Default)]
struct Strings(bool);

impl Strings {
    fn are_in(visit: impl FnOnce(&mut Self)) -> bool {
        let mut strings = Self::default();
        visit(&mut strings);
        strings.0
    }
}

impl<'ast> Visit<'ast> for Strings {
    fn visit_ident(&mut self, name: &'ast proc_macro2::Ident) {
        self.0 |= name == "String" || name == "str";
    }
}

fn flatten(tree: &UseTree, prefix: &mut Vec<String>, paths: &mut Vec<(Vec<String>, String)>) {
    let mut add = |last: Option<String>, name: String| paths.push((prefix.iter().cloned().chain(last).collect(), name));
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            flatten(&path.tree, prefix, paths);
            prefix.pop();
        }
        UseTree::Name(name) if name.ident == "self" => add(None, prefix.last().cloned().unwrap_or_default()),
        UseTree::Name(name) => add(Some(name.ident.to_string()), name.ident.to_string()),
        UseTree::Rename(rename) => add(Some(rename.ident.to_string()), rename.rename.to_string()),
        UseTree::Glob(_) => add(None, "*".into()),
        UseTree::Group(group) => group.items.iter().for_each(|item| flatten(item, prefix, paths)),
    }
}
