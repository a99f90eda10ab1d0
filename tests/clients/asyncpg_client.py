"""The twelve things of docs/clients.md with asyncpg."""
import asyncio, datetime, json, sys
import asyncpg

NAME = "asyncpg"
HOUR = datetime.timedelta(hours=1)


def ok(what):
    print(f"{NAME}: {what}", flush=True)


async def main():
    db = await asyncpg.connect()
    one = db.fetchval
    await db.execute(f"CREATE SCHEMA {NAME}")
    await db.execute(f"CREATE FUNCTION {NAME}.tidy(awty.future_job) RETURNS void BEGIN ATOMIC SELECT 1; END")
    await db.execute(f"CREATE FUNCTION {NAME}.breaks(awty.future_job) RETURNS void LANGUAGE plpgsql AS 'BEGIN RAISE ''no luck''; END'")
    await one("SELECT awty.register($1, $2, timeout => $3, max_attempts => $4)", NAME, f"{NAME}.tidy", datetime.timedelta(seconds=20), 4)
    await one("SELECT awty.register($1)", f"{NAME}_mail")
    ok("register")

    tomorrow = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    check = await one("SELECT awty.schedule($1, $2, $3, at => $4, args => $5)", "orders", "1", NAME, tomorrow, json.dumps({"a": 1}))
    row = await db.fetchrow("SELECT entity_key, args FROM awty.future_job WHERE id = $1", check)
    assert tuple(row) == ("1", '{"a": 1}'), row
    await one("SELECT awty.schedule($1, $2, $3, after => $4)", "orders", str(2), NAME, HOUR)
    ok("schedule")

    assert await one("SELECT awty.schedule_many($1, $2, $3, after => $4)", "orders", ["a", "b"], NAME, HOUR) == 2
    assert await one("SELECT awty.schedule_many($1, $2::bigint[]::text[], $3, after => $4)", "orders", [7, 8], NAME, HOUR) == 2
    assert await one("SELECT awty.cancel_many($1, $2, $3)", "orders", ["a", "b", "7", "8"], NAME) == 4
    ok("schedule_many, cancel_many")

    assert await one("SELECT awty.cancel($1, $2)", "orders", "1") == 1
    ok("cancel")
    await one("SELECT awty.check_now($1, $2, $3)", "orders", "2", NAME)
    ok("check_now")

    await db.execute(f"CREATE TABLE {NAME}.orders (id bigint PRIMARY KEY, placed_at timestamptz NOT NULL, shipped boolean NOT NULL DEFAULT false)")
    rule = await one("SELECT awty.watch($1::text::regclass, until => $2, within => $3, escalate => $4, since => $5, rule => $6)",
                     f"{NAME}.orders", "shipped", HOUR, [HOUR * 2], "placed_at", f"{NAME}_orders")
    await db.executemany(f"INSERT INTO {NAME}.orders VALUES ($1, now())", [(1,), (2,)])
    assert await one("SELECT count(*) FROM awty.future_job WHERE job = $1 AND entity_key IN ('1', '2')", rule) == 2
    ok("watch")

    next_at = await one("SELECT awty.repeat($1, every => $2)", NAME, datetime.timedelta(minutes=10))
    assert next_at > datetime.datetime.now(datetime.timezone.utc)
    ok("repeat")

    for view in ("status", "job", "job_status", "future_job", "future_job_history", "repetition", "rule", "alert", "late", "lease", "target",
                 "attempt", "failing", "running", "calendar"):
        await db.fetch(f"SELECT * FROM awty.{view}")
    assert await one("SELECT role FROM awty.job_status WHERE job = $1", NAME) == "app"
    assert await one("SELECT scheduled_by::text FROM awty.future_job WHERE job = $1 AND scheduled_by = $2::text::regrole LIMIT 1", NAME, "app") == "app"
    ok("views")

    for key in ("x", "y"):
        await one("SELECT awty.schedule($1, $2, $3, after => $4)", "mail", key, f"{NAME}_mail", datetime.timedelta())
    leases = []
    while len(leases) < 2:
        leases += await db.fetch("SELECT * FROM awty.claim($1, $2, $3)", [f"{NAME}_mail"], "w", 2 - len(leases))
        if len(leases) < 2:
            wait = await one("SELECT awty.next_claim_in($1)", [f"{NAME}_mail"])
            await asyncio.sleep(max(wait.total_seconds(), 0.05))
    assert await one("SELECT awty.complete($1, $2)", leases[0]["lease"], tomorrow) == "rescheduled"
    assert await one("SELECT awty.fail($1, $2, final => true)", leases[1]["lease"], "no address") == "ended"
    ok("claim, complete, fail")

    for sql, values, code in (
        ("SELECT awty.schedule('orders', '1', 'nobody', after => $1)", [HOUR], "42704"),
        ("SELECT awty.schedule('orders', $1::text, $2, after => $3)", [None, NAME, HOUR], "22004"),
    ):
        try:
            await db.execute(sql, *values)
        except asyncpg.PostgresError as error:
            assert error.sqlstate == code and error.hint, error
        else:
            sys.exit(f"{sql} was accepted")
    ok("errors")

    told = asyncio.get_running_loop().create_future()
    await db.add_listener(NAME, lambda _db, _pid, _channel, payload: told.done() or told.set_result(payload))
    await one("SELECT awty.register($1, $2, max_attempts => 1, notify => $3)", f"{NAME}_breaks", f"{NAME}.breaks", NAME)
    check = await one("SELECT awty.schedule('orders', '9', $1, after => $2)", f"{NAME}_breaks", datetime.timedelta())
    assert str(check) in await asyncio.wait_for(told, 120)
    ok("LISTEN")

    again = await db.prepare("SELECT awty.schedule('again', $1, $2, after => $3)")
    for number in range(20):
        await again.fetchval(str(number % 3), NAME, HOUR)
    await db.executemany("SELECT awty.cancel('again', $1)", [(str(number),) for number in range(3)])
    assert await one("SELECT count(*) FROM awty.future_job WHERE entity_name = 'again' AND job = $1", NAME) == 0
    ok("again and again, prepared")


asyncio.run(main())
