//! `trunkline doctor` beside gateways that run: what it says is of the configuration that is looked at.

use tokio::process::Command;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::process::{GATEWAY, beside};
use trunkline_tests::scratch::Scratch;
use trunkline_tests::shell;
use trunkline_tests::within::{until, within};

use crate::laptop::{entry, in_home, text};

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

#[tokio::test]
async fn where_no_gateway_runs_the_limits_of_hosts_are_judged_by_the_lists_that_were_kept() {
    let home = Scratch::new();
    let long = "a".repeat(48);
    let well = entry("sh", &shell::upstream(&[("hello", "said ok"), (&*long, "said ok"), ("shut", "said ok")]));
    let filter = "tools = { deny = ['shut'] }\n";
    // As many characters as most hosts take, and more than this one does.
    let naming = "[naming]\nmax_length = 64\n";
    let broken = "[upstreams.broken]\ncommand = '/bin/false'\n";
    let _file = home.file("trunkline.toml", &format!("{naming}{well}{filter}{broken}"));
    let run = async |args: &[&str]| {
        let mut command = in_home(&home, args);
        command.env_remove("XDG_CACHE_HOME").env_remove("XDG_STATE_HOME");
        text(&within("the command ends", command.output()).await.expect("it runs").stdout)
    };
    let before = run(&["doctor", "--host", "cursor"]).await;
    assert!(before.contains("tools: not known, since no gateway runs and no list is kept"), "{before}");
    // What is read is kept by the gateway that reads it.
    let doctor = until("the list is kept", || async {
        run(&["tools", "sh"]).await;
        let said = run(&["doctor", "--host", "cursor"]).await;
        (!said.contains("no list is kept")).then_some(said)
    })
    .await;
    // As clients see them: without what is denied, and with the prefix.
    let count = "tools: 2, as they were last read; not known of broken; no gateway runs\n";
    let limit = format!("with 9 of its own; one is longer: `sh__{long}`");
    assert!(doctor.contains(count) && doctor.contains(&limit), "{doctor}");
    let json: serde_json::Value = serde_json::from_str(&run(&["doctor", "--json"]).await).expect("it is JSON");
    assert_eq!(json["tools"], 2, "{json:#}");
    // Another configuration of the server has no list of this one.
    let _file = home.file("trunkline.toml", &format!("{well}env = {{ A = 'b' }}\n{broken}"));
    let other = run(&["doctor"]).await;
    assert!(other.contains("no list is kept"), "{other}");
}

#[tokio::test]
async fn doctor_names_why_the_signing_key_is_not_kept() {
    let home = Scratch::new();
    let _file = home.file("trunkline.toml", "[upstreams.a]\ncommand = '/bin/sh'\n");
    std::fs::create_dir_all(home.path().join(".local")).expect("a folder is made");
    let run = async || {
        let mut command = in_home(&home, &["doctor"]);
        command.env_remove("XDG_STATE_HOME");
        text(&within("the command ends", command.output()).await.expect("it runs").stdout)
    };
    let good = run().await;
    assert!(!good.contains("signing key"), "{good}");
    let _no_folder = home.file(".local/state", "");
    let told = run().await;
    assert!(told.contains("signing key not kept") && told.contains(".local/state/trunkline/signing-key"), "{told}");
}
