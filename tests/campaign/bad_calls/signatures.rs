//! Reads awty's functions from the catalog, so that new functions are also tested.

use awty_testkit::postgres::{Client, Error};

pub struct Argument {
    pub name: String,
    pub type_name: String,
    pub element: Option<String>,
    pub composite: bool,
}

pub struct Function {
    pub name: String,
    pub arguments: Vec<Argument>,
}

pub fn read(client: &mut Client) -> Result<Vec<Function>, Error> {
    let sql = "
        SELECT p.oid, format('%I.%I', n.nspname, p.proname), coalesce(p.proargnames[a.position], ''),
               format_type(t.oid, NULL), format_type(nullif(t.typelem, 0), NULL), t.typcategory::text, t.typtype::text
        FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
        LEFT JOIN LATERAL unnest(p.proargtypes) WITH ORDINALITY AS a(type, position) ON true
        LEFT JOIN pg_type AS t ON t.oid = a.type
        WHERE n.nspname = 'awty' AND p.prokind <> 'a' ORDER BY p.oid, a.position";
    let mut functions: Vec<(u32, Function)> = Vec::new();
    for row in client.query(sql, &[])? {
        let oid = row.get(0);
        if functions.last().is_none_or(|(last, _)| *last != oid) {
            functions.push((oid, Function { name: row.get(1), arguments: Vec::new() }));
        }
        let (Some(type_name), Some((_, function))) = (row.get(3), functions.last_mut()) else { continue };
        let [category, kind] = [5, 6].map(|column| row.get::<_, Option<String>>(column).unwrap_or_default());
        let element = row.get::<_, Option<String>>(4).filter(|_| category == "A");
        function.arguments.push(Argument { name: row.get(2), type_name, element, composite: kind == "c" });
    }
    Ok(functions.into_iter().map(|(_, function)| function).collect())
}
