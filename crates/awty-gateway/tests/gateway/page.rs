use crate::shop::{Shop, until};
use std::process::Command;

#[test]
fn the_curl_lines_of_the_page_work_as_they_stand() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/gateway.md")).unwrap();
    let blocks = page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let lines: Vec<&str> = blocks.flat_map(str::lines).filter(|line| line.starts_with("curl ")).collect();
    assert!(lines.len() >= 22, "the page has lost its lines");
    let shop = Shop::open();
    shop.cluster.execute(
        "postgres",
        &[
            "CREATE ROLE tenant LOGIN",
            "GRANT USAGE ON SCHEMA awty, awty_http TO tenant",
            "SELECT awty_http.add_tenant('tenant')",
            "ALTER ROLE gateway NOINHERIT",
            "GRANT app, tenant TO gateway",
        ],
    );
    let gateway = shop.gateway("one");
    until("readiness", || if gateway.get("/readyz").0 == 200 { Ok(()) } else { Err(gateway.get("/readyz").1) });
    for line in lines {
        let line = line.replace("127.0.0.1:8470", &gateway.address());
        let line = line.replace("127.0.0.1:8471", &gateway.address_of_metrics());
        let mut bash = Command::new("bash");
        bash.args(["-c", &line])
            .env("TOKEN", shop.token("app", "write"))
            .env("ADMIN_TOKEN", shop.token("tenant", "admin"));
        let run = bash.output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        assert!(run.status.success(), "{line}: {} (is curl 7.82 or later there?) {said}", run.status);
    }
}
