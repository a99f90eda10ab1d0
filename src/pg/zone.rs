//! Reads PostgreSQL's own time zone data, so that awty's times agree with `AT TIME ZONE`.

use awty_core::repeat::{Remembered, Span, Zone};
use pgrx::pg_sys;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, CString};
use std::rc::Rc;

pub type Local = Rc<Remembered<Data>>;

#[derive(Debug)]
pub struct Data(*mut pg_sys::pg_tz);

const SECOND: i64 = 1_000_000;

impl Zone for Data {
    fn span_at(&self, t: i64) -> Span {
        let second: pg_sys::pg_time_t = t.div_euclid(SECOND);
        let (mut before, mut after, mut boundary) = (0, 0, 0);
        let (mut before_dst, mut after_dst) = (0, 0);
        // SAFETY: PostgreSQL never frees a zone, so the pointer stays valid.
        let found = unsafe {
            pg_sys::pg_next_dst_boundary(
                &second,
                &mut before,
                &mut before_dst,
                &mut boundary,
                &mut after,
                &mut after_dst,
                self.0,
            )
        };
        let until = if found > 0 { boundary.saturating_mul(SECOND) } else { i64::MAX };
        Span { offset: i32::try_from(before).unwrap_or(0), until }
    }
}

pub fn find(name: &str) -> Option<Local> {
    thread_local! {
        static KNOWN: RefCell<HashMap<String, Local>> = RefCell::default();
    }
    if let Some(zone) = KNOWN.with_borrow(|known| known.get(name).cloned()) {
        return Some(zone);
    }
    let c_name = CString::new(name).ok()?;
    // SAFETY: `c_name` is a C string.
    let zone = unsafe { pg_sys::pg_tzset(c_name.as_ptr()) };
    // SAFETY: `zone` is not null, so PostgreSQL has loaded it.
    if zone.is_null() || !unsafe { pg_sys::pg_tz_acceptable(zone) } {
        return None;
    }
    let zone = Rc::new(Remembered::new(Data(zone)));
    KNOWN.with_borrow_mut(|known| known.insert(name.to_owned(), Rc::clone(&zone)));
    Some(zone)
}

pub fn canonical(name: &str) -> Option<String> {
    with_names(|names| names.get(&name.to_ascii_lowercase()).cloned())
}

pub fn names() -> Vec<String> {
    with_names(|names| names.values().cloned().collect())
}

pub fn of_session() -> Option<String> {
    // SAFETY: the zone's name is a C string that lives as long as the process.
    let name = unsafe {
        let name = pg_sys::pg_get_timezone_name(pg_sys::session_timezone);
        if name.is_null() {
            return None;
        }
        CStr::from_ptr(name).to_string_lossy().into_owned()
    };
    canonical(&name)
}

fn with_names<R>(read: impl FnOnce(&BTreeMap<String, String>) -> R) -> R {
    thread_local! {
        static NAMES: RefCell<Option<BTreeMap<String, String>>> = const { RefCell::new(None) };
    }
    let names = NAMES.take().unwrap_or_else(enumerate);
    let result = read(&names);
    NAMES.set(Some(names));
    result
}

fn enumerate() -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    // SAFETY: each zone is valid until the next call, and its name is copied.
    unsafe {
        let search = pg_sys::pg_tzenumerate_start();
        loop {
            let zone = pg_sys::pg_tzenumerate_next(search);
            if zone.is_null() {
                break;
            }
            let name = CStr::from_ptr(pg_sys::pg_get_timezone_name(zone)).to_string_lossy().into_owned();
            names.insert(name.to_ascii_lowercase(), name);
        }
        pg_sys::pg_tzenumerate_end(search);
    }
    names
}
