//! The official conformance suite through the gateway, compared check by check with the same server reached directly.

mod accepted;
mod clients;
mod logins;
mod servers;
mod table;

use trunkline_tests::conformance::{Behind, Edition, Era, Leg, Server, Suite, Transport};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_check_is_worse_through_the_gateway_than_directly() {
    let Some(suite) = Suite::ready() else { return };
    let behind = [&Behind::BRIDGED[..], &Behind::BOTH].concat();
    none_is_worse(&servers::judge(suite, Server::TypeScript, &behind, &Leg::SERVERS).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long; .ci/full runs it"]
async fn no_check_is_worse_through_the_gateway_than_directly_with_a_server_in_python() {
    let Some(suite) = Suite::ready() else { return };
    none_is_worse(&servers::judge(suite, Server::Python, &Behind::BOTH, &Leg::SERVERS).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long; .ci/full runs it"]
async fn no_check_is_worse_through_the_gateway_than_directly_with_a_server_in_rust() {
    let Some(suite) = Suite::ready_with_rust() else { return };
    let behind = Behind { transport: Transport::Http, era: Era::Both };
    none_is_worse(&servers::judge(suite, Server::Rust, &[behind], &Leg::SERVERS).await);
}

fn none_is_worse(verdict: &servers::Verdict) {
    table::print(verdict);
    assert!(verdict.faults().is_empty(), "worse through the gateway:\n{}", verdict.faults().join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long; .ci/full runs it"]
async fn a_gateway_that_is_held_to_one_era_is_found_out() {
    let Some(suite) = Suite::ready() else { return };
    let handshake = Leg { edition: Edition::Newest, scenarios: "all", revision: Some("2025-06-18") };
    let behind = [(Era::Mistaken, true), (Era::Both, false)];
    let behind = behind.map(|(era, is_worse)| (Behind { transport: Transport::Http, era }, is_worse));
    let servers = Server::SCRIPTS.into_iter().chain(Suite::ready_with_rust().map(|_| Server::Rust));
    for server in servers {
        for (behind, is_worse) in behind {
            let found = servers::worse(suite, server, behind, handshake, "tools-call-elicitation").await;
            assert_eq!(!found.is_empty(), is_worse, "{server}, {behind}: {found:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long; .ci/full runs it"]
async fn every_scenario_for_clients_passes_with_the_gateway_in_between() {
    let Some(suite) = Suite::ready() else { return };
    let runs = clients::run_all(suite).await;
    table::print_clients(&runs);
    let faults: Vec<String> = runs.iter().filter_map(clients::Run::fault).collect();
    assert!(faults.is_empty(), "not passed through the gateway:\n{}", faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long; .ci/full runs it"]
async fn no_scenario_about_authorization_is_worse_than_with_the_official_clients() {
    let Some(suite) = Suite::ready() else { return };
    let runs = logins::run_all(suite).await;
    table::print_logins(&runs);
    let worse: Vec<String> = runs.iter().filter_map(logins::Run::worse).collect();
    assert!(worse.is_empty(), "worse than with the official SDK:\n{}", worse.join("\n"));
}
