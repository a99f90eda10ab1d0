//! Triggers, rules, columns and keys that an administrator adds to awty's tables take effect, no matter how a check
//! ends.

use awty_testkit::fixture::{NOTE, NOTE_SET, Shop};

const WAYS: [(&str, &str); 6] = [
    ("single", "done"),
    ("set 1", "done"),
    ("set 2", "done"),
    ("later", "done"),
    ("bad", "failed"),
    ("cancelled", "cancelled"),
];

const SEEN: &str = "CREATE TABLE public.seen (entity_key text); GRANT INSERT ON public.seen TO PUBLIC;
    CREATE FUNCTION public.see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO public.seen VALUES (CASE TG_OP WHEN 'DELETE' THEN OLD.entity_key ELSE NEW.entity_key END); RETURN NULL;
    END $$";

fn open() -> Shop {
    let shop = Shop::open();
    shop.job("single", NOTE, ", max_attempts => 1");
    shop.set_job("set", NOTE_SET, ", max_attempts => 1");
    shop.job(
        "later",
        "BEGIN RETURN CASE WHEN j.check_count = 0 THEN clock_timestamp() END; END",
        ", max_attempts => 1",
    );
    shop.job("bad", "BEGIN RAISE 'no'; END", ", max_attempts => 1");
    shop.job("cancelled", NOTE, "");
    shop
}

#[track_caller]
fn end_each_way(shop: &Shop, name: &str, more: &str) {
    let keys = WAYS.map(|(way, _)| format!("'{way}'")).join(", ");
    let schedule = format!(
        "SELECT awty.schedule('{name}', way, split_part(way, ' ', 1), after => '1 s', args => '{{\"a\": 1}}')
         FROM unnest(ARRAY[{keys}]) AS way; {more}; SELECT awty.cancel('{name}', 'cancelled')"
    );
    shop.cluster.superuser("postgres").batch_execute(&schedule).unwrap();
    let ended = |conditions: &str| {
        format!("SELECT count(*) = 6 FROM awty.future_job_history WHERE entity_name = '{name}'{conditions}")
    };
    shop.await_true(&format!("the checks of {name:?} to have ended"), &ended(""));
    let outcomes = WAYS.map(|(way, outcome)| format!("('{way}', '{outcome}')")).join(", ");
    let ends = shop
        .cluster
        .psql("postgres", "SELECT entity_key, outcome, message FROM awty.future_job_history ORDER BY id DESC LIMIT 6");
    assert!(
        shop.cluster.value::<bool>("postgres", &ended(&format!(" AND (entity_key, outcome) IN ({outcomes})"))),
        "{name}: {ends}"
    );
}

fn seen(shop: &Shop) -> String {
    shop.cluster
        .value("postgres", "SELECT coalesce(string_agg(entity_key, ', ' ORDER BY entity_key), '') FROM public.seen")
}

#[test]
fn a_foreign_key_to_a_check_is_honoured() {
    let shop = open();
    shop.cluster.execute(
        "postgres",
        &["CREATE TABLE public.remark (check_id bigint PRIMARY KEY REFERENCES awty.future_job (id) ON DELETE CASCADE)"],
    );
    end_each_way(&shop, "referred", "INSERT INTO public.remark SELECT id FROM awty.future_job");
    let dangling = "SELECT count(*) FROM public.remark AS r WHERE NOT EXISTS (SELECT FROM awty.future_job AS f WHERE f.id = check_id)";
    assert_eq!(shop.cluster.value::<i64>("postgres", dangling), 0);
}

#[test]
fn a_column_of_the_pending_checks_stops_no_way_to_end() {
    let shop = open();
    for (name, change) in [
        ("added", "ALTER TABLE awty.future_job ADD COLUMN note text"),
        ("default", "ALTER TABLE awty.future_job ADD COLUMN since timestamptz NOT NULL DEFAULT now()"),
        ("dropped", "ALTER TABLE awty.future_job DROP COLUMN note, DROP COLUMN since"),
    ] {
        shop.cluster.execute("postgres", &[change]);
        end_each_way(&shop, name, "");
    }
}

