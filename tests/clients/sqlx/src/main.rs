//! Tests the twelve tasks of docs/clients.md with sqlx.

use chrono::{DateTime, Duration, Utc};
use serde_json::json;
use sqlx::postgres::types::PgInterval;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPool};
use sqlx::{Executor, query_scalar};

const NAME: &str = "sqlx";

fn ok(what: &str) {
    println!("{NAME}: {what}");
}

fn seconds(seconds: i64) -> PgInterval {
    PgInterval { months: 0, days: 0, microseconds: seconds * 1_000_000 }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = PgPool::connect_with(PgConnectOptions::new()).await?;
    let (hour, tomorrow) = (seconds(3_600), Utc::now() + Duration::days(1));
    let mail = format!("{NAME}_mail");
    db.execute(&*format!("CREATE SCHEMA {NAME}")).await?;
    db.execute(&*format!("CREATE FUNCTION {NAME}.tidy(awty.future_job) RETURNS void BEGIN ATOMIC SELECT 1; END")).await?;
    let breaks = format!(
        "CREATE FUNCTION {NAME}.breaks(awty.future_job) RETURNS void LANGUAGE plpgsql AS 'BEGIN RAISE ''no luck''; END'"
    );
    db.execute(&*breaks).await?;
    let register = sqlx::query("SELECT awty.register($1, $2, timeout => $3, max_attempts => $4)");
    register.bind(NAME).bind(format!("{NAME}.tidy")).bind(seconds(20)).bind(4).execute(&db).await?;
    sqlx::query("SELECT awty.register($1)").bind(&mail).execute(&db).await?;
    ok("register");

    let schedule = query_scalar("SELECT awty.schedule($1, $2, $3, at => $4, args => $5)");
    let schedule = schedule.bind("orders").bind("1").bind(NAME).bind(tomorrow).bind(json!({"a": 1}));
    let check: i64 = schedule.fetch_one(&db).await?;
    let row: (String, serde_json::Value) =
        sqlx::query_as("SELECT entity_key, args FROM awty.future_job WHERE id = $1").bind(check).fetch_one(&db).await?;
    assert_eq!(row, ("1".to_owned(), json!({"a": 1})));
    // Sends all keys as texts, because a parameter has one type and the keys have several.
    for key in [2.to_string(), "two".to_owned()] {
        let schedule = query_scalar::<_, i64>("SELECT awty.schedule($1, $2, $3, after => $4)");
        schedule.bind("orders").bind(key).bind(NAME).bind(&hour).fetch_one(&db).await?;
    }
    ok("schedule");

    let many = query_scalar::<_, i64>("SELECT awty.schedule_many($1, $2, $3, after => $4)");
    let keys = vec!["a".to_owned(), 7.to_string()];
    assert_eq!(many.bind("orders").bind(&keys).bind(NAME).bind(&hour).fetch_one(&db).await?, 2);
    let many = query_scalar::<_, i64>("SELECT awty.cancel_many($1, $2, $3)");
    assert_eq!(many.bind("orders").bind(&keys).bind(NAME).fetch_one(&db).await?, 2);
    ok("schedule_many, cancel_many");
    let cancel = query_scalar::<_, i64>("SELECT awty.cancel($1, $2)");
    assert_eq!(cancel.bind("orders").bind("1").fetch_one(&db).await?, 1);
    ok("cancel");
    query_scalar::<_, i64>("SELECT awty.check_now($1, $2, $3)").bind("orders").bind("2").bind(NAME).fetch_one(&db).await?;
    ok("check_now");

    let table = format!(
        "CREATE TABLE {NAME}.orders (id bigint PRIMARY KEY, placed_at timestamptz NOT NULL, shipped boolean NOT NULL DEFAULT false)"
    );
    db.execute(&*table).await?;
    let watch = query_scalar::<_, String>(
        "SELECT awty.watch($1::text::regclass, until => $2, within => $3, escalate => $4, since => $5, rule => $6)",
    );
    let watch = watch.bind(format!("{NAME}.orders")).bind("shipped").bind(&hour).bind(vec![seconds(7_200)]);
    let rule = watch.bind("placed_at").bind(format!("{NAME}_orders")).fetch_one(&db).await?;
    db.execute(&*format!("INSERT INTO {NAME}.orders VALUES (1, now()), (2, now())")).await?;
    let count = query_scalar::<_, i64>("SELECT count(*) FROM awty.future_job WHERE job = $1 AND entity_key IN ('1', '2')");
    assert_eq!(count.bind(rule).fetch_one(&db).await?, 2);
    ok("watch");
    let next: DateTime<Utc> =
        query_scalar("SELECT awty.repeat($1, every => $2)").bind(NAME).bind(seconds(600)).fetch_one(&db).await?;
    assert!(next > Utc::now());
    ok("repeat");

    for view in [
        "status", "job", "job_status", "future_job", "future_job_history", "repetition", "rule", "alert", "late", "lease", "target",
        "attempt", "failing", "running", "calendar",
    ] {
        sqlx::query(&format!("SELECT * FROM awty.{view}")).fetch_all(&db).await?;
    }
    let role: String =
        query_scalar("SELECT role::text FROM awty.job_status WHERE job = $1").bind(NAME).fetch_one(&db).await?;
    assert_eq!(role, "app");
    ok("views");

    for key in ["x", "y"] {
        let schedule = query_scalar::<_, i64>("SELECT awty.schedule($1, $2, $3, after => $4)");
        schedule.bind("mail").bind(key.to_owned()).bind(&mail).bind(seconds(0)).fetch_one(&db).await?;
    }
    let mut leases: Vec<i64> = Vec::new();
    while leases.len() < 2 {
        let claim = query_scalar("SELECT lease FROM awty.claim($1, $2, $3)");
        let claim = claim.bind(vec![mail.clone()]).bind("w").bind(2 - leases.len() as i32);
        leases.extend(claim.fetch_all(&db).await? as Vec<i64>);
        if leases.len() < 2 {
            let wait = "SELECT pg_sleep_for(greatest(awty.next_claim_in($1), '50 ms'))";
            sqlx::query(wait).bind(vec![mail.clone()]).execute(&db).await?;
        }
    }
    let answer = query_scalar::<_, String>("SELECT awty.complete($1, $2)");
    assert_eq!(answer.bind(leases[0]).bind(tomorrow).fetch_one(&db).await?, "rescheduled");
    let answer = query_scalar::<_, String>("SELECT awty.fail($1, $2, final => true)");
    assert_eq!(answer.bind(leases[1]).bind("no address").fetch_one(&db).await?, "ended");
    ok("claim, complete, fail");

    let refused = query_scalar::<_, i64>("SELECT awty.schedule('orders', '1', 'nobody', after => $1)").bind(&hour);
    let refused = refused.fetch_one(&db).await.unwrap_err();
    let error = refused.as_database_error().unwrap().downcast_ref::<sqlx::postgres::PgDatabaseError>();
    assert!(error.code() == "42704" && error.hint().is_some(), "{error}");
    ok("errors");

    let mut listener = PgListener::connect_with(&db).await?;
    listener.listen(NAME).await?;
    let register = sqlx::query("SELECT awty.register($1, $2, max_attempts => 1, notify => $3)");
    register.bind(format!("{NAME}_breaks")).bind(format!("{NAME}.breaks")).bind(NAME).execute(&db).await?;
    let schedule = query_scalar::<_, i64>("SELECT awty.schedule('orders', '9', $1, after => '0')");
    let check = schedule.bind(format!("{NAME}_breaks")).fetch_one(&db).await?;
    let told = tokio::time::timeout(std::time::Duration::from_secs(120), listener.recv()).await??;
    assert!(told.payload().contains(&check.to_string()), "{}", told.payload());
    ok("LISTEN");

    for number in 0..20 {
        let schedule = query_scalar::<_, i64>("SELECT awty.schedule('again', $1, $2, after => $3)");
        schedule.bind((number % 3).to_string()).bind(NAME).bind(&hour).fetch_one(&db).await?;
    }
    let count = query_scalar::<_, i64>("SELECT count(*) FROM awty.future_job WHERE entity_name = 'again' AND job = $1");
    assert_eq!(count.bind(NAME).fetch_one(&db).await?, 3);
    ok("again and again, prepared");
    Ok(())
}
