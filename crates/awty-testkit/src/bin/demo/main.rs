//! Runs a shop with late orders, and a gateway with misbehaving endpoints. The cluster keeps running after the program
//! has ended. The exit status is 0 only if exactly the late orders have alerts.

mod gateway;
mod receiver;
mod report;
mod shop;
mod view;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use awty_testkit::poll;

use crate::shop::Shop;
use crate::view::View;

const DRAIN: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(directory) = arguments.next() else {
        eprintln!("usage: demo DIRECTORY (run it by `make demo`)");
        return ExitCode::from(2);
    };
    if let (Some("endpoints"), Some(address)) = (arguments.next().as_deref(), arguments.next()) {
        receiver::serve(&address);
    }
    println!("== start PostgreSQL with awty, slots of one second, and open a shop");
    let mut shop = Shop::open(Path::new(&directory));

    println!("== pgbench places 40 orders a second for {} s and ships most of them", shop::SECONDS);
    let mut view = View::new(&shop.cluster);
    let mut customers = shop.customers();
    while customers.is_busy_for(Duration::from_secs(1)) {
        view.show();
    }
    if let Err(message) = customers.result() {
        eprintln!("{message}");
        return ExitCode::FAILURE;
    }

    view.note("== the shop closes; the last orders' checks are still to come");
    let drained = poll("all checks to be done", DRAIN, || {
        view.show_each_second();
        match shop.pending() {
            0 => Ok(()),
            pending => Err(format!("{pending} pending")),
        }
    });
    view.show();
    view.end();
    if let Err(message) = &drained {
        eprintln!("{message}\n{}", shop.cluster.log_tail());
    }

    let right = report::print(&shop.cluster);
    println!("\n== the gateway calls three endpoints: one is well, one misbehaves now and then, one is not there");
    let shown = gateway::show(&shop.cluster);
    if let Err(message) = &shown {
        eprintln!("{message}");
    }
    report::print_end(&shop.cluster);
    if right && shown.is_ok() && drained.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
