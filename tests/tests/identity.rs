//! Access tokens of an authorization server that others have written.

use trunkline_tests::client::{Client, Request, http};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::peers::Identity;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;

const RESOURCE: &str = "https://mcp.example.com/mcp";

#[tokio::test]
async fn tokens_of_oidc_provider_are_taken_signed_or_asked_about_and_those_for_others_are_not() {
    let Some(identity) = Identity::start().await else { return };
    for revision in [Revision::R2025_06_18, Revision::R2025_11_25, Revision::MODERN] {
        let up = Upstream::http(Script::new("up", revision)).await;
        let sections = format!(
            "[auth]\nmode = \"oauth\"\n[auth.roles.reader]\nupstreams = [\"*\"]\ntools = [\"up__echo\"]\n\
             [auth.roles.all]\nupstreams = [\"*\"]\n[[auth.issuers]]\nissuer = \"{}\"\nscopes = [\"read\"]\nroles = [\"reader\"]\n\
             rules = [{{ scope = \"admin\", roles = [\"all\"] }}]\n\
             introspection = {{ client_id = \"gate\", client_secret = \"gate-secret\" }}",
            identity.url
        );
        let config = Config::new().upstream(&up).server("public_url = \"https://mcp.example.com\"").section(&sections);
        let gateway = Gateway::serve(&config).await;
        for (client, scope, is_all) in [
            ("desk", "read", false),
            ("desk", "read%20admin", true),
            ("quiet", "read", false),
            ("quiet", "read+admin", true),
        ] {
            let token = identity.token(client, RESOURCE, scope).await;
            let client = Client::bearing(&gateway.reach(), revision, &token).await;
            let tools = client.tools_until("the upstream is there", |tools| tools.contains(&"up__echo".into())).await;
            assert_eq!(tools.len() > 1, is_all, "{tools:?}");
            assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        }
        for (client, resource, scope, expected) in [
            ("desk", "https://other.example.com/mcp", "read", 401),
            ("quiet", "https://other.example.com/mcp", "read", 401),
            ("desk", RESOURCE, "admin", 403),
            ("quiet", RESOURCE, "admin", 403),
        ] {
            let bearer = format!("Bearer {}", identity.token(client, resource, scope).await);
            let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
            let text = Request::new("tools/list", "{}").text(revision, "1");
            let answer = http::exchange(&gateway.url, "POST", &headers, &text).await;
            assert_eq!(answer.status, expected, "{client} {resource} {scope}");
        }
    }
}