#[test]
fn a_column_of_the_history_gets_its_default() {
    let shop = open();
    shop.cluster.execute(
        "postgres",
        &["ALTER TABLE awty.future_job_history ADD COLUMN read boolean NOT NULL DEFAULT false, ADD COLUMN note text"],
    );
    end_each_way(&shop, "default", "");
    let unread = "SELECT bool_and(NOT read AND note IS NULL) FROM awty.future_job_history";
    assert!(shop.cluster.value::<bool>("postgres", unread));
    shop.cluster.execute("postgres", &["ALTER TABLE awty.future_job_history DROP COLUMN read"]);
    end_each_way(&shop, "dropped", "");
}

#[test]
fn a_check_that_the_history_refuses_stays_pending() {
    for (constraint, gone) in [
        (
            "ALTER TABLE awty.future_job_history ALTER args SET NOT NULL",
            "ALTER TABLE awty.future_job_history ALTER args DROP NOT NULL",
        ),
        (
            "ALTER TABLE awty.future_job_history ADD CONSTRAINT with_args CHECK (args IS NOT NULL)",
            "ALTER TABLE awty.future_job_history DROP CONSTRAINT with_args",
        ),
    ] {
        let shop = open();
        shop.cluster.execute("postgres", &[constraint]);
        let position = shop.cluster.log_position();
        for (key, job) in [("1", "single"), ("2", "set")] {
            shop.schedule(key, job, "after => '0'");
        }
        shop.cluster.await_log(&["awty"], position);
        end_each_way(&shop, "accepted", "");
        let refused = "SELECT count(*) = 2 AND NOT EXISTS (SELECT FROM awty.future_job_history WHERE args IS NULL)
                       FROM awty.future_job";
        assert!(shop.cluster.value::<bool>("postgres", refused), "{constraint}");
        assert_eq!((shop.notes("1"), shop.notes("2")), (0, 0), "{constraint}");
        shop.cluster.execute("postgres", &[gone]);
        shop.run("SELECT awty.pause('single'), awty.resume('single'), awty.pause('set'), awty.resume('set')");
        for key in ["1", "2"] {
            let end = shop.end_of(key);
            assert_eq!((end.why(), shop.notes(key)), (("done", None), 1), "{constraint}: {end:?}");
        }
    }
}

#[test]
fn a_rule_of_the_history_applies() {
    let shop = open();
    shop.cluster.superuser("postgres").batch_execute(SEEN).unwrap();
    shop.cluster.execute(
        "postgres",
        &["CREATE RULE see AS ON INSERT TO awty.future_job_history DO ALSO INSERT INTO public.seen VALUES (NEW.entity_key)"],
    );
    end_each_way(&shop, "ruled", "");
    assert_eq!(seen(&shop), "bad, cancelled, later, set 1, set 2, single");
}

#[test]
fn triggers_of_the_history_fire() {
    let shop = open();
    shop.cluster.superuser("postgres").batch_execute(SEEN).unwrap();
    shop.cluster.execute(
        "postgres",
        &[
            "CREATE FUNCTION public.mark() RETURNS trigger LANGUAGE plpgsql AS
               $$ BEGIN NEW.message := 'marked'; RETURN NEW; END $$",
            "CREATE TRIGGER mark BEFORE INSERT ON awty.future_job_history FOR EACH ROW EXECUTE FUNCTION public.mark()",
            "CREATE TRIGGER see AFTER INSERT ON awty.future_job_history FOR EACH ROW EXECUTE FUNCTION public.see()",
        ],
    );
    end_each_way(&shop, "marked", "");
    assert_eq!(seen(&shop), "bad, cancelled, later, set 1, set 2, single");
    let marked = "SELECT bool_and(message = 'marked') FROM awty.future_job_history";
    assert!(shop.cluster.value::<bool>("postgres", marked));
}

#[test]
fn a_trigger_of_the_pending_checks_fires() {
    for when in ["BEFORE", "AFTER"] {
        let shop = open();
        shop.cluster.superuser("postgres").batch_execute(SEEN).unwrap();
        let see = "CREATE OR REPLACE FUNCTION public.see() RETURNS trigger LANGUAGE plpgsql AS
                   $$ BEGIN INSERT INTO public.seen VALUES (OLD.entity_key); RETURN OLD; END $$";
        let trigger =
            format!("CREATE TRIGGER see {when} DELETE ON awty.future_job FOR EACH ROW EXECUTE FUNCTION public.see()");
        shop.cluster.execute("postgres", &[see, &trigger]);
        end_each_way(&shop, "deleted", "");
        assert_eq!(seen(&shop), "bad, cancelled, later, set 1, set 2, single", "{when}");
    }
}
