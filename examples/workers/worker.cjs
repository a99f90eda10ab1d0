// An external worker in Node: npm install pg. PGHOST, PGDATABASE and PGUSER name the server. If it ends with an error, start it again.
const { Client } = require("pg");
const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

async function sendMail(entityKey, args, key) { // must return within the job's timeout; key is the same each time this mail is tried
  await sleep(args.seconds ?? 0);
  if (!args.to) throw new Error("no address");
  console.log(`mail ${key} about ${entityKey} to ${args.to}`);
}

(async () => {
  const db = new Client();
  await db.connect();
  for (;;) {
    const { rows } = await db.query("SELECT * FROM awty.claim('{mail}', $1)", [`mail-${process.pid}`]);
    for (const l of rows) {
      let again; // nothing: done; a Date: ask again then
      try { again = await sendMail(l.entity_key, l.args, l.key); }
      catch (e) { await db.query("SELECT awty.fail($1, $2)", [l.lease, String(e)]); continue; }
      await db.query("SELECT awty.complete($1, $2)", [l.lease, again]);
    }
    const wait = "SELECT extract(epoch FROM awty.next_claim_in('{mail}'))::float8 AS seconds";
    if (!rows.length) await sleep((await db.query(wait)).rows[0].seconds);
  }
})();
