use super::*;
use serde_json::json;

#[test]
fn each_value_is_escaped() {
    let row = json!({"name": "<script>alert(1)</script>", "key": "\"><img src=x onerror=alert(1)>"});
    let cells = vec![vec![entity(&row), html! { (string(&row["key"])) }]];
    let page = table("<b>", &[text("Row"), text("Key")], cells).into_string();
    assert!(!page.contains("<script") && !page.contains("<img") && page.contains("&lt;script&gt;"));
    let forms = button("/x", "<i>", &[("key", string(&row["key"]))]).into_string();
    assert!(!forms.contains("<i>") && !forms.contains("\"><img"), "{forms}");
}

#[test]
fn a_command_has_no_control_characters() {
    let shown = command("awty.resume('a\u{3}b\u{1b}[201~\r\u{9b}\u{7f}');\n\tx").into_string();
    assert_eq!(
        shown,
        "<pre class=\"command\"><code>awty.resume('a\u{2403}b\u{241b}[201~\u{240d}\u{fffd}\u{2421}');\n\tx</code></pre>"
    );
}

#[test]
fn a_late_row_has_another_word_than_one_that_is_due() {
    let told = |at: &str, is_late| due(&json!(at), is_late).into_string();
    assert!(told("2026-11-26T10:00:00Z", true).contains("</span> late</span> since <time datetime=\"2026-11-26T10"));
    assert!(told("2026-11-26T10:00:00Z", false).contains("</span> due</span> <time datetime=\"2026-11-26T10"));
    let ago = |seconds| json!((crate::clock::now() - TimeDelta::seconds(seconds)).to_rfc3339());
    assert_eq!([-60, 0, 5, 20].map(|seconds| is_late(&ago(seconds))), [false, false, false, true]);
    assert!(!is_late(&Value::Null));
}

#[test]
fn each_cell_has_its_heading() {
    let page = table("Late", &[text("Row"), number("Told")], vec![vec![html! { "a" }, whole(&json!(3))]]);
    assert!(page.into_string().contains("data-label=\"Told\" class=\"number\"><div>3</div></td>"));
}
