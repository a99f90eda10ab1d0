// Does the benchmark's job with graphile-worker: node graphile-worker.mjs JOBS CONCURRENCY LOCAL_QUEUE STATEMENT
//
// Prints the seconds from the first call of the task until the queue is empty. PGHOST and the other PG variables name the server. The
// local queue and batched completions are on, because graphile-worker is fastest with them.
import { Logger, run, runMigrations } from "graphile-worker";
import pg from "pg";

const [jobs, concurrency, localQueue] = process.argv.slice(2, 5).map(Number);
const statement = process.argv[5];
const pool = new pg.Pool({ max: concurrency + 4 });
const logger = new Logger(() => () => {});
const worker = {
  concurrentJobs: concurrency,
  localQueue: { size: localQueue },
  completeJobBatchDelay: 10,
  failJobBatchDelay: 10,
  pollInterval: 100,
};

await runMigrations({ pgPool: pool, logger });
for (let from = 0; from < jobs; from += 1000) {
  const specs = Array.from({ length: Math.min(1000, jobs - from) }, (_, n) => ({ id: from + n + 1 }));
  await pool.query(
    `SELECT FROM graphile_worker.add_jobs(ARRAY(
       SELECT (json_populate_record(NULL::graphile_worker.job_spec,
                 json_build_object('identifier', 'look_at', 'payload', spec))) FROM json_array_elements($1) AS spec))`,
    [JSON.stringify(specs)],
  );
}
await pool.query("VACUUM ANALYZE graphile_worker._private_jobs");
await pool.query("CHECKPOINT");

let began;
let left = jobs;
let allCalled;
const called = new Promise((resolve) => (allCalled = resolve));
const taskList = {
  look_at: async (payload, helpers) => {
    began ??= process.hrtime.bigint();
    if (statement) {
      await helpers.withPgClient((client) => client.query({ name: "look_at", text: statement, values: [payload.id] }));
    }
    left -= 1;
    if (left === 0) allCalled();
  },
};
const runner = await run({ pgPool: pool, logger, taskList, noHandleSignals: true, preset: { worker } });
await called;
for (;;) {
  const { rows } = await pool.query("SELECT EXISTS (SELECT FROM graphile_worker._private_jobs) AS waiting");
  if (!rows[0].waiting) break;
}
console.log(Number(process.hrtime.bigint() - began) / 1e9);
await runner.stop();
await pool.end();
