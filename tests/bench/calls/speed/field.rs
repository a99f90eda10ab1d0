use crate::calls::place::{Place, pass};
use crate::calls::receiver::Arrival;
use crate::calls::speed::run::{Run, each_once};
use awty_testkit::postgres::Client;
use awty_testkit::{PATIENCE, poll};
use std::time::Duration;

const ORIGINS: usize = 100;
pub const LONGEST: Duration = Duration::from_secs(600);

pub struct Field {
    pub place: Place,
    pub origins: Vec<String>,
}

impl Field {
    pub fn open(with_pg_net: bool) -> Self {
        let libraries = if with_pg_net { "awty,pg_stat_statements,pg_net" } else { "awty,pg_stat_statements" };
        let place = Place::open_with(&[("shared_preload_libraries", libraries), ("synchronous_commit", "off")]);
        let origins = (0..ORIGINS).map(|_| place.receiver.listen(false)).collect();
        Field { place, origins }
    }

    pub fn superuser(&self) -> Client {
        self.place.cluster.superuser("postgres")
    }

    pub fn run(&self, calls: u32, from: usize, begin: i64, is_booked: &str) -> Result<Run, String> {
        poll("all calls to arrive", LONGEST, || {
            let count = self.place.receiver.count() - from;
            if count >= calls as usize { Ok(()) } else { Err(format!("{count} of {calls}")) }
        })?;
        let mut client = self.superuser();
        poll("all calls to be booked", PATIENCE, || {
            let row = client.query_one(is_booked, &[]).map_err(|error| error.to_string())?;
            if row.get(0) { Ok(()) } else { Err("they are not".into()) }
        })?;
        pass(0.5);
        let arrivals: Vec<Arrival> = self.place.receiver.since(from);
        each_once(&arrivals, calls)?;
        Ok(Run { begin, arrivals })
    }
}
