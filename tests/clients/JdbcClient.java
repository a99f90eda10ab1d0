// Tests the twelve tasks of docs/clients.md with JDBC.
import java.sql.*;
import java.time.OffsetDateTime;
import java.util.*;
import org.postgresql.*;
import org.postgresql.util.*;

public class JdbcClient {
    static final String NAME = "jdbc";
    static Connection db;

    static void ok(String what) {
        System.out.println(NAME + ": " + what);
    }

    static void check(boolean good, Object what) {
        if (!good) throw new AssertionError(what);
    }

    static Object one(String sql, Object... values) throws SQLException {
        try (PreparedStatement statement = db.prepareStatement(sql)) {
            for (int n = 0; n < values.length; n++) {
                if (values[n] instanceof String[] texts) statement.setArray(n + 1, db.createArrayOf("text", texts));
                else statement.setObject(n + 1, values[n]);
            }
            try (ResultSet rows = statement.executeQuery()) {
                check(rows.next(), sql);
                return rows.getObject(1);
            }
        }
    }

    static void run(String sql) throws SQLException {
        try (Statement statement = db.createStatement()) {
            statement.execute(sql);
        }
    }

    static PGobject json(String text) throws SQLException {
        PGobject json = new PGobject();
        json.setType("jsonb");
        json.setValue(text);
        return json;
    }

