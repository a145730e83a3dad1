//! Two hundred upstreams at once, some of which never say a word: the others are there without waiting for them.

use std::path::PathBuf;
use std::time::Duration;

use trunkline_tests::client::Client;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::process::Program;
use trunkline_tests::revision::Revision;

const COUNT: usize = 200;
/// Every so many hangs.
const HANGS: usize = 25;
const PATIENCE: Duration = Duration::from_secs(180);

/// An upstream in a few lines of shell.
const SERVES: &str = r#"while read -r line; do
    id=${line#*\"id\":}; id=${id%%,*}
    case "$line" in
    *server/discover*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no"}}' ;;
    *\"initialize\"*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}' ;;
    *tools/list*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}' ;;
    esac
done"#;
const SAYS_NOTHING: &str = "while read -r line; do :; done";

fn hangs(number: usize) -> bool {
    number.is_multiple_of(HANGS)
}

#[tokio::test]
async fn two_hundred_start_and_the_healthy_wait_for_none_that_hangs() {
    let _alone = super::whole().await;
    let mut config = Config::new();
    for number in 0..COUNT {
        let script = if hangs(number) { SAYS_NOTHING } else { SERVES };
        let program =
            Program { path: PathBuf::from("/bin/sh"), args: vec!["-c".to_owned(), script.to_owned()], env: Vec::new() };
        // None of them is given up before the others are there.
        config = config.program(&format!("up{number}"), &program, "startup_timeout = \"10m\"");
    }
    let gateway = Gateway::serve(&config).await;
    let client = Client::connect(&gateway.reach(), Revision::R2025_11_25).await;
    let healthy = COUNT - COUNT.div_ceil(HANGS);
    let is_there = |page: &str| page.matches("  ready  ").count() == healthy;
    let page = gateway.look_until_within(PATIENCE, "/readyz?verbose", "all the healthy are there", is_there).await;
    let names: Vec<_> =
        page.lines().skip(1).map(|line| line.split(' ').next().unwrap_or_default()).take(COUNT).collect();
    let wanted: Vec<_> = (0..COUNT).map(|number| format!("up{number}")).collect();
    assert_eq!(names, wanted, "in the order of the configuration");
    let hanging = page.lines().filter(|line| line.contains("  starting  ")).count();
    assert_eq!(hanging, COUNT - healthy, "none of those that hang was waited for: {page}");
    let tools = client.tools().await;
    let wanted: Vec<_> = (0..COUNT).filter(|number| !hangs(*number)).map(|number| format!("up{number}__t")).collect();
    assert_eq!(tools, wanted);
    assert!(gateway.stop().await.success());
}
