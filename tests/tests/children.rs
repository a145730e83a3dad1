//! What the gateway's children may not do, whatever they become.

use trunkline_tests::client::Client;
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::process::Program;
use trunkline_tests::revision::Revision;
use trunkline_tests::shell;

const REVISION: Revision = Revision::R2025_11_25;

/// An upstream that says under which limits what it starts runs.
fn frank() -> Program {
    let body = r#"said "$(grep -h -e 'core file size' -e NoNewPrivs /proc/self/limits /proc/self/status | tr -s ' \t\n' ' ')""#;
    shell::upstream(&[("limits", body)])
}

#[tokio::test]
async fn children_leave_no_core_and_gain_no_rights_where_that_is_asked_for() {
    let config = Config::new().section("[defaults]\nno_new_privs = true").program("bound", &frank(), "").program(
        "free",
        &frank(),
        "no_new_privs = false",
    );
    let gateway = Gateway::serve(&config).await;
    let client = Client::connect(&gateway.reach(), REVISION).await;
    let both = |tools: &[String]| ["bound__limits", "free__limits"].iter().all(|name| tools.contains(&(*name).into()));
    client.tools_until("both are up", both).await;
    for (name, rights) in [("bound__limits", "NoNewPrivs: 1"), ("free__limits", "NoNewPrivs: 0")] {
        let said = client.call(name, "{}").await.text();
        assert!(said.contains("Max core file size 0 0 bytes") && said.contains(rights), "{name}: {said}");
    }
}

#[tokio::test]
async fn children_of_a_gateway_on_stdio_leave_no_core_and_may_gain_rights_unless_it_is_said() {
    let gateway = StdioGateway::prepare(&Config::new().program("a", &frank(), ""));
    let client = Client::connect(&gateway.reach(), REVISION).await;
    client.tools_until("it is up", |tools| tools.contains(&"a__limits".into())).await;
    let said = client.call("a__limits", "{}").await.text();
    assert!(said.contains("Max core file size 0 0 bytes") && said.contains("NoNewPrivs: 0"), "{said}");
}