    static void refused(String code, String sql, Object... values) throws SQLException {
        try {
            one(sql, values);
        } catch (PSQLException error) {
            check(error.getSQLState().equals(code) && error.getServerErrorMessage().getHint() != null, error);
            return;
        }
        throw new AssertionError(sql + " was accepted");
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, String> at = System.getenv();
        // pgjdbc accepts no socket directory, so the set-up lets the cluster listen on loopback.
        String url = "jdbc:postgresql://127.0.0.1:" + at.get("PGPORT") + "/" + at.get("PGDATABASE") + "?user=" + at.get("PGUSER");
        db = DriverManager.getConnection(url);
        PGInterval hour = new PGInterval(0, 0, 0, 1, 0, 0);
        run("CREATE SCHEMA " + NAME);
        run("CREATE FUNCTION " + NAME + ".tidy(awty.future_job) RETURNS void BEGIN ATOMIC SELECT 1; END");
        run("CREATE FUNCTION " + NAME + ".breaks(awty.future_job) RETURNS void LANGUAGE plpgsql AS 'BEGIN RAISE ''no luck''; END'");
        one("SELECT awty.register(?, ?, timeout => ?, max_attempts => ?)", NAME, NAME + ".tidy", new PGInterval(0, 0, 0, 0, 0, 20), 4);
        one("SELECT awty.register(?)", NAME + "_mail");
        ok("register");

        OffsetDateTime tomorrow = OffsetDateTime.now().plusDays(1);
        Object id = one("SELECT awty.schedule(?, ?, ?, at => ?, args => ?)", "orders", "1", NAME, tomorrow, json("{\"a\": 1}"));
        check("1 {\"a\": 1}".equals(one("SELECT entity_key || ' ' || args FROM awty.future_job WHERE id = ?", id)), id);
        one("SELECT awty.schedule(?, ?, ?, after => ?)", "orders", 2, NAME, hour);
        one("SELECT awty.schedule(?, ?, ?, after => ?::interval)", "orders", UUID.randomUUID(), NAME, "1 hour");
        ok("schedule");

        check(one("SELECT awty.schedule_many(?, ?, ?, after => ?)", "orders", new String[] {"a", "b"}, NAME, hour).equals(2L), "many");
        check(one("SELECT awty.cancel_many(?, ?, ?)", "orders", new String[] {"a", "b"}, NAME).equals(2L), "cancel_many");
        ok("schedule_many, cancel_many");
        check(one("SELECT awty.cancel(?, ?)", "orders", "1").equals(1L), "cancel");
        ok("cancel");
        one("SELECT awty.check_now(?, ?, ?)", "orders", 2, NAME);
        ok("check_now");

        run("CREATE TABLE " + NAME + ".orders (id bigint PRIMARY KEY, placed_at timestamptz NOT NULL, shipped boolean NOT NULL DEFAULT false)");
        Object rule = one("SELECT awty.watch(?::regclass, until => ?, within => ?, escalate => ?::interval[], since => ?, rule => ?)",
            NAME + ".orders", "shipped", hour, new String[] {"2 hours"}, "placed_at", NAME + "_orders");
        try (PreparedStatement insert = db.prepareStatement("INSERT INTO " + NAME + ".orders VALUES (?, now())")) {
            for (long number = 1; number <= 2; number++) {
                insert.setLong(1, number);
                insert.addBatch();
            }
            insert.executeBatch();
        }
        check(one("SELECT count(*) FROM awty.future_job WHERE job = ? AND entity_key IN ('1', '2')", rule).equals(2L), "watch");
        ok("watch");
        check(one("SELECT awty.repeat(?, every => ?) > now()", NAME, new PGInterval(0, 0, 0, 0, 10, 0)).equals(true), "repeat");
        one("SELECT awty.repeat(?, every => ?, entity_key => ?::text)", NAME, hour, 5);
        ok("repeat");

        for (String view : List.of("status", "job", "job_status", "future_job", "future_job_history", "repetition", "rule", "alert", "late",
            "lease", "target", "attempt", "failing", "running", "calendar")) {
            try (Statement statement = db.createStatement(); ResultSet rows = statement.executeQuery("SELECT * FROM awty." + view)) {
                while (rows.next()) {
                    for (int n = 1; n <= rows.getMetaData().getColumnCount(); n++) rows.getObject(n);
                }
            }
        }
        check(one("SELECT role::text FROM awty.job_status WHERE job = ? AND role = ?", NAME, "app").equals("app"), "views");
        ok("views");

        for (String key : List.of("x", "y")) {
            one("SELECT awty.schedule(?, ?, ?, after => ?)", "mail", key, NAME + "_mail", new PGInterval(0, 0, 0, 0, 0, 0));
        }
        List<Long> leases = new ArrayList<>();
        while (leases.size() < 2) {
            try (PreparedStatement claim = db.prepareStatement("SELECT lease FROM awty.claim(?, ?, ?)")) {
                claim.setArray(1, db.createArrayOf("text", new String[] {NAME + "_mail"}));
                claim.setString(2, "w");
                claim.setInt(3, 2 - leases.size());
                try (ResultSet rows = claim.executeQuery()) {
                    while (rows.next()) leases.add(rows.getLong(1));
                }
            }
            if (leases.size() < 2) run("SELECT pg_sleep_for(greatest(awty.next_claim_in('{" + NAME + "_mail}'), '50 ms'))");
        }
        check(one("SELECT awty.complete(?, ?)", leases.get(0), tomorrow).equals("rescheduled"), "complete");
        check(one("SELECT awty.fail(?, ?, final => ?)", leases.get(1), "no address", true).equals("ended"), "fail");
        ok("claim, complete, fail");

        refused("42704", "SELECT awty.schedule('orders', '1', 'nobody', after => ?)", hour);
        refused("22004", "SELECT awty.schedule('orders', ?::text, ?, after => ?)", null, NAME, hour);
        ok("errors");

        run("LISTEN " + NAME);
        one("SELECT awty.register(?, ?, max_attempts => 1, notify => ?)", NAME + "_breaks", NAME + ".breaks", NAME);
        Object failing = one("SELECT awty.schedule('orders', '9', ?, after => '0')", NAME + "_breaks");
        PGNotification[] told = db.unwrap(PGConnection.class).getNotifications(120_000);
        check(told != null && told.length > 0 && told[0].getParameter().contains(failing.toString()), "no notification");
        ok("LISTEN");

        try (PreparedStatement again = db.prepareStatement("SELECT awty.schedule('again', ?, ?, after => ?)")) {
            for (int number = 0; number < 20; number++) { // the server prepares the statement with the fifth call
                again.setInt(1, number % 3);
                again.setString(2, NAME);
                again.setObject(3, hour);
                again.executeQuery().close();
            }
        }
        check(one("SELECT count(*) FROM awty.future_job WHERE entity_name = 'again' AND job = ?", NAME).equals(3L), "again");
        ok("again and again, prepared");
        db.close();
    }
}
