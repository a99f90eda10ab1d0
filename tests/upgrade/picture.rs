use awty_testkit::Cluster;
use std::collections::BTreeSet;

pub struct Picture {
    database: String,
    lines: BTreeSet<String>,
    pub last_id: i64,
}

/// Omits the row types of tables, and an owner's rights on its own objects, because both differ between versions.
const LINES: &str = "
    SELECT 'job ' || t::text FROM awty.job AS t
    UNION ALL SELECT 'pending ' || t::text FROM awty.future_job AS t
    UNION ALL SELECT 'ended ' || tableoid::regclass::text || t::text FROM awty.future_job_history AS t
    UNION ALL SELECT 'check_stat ' || t::text FROM awty_internal.check_stat AS t
    UNION ALL SELECT 'hold ' || t::text FROM awty_internal.hold AS t
    UNION ALL SELECT 'calendar ' || t::text FROM awty.calendar AS t
    UNION ALL SELECT 'rule ' || t::text FROM awty.rule AS t
    UNION ALL SELECT 'stop ' || t::text FROM awty_internal.stop AS t
    UNION ALL SELECT 'alert ' || t::text FROM awty.alert AS t
    UNION ALL SELECT 'repetition ' || t::text FROM awty_internal.repetition AS t
    UNION ALL SELECT 'origin ' || t::text FROM awty_internal.origin AS t
    UNION ALL SELECT 'identity ' || last_value::text FROM awty_internal.identity
    UNION ALL SELECT 'ids ' || last_value::text FROM awty.future_job_id_seq
    UNION ALL SELECT 'partition ' || c.relname || ' ' || pg_get_expr(c.relpartbound, c.oid) || c.relrowsecurity::text
        FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid WHERE i.inhparent = 'awty.future_job_history'::regclass
    UNION ALL SELECT 'index ' || i.indexdef FROM pg_indexes AS i WHERE i.schemaname = 'awty'
    UNION ALL SELECT concat_ws(' ', 'right of', CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, a.privilege_type,
            c.relname)
        FROM pg_class AS c, aclexplode(c.relacl) AS a WHERE c.relnamespace = ANY ('{awty,awty_internal}'::regnamespace[]) AND a.grantee <> c.relowner
    UNION ALL SELECT 'member ' || pg_describe_object(classid, objid, objsubid) FROM pg_depend
        WHERE deptype = 'e' AND classid <> 'pg_type'::regclass AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'awty')
    UNION ALL SELECT 'dumped ' || t.oid::regclass::text FROM pg_extension AS e, unnest(e.extconfig) AS t (oid)
        WHERE e.extname = 'awty'
    UNION ALL SELECT 'effect ' || t::text FROM camp.effect AS t";

impl Picture {
    pub fn of(cluster: &Cluster, database: &str) -> Self {
        let has_load: bool = cluster.value(database, "SELECT to_regclass('camp.effect') IS NOT NULL");
        let sql = if has_load { LINES } else { LINES.rsplit_once("UNION ALL").unwrap().0 };
        let rows = cluster.superuser(database).query(sql, &[]).unwrap();
        let lines = rows.iter().map(|row| row.get(0)).collect();
        let last_id = cluster.value(database, "SELECT last_value FROM awty.future_job_id_seq");
        Self { database: database.into(), lines, last_id }
    }
}

#[track_caller]
pub fn compare(before: &[Picture], after: &[Picture]) {
    for (before, after) in before.iter().zip(after) {
        let lost: Vec<&String> = before.lines.difference(&after.lines).collect();
        let new: Vec<&String> = after.lines.difference(&before.lines).collect();
        assert!(lost.is_empty() && new.is_empty(), "database {}: lost {lost:#?}, new {new:#?}", before.database);
    }
}
