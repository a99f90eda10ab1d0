use crate::pg::text::Text;
use crate::store::statement::Kept;
use crate::store::typed::statement;
use crate::store::{arg, from_timestamptz, time};
use awty_core::{Check, Time};
use pgrx::pg_sys;

statement!(
    select_row,
    [TEXTOID, TEXTOID, TEXTOID],
    c"SELECT f.id, f.next_check_at, f.check_count, f.attempt, f, f.xmin::pg_catalog.text, f.held FROM awty.future_job AS f
      WHERE f.entity_name = $1 AND f.entity_key = $2 AND f.job = $3"
);

statement!(
    make_row,
    [TEXTOID, TEXTOID, TEXTOID, JSONBOID, TIMESTAMPTZOID, OIDOID, TIMESTAMPTZOID],
    c"SELECT NULL::pg_catalog.int8, $5, 0, 0,
             ROW(pg_catalog.nextval('awty.future_job_id_seq'), $3, $1, $2, $4, $5, $5, 0, 0, false, $6, $7)::awty.future_job,
             NULL::pg_catalog.text, false"
);

statement! {
    fn version(id: i64) -> Option<Text> = query,
    c"SELECT f.xmin::pg_catalog.text FROM awty.future_job AS f WHERE f.id = $1"
}

pub struct Trial {
    pub id: Option<i64>,
    pub check: Check,
    pub row: pg_sys::Datum,
    pub held: bool,
    version: Option<Text>,
}

fn read(rows: &crate::store::statement::Rows) -> Option<Trial> {
    let count = |column| rows.first::<i32>(column).map(i32::unsigned_abs);
    Some(Trial {
        id: rows.first(1),
        check: Check { slot: from_timestamptz(rows.first(2)?), check_count: count(3)?, attempt: count(4)? },
        row: rows.first::<Kept>(5)?.0,
        version: rows.first(6),
        held: rows.first(7)?,
    })
}

pub fn pending(entity_name: pg_sys::Datum, entity_key: pg_sys::Datum, job: &Text) -> Option<Trial> {
    select_row().query_latest(&[Some(entity_name), Some(entity_key), Some(job.datum())], read)
}

pub fn imagined(
    entity: (pg_sys::Datum, pg_sys::Datum),
    job: &Text,
    args: Option<pg_sys::Datum>,
    slot: Time,
    by: pg_sys::Oid,
    now: Time,
) -> Option<Trial> {
    let args = [Some(entity.0), Some(entity.1), Some(job.datum()), args, time(slot), arg(by), time(now)];
    make_row().query(&args, read)
}

impl Trial {
    pub fn is_changed(&self) -> bool {
        self.id.is_some_and(|id| version(id) != self.version)
    }
}
