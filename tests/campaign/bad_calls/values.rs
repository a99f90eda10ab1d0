use super::signatures::Argument;
use crate::random::Random;

#[rustfmt::skip]
const TEXTS: &[&str] = &[
    "''", "' '", "'.'", "'..'", "'a.b.c'", "'garbage.'", "'.ok'", "'\"'", "'\"\"'", "'\"\".\"\"'", "'\"unclosed'", "'\"a\".\"b\"c'",
    "''''", "'%s %n %1$s {} {0}'", r"E'\x01\x02\x7f\x1b[2J'", r"E'line\nbreak\r\ttab'", r"'\'''", r"U&'\202E\FEFF\+01F600'",
    r"U&'cafe\0301'", "'支払い 🕐'", "'überfällig'", "repeat('x', 63)", "repeat('x', 64)", "repeat('ü', 31) || 'x'",
    "repeat('ü', 32)", "repeat('x', 255)", "repeat('x', 256)", "repeat('x', 1024)", "repeat('x', 1025)", "repeat('🕐', 300)",
    "repeat('x', 1000000)", "repeat('\"', 10000)", "repeat('.', 10000)", "'; DROP TABLE garbage.inbox; --'", "'NULL'", "'infinity'",
    "'-1'", "'0'", "'4294967295'", "'99999999999999999999'", "'pg_catalog.now'", "'awty.schedule'", "'garbage.ok(awty.future_job)'",
    "'pg_temp.f'", "'information_schema.x'", "'$1'", "'{}'", "'{NULL}'", "'[]'", "'()'", "'-'", "'public'", "'none'", "'current_user'",
    "chr(1) || chr(127)", "chr(1114111)", "chr(0)", "convert_from('\\xff00'::bytea, 'LATIN1')", "convert_from('\\xc3'::bytea, 'UTF8')",
    "current_setting('search_path')", "(SELECT string_agg(chr(i), '') FROM generate_series(1, 255) AS i)", "NULL::text || 'x'",
];
#[rustfmt::skip]
const TIMES: &[&str] = &[
    "'infinity'", "'-infinity'", "'epoch'", "'now'", "'tomorrow'", "'allballs'", "'4713-01-01 BC'", "'4714-11-24 00:00:00+00 BC'",
    "'4714-11-23 BC'", "'0001-01-01 BC'", "'294276-12-31 23:59:59.999999+00'", "'294277-01-01'", "'262143-01-01 00:00:00+00'",
    "'262142-12-31 23:59:59.999999+00'", "'262143-12-31 23:59:59.999999+00'", "'-262144-01-01'", "'9999-12-31 23:59:60+00'",
    "'2026-03-29 02:30 Europe/Berlin'", "'2026-10-25 02:30 Europe/Berlin'", "'2026-02-30'", "'2038-01-19 03:14:07+00'",
    "'2038-01-19 03:14:08+00'", "'1969-12-31 23:59:59.999999+00'", "'2262-04-11 23:47:16.854776+00'", "'2000-01-01 00:00:00+15:59:59'",
    "'x'", "''", "now() + interval '366 days'", "now() - interval '1 us'", "clock_timestamp() + interval '100 years'",
];
#[rustfmt::skip]
const INTERVALS: &[&str] = &[
    "'0'", "'-1 us'", "'1 us'", "'999 us'", "'1 ms'", "'-1 day'", "'1 day'", "'24:00:00'", "'86400 s'", "'86401 s'", "'7 s'",
    "'1 month'", "'1 month -30 days'", "'1 month -31 days'", "'1 year -365 days -6 hours'", "'178000000 years'",
    "'-178000000 years'", "'2147483647 months'", "'-2147483648 months'", "'2147483647 days'", "'-2147483648 days'",
    "'9223372036854 s'", "'-9223372036854 s'", "'9223372036854775807 us'", "'-9223372036854775808 us'",
    "'2147483647 months 2147483647 days 9223372036854775807 us'", "'2147483647 months -2147483648 days'", "'106751991 days'",
    "'106751992 days'", "'292000 years'", "'300000 years'", "'infinity'", "'-infinity'", "'P1Y2M3DT4H'", "'x'", "''",
    "make_interval(secs => 1e12)", "now() - timestamptz '4714-11-24 00:00:00+00 BC'",
];
#[rustfmt::skip]
const INTEGERS: &[&str] = &[
    "0", "1", "-1", "'1'", "5", "1000", "1001", "1000000", "1000001", "2147483647", "-2147483648", "2147483648", "-2147483649",
    "9223372036854775807", "'-9223372036854775808'", "'9223372036854775808'", "1e300", "'NaN'::float8", "'x'", "''", "0.5", "1/0",
];
#[rustfmt::skip]
const BOOLEANS: &[&str] = &["true", "false", "'maybe'", "''", "1", "'t'"];
#[rustfmt::skip]
const JSONS: &[&str] = &[
    "'null'", "'{}'", "'[]'", "'1'", "'\"\"'", "'true'", "'{\"a\": 1, \"a\": 2}'", "'1e400'", "'1e131071'", "'-0'", r#"'"\u0000"'"#,
    r#"'{"\u0000": 1}'"#, r#"'"\ud83d"'"#, r#"'"\ud83d\ude04"'"#, "'{'", "''", "'nul'", "repeat('[', 1000) || repeat(']', 1000)",
    "repeat('[', 6000) || repeat(']', 6000)", "repeat('{\"a\":', 1000000) || '1'", "repeat('[', 1000000) || repeat(']', 1000000)",
    "to_jsonb(repeat('x', 1048500))", "to_jsonb(repeat('x', 1048576))", "to_jsonb(repeat('x', 8000000))",
    "(SELECT jsonb_agg(i) FROM generate_series(1, 10000) AS i)", "(SELECT jsonb_object_agg(i, repeat('🕐', 10)) FROM generate_series(1, 1000) AS i)",
    "jsonb_build_object('call', 'SELECT awty.schedule(NULL, NULL, NULL)')", "jsonb_build_object('call', 'SELECT 1/0')",
    "jsonb_build_object('call', 'SELECT awty.unregister(''j1'')')", "jsonb_build_object('call', 'SELECT awty.cancel(''thing'', ''1'')')",
    "jsonb_build_object('call', 'SELECT awty.alter(''j2'', reset => ''{slot}'')')", "(SELECT to_jsonb(j) FROM awty.job AS j LIMIT 1)",
];
#[rustfmt::skip]
const ROLES: &[&str] = &["garbage_owner", "garbage_user", "garbage_stranger", "garbage_nobody", "garbage_nologin", "postgres", "pg_monitor"];

