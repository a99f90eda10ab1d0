//! Copies the checkout, and edits the copy so that it becomes an invented next version of awty and awty_http.
//!
//! Invariant: each change is in this file and in the upgrade script.

use awty_testkit::checkout;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock};

pub const HERE: &str = "0.1";
/// A library with the feature `next-version` works with the SQL objects of both versions (`src/version.rs`).
pub const NEXT: &str = "0.2";

pub struct Extension {
    pub name: &'static str,
    pub folder: &'static str,
    pub upgrade: &'static str,
    pub file: &'static str,
}

pub const AWTY: Extension =
    Extension { name: "awty", folder: "sql", upgrade: include_str!("awty--0.1--0.2.sql"), file: "11_check.sql" };
pub const HTTP: Extension = Extension {
    name: "awty_http",
    folder: "http/sql",
    upgrade: include_str!("awty_http--0.1--0.2.sql"),
    file: "30_schedule.sql",
};

impl Extension {
    pub fn upgrade_in(&self, copy: &Path) -> PathBuf {
        copy.join(format!("{}/{}--{HERE}--{NEXT}.sql", self.folder, self.name))
    }
}

const CHANGES: &[(&str, &str, &str)] = &[
    ("Cargo.toml", "version = \"0.1.", "version = \"0.2."),
    ("awty.control", "default_version = '0.1'", "default_version = '0.2'"),
    ("http/awty_http.control", "default_version = '0.1'", "default_version = '0.2'"),
    (
        "http/sql/63_schedule_stats.sql",
        "FUNCTION awty_http_internal.counted_until(id text) RETURNS timestamptz\n    LANGUAGE plpgsql STABLE",
        "FUNCTION awty_http_internal.counted_until(id text) RETURNS timestamptz\n    LANGUAGE plpgsql VOLATILE",
    ),
    (
        "sql/11_check.sql",
        "scheduled_at    timestamptz NOT NULL,\n",
        "scheduled_at    timestamptz NOT NULL,
         priority        integer DEFAULT 0,
         CONSTRAINT future_job_priority_is_not_negative CHECK (priority >= 0),\n",
    ),
    (
        "sql/11_check.sql",
        "PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'next_slot_wrapper'",
        "PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'next_slot_wrapper'",
    ),
    (
        "sql/90_privileges.sql",
        "awty_internal.origin, awty.status FROM",
        "awty_internal.origin, awty.status, awty.label FROM",
    ),
    ("sql/90_privileges.sql", "awty_internal.identity FROM", "awty_internal.identity, awty.label_id_seq FROM"),
];

