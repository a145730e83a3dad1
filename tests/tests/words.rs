//! What a person reads while a server starts for the first time, and while a gateway ends.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use trunkline_tests::client::{Client, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::Order;
use trunkline_tests::process::{self, Program};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::within;

use crate::laptop::{in_home, text};

#[tokio::test]
async fn a_program_that_may_still_download_what_it_starts_is_named_while_it_does_not_answer() {
    let scratch = Scratch::new();
    let slow = |name: &str| {
        let path = scratch.file(name, "#!/bin/sh\nexec sleep 600\n");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
        Program { path, args: Vec::new(), env: Vec::new() }
    };
    let more = "startup_timeout = '10m'";
    let config = ["npx", "uvx"].iter().fold(Config::new(), |config, name| config.program(name, &slow(name), more));
    let gateway = Gateway::serve(&config).await;
    for name in ["npx", "uvx"] {
        let words = format!("no answer yet (`{name}` may still be downloading)");
        gateway.look_until("/readyz?verbose", "it is said", |page| page.contains(&words)).await;
    }
}

#[tokio::test]
async fn at_the_end_it_is_said_how_long_calls_are_waited_for() {
    let upstream = Upstream::stdio(Script::new("up", Revision::R2025_11_25)).await;
    let config = Config::new().upstream(&upstream).section("[server.shutdown]\ngrace = '7s'");
    let gateway = Gateway::serve(&config).await;
    let client = Client::connect(&gateway.reach(), Revision::R2025_11_25).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__wait".into())).await;
    let open = client.start(tool("up__wait", "{\"gate\":\"last\"}")).await;
    upstream.waiting_at("last").await;
    process::signal(gateway.pid, "TERM");
    gateway.says(&["shutting down: waiting up to 7 s for calls in progress"]).await;
    upstream.order(Order::Open("last".into())).await;
    assert_eq!(open.answer().await.text(), "released");
    assert!(gateway.ended().await.success());
}

#[tokio::test]
async fn the_end_of_stdin_is_said_with_the_time_that_calls_still_have() {
    let home = Scratch::new();
    let _file = home.file("trunkline.toml", "[upstreams.a]\ncommand = 'sh'\nstart = 'lazy'\n");
    let mut command = in_home(&home, &["stdio", "--log-level", "info"]);
    let ended = within("it ends", command.stdin(Stdio::null()).output()).await.expect("it runs");
    let said = text(&ended.stderr);
    assert!(said.contains("stdin closed; shutting down: waiting up to 2 s for calls in progress"), "{said}");
}
