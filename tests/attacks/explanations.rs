use crate::field::Field;

#[test]
fn a_stop_since_minus_infinity_breaks_no_explanation_of_another_role() {
    let field = Field::new();
    field.job("alice", "hers", "BEGIN RETURN NULL; END");
    field.sql("alice", "SELECT awty.schedule('orders', '0', 'hers', after => '1 day')");
    field.sql(
        "mallory",
        "CREATE TABLE mallory.orders (id int PRIMARY KEY, s text, halted boolean NOT NULL, at timestamptz);
         SELECT awty.watch('mallory.orders', rule => 'his', until => 's IS NOT NULL', since => 'at', within => '1 s', stopped => 'halted');
         INSERT INTO mallory.orders VALUES (0, NULL, true, '-infinity');
         SELECT awty.allow('his', 'alice', 'read')",
    );
    let explained = || -> String {
        field.one(
            "alice",
            "SELECT string_agg(job || ' ' || regexp_replace(detail, '20[-0-9:.+ ]+', 'T'), '; ' ORDER BY job)
             FROM awty.explain('orders', 0) WHERE job = 'hers' AND event = 'next' OR detail LIKE 'stopped%'",
        )
    };
    assert_eq!(explained(), "hers it is not due yet; his stopped since -infinity");
    field.sql("mallory", "UPDATE mallory.orders SET halted = false; UPDATE mallory.orders SET halted = true");
    assert_eq!(explained(), "hers it is not due yet; his stopped since T");
    field.sql("alice", "SELECT * FROM awty.late");
}