const POLYMORPHIC: &[&str] =
    &["integer", "bigint", "timestamptz", "interval", "jsonb", "boolean", "name", "text", "uuid", "integer[]"];

pub fn any(argument: &Argument, random: &mut Random) -> String {
    if matches!(argument.type_name.as_str(), "anynonarray" | "\"any\"") {
        let (name, type_name) = (argument.name.clone(), (*random.pick(POLYMORPHIC)).into());
        return any(&Argument { name, type_name, element: None, composite: false }, random);
    }
    let value = match (&argument.element, argument.composite) {
        _ if random.per_mille(120) => "NULL".into(),
        (Some(element), _) => array(element, random),
        (None, true) => {
            let row = format!("(SELECT x FROM {} AS x LIMIT 1)", argument.type_name);
            random.pick(&[row, "'(,,,,,,,,,,,)'".into(), "'()'".into(), "'('".into(), "ROW()".into()]).clone()
        }
        (None, false) => scalar(&argument.type_name, random).into(),
    };
    match random.below(20) {
        0 => value,
        1 => format!(
            "CAST({value} AS {})",
            random.pick(&["text", "integer", "name", "jsonb", "interval", "timestamptz", "text[]"])
        ),
        _ => format!("CAST({value} AS {})", argument.type_name),
    }
}

