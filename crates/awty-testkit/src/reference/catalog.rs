use crate::markdown::{WIDTH, paragraph, sentence, table};
use postgres::{Client, Row};
use std::fmt::Write as _;

pub struct Function {
    pub name: String,
    arguments: Vec<String>,
    returns: String,
    comment: String,
    pub defaults: Vec<(String, String)>,
}

/// Text in the COMMENT of each overload. The generator finds overloads by the text, so that the reference does not list
/// each overload.
const OVERLOAD: &str = "whose key is of another type than text";

const FUNCTIONS: &str = "
    SELECT p.proname::text, coalesce(obj_description(p.oid, 'pg_proc'), ''),
        coalesce((SELECT array_agg(concat_ws(' ', CASE a.mode WHEN 'v' THEN 'VARIADIC' END, a.name, format_type(a.type, NULL)) ORDER BY a.n)
            FROM unnest(coalesce(p.proallargtypes, p.proargtypes::oid[]), p.proargnames, p.proargmodes) WITH ORDINALITY AS a (type, name, mode, n)
            WHERE coalesce(a.mode, 'i') IN ('i', 'v')), '{}'),
        coalesce((SELECT array_agg(coalesce(a.name, '') ORDER BY a.n)
            FROM unnest(coalesce(p.proallargtypes, p.proargtypes::oid[]), p.proargnames, p.proargmodes) WITH ORDINALITY AS a (type, name, mode, n)
            WHERE coalesce(a.mode, 'i') IN ('i', 'v')), '{}'),
        ARRAY(SELECT pg_get_function_arg_default(p.oid, n) FROM generate_series(1, p.pronargs) AS n),
        pg_get_function_result(p.oid)
    FROM pg_proc AS p WHERE p.pronamespace = $1::text::regnamespace AND p.prorettype <> 'trigger'::regtype ORDER BY 1, p.pronargs, p.oid";

pub fn functions(client: &mut Client, schema: &str) -> Vec<Function> {
    let tried = columns(client, "awty.tried");
    let returned = tried.iter().map(|row| format!("{} {}", text(row, 0), short(&text(row, 1)))).collect::<Vec<_>>();
    client.query(FUNCTIONS, &[&schema]).expect("the functions").iter().map(|row| read(row, &returned)).collect()
}

fn read(row: &Row, tried: &[String]) -> Function {
    let (declared, names): (Vec<String>, Vec<String>) = (row.get(2), row.get(3));
    let defaults: Vec<Option<String>> = row.get(4);
    let argument = |(declared, default): (&String, &Option<String>)| match default {
        Some(default) => format!("{} = {}", short(declared), value(default)),
        None => short(declared),
    };
    let returns = match text(row, 5).as_str() {
        "SETOF awty.tried" => format!("TABLE({})", tried.join(", ")),
        returns => short(returns),
    };
    Function {
        name: text(row, 0),
        arguments: declared.iter().zip(&defaults).map(argument).collect(),
        returns,
        comment: text(row, 1),
        defaults: names
            .into_iter()
            .zip(defaults)
            .filter_map(|(name, default)| Some((name, value(&default?))))
            .collect(),
    }
}

fn short(text: &str) -> String {
    text.replace("timestamp with time zone", "timestamptz").replace("double precision", "float8")
}

fn value(default: &str) -> String {
    match default.split_once("::") {
        Some((value, _)) => value.to_owned(),
        None => default.to_owned(),
    }
}

fn text(row: &Row, column: usize) -> String {
    row.get::<_, Option<String>>(column).unwrap_or_default()
}

pub fn function(functions: &[Function], name: &str) -> String {
    let mut section = format!("\n#### {name}\n");
    let all = functions.iter().filter(|function| function.name == name);
    let (same, own): (Vec<&Function>, Vec<&Function>) = all.partition(|f| f.comment.contains(OVERLOAD));
    assert!(!own.is_empty(), "function {name} is missing or has no COMMENT");
    for function in own {
        let head = format!("{name}(");
        let _ = write!(section, "\n```\n{}\n```\n", fill(&head, &function.arguments, &function.returns));
        assert!(!function.comment.is_empty(), "{name} has no COMMENT");
        section += &paragraph(&sentence(&function.comment));
    }
    if !same.is_empty() {
        section += &paragraph("`entity_key` may also have any other type that is not an array.");
    }
    section
}