const ADDITIONS: &[(&str, &str)] = &[
    (
        "http/sql/64_team.sql",
        "ALTER TABLE awty_http_internal.endpoint ADD COLUMN team text COLLATE \"C\", ADD CONSTRAINT endpoint_team_is_not_empty CHECK (team <> '');
         COMMENT ON COLUMN awty_http_internal.endpoint.team IS 'Whose it is';
         ALTER TABLE awty_http_internal.endpoint ALTER team SET STATISTICS 0;
         CREATE INDEX endpoint_team_idx ON awty_http_internal.endpoint (team) WHERE deleted_at IS NULL;
         CREATE FUNCTION awty_http.teams() RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
             AS 'SELECT DISTINCT e.team FROM awty_http_internal.endpoint AS e';
         COMMENT ON FUNCTION awty_http.teams() IS 'Who has schedules';\n",
    ),
    (
        "sql/14_label.sql",
        "COMMENT ON COLUMN awty.future_job.priority IS 'Which comes first';
         CREATE INDEX future_job_priority_idx ON awty.future_job (priority, id) WHERE NOT held;
         COMMENT ON INDEX awty.future_job_priority_idx IS 'What comes first';
         CREATE TABLE awty.label (
             id bigint GENERATED ALWAYS AS IDENTITY,
             job text COLLATE \"C\" NOT NULL,
             CONSTRAINT label_pkey PRIMARY KEY (id)
         ) WITH (fillfactor = 80);
         COMMENT ON TABLE awty.label IS 'Labels of jobs';
         COMMENT ON COLUMN awty.label.id IS 'Number of the label';
         COMMENT ON COLUMN awty.label.job IS 'Name of the job';
         COMMENT ON SEQUENCE awty.label_id_seq IS 'Numbers of labels';
         SELECT pg_catalog.pg_extension_config_dump('awty.label', '');
         SELECT pg_catalog.pg_extension_config_dump('awty.label_id_seq', '');\n",
    ),
    (
        "sql/21_waiting.sql",
        "CREATE FUNCTION awty.waiting(job text) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
             SET search_path = pg_catalog, pg_temp
             AS 'SELECT pg_catalog.count(*) FROM awty.future_job AS f WHERE f.job OPERATOR(pg_catalog.=) waiting.job';
         COMMENT ON FUNCTION awty.waiting(text) IS 'How many checks of a job wait';\n",
    ),
    (
        "sql/91_label.sql",
        "GRANT SELECT ON awty.label TO PUBLIC;
         ALTER TABLE awty.label ENABLE ROW LEVEL SECURITY;
         CREATE POLICY own_labels ON awty.label FOR SELECT TO PUBLIC
             USING (job OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT j.job FROM awty.job AS j)));
         CREATE TRIGGER label_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON awty.label
             FOR EACH STATEMENT EXECUTE FUNCTION awty_internal.job_changed();
         ALTER TABLE awty.label ENABLE ALWAYS TRIGGER label_changed;
         ALTER TABLE awty.label ALTER job SET STATISTICS 0;\n",
    ),
];

pub fn script(checkout: &Path, name: &str, arguments: &[&str], variables: &[(&str, &Path)]) -> Output {
    let mut command = Command::new(checkout.join("scripts").join(name));
    command.args(arguments).envs(variables.iter().copied());
    command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"))
}

#[track_caller]
pub fn last_line(output: &Output) -> PathBuf {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().rsplit('\n').next().unwrap().into()
}

pub fn directory_for(name: &str) -> PathBuf {
    let directory = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("made-up").join(name);
    drop(fs::remove_dir_all(&directory));
    fs::create_dir_all(&directory).unwrap();
    directory
}

pub fn copy(name: &str) -> PathBuf {
    let copy = directory_for(name);
    let mut cp = Command::new("cp");
    cp.current_dir(checkout()).args(["-a", "awty.control", "Cargo.toml", "sql", "http", "scripts"]).arg(&copy);
    assert!(cp.status().unwrap().success());
    copy
}

pub fn change(copy: &Path) {
    for (file, before, after) in CHANGES {
        let file = copy.join(file);
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.matches(before).count(), 1, "{before:?} in {}", file.display());
        fs::write(&file, text.replace(before, after)).unwrap();
    }
    for (file, text) in ADDITIONS {
        fs::write(copy.join(file), text).unwrap();
    }
    [AWTY, HTTP].iter().for_each(|extension| fs::write(extension.upgrade_in(copy), extension.upgrade).unwrap());
}

pub fn library() -> PathBuf {
    last_line(&script(&checkout(), "build", &["--where"], &[]))
}

pub fn next_library() -> PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| last_line(&script(&checkout(), "build", &["--with", "next-version"], &[]))).clone()
}

pub fn stage(library: &Path) -> PathBuf {
    static NEXT_VERSION: OnceLock<PathBuf> = OnceLock::new();
    static ONE_BY_ONE: Mutex<()> = Mutex::new(());
    let copy = NEXT_VERSION.get_or_init(|| {
        let copy = copy("checkout");
        if !copy.join(format!("sql/released/awty--{HERE}.sql")).exists() {
            last_line(&script(&copy, "freeze", &[], &[]));
        }
        change(&copy);
        copy
    });
    let _one = ONE_BY_ONE.lock();
    last_line(&script(copy, "stage", &[], &[("AWTY_LIBRARY", library)]))
}

pub fn directory(stage: &Path, option: &str) -> PathBuf {
    let output = Command::new(stage.join("bin/pg_config")).arg(option).output().unwrap();
    last_line(&output)
}
