//! `trunkline doctor` beside gateways that run: what it says is of the configuration that is looked at.

use tokio::process::Command;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::process::{GATEWAY, beside};
use trunkline_tests::scratch::Scratch;
use trunkline_tests::within::within;

use crate::laptop::text;

/// What the doctor says in a folder, of a user that has this gateway.
async fn doctor(gateway: &Gateway, folder: &Scratch) -> String {
    let mut command = Command::new(beside(GATEWAY));
    command.arg("doctor").env("HOME", folder.path()).env("XDG_RUNTIME_DIR", gateway.runtime());
    command.env_remove("XDG_CONFIG_HOME").env_remove("TRUNKLINE_CONFIG").current_dir(folder.path()).kill_on_drop(true);
    text(&within("it ends", command.output()).await.expect("it runs").stdout)
}

#[tokio::test]
async fn the_doctor_takes_no_gateway_of_another_configuration_for_that_of_this_one() {
    let ill = "[upstreams.ill]\ncommand = \"/no/such/command\"";
    let gateway = Gateway::serve(&Config::new().section(ill)).await;
    gateway.look_until("/readyz?verbose", "it has failed", |page| page.contains("/no/such/command")).await;
    let pid = gateway.pid;
    let folder = Scratch::new();
    // Where nothing is configured, the one that runs is looked at, and named.
    let alone = doctor(&gateway, &folder).await;
    let foreign = format!("tools: 0, by the gateway that runs (process {pid}), which has a configuration of its own");
    assert!(alone.contains(&foreign) && alone.contains("upstream `ill` (failed)"), "{alone}");
    let _file = folder.file("trunkline.toml", "[upstreams.a]\ncommand = '/bin/sh'\n");
    let own = doctor(&gateway, &folder).await;
    let other = format!("tools: not known, since the gateway that runs (process {pid}) has another configuration");
    assert!(own.contains(&other) && !own.contains("`ill`") && own.ends_with("No problems found\n"), "{own}");
}
