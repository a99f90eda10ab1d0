use awty_testkit::checkout;
use std::path::{Path, PathBuf};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{
    Attribute, Expr, ExprTuple, FnArg, GenericArgument, Ident, Lit, LitCStr, Macro, PathArguments, Signature, Token,
    Type, Visibility,
};

pub struct Statement {
    pub name: String,
    pub types: Vec<String>,
    pub sql: String,
}

#[derive(Default)]
pub struct Statements {
    pub all: Vec<Statement>,
    pub settings: Vec<(String, String)>,
    file: PathBuf,
}

impl Statements {
    pub fn read() -> Self {
        let mut statements = Self::default();
        let mut folders = vec![checkout().join("src")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    statements.read_file(&path);
                }
            }
        }
        statements.all.sort_by(|a, b| a.name.cmp(&b.name));
        statements
    }

    fn read_file(&mut self, path: &Path) {
        if path.extension().is_some_and(|extension| extension == "rs") {
            self.file = path.to_owned();
            self.visit_file(&syn::parse_file(&std::fs::read_to_string(path).unwrap()).unwrap());
        }
    }
}

impl<'ast> Visit<'ast> for Statements {
    fn visit_macro(&mut self, called: &'ast Macro) {
        if called.path.is_ident("statement") {
            let Written { name, types, sql } = called.parse_body().unwrap();
            let file = self.file.file_stem().unwrap().to_string_lossy();
            self.all.push(Statement { name: format!("{file}::{name}"), types, sql: text(&sql) });
        }
    }

    fn visit_expr_tuple(&mut self, tuple: &'ast ExprTuple) {
        let strings: Vec<String> = tuple.elems.iter().filter_map(string).collect();
        if let [name, value] = &strings[..]
            && self.file.ends_with("store/statement.rs")
        {
            self.settings.push((name.clone(), value.clone()));
        }
        visit::visit_expr_tuple(self, tuple);
    }
}

struct Written {
    name: Ident,
    types: Vec<String>,
    sql: LitCStr,
}

impl Parse for Written {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        input.call(Attribute::parse_outer)?;
        input.parse::<Visibility>()?;
        let is_typed = input.peek(Token![fn]);
        let (name, types) = if is_typed { typed(input)? } else { plain(input)? };
        input.parse::<Token![,]>()?;
        Ok(Self { name, types, sql: input.parse()? })
    }
}

fn plain(input: ParseStream) -> syn::Result<(Ident, Vec<String>)> {
    let name = input.parse()?;
    input.parse::<Token![,]>()?;
    let list;
    syn::bracketed!(list in input);
    let types = Punctuated::<Ident, Token![,]>::parse_terminated(&list)?;
    Ok((name, types.iter().map(|name| sql_type(&name.to_string())).collect()))
}

fn typed(input: ParseStream) -> syn::Result<(Ident, Vec<String>)> {
    let Signature { ident, inputs, .. } = input.parse()?;
    input.parse::<Token![=]>()?;
    input.parse::<Expr>()?;
    let types = inputs.iter().map(|parameter| match parameter {
        FnArg::Typed(typed) => sql_type_of(&typed.ty),
        FnArg::Receiver(_) => unreachable!("a statement has no self"),
    });
    Ok((ident, types.collect()))
}

fn sql_type_of(rust: &Type) -> String {
    match rust {
        Type::Reference(reference) => sql_type_of(&reference.elem),
        Type::Slice(slice) => format!("{}[]", sql_type_of(&slice.elem)),
        Type::Path(path) => {
            let last = path.path.segments.last().unwrap();
            let inner = match &last.arguments {
                PathArguments::AngleBracketed(arguments) => match arguments.args.first() {
                    Some(GenericArgument::Type(inner)) => sql_type_of(inner),
                    _ => String::new(),
                },
                _ => String::new(),
            };
            match last.ident.to_string().as_str() {
                "Option" => inner,
                "Vec" => format!("{inner}[]"),
                "Text" => "text".into(),
                "i32" => "int4".into(),
                "i64" | "usize" => "int8".into(),
                "Live" => "int8[]".into(),
                "f64" => "float8".into(),
                "TimeDelta" => "interval".into(),
                "Oid" => "oid".into(),
                "Time" => "timestamptz".into(),
                other => other.into(),
            }
        }
        _ => unreachable!("a parameter of another kind"),
    }
}

fn sql_type(name: &str) -> String {
    match name.strip_suffix("OID").unwrap() {
        "RECORDARRAY" => "awty.future_job[]".into(),
        name => match name.strip_suffix("ARRAY") {
            Some(element) => format!("{}[]", element.to_lowercase()),
            None => name.to_lowercase(),
        },
    }
}

fn string(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Lit(literal) => match &literal.lit {
            Lit::CStr(string) => Some(text(string)),
            _ => None,
        },
        _ => None,
    }
}

fn text(string: &LitCStr) -> String {
    string.value().into_string().unwrap()
}
