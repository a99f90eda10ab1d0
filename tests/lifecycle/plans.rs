//! Each statement must use an index, even in a plan that PostgreSQL made for empty tables. PostgreSQL keeps such a plan
//! until ANALYZE, although the tables grow.

use crate::statements::{Statement, Statements};
use awty_testkit::Cluster;
use awty_testkit::postgres::Client;
use serde_json::Value;

const LARGE: &[&str] =
    &["future_job", "future_job_history", "future_job_history_default", "check_stat", "job", "repetition"];
const SORTED: &[(&str, &str)] = &[
    ("future_job::describe", "what has just ended without a run, by job"),
    ("check_stat::select_suspects", "by crashes and exits, of which there are few"),
    ("future_job::lock_job", "by entity, as other callers lock them"),
    ("many::select_all", "by the order of the keys that it is given"),
    ("many::lock_in_order", "by the order of the ids that it is given"),
    ("many::select_of_entities", "by the order of the keys that it is given"),
    ("travel::first", "one row of each job of a role"),
    ("repetition::lock_users", "the pending checks of a calendar, as other callers lock them"),
    ("rule_check::lock_all", "by the order of the keys that it is given"),
    ("alert::lock", "by the order of the keys that it is given"),
    ("job::of_role", "the jobs of a role, at most ten thousand"),
    ("lease::insert_all", "what is handed out, at most a thousand"),
    ("target::walk", "the targets that were walked to, in that order"),
    ("hold::first_end", "one row of each job"),
    ("hold::jobs_passed", "the jobs that have holds to end"),
];
/// Statements that may scan an index without a condition, because the index is small or the scan stops early.
const WHOLE: &[(&str, &str)] = &[
    ("check_stat::select_suspects", "check_stat_suspects_idx"),
    ("inspected::select_first_per_role", "job_role_idx"),
    ("inspected::select_orphans", "job_pkey"),
    ("inspected::select_roleless", "job_role_idx"),
    ("repetition::remove_job", "repetition_pkey"),
    ("repetition::is_any_of_job", "repetition_pkey"), // runs once for a new job
    ("hold::first_end", "job_pkey"),
    ("hold::jobs_passed", "job_role_idx"),
    ("job_stat::all", "job_pkey"),                                // runs once after a start
    ("job_stat::gone", "job_pkey"),                               // runs once a minute
    ("right::all", "job_pkey"),                                   // runs once for each policy of a statement
    ("origin::select_hold", "job_role_idx"),                      // stops at the first row
    ("origin::select_hold", "future_job_one_per_job_and_entity"), // stops at the first row
];
/// Statements that each run or each call executes, each with its table and the required index.
const HOT: &[(&str, &str, &str)] = &[
    ("future_job::select_due", "future_job", "future_job_due_idx"),
    ("future_job::select_next", "future_job", "future_job_due_idx"),
    ("inspected::select_first_per_role", "future_job", "future_job_due_idx"),
    ("future_job::lock_one", "future_job", "future_job_one_per_job_and_entity"),
    ("future_job::select_jobs_of_entity", "future_job", "future_job_one_per_job_and_entity"),
    ("future_job::locate", "future_job", "future_job_pkey"),
    ("future_job::again", "future_job", "future_job_pkey"),
    ("future_job::put_at", "future_job", "future_job_pkey"),
    ("future_job::delete_all", "future_job", "future_job_pkey"),
    ("many::select_all", "future_job", "future_job_one_per_job_and_entity"),
    ("many::select_of_entities", "future_job", "future_job_one_per_job_and_entity"),
    ("many::select_of_entities", "repetition", "repetition_one_per_job_and_entity"),
    ("repetition::select_of_checks", "future_job", "future_job_pkey"),
    ("repetition::select_of_checks", "repetition", "repetition_one_per_job_and_entity"),
    ("repetition::select_of_row", "repetition", "repetition_one_per_job_and_entity"),
    ("hold::in_force", "hold", "hold_pkey"),
    ("hold::first_end", "hold", "hold_until_idx"),
    ("hold::jobs_passed", "hold", "hold_until_idx"),
    ("hold::passed", "hold", "hold_until_idx"),
    ("repetition::insert_occurrences", "repetition", "repetition_pkey"),
    ("repetition::insert_occurrence", "repetition", "repetition_pkey"),
    ("history::archive_run", "future_job", "future_job_pkey"),
    ("history::archive_run", "check_stat", "check_stat_pkey"),
    ("history::archive_without_run", "future_job", "future_job_pkey"),
    ("history::archive_without_run", "check_stat", "check_stat_pkey"),
    ("check_stat::remove", "check_stat", "check_stat_pkey"),
    ("check_stat::select_suspects", "future_job", "future_job_pkey"),
    ("check_stat::select_suspects", "check_stat", "check_stat_suspects_idx"),
    ("check_stat::hold", "future_job", "future_job_pkey"),
    ("job::select_one", "job", "job_pkey"),
    ("lease::due", "future_job", "future_job_due_idx"),
    ("lease::due", "lease", "lease_one_per_check"),
    ("lease::ahead", "future_job", "future_job_due_idx"),
    ("live::read", "lease", "lease_expiry_idx"),
    ("lease::given", "lease", "lease_pkey"),
    ("lease::end_all", "lease", "lease_pkey"),
    ("rule_trigger::select_named_triggers", "pg_trigger", "pg_trigger_tgrelid_tgname_index"),
    ("target::walk", "future_job", "future_job_target_idx"),
    ("target::select_due_of", "future_job", "future_job_target_idx"),
    ("target::limits", "target", "target_pkey"),
    ("target::limits", "bucket", "bucket_pkey"),
    ("target::limits", "breaker", "breaker_pkey"),
    ("target::select_breakers", "breaker", "breaker_pkey"),
    ("lease::insert_all", "future_job", "future_job_pkey"),
    ("in_flight::write", "in_flight", "in_flight_pkey"),
];

