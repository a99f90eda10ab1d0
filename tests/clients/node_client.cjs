// Tests the twelve tasks of docs/clients.md with node-postgres.
const assert = require("node:assert");
const { Client } = require("pg");
const NAME = "node";
const ok = (what) => console.log(`${NAME}: ${what}`);

(async () => {
  const db = new Client();
  await db.connect();
  const rows = async (sql, values = []) => (await db.query(sql, values)).rows;
  const one = async (sql, values) => Object.values((await rows(sql, values))[0])[0];
  await db.query(`CREATE SCHEMA ${NAME}`);
  await db.query(`CREATE FUNCTION ${NAME}.tidy(awty.future_job) RETURNS void BEGIN ATOMIC SELECT 1; END`);
  await db.query(`CREATE FUNCTION ${NAME}.breaks(awty.future_job) RETURNS void LANGUAGE plpgsql AS 'BEGIN RAISE ''no luck''; END'`);
  await one("SELECT awty.register($1, $2, timeout => $3, max_attempts => $4)", [NAME, `${NAME}.tidy`, "20 s", 4]);
  await one("SELECT awty.register($1)", [`${NAME}_mail`]);
  ok("register");

  const tomorrow = new Date(Date.now() + 86_400_000);
  const check = await one("SELECT awty.schedule($1, $2, $3, at => $4, args => $5)", ["orders", "1", NAME, tomorrow, JSON.stringify({ a: [1] })]);
  const [row] = await rows("SELECT entity_key, args FROM awty.future_job WHERE id = $1", [check]);
  assert.deepStrictEqual({ ...row }, { entity_key: "1", args: { a: [1] } });
  await one("SELECT awty.schedule($1, $2, $3, after => $4)", ["orders", 2, NAME, "1 hour"]);
  ok("schedule");

  assert.equal(await one("SELECT awty.schedule_many($1, $2, $3, after => $4)", ["orders", ["a", 7], NAME, "1 hour"]), 2);
  assert.equal(await one("SELECT awty.cancel_many($1, $2, $3)", ["orders", ["a", "7"], NAME]), 2);
  ok("schedule_many, cancel_many");
  assert.equal(await one("SELECT awty.cancel($1, $2)", ["orders", "1"]), 1);
  ok("cancel");
  await one("SELECT awty.check_now($1, $2, $3)", ["orders", 2, NAME]);
  ok("check_now");

  await db.query(`CREATE TABLE ${NAME}.orders (id bigint PRIMARY KEY, placed_at timestamptz NOT NULL, shipped boolean NOT NULL DEFAULT false)`);
  const rule = await one("SELECT awty.watch($1, until => $2, within => $3, escalate => $4, since => $5, rule => $6)",
    [`${NAME}.orders`, "shipped", "1 hour", ["2 hours"], "placed_at", `${NAME}_orders`]);
  await db.query(`INSERT INTO ${NAME}.orders VALUES (1, now()), (2, now())`);
  assert.equal(await one("SELECT count(*) FROM awty.future_job WHERE job = $1 AND entity_key IN ('1', '2')", [rule]), 2);
  ok("watch");
  assert.ok(await one("SELECT awty.repeat($1, every => $2)", [NAME, "10 min"]) > new Date());
  ok("repeat");

  for (const view of ["status", "job", "job_status", "future_job", "future_job_history", "repetition", "rule", "alert", "late", "lease",
    "target", "attempt", "failing", "running", "calendar"]) {
    await db.query(`SELECT * FROM awty.${view}`);
  }
  assert.equal(await one("SELECT role FROM awty.job_status WHERE job = $1", [NAME]), "app");
  ok("views");

  for (const key of ["x", "y"]) await one("SELECT awty.schedule($1, $2, $3, after => $4)", ["mail", key, `${NAME}_mail`, "0"]);
  const leases = [];
  while (leases.length < 2) {
    leases.push(...await rows("SELECT * FROM awty.claim($1, $2, $3)", [[`${NAME}_mail`], "w", 2 - leases.length]));
    if (leases.length < 2) await one("SELECT pg_sleep_for(greatest(awty.next_claim_in($1), '50 ms'))", [[`${NAME}_mail`]]);
  }
  assert.equal(await one("SELECT awty.complete($1, $2)", [leases[0].lease, tomorrow]), "rescheduled");
  assert.equal(await one("SELECT awty.fail($1, $2, final => true)", [leases[1].lease, "no address"]), "ended");
  ok("claim, complete, fail");

  await assert.rejects(db.query("SELECT awty.schedule('orders', '1', 'nobody', after => '1 hour')"), (e) => e.code === "42704" && !!e.hint);
  await assert.rejects(one("SELECT awty.schedule('orders', $1, $2, after => '1 hour')", [null, NAME]), (e) => e.code === "22004" && !!e.hint);
  ok("errors");

  const told = new Promise((done, failed) => {
    db.on("notification", (message) => done(message.payload));
    setTimeout(() => failed(new Error("no notification came")), 120_000).unref();
  });
  await db.query(`LISTEN ${NAME}`);
  await one("SELECT awty.register($1, $2, max_attempts => 1, notify => $3)", [`${NAME}_breaks`, `${NAME}.breaks`, NAME]);
  const failing = await one("SELECT awty.schedule('orders', '9', $1, after => '0')", [`${NAME}_breaks`]);
  assert.ok((await told).includes(failing));
  ok("LISTEN");

  for (let number = 0; number < 20; number++) {
    const text = "SELECT awty.schedule('again', $1, $2, after => $3)";
    await db.query({ name: "again", text, values: [number % 3, NAME, "1 hour"] });
  }
  for (const key of [0, 1, 2]) assert.equal(await one("SELECT awty.cancel('again', $1, $2)", [key, NAME]), 1);
  ok("again and again, prepared");
  await db.end();
})().catch((error) => { console.error(error); process.exit(1); });
