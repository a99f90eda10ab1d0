use crate::deadline;
use crate::load::{DATABASES, ERIN, ROLES};
use crate::outside::{self, MAILER};
use crate::watched::FRANK;
use awty_testkit::Cluster;

const OF_ERIN: &str = "
    SELECT awty.register('erin_watch', 'camp.watch', timeout => '6 s', retry_after => '1 s');
    SELECT awty.register('erin_long', 'camp.watch', timeout => '2 min', retry_after => '1 s');
    SELECT awty.register('erin_fill', 'camp.filler', keep_history => 'none');
    SELECT awty.register('erin_keep', 'camp.filler')";

pub fn set_up(cluster: &Cluster) {
    for role in ROLES.into_iter().chain([ERIN, FRANK, MAILER]) {
        cluster.execute("postgres", &[&format!("CREATE ROLE {role} LOGIN")]);
    }
    for database in DATABASES {
        cluster.execute("postgres", &[&format!("CREATE DATABASE {database}")]);
        let scripts = [
            include_str!("schema.sql"),
            include_str!("bulk.sql"),
            include_str!("watched.sql"),
            include_str!("open_minutes.sql"),
            include_str!("deadline.sql"),
        ];
        cluster.execute(database, &scripts);
        cluster.execute(database, &[&format!("GRANT USAGE ON SCHEMA awty TO {}, {ERIN}, {MAILER}", ROLES.join(", "))]);
        for (number, role) in ROLES.into_iter().enumerate() {
            let other = ROLES[(number + ROLES.len() - 1) % ROLES.len()];
            let mut client = cluster.client(database, role);
            let jobs = format!(
                "INSERT INTO camp.account VALUES ('{role}', 100);
                 SELECT awty.register('{role}_watch', 'camp.watch', timeout => '6 s', retry_after => '1 s');
                 SELECT awty.register('{role}_short', 'camp.watch', timeout => '300 ms', retry_after => '1 s');
                 SELECT awty.register('{role}_set', 'camp.watch_all', timeout => '6 s', retry_after => '1 s');
                 SELECT awty.register('{role}_again', 'camp.watch', timeout => '2 s', retry_after => '1 s');
                 SELECT awty.allow('{role}_watch', '{other}');
                 SELECT camp.replace_calendar('{role}')"
            );
            client.batch_execute(&jobs).unwrap();
            client.batch_execute(&outside::jobs(role, number)).unwrap();
        }
        cluster.client(database, ERIN).batch_execute(OF_ERIN).unwrap();
        cluster.client(database, FRANK).batch_execute(deadline::SET_UP).unwrap();
    }
}
