// Does the benchmark's job with pg-boss: node pg-boss.mjs JOBS CONCURRENCY BATCH
//
// Prints the seconds from the first fetch to the last completion. PGHOST and the other PG variables name the server. The program calls
// fetch() and complete() without a pause, because work() waits half a second between two batches.
import pg from "pg";
import PgBoss from "pg-boss";

const [jobs, concurrency, batch] = process.argv.slice(2).map(Number);
const pool = new pg.Pool({ max: concurrency });
const { PGHOST: host, PGPORT: port, PGUSER: user, PGDATABASE: database } = process.env;
const boss = new PgBoss({ host, port: Number(port), user, database, supervise: false, schedule: false });
boss.on("error", (error) => {
  throw error;
});
await boss.start();
await boss.createQueue("look_at");
for (let from = 0; from < jobs; from += 1000) {
  const count = Math.min(1000, jobs - from);
  await boss.insert(Array.from({ length: count }, (_, n) => ({ name: "look_at", data: { id: from + n + 1 } })));
}
await pool.query("VACUUM ANALYZE pgboss.job");
await pool.query("CHECKPOINT");

let began;
let done = 0;
while (done < jobs) {
  began ??= process.hrtime.bigint();
  const fetched = await boss.fetch("look_at", { batchSize: batch });
  await Promise.all(
    fetched.map(({ data }) => pool.query({ name: "look_at", text: "SELECT shop.look_at($1, 0)", values: [data.id] })),
  );
  await boss.complete(
    "look_at",
    fetched.map(({ id }) => id),
  );
  done += fetched.length;
}
console.log(Number(process.hrtime.bigint() - began) / 1e9);
await boss.stop({ graceful: false });
await pool.end();
