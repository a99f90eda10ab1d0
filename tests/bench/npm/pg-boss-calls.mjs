// Makes HTTP calls with pg-boss and undici: node pg-boss-calls.mjs CALLS LOOPS BATCH CONNECTIONS BEGIN A_SECOND ORIGIN…
//
// If BEGIN is 0, all calls are due at once. Otherwise, A_SECOND calls are due in each second from BEGIN (seconds since 1970) on. The
// program prints the first time for calls in µs since 1970. PGHOST and the other PG variables name the server. Each of LOOPS loops
// fetches, calls and completes batches, and pauses only when the queue is empty. Each origin has at most CONNECTIONS permanent
// connections.
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import PgBoss from "pg-boss";
import { Agent, request } from "undici";

// A fifth of the shortest pause that pg-boss's own work() allows.
const POLL_MS = 100;
const [calls, loops, batch, connections, begin, aSecond] = process.argv.slice(2, 8).map(Number);
const origins = process.argv.slice(8);
const { PGHOST: host, PGPORT: port, PGUSER: user, PGDATABASE: database } = process.env;
const pool = new pg.Pool({ max: 1 });
const boss = new PgBoss({ host, port: Number(port), user, database, supervise: false, schedule: false });
boss.on("error", (error) => {
  throw error;
});
await boss.start();
await boss.createQueue("call");
const job = (n) => {
  const data = { url: `${origins[n % origins.length]}/${n}`, body: { order: n } };
  if (begin === 0) return { name: "call", data };
  return { name: "call", data, startAfter: new Date((begin + Math.floor((n - 1) / aSecond)) * 1000) };
};
for (let from = 0; from < calls; from += 1000) {
  const count = Math.min(1000, calls - from);
  await boss.insert(Array.from({ length: count }, (_, n) => job(from + n + 1)));
}
await pool.query("VACUUM ANALYZE pgboss.job");
await pool.query("CHECKPOINT");
if (begin !== 0 && Date.now() >= begin * 1000) throw new Error("the calls were due before all was written");

const dispatcher = new Agent({ connections });
const headers = { "content-type": "application/json" };
const call = async ({ data }) => {
  const answer = await request(data.url, { method: "POST", headers, body: JSON.stringify(data.body), dispatcher });
  await answer.body.dump();
  if (answer.statusCode !== 200) throw new Error(`${data.url}: ${answer.statusCode}`);
};
let done = 0;
const loop = async () => {
  while (done < calls) {
    const fetched = await boss.fetch("call", { batchSize: batch });
    if (fetched.length === 0) {
      await pause(POLL_MS);
      continue;
    }
    await Promise.all(fetched.map(call));
    await boss.complete(
      "call",
      fetched.map(({ id }) => id),
    );
    done += fetched.length;
  }
};
console.log(begin === 0 ? Date.now() * 1000 : begin * 1_000_000);
await Promise.all(Array.from({ length: loops }, loop));
await dispatcher.close();
await boss.stop({ graceful: false });
await pool.end();