#[test]
fn every_statement_is_planned_by_index() {
    let cluster = Cluster::builder().start();
    cluster.create_extension("postgres");
    let statements = Statements::read();
    assert!(statements.all.len() > 40 && statements.settings.len() > 5, "statements are written in another way by now");
    let mut client = cluster.superuser("postgres");
    client.batch_execute("SET search_path = pg_catalog, pg_temp; SET plan_cache_mode = force_generic_plan").unwrap();
    for (name, value) in &statements.settings {
        client.batch_execute(&format!("SET {name} = {value}")).unwrap();
    }
    let mut faults = Vec::new();
    for statement in &statements.all {
        let plan = Plan::of(&mut client, statement);
        faults.extend(plan.faults(&mut client).into_iter().map(|fault| format!("{}: {fault}", statement.name)));
    }
    for (name, ..) in HOT {
        if !statements.all.iter().any(|statement| statement.name == *name) {
            faults.push(format!("{name}: is gone"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

struct Scan {
    table: String,
    index: Option<String>,
    condition: Option<String>,
    is_bounded: bool,
}

struct Plan<'a> {
    statement: &'a str,
    scans: Vec<Scan>,
    sorts: bool,
    /// True if the plan evaluates `NOT IN` for an array but builds no hash table. PostgreSQL then compares each row
    /// with each value.
    needs_hash: bool,
}

impl<'a> Plan<'a> {
    fn of(client: &mut Client, statement: &'a Statement) -> Self {
        let (types, nulls) = match statement.types.len() {
            0 => (String::new(), String::new()),
            n => (format!("({})", statement.types.join(", ")), format!("({})", vec!["NULL"; n].join(", "))),
        };
        let prepare = format!("PREPARE s{types} AS {}", statement.sql);
        client.batch_execute(&prepare).unwrap_or_else(|error| panic!("{}: {error:?}", statement.name));
        let explain = format!("EXPLAIN (COSTS OFF, FORMAT JSON) EXECUTE s{nulls}");
        let plan: Value = client.query_one(&explain, &[]).unwrap().get(0);
        client.batch_execute("DEALLOCATE s").unwrap();
        let needs_hash = statement.sql.contains("NOT IN (SELECT pg_catalog.unnest(");
        let mut found = Self { statement: &statement.name, scans: Vec::new(), sorts: false, needs_hash };
        found.read(&plan, false);
        found
    }

    fn read(&mut self, node: &Value, is_bounded: bool) {
        let Value::Object(fields) = node else {
            node.as_array().into_iter().flatten().for_each(|inner| self.read(inner, is_bounded));
            return;
        };
        let text = |field: &str| fields.get(field).and_then(Value::as_str);
        let kind = text("Node Type").unwrap_or_default();
        let reads_all_first = kind.ends_with("Sort") || kind == "Aggregate";
        let is_bounded = kind == "Limit" || is_bounded && !reads_all_first;
        self.sorts |= kind.ends_with("Sort");
        self.needs_hash &= !text("Filter").is_some_and(|filter| filter.contains("hashed SubPlan"));
        // A Sample Scan reads only the share of the pages that TABLESAMPLE names.
        let reads = kind.ends_with("Scan") && kind != "Sample Scan";
        if let (true, Some(table)) = (reads, text("Relation Name")) {
            let own = |field| text(field).map(str::to_owned);
            self.scans.push(Scan {
                table: table.to_owned(),
                index: own("Index Name"),
                condition: own("Index Cond"),
                is_bounded,
            });
        } else if let (Some(table), Some(index)) = (text("Relation Name"), fields.get("Conflict Arbiter Indexes")) {
            let index = index[0].as_str().map(str::to_owned);
            self.scans.push(Scan { table: table.to_owned(), index, condition: None, is_bounded: true });
        }
        fields.values().for_each(|inner| self.read(inner, is_bounded));
    }

    fn faults(&self, client: &mut Client) -> Vec<String> {
        let mut faults = Vec::new();
        let large = || self.scans.iter().filter(|scan| LARGE.contains(&scan.table.as_str()));
        for Scan { table, index, condition, is_bounded } in large() {
            match (index, condition) {
                (None, _) => faults.push(format!("reads all of {table}")),
                (Some(index), Some(condition)) => {
                    let first_column =
                        "SELECT pg_get_indexdef(oid, 1, true) FROM pg_class WHERE relname = $1::text::name";
                    let leading: String = client.query_one(first_column, &[index]).unwrap().get(0);
                    if !condition.contains(&leading) {
                        faults.push(format!("reads all of {index} for {condition}"));
                    }
                    if index.ends_with("one_per_job_and_entity") && !condition.contains("entity_key") {
                        faults.push(format!("reads all entities of a kind in {index} for {condition}"));
                    }
                }
                (Some(index), None) if !is_bounded && !WHOLE.contains(&(self.statement, index.as_str())) => {
                    faults.push(format!("reads all of {index}"));
                }
                (Some(_), None) => {}
            }
        }
        if self.needs_hash {
            faults.push("compares each row with each value of an array".into());
        }
        if self.sorts && large().next().is_some() && !SORTED.iter().any(|(name, _)| *name == self.statement) {
            faults.push("sorts what an index could give in order".into());
        }
        for (_, table, index) in HOT.iter().filter(|(name, ..)| *name == self.statement) {
            let used: Vec<_> = self.scans.iter().filter(|scan| scan.table == *table).map(|scan| &scan.index).collect();
            if used.is_empty() || used.iter().any(|used| used.as_deref() != Some(*index)) {
                faults.push(format!("reads {table} by {used:?} instead of {index}"));
            }
        }
        faults
    }
}
