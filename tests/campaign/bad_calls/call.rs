//! Generates SQL statements that call awty's functions with random arguments. The same seed always gives the same
//! statement.

use super::signatures::{Argument, Function};
use super::values::{any, sound};
use crate::random::Random;

pub fn call(functions: &[Function], random: &mut Random) -> String {
    let function = pick(functions, random);
    let bad = [0, 0, 100, 150, 400, 1000][random.below(6) as usize];
    let value = |argument: &Argument, random: &mut Random| {
        if random.per_mille(bad) { any(argument, random) } else { sound(argument, random) }
    };
    let all = &function.arguments;
    let mut values: Vec<String> = Vec::new();
    let positional = match random.below(10) {
        0 => random.below(all.len() as u64 + 2) as usize,
        1 => all.len(),
        _ => first_without_default(&function.name).min(all.len()),
    };
    for place in 0..positional {
        values.push(all.get(place).map_or("NULL".into(), |argument| value(argument, random)));
    }
    for argument in all.iter().skip(positional) {
        let given = random.per_mille(if matches!(argument.name.as_str(), "after") { 700 } else { 150 });
        if given && !argument.name.is_empty() {
            values.push(format!("{} => {}", ident(&argument.name), value(argument, random)));
        }
    }
    match random.below(200) {
        0 => values.push("nonsense => 1".into()),
        1 => values.extend(values.clone().last().cloned()),
        2 => values.reverse(),
        _ => {}
    }
    let called = format!("{}({})", function.name, values.join(", "));
    match random.below(20) {
        0 => format!("SELECT * FROM {called}"),
        1 => format!("SELECT {called} FROM generate_series(1, 3)"),
        2 => format!("SELECT WHERE {called} IS NOT NULL"),
        3 => format!("SELECT count({called}), max(x) FROM generate_series(1, 2) AS x GROUP BY {called}::text"),
        4 => format!("EXPLAIN (ANALYZE, COSTS off, TIMING off) SELECT {called}"),
        5 => format!("WITH x AS MATERIALIZED (SELECT {called} AS x) SELECT x FROM x UNION ALL SELECT x FROM x"),
        6 if random.per_mille(100) => format!("CALL {called}"),
        7 => {
            let names: Vec<String> = (0..positional).map(|place| format!("v{place}")).collect();
            if names.is_empty() || positional != values.len() {
                return format!("SELECT {called}");
            }
            let (row, names) = (values.join(", "), names.join(", "));
            format!("SELECT {}({names}) FROM (SELECT {row} UNION ALL SELECT {row}) AS v({names})", function.name)
        }
        _ => format!("SELECT {called}"),
    }
}

fn pick<'a>(functions: &'a [Function], random: &mut Random) -> &'a Function {
    let often = ["awty.register", "awty.schedule", "awty.alter"];
    loop {
        let function = random.pick(functions);
        let takes_away = matches!(function.name.as_str(), "awty.unregister" | "awty.pause");
        if often.contains(&function.name.as_str()) || random.per_mille(if takes_away { 150 } else { 400 }) {
            return function;
        }
    }
}

fn first_without_default(function: &str) -> usize {
    match function {
        "awty.register" | "awty.allow" | "awty.disallow" | "awty.cancel" => 2,
        "awty.schedule" => 3,
        _ => 1,
    }
}

pub fn ident(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
