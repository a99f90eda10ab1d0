//! Loads a library whose code runs at each abort of a transaction (`foreign_library.c`).

use awty_testkit::Cluster;
use awty_testkit::fixture::{NOTE, Shop};
use std::fs;
use std::process::Command;

const CATCHES: &str = include_str!("foreign_library.c");

#[track_caller]
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[track_caller]
fn compile(cluster: &Cluster) -> String {
    let [source, object] = ["c", "so"].map(|end| cluster.socket_directory().join("catches").with_extension(end));
    let headers = output(Command::new(cluster.stage().join("bin/pg_config")).arg("--includedir-server"));
    let headers = headers.strip_prefix(cluster.stage().to_str().unwrap()).unwrap_or(&headers).to_owned();
    fs::write(&source, CATCHES).unwrap();
    output(Command::new("cc").args(["-shared", "-fPIC", "-I", &headers, "-o"]).args([&object, &source]));
    object.display().to_string()
}

/// If a library catches an error during an abort, PostgreSQL's counter of held interrupts becomes negative. awty must
/// release its lock even then.
#[test]
fn an_error_that_a_library_catches_at_an_abort_stops_no_process() {
    let mut cluster = Cluster::builder().create();
    let library = compile(&cluster);
    cluster.configure(&format!("shared_preload_libraries = 'awty,{library}'"));
    cluster.start();
    if cluster.value::<String>("postgres", "SHOW debug_assertions") == "on" {
        return; // with assertions, PostgreSQL itself crashes
    }
    let mut shop = Shop::on(cluster);
    shop.job("note", NOTE, "");
    shop.job("bad", "BEGIN RAISE 'bad'; END", ", max_attempts => 3, retry_after => '1 s'");
    shop.job("slow", "BEGIN LOOP END LOOP; END", ", timeout => '200 ms', max_attempts => 1");
    for job in ["bad", "slow", "note"] {
        shop.schedule(job, job, "after => '0'");
    }
    shop.end_of("bad").failed_with("P0001");
    assert_eq!(shop.end_of("slow").why(), ("timed_out", Some("57014")));
    shop.end_of("note").is_done();
    let mut client = shop.client();
    for key in ["caught 1", "caught 2"] {
        let caught = format!(
            "DO $$ BEGIN BEGIN RAISE 'caught'; EXCEPTION WHEN OTHERS THEN NULL; END;
             PERFORM awty.schedule('orders', '{key}', 'note', after => '0'); END $$"
        );
        client.batch_execute(&caught).unwrap();
        shop.end_of(key).is_done();
    }
    shop.job("endless", "BEGIN RAISE 'bad'; END", ", max_attempts => 0, retry_after => '1 s'");
    shop.run(
        "SELECT count(awty.schedule('orders', n::text, 'endless', after => '0')) FROM generate_series(1, 200) AS n",
    );
    shop.await_true("failures", "SELECT count(*) > 100 FROM awty.failing WHERE job = 'endless'");
    shop.cluster.kill_server();
    shop.cluster.start();
    shop.schedule("after", "note", "after => '0'");
    shop.end_of("after").is_done();
}
