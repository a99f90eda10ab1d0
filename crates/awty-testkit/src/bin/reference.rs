use std::process::ExitCode;

fn main() -> ExitCode {
    let page = awty_testkit::reference::page();
    match std::fs::write(&page, awty_testkit::reference::reference()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", page.display());
            ExitCode::FAILURE
        }
    }
}
