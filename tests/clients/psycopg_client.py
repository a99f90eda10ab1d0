"""The twelve things of docs/clients.md with psycopg 3."""
import datetime, sys
import psycopg
from psycopg.rows import namedtuple_row
from psycopg.types.json import Jsonb

NAME = "psycopg"
HOUR = datetime.timedelta(hours=1)


def ok(what):
    print(f"{NAME}: {what}", flush=True)


db = psycopg.connect(autocommit=True, row_factory=namedtuple_row)


def one(sql, *values):
    row = db.execute(sql, values).fetchone()
    return row[0] if len(row) == 1 else row


db.execute(f"CREATE SCHEMA {NAME}")
db.execute(f"CREATE FUNCTION {NAME}.tidy(awty.future_job) RETURNS void BEGIN ATOMIC SELECT 1; END")
db.execute(f"CREATE FUNCTION {NAME}.breaks(awty.future_job) RETURNS void LANGUAGE plpgsql AS 'BEGIN RAISE ''no luck''; END'")
one("SELECT awty.register(%s, %s, timeout => %s, max_attempts => %s)", NAME, f"{NAME}.tidy", datetime.timedelta(seconds=20), 4)
one("SELECT awty.register(%s)", f"{NAME}_mail")
ok("register")

tomorrow = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
by_text = one("SELECT awty.schedule(%s, %s, %s, at => %s, args => %s)", "orders", "1", NAME, tomorrow, Jsonb({"a": [1, None]}))
by_number = one("SELECT awty.schedule(%s, %s, %s, after => %s)", "orders", 2, NAME, HOUR)
row = one("SELECT entity_key, args, next_check_at >= %s FROM awty.future_job WHERE id = %s", tomorrow, by_text)
assert row == ("1", {"a": [1, None]}, True), row
assert one("SELECT entity_key FROM awty.future_job WHERE id = %s", by_number) == "2"
ok("schedule")

keys = ["a", "b", "c"]
assert one("SELECT awty.schedule_many(%s, %s, %s, after => %s)", "orders", keys, NAME, HOUR) == 3
assert one("SELECT awty.schedule_many(%s, %s::text[], %s, after => %s)", "orders", [7, 8], NAME, HOUR) == 2
assert one("SELECT awty.cancel_many(%s, %s, %s)", "orders", keys + ["7", "8"], NAME) == 5
ok("schedule_many, cancel_many")

assert one("SELECT awty.cancel(%s, %s)", "orders", "1") == 1
ok("cancel")
one("SELECT awty.check_now(%s, %s, %s)", "orders", 2, NAME)
ok("check_now")

db.execute(f"CREATE TABLE {NAME}.orders (id bigint PRIMARY KEY, placed_at timestamptz NOT NULL, shipped boolean NOT NULL DEFAULT false)")
rule = one("SELECT awty.watch(%s, until => %s, within => %s, escalate => %s, since => %s, rule => %s)",
           f"{NAME}.orders", "shipped", HOUR, [HOUR * 2, HOUR * 3], "placed_at", f"{NAME}_orders")
db.cursor().executemany(f"INSERT INTO {NAME}.orders VALUES (%s, now())", [(1,), (2,)])
assert one("SELECT count(*) FROM awty.future_job WHERE job = %s AND entity_key IN ('1', '2')", rule) == 2
ok("watch")

next_at = one("SELECT awty.repeat(%s, every => %s, args => %s)", NAME, datetime.timedelta(minutes=10), Jsonb({}))
assert next_at > datetime.datetime.now(datetime.timezone.utc)
assert one("SELECT awty.repeat(%s, every => %s::text::interval, entity_key => %s::text)", NAME, "25 hours", 5) is not None
ok("repeat")

for view in ("status", "job", "job_status", "future_job", "future_job_history", "repetition", "rule", "alert", "late", "lease", "target",
             "attempt", "failing", "running", "calendar"):
    db.execute(f"SELECT * FROM awty.{view}").fetchall()
assert one("SELECT role FROM awty.job_status WHERE job = %s", NAME) == "app"
assert one("SELECT f FROM awty.future_job AS f WHERE f.job = %s AND f.entity_key = %s", NAME, "5") is not None
ok("views")

for key in ("x", "y", "z"):
    one("SELECT awty.schedule(%s, %s, %s, after => %s)", "mail", key, f"{NAME}_mail", datetime.timedelta())


def leases(count):
    """Claims until so many checks are leased, because a check is due at a slot."""
    found = []
    while len(found) < count:
        found += db.execute("SELECT * FROM awty.claim(%s, %s, %s)", [[f"{NAME}_mail"], "w", count - len(found)]).fetchall()
        if len(found) < count:
            wait = one("SELECT awty.next_claim_in(%s)", [f"{NAME}_mail"])
            one("SELECT pg_sleep(%s)", max(wait.total_seconds(), 0.05))
    return found


first, second, third = leases(3)
assert one("SELECT awty.complete(%s, result => %s)", first.lease, Jsonb({"sent": True})) == "ended"
assert one("SELECT awty.complete(%s, %s)", second.lease, tomorrow) == "rescheduled"
assert one("SELECT awty.fail(%s, %s)", third.lease, "no address") == "retrying"
assert one("SELECT awty.complete_many(%s)", [first.lease]) == ["void"]
ok("claim, complete, fail")

for sql, values, code in (
    ("SELECT awty.schedule('orders', '1', 'nobody', after => %s)", [HOUR], "42704"),
    ("SELECT awty.schedule('orders', %s, %s, after => %s)", [None, NAME, HOUR], "22004"),
    ("SELECT awty.schedule('orders', '1', %s)", [NAME], "22023"),
):
    try:
        db.execute(sql, values)
    except psycopg.Error as error:
        assert error.sqlstate == code and error.diag.message_hint, (error.sqlstate, error)
    else:
        sys.exit(f"{sql} was accepted")
ok("errors")

db.execute(f"LISTEN {NAME}")
one("SELECT awty.register(%s, %s, max_attempts => 1, notify => %s)", f"{NAME}_breaks", f"{NAME}.breaks", NAME)
check = one("SELECT awty.schedule('orders', '9', %s, after => %s)", f"{NAME}_breaks", datetime.timedelta())
told = next(db.notifies(timeout=120), None)
assert told and str(check) in told.payload, told
ok("LISTEN")

for prepared in (True, False):
    for number in range(20):
        db.execute("SELECT awty.schedule('again', %s, %s, after => %s)", [str(number % 3), NAME, HOUR], prepare=prepared)
with db.pipeline():
    for number in range(20):
        db.execute("SELECT awty.cancel('again', %s)", [str(number)])
assert one("SELECT count(*) FROM awty.future_job WHERE entity_name = 'again'") == 0
ok("again and again, prepared")
