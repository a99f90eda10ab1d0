// pg-boss makes HTTP calls with undici: node pg-boss-calls.mjs CALLS LOOPS BATCH CONNECTIONS ORIGIN…
//
// Prints the µs since 1970 at which it began to fetch. The server comes from PGHOST and the like. So many loops fetch() a batch, call
// each of it, and complete() it, without a pause. Each origin has up to so many connections, which are kept.
import pg from "pg";
import PgBoss from "pg-boss";
import { Agent, request } from "undici";

const [calls, loops, batch, connections] = process.argv.slice(2, 6).map(Number);
const origins = process.argv.slice(6);
const { PGHOST: host, PGPORT: port, PGUSER: user, PGDATABASE: database } = process.env;
const pool = new pg.Pool({ max: 1 });
const boss = new PgBoss({ host, port: Number(port), user, database, supervise: false, schedule: false });
boss.on("error", (error) => {
  throw error;
});
await boss.start();
await boss.createQueue("call");
for (let from = 0; from < calls; from += 1000) {
  const count = Math.min(1000, calls - from);
  const data = (n) => ({ url: `${origins[n % origins.length]}/${n}`, body: { order: n } });
  await boss.insert(Array.from({ length: count }, (_, n) => ({ name: "call", data: data(from + n + 1) })));
}
await pool.query("VACUUM ANALYZE pgboss.job");
await pool.query("CHECKPOINT");

const dispatcher = new Agent({ connections });
const headers = { "content-type": "application/json" };
const call = async ({ data }) => {
  const answer = await request(data.url, { method: "POST", headers, body: JSON.stringify(data.body), dispatcher });
  await answer.body.dump();
  if (answer.statusCode !== 200) throw new Error(`${data.url}: ${answer.statusCode}`);
};
const loop = async () => {
  for (;;) {
    const fetched = await boss.fetch("call", { batchSize: batch });
    if (fetched.length === 0) return;
    await Promise.all(fetched.map(call));
    await boss.complete(
      "call",
      fetched.map(({ id }) => id),
    );
  }
};
console.log(Date.now() * 1000);
await Promise.all(Array.from({ length: loops }, loop));
await dispatcher.close();
await boss.stop({ graceful: false });
await pool.end();