fn scalar(type_name: &str, random: &mut Random) -> &'static str {
    let values: &[&'static str] = match type_name {
        "timestamp with time zone" | "timestamp without time zone" | "date" => TIMES,
        "interval" => INTERVALS,
        "smallint" | "integer" | "bigint" | "oid" | "numeric" | "double precision" => INTEGERS,
        "boolean" => BOOLEANS,
        "json" | "jsonb" => JSONS,
        _ => TEXTS,
    };
    values[random.below(values.len() as u64) as usize]
}

fn array(element: &str, random: &mut Random) -> String {
    let one = scalar(element, random);
    let other = scalar(element, random);
    match random.below(8) {
        0 => "'{}'".into(),
        1 => "'{NULL}'".into(),
        2 => "'[5:6]={slot,timeout}'".into(),
        3 => "'{{slot,timeout},{max_checks,retry_after}}'".into(),
        4 => format!("array_fill(CAST({one} AS {element}), ARRAY[10000])"),
        5 => format!("array_fill(CAST({one} AS {element}), ARRAY[2, 0, 2])"),
        6 => format!("array_fill(CAST({one} AS {element}), ARRAY[2, 1, 2], ARRAY[-7, 2147483646, 0])"),
        _ => format!("ARRAY[CAST({one} AS {element}), CAST({other} AS {element}), NULL]"),
    }
}

pub fn sound(argument: &Argument, random: &mut Random) -> String {
    let quoted = |words: &[&str], random: &mut Random| format!("'{}'", random.pick(words));
    match argument.name.as_str() {
        "job" if random.per_mille(300) => {
            format!("(SELECT job FROM awty.job ORDER BY job OFFSET {} LIMIT 1)", random.below(8))
        }
        "job" => quoted(&["j1", "j2", "j3", "j4", "j5", "j6", "J \"odd\".j", "支払い"], random),
        "function" => quoted(
            &[
                "garbage.ok",
                "garbage.ok",
                "garbage.again",
                "garbage.all_of_them",
                "garbage.too_few",
                "garbage.never",
                "garbage.fails",
                "garbage.obeys",
                "garbage.obeys",
                "garbage.\"Odd \"\".f()\"",
                "garbage.lesser",
                "garbage.set_of",
                "garbage.of_text",
                "garbage.to_text",
                "garbage.both",
                "garbage.procedure",
                "garbage.forbidden",
                "ok",
            ],
            random,
        ),
        "entity_name" => quoted(&["thing", "thing", "orders"], random),
        "entity_key" => format!("'{}'", random.below(40)),
        "at" => format!("clock_timestamp() + {} * interval '100 ms'", random.below(30)),
        "after" => quoted(&["0", "1 s", "1500 ms", "2 s", "1 min"], random),
        "args" => quoted(&["{}", "null", "{\"call\": \"SELECT awty.next_slot(NULL)\"}"], random),
        "on_conflict" => quoted(&["replace", "keep", "earliest", "latest", "error"], random),
        "slot" => quoted(&["1 s", "2 s", "10 s"], random),
        "timeout" => quoted(&["1 s", "500 ms", "10 s"], random),
        "max_checks" | "max_attempts" => format!("{}", 1 + random.below(3)),
        "max_horizon" => quoted(&["1 s", "1 day", "36525 days"], random),
        "retry_after" => quoted(&["1 s", "2 s"], random),
        "on_missed" => quoted(&["run", "next_slot", "skip"], random),
        "max_lateness" => quoted(&["1 s", "1 day"], random),
        "keep_history" => quoted(&["all", "ran", "none"], random),
        "run_as" | "role" => quoted(ROLES, random),
        "reset" => quoted(&["{slot}", "{timeout,max_checks}", "{max_lateness,on_missed}", "{}"], random),
        "id" => format!("(SELECT id FROM awty.future_job ORDER BY id OFFSET {} LIMIT 1)", random.below(10)),
        "t" => "clock_timestamp()".into(),
        _ => any(argument, random),
    }
}
