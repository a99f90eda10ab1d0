use awty_testkit::reference::{page, reference};

#[test]
fn the_reference_is_in_step_with_the_catalog_and_the_source() {
    let (wanted, written) = (reference(), std::fs::read_to_string(page()).unwrap_or_default());
    let differs = wanted.lines().zip(written.lines()).enumerate().find(|(_, (wanted, written))| wanted != written);
    assert!(wanted == written, "docs/reference.md is old; run `make reference`. The first difference: {differs:?}");
}