fn fill(head: &str, arguments: &[String], returns: &str) -> String {
    let one = format!("{head}{}) → {returns}", arguments.join(", "));
    if one.chars().count() <= WIDTH {
        return one;
    }
    let mut lines = vec![head.to_owned()];
    for (n, argument) in arguments.iter().enumerate() {
        let piece = if n + 1 < arguments.len() { format!("{argument},") } else { argument.clone() };
        add(&mut lines, &piece);
    }
    lines.push(") →".to_owned());
    for word in returns.split(' ') {
        add(&mut lines, word);
    }
    lines.join("\n")
}

fn add(lines: &mut Vec<String>, piece: &str) {
    match lines.last_mut() {
        Some(line) if !line.ends_with('(') && line.chars().count() + 1 + piece.chars().count() <= WIDTH => {
            *line += &format!(" {piece}")
        }
        _ => lines.push(format!("  {piece}")),
    }
}

fn columns(client: &mut Client, relation: &str) -> Vec<Row> {
    let columns =
        "SELECT attname::text, format_type(atttypid, atttypmod), col_description(attrelid, attnum) FROM pg_attribute
        WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum";
    client.query(columns, &[&relation]).expect("the columns")
}

pub fn relations(client: &mut Client, schema: &str) -> String {
    let relations = "SELECT c.relname::text, obj_description(c.oid, 'pg_class'), c.relkind::text FROM pg_class AS c
        WHERE c.relnamespace = $1::text::regnamespace AND c.relkind IN ('r', 'p', 'v', 'c') AND NOT c.relispartition
        ORDER BY c.relkind = 'c', c.relname";
    let mut sections = String::new();
    for row in client.query(relations, &[&schema]).expect("the tables and views") {
        let name = text(&row, 0);
        let kind = match text(&row, 2).as_str() {
            "v" => "View",
            "c" => "Type",
            _ => "Table",
        };
        let _ = write!(sections, "\n#### {schema}.{name}\n");
        let comment: Option<String> = row.get(1);
        sections += &paragraph(&format!("{kind}. {}", comment.as_deref().map(sentence).unwrap_or_default()));
        let rows: Vec<Vec<String>> = columns(client, &format!("{schema}.{name}"))
            .iter()
            .map(|row| vec![format!("`{}`", text(row, 0)), short(&text(row, 1)), text(row, 2)])
            .collect();
        sections += &table(&["column", "type", "meaning"], &rows);
    }
    sections
}

pub fn options(client: &mut Client, functions: &[Function]) -> String {
    let register = functions.iter().find(|function| function.name == "register").expect("awty.register()");
    let columns = columns(client, "awty.job");
    let meaning = |option: &str| {
        let column = if option == "run_as" { "role" } else { option };
        columns.iter().find(|row| text(row, 0) == column).map(|row| text(row, 2))
    };
    let rows: Vec<Vec<String>> = register
        .defaults
        .iter()
        .filter_map(|(option, default)| Some(vec![format!("`{option}`"), format!("`{default}`"), meaning(option)?]))
        .collect();
    table(&["option", "default", "meaning"], &rows)
}

pub fn settings(client: &mut Client) -> String {
    // Shows the default of each setting (`boot_val`), because the test cluster's configuration file changes some
    // current values.
    let settings =
        "SELECT name, concat(boot_val, ' ', unit), CASE vartype WHEN 'enum' THEN array_to_string(enumvals, ', ')
            WHEN 'bool' THEN 'on, off' ELSE concat(min_val, ' to ', max_val, ' ', unit) END,
            context, concat_ws(' ', short_desc, extra_desc)
        FROM pg_settings WHERE name LIKE 'awty.%' ORDER BY name";
    let rows: Vec<Vec<String>> = client
        .query(settings, &[])
        .expect("the settings")
        .iter()
        .map(|row| {
            let cell = |column| text(row, column).trim().to_owned();
            vec![format!("`{}`", cell(0)), cell(1), cell(2), cell(3), cell(4)]
        })
        .collect();
    table(&["setting", "default", "values", "context", "meaning"], &rows)
}
