# An external worker in Python: pip install psycopg. PGHOST, PGDATABASE and PGUSER name the server. If it ends with an error, start it
# again.
import os, time, psycopg

def send_mail(entity_key, args, key):  # must return within the job's timeout; key is the same each time this mail is tried
    time.sleep(args.get("seconds", 0))
    print(f"mail {key} about {entity_key} to {args['to']}", flush=True)

with psycopg.connect(autocommit=True, prepare_threshold=None, row_factory=psycopg.rows.namedtuple_row) as db:
    while True:
        leases = db.execute("SELECT * FROM awty.claim('{mail}', %s)", [f"mail-{os.getpid()}"]).fetchall()
        for l in leases:
            try: again = send_mail(l.entity_key, l.args, key=l.key)  # None: done; a time: ask again then
            except Exception as e: db.execute("SELECT awty.fail(%s, %s)", [l.lease, repr(e)])
            else: db.execute("SELECT awty.complete(%s, %s)", [l.lease, again])
        if not leases: time.sleep(db.execute("SELECT awty.next_claim_in('{mail}')").fetchone()[0].total_seconds())
