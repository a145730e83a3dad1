//! The official conformance suite through the gateway, compared check by check with the same server reached directly.

mod accepted;
mod clients;
mod servers;
mod table;

use trunkline_tests::conformance::Suite;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_check_is_worse_through_the_gateway_than_directly() {
    let Some(suite) = Suite::ready() else { return };
    let verdict = servers::judge(suite).await;
    table::print(&verdict);
    assert!(verdict.faults().is_empty(), "worse through the gateway:\n{}", verdict.faults().join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_scenario_for_clients_passes_with_the_gateway_in_between() {
    let Some(suite) = Suite::ready() else { return };
    let runs = clients::run_all(suite).await;
    table::print_clients(&runs);
    let faults: Vec<String> = runs.iter().filter_map(clients::Run::fault).collect();
    assert!(faults.is_empty(), "not passed through the gateway:\n{}", faults.join("\n"));
}
