//! A day of three persons with official clients: they log in at the gateway by an identity provider, and at each of two upstreams
//! for themselves. Nothing of one reaches another.

mod guarded;
mod person;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use trunkline_tests::conformance::Suite;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::identity::AUTHORIZATION;
use trunkline_tests::peers::Identity;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::within;

use guarded::Guarded;
use person::{Person, Told};

/// How long an access token of the gateway's clients lasts in seconds, and so many seconds later than it ends it is let in.
const LASTS: u32 = 12;
const SKEW: u32 = 8;
/// How long a token of the vault lasts in seconds.
const OF_VAULT: u64 = 5;

/// What they all work with.
struct World {
    provider: Identity,
    /// The gateway registers itself there.
    tracker: Guarded,
    /// The gateway is registered there by hand.
    vault: Guarded,
    /// Nobody ever logs in there.
    attic: Upstream,
}

impl World {
    /// What is configured, where clients need these scopes.
    fn config(&self, scopes: &str) -> Config {
        let auth = |more: &str| format!("auth = {{ type = \"oauth\", logins = \"per-principal\"{more} }}");
        let client = format!(
            ", client_id = \"by-hand\", client_secret = \"secret-of-the-gateway\", issuer = \"{}\"",
            self.vault.identity.url
        );
        let sections = format!(
            "[auth]\nmode = \"oauth\"\n[auth.roles.reader]\nupstreams = [\"tracker\", \"vault\"]\n\
             tools = [\"tracker__echo\", \"vault__echo\"]\n[auth.roles.operator]\nupstreams = [\"*\"]\n\
             [auth.roles.writer]\nupstreams = [\"tracker\"]\ntools = [\"tracker__tool_0\"]\n\
             [[auth.issuers]]\nissuer = \"{}\"\nscopes = [{scopes}]\nroles = [\"reader\"]\nclock_skew = \"{SKEW}s\"\n\
             rules = [{{ claim = \"sub\", value = \"cyd\", roles = [\"operator\"] }}, {{ scope = \"admin\", roles = [\"writer\"] }}]\n\
             [audit]\nfile = \"$FILE.audit\"",
            self.provider.url
        );
        let config = Config::new().server("public_url = \"http://127.0.0.1:$PORT\"").section(&sections);
        let config = config.upstream_with(&self.tracker.upstream, &auth(""));
        config.upstream_with(&self.vault.upstream, &auth(&client)).upstream_with(&self.attic, &auth(""))
    }
}

#[tokio::test]
async fn three_persons_with_official_clients_spend_a_day_and_nothing_of_one_reaches_another() {
    let Some(suite) = Suite::ready() else { return };
    let Some(provider) = Identity::lasting(LASTS).await else { return };
    let tracker = Guarded::start("tracker", Revision::R2025_11_25).await;
    let vault = Guarded::start("vault", Revision::MODERN).await;
    let attic = Upstream::http(Script::new("attic", Revision::MODERN)).await;
    let world = World { provider, tracker, vault, attic };
    let gateway = Gateway::serve(&world.config("\"read\"")).await;
    let persons = [("ann", "sdk1"), ("bob", "python"), ("cyd", "sdk2")];
    let mut persons = persons.map(|(name, sdk)| Person::with(name, sdk, suite, &gateway.url));
    they_log_in(&world, &mut persons).await;
    tokens_end_and_are_refreshed(&world, &mut persons).await;
    they_step_up(&world, &gateway, &mut persons).await;
    two_are_revoked(&world, &mut persons).await;
    let [ann, bob, cyd] = &mut persons;
    let told: [Told; 3] = tokio::join!(ann.tells(), bob.tells(), cyd.tells()).into();
    // What was handed in is written before the end.
    assert!(gateway.stop().await.success());
    let audit = std::fs::read_to_string(format!("{}.audit", gateway.file.display())).expect("it is there");
    each_has_its_own(&world, &persons, &told);
    the_audit_tells_all(&world, &persons, &audit);
    let own = told.iter().flat_map(|told| &told.own).map(String::as_str);
    for secret in own.chain(["canary-", "-says-", "secret-of-the-gateway"]) {
        assert!(!audit.contains(secret), "the audit has {secret}");
        let line = gateway.stderr.find(0, |line| line.contains(secret).then(|| line.clone()));
        assert_eq!(line, None, "the log has {secret}");
    }
}

/// Each sees what its role shows, and of that what it has logged in to.
async fn they_log_in(world: &World, persons: &mut [Person; 3]) {
    let logins = ["attic", "tracker", "vault"].map(|upstream| format!("{upstream}__trunkline_login"));
    let [ann, bob, cyd] = persons;
    let (of_ann, of_bob, of_cyd) = tokio::join!(ann.tools(), bob.tools(), cyd.tools());
    assert_eq!((&of_ann[..], &of_bob[..], &of_cyd[..]), (&logins[1..], &logins[1..], &logins[..]));
    ann.logs_in("tracker").await;
    assert_eq!(ann.tools().await, ["tracker__echo", "vault__trunkline_login"]);
    let (of_bob, of_cyd) = tokio::join!(bob.tools(), cyd.tools());
    assert_eq!((&of_bob[..], &of_cyd[..]), (&logins[1..], &logins[..]), "a login of another is none of theirs");
    tokio::join!(bob.logs_in("tracker"), cyd.logs_in("tracker"));
    world.vault.identity.lasting(OF_VAULT);
    tokio::join!(ann.logs_in("vault"), bob.logs_in("vault"), cyd.logs_in("vault"));
    for reader in [&mut *ann, bob] {
        assert_eq!(reader.tools().await, ["tracker__echo", "vault__echo"], "{}", reader.name);
        let unknown = json!({ "do": "call", "name": "tracker__tool_0", "arguments": {} });
        let said = reader.tries(unknown).await["error"].to_string();
        assert!(said.contains("Unknown tool"), "{}: {said}", reader.name);
    }
    let of_cyd = cyd.tools().await;
    assert!(of_cyd.contains(&logins[0]) && !of_cyd.contains(&logins[1]) && !of_cyd.contains(&logins[2]), "{of_cyd:?}");
    for tool in ["tracker__echo", "tracker__tool_0", "vault__echo", "vault__tool_0"] {
        assert!(of_cyd.contains(&tool.to_owned()), "{tool}: {of_cyd:?}");
    }
    for name in ["tracker__echo", "vault__echo"] {
        tokio::join!(ann.calls(name), bob.calls(name), cyd.calls(name));
    }
    cyd.calls("vault__tool_0").await;
}

/// Those of the clients and of the vault by themselves, and one of the tracker before its time.
async fn tokens_end_and_are_refreshed(world: &World, persons: &mut [Person; 3]) {
    let [ann, bob, cyd] = persons;
    world.tracker.guard.dismiss(&world.tracker.last_token("bob"));
    tokio::join!(
        ann.spends("vault__echo"),
        async {
            bob.calls("tracker__echo").await;
            bob.spends("vault__echo").await;
        },
        cyd.spends("vault__echo"),
    );
    tokio::join!(ann.calls("tracker__echo"), bob.calls("tracker__echo"), cyd.calls("tracker__echo"));
    assert_eq!(world.tracker.identity.granted("refresh_token"), 1, "that of bob");
    assert_eq!(counts(&world.tracker.tokens()), [1, 2, 1]);
    let of_vault = counts(&world.vault.tokens());
    assert!(of_vault.iter().all(|count| *count > 1), "{of_vault:?}");
}

/// One at an upstream, for a request that needs more; then all at the gateway, which has come to need more and gives more for it.
async fn they_step_up(world: &World, gateway: &Gateway, persons: &mut [Person; 3]) {
    let [ann, bob, cyd] = persons;
    world.vault.guard.needs("prompts/get", "mcp.admin");
    cyd.is_greeted("vault__greet").await;
    cyd.pages += 1;
    assert_eq!(world.vault.identity.last("GET /authorize")["scope"], "mcp.read mcp.write mcp.admin");
    gateway.configure(&world.config("\"read\", \"admin\""));
    let reload = within("it is taken", gateway.command(&["reload"]).output()).await.expect("it runs");
    assert!(reload.status.success(), "{reload:?}");
    let writers = tokio::join!(ann.tools_with("tracker__tool_0"), bob.tools_with("tracker__tool_0"), cyd.tools());
    assert_eq!(writers.0, ["tracker__echo", "tracker__tool_0", "vault__echo"]);
    assert_eq!(writers.0, writers.1);
    tokio::join!(ann.calls("tracker__tool_0"), bob.calls("tracker__tool_0"), cyd.calls("tracker__tool_0"));
}

/// One at an upstream, where it logs in again; one at the identity provider, where it does not. The others notice nothing.
async fn two_are_revoked(world: &World, persons: &mut [Person; 3]) {
    let [ann, bob, cyd] = persons;
    let login = world.tracker.identity.login_of(&world.tracker.last_token("bob")).expect("it is known");
    world.tracker.identity.ends_one(login);
    tokio::join!(ann.calls("tracker__echo"), bob.calls("tracker__echo"), cyd.calls("tracker__echo"));
    bob.pages += 1;
    assert_ne!(world.tracker.identity.login_of(&world.tracker.last_token("bob")), Some(login));
    assert_eq!(cyd.is_revoked("tracker__echo").await, "UnauthorizedError");
    for name in ["tracker__echo", "vault__echo"] {
        tokio::join!(ann.calls(name), bob.calls(name));
    }
}

fn counts(tokens: &BTreeMap<String, usize>) -> [usize; 3] {
    ["ann", "bob", "cyd"].map(|name| tokens[name])
}

/// What was told whom, by the clients, by the upstreams, and where one logs in to them.
fn each_has_its_own(world: &World, persons: &[Person; 3], told: &[Told; 3]) {
    // After the first login at each: bob has logged in once more at the tracker, and cyd at the vault.
    for (guarded, again, logins) in [(&world.tracker, "bob", [1, 2, 1]), (&world.vault, "cyd", [1, 1, 2])] {
        let of: Vec<_> = guarded.logins().into_values().collect();
        assert!(of.iter().all(|of| of.len() == 1), "each is of one person: {of:?}");
        let count = |name: &str| of.iter().filter(|of| of.contains(name)).count();
        assert_eq!(["ann", "bob", "cyd"].map(count), logins, "{again}");
        let mut sessions = BTreeMap::<String, BTreeSet<String>>::new();
        for shown in guarded.shown() {
            sessions.entry(shown.session.unwrap_or(shown.of.clone())).or_default().insert(shown.of);
        }
        let is_own = sessions.values().all(|of| of.len() == 1);
        assert!(is_own && sessions.len() >= persons.len(), "a session is of one person: {sessions:?}");
        let heard = guarded.told();
        let tokens = told.iter().flat_map(|told| &told.tokens);
        tokens.for_each(|token| assert!(!heard.contains(token), "{} was told {token}", guarded.upstream.name));
    }
    assert_eq!(world.attic.frames_with(""), 0, "nobody is asked anything where nobody has logged in");
    assert!(!world.tracker.identity.last("POST /token").contains_key(AUTHORIZATION), "it has registered itself");
    assert!(world.vault.identity.last("POST /token")[AUTHORIZATION].starts_with("Basic "));
    assert!(world.vault.identity.asked.all().iter().all(|(what, _)| what != "POST /register"));
    for (person, it) in persons.iter().zip(told) {
        let name = person.name;
        assert!(it.own.iter().filter(|own| it.heard.contains(*own)).count() > 10, "{name} heard what is its own");
        assert!(!it.heard.contains("canary-access") && !it.heard.contains("canary-refresh"), "{name}");
        assert_eq!(it.pages, person.pages, "{name}");
        let is_gone = name == "cyd";
        assert!(it.visits == 2 || is_gone && it.visits > 2, "{name} has logged in, and stepped up: {}", it.visits);
        let says = format!("{name}-says-");
        assert!(it.heard.contains(&says), "{name}");
        for (other, told) in persons.iter().zip(told).filter(|(other, _)| other.name != name) {
            assert!(!told.heard.contains(&says), "{} heard what {name} said", other.name);
            let own = it.own.iter().find(|own| told.heard.contains(*own));
            assert_eq!(own, None, "{} heard it of {name}", other.name);
        }
    }
    assert!(told[0].changes > 0 && told[2].changes > 0, "they were told of other tools");
}

/// Who has called what at which upstream, and what came of it.
fn the_audit_tells_all(world: &World, persons: &[Person; 3], audit: &str) {
    let lines: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let calls: Vec<_> = lines.iter().filter(|line| line["event"] == "call" && line["name"].is_string()).collect();
    for person in persons {
        let of = |line: &&&Value| {
            let principal = line["principal"].as_str().unwrap_or_default();
            principal.starts_with(&format!("oauth:{} ", person.name)) && principal.ends_with(&world.provider.url)
        };
        let (mut answered, mut denied, mut refused) = (BTreeMap::<String, usize>::new(), Vec::new(), BTreeSet::new());
        for line in calls.iter().filter(of) {
            let [name, upstream, outcome] =
                ["name", "upstream", "outcome"].map(|key| line[key].as_str().expect("text"));
            match outcome {
                // What it may not see is of no upstream.
                "denied" => denied.push((name, upstream)),
                _ => assert!(name.starts_with(&format!("{upstream}__")), "{line}"),
            }
            match outcome {
                "ok" => *answered.entry(name.to_owned()).or_default() += 1,
                _ => refused.extend([name.to_owned()]),
            }
        }
        let is_reader = person.name != "cyd";
        assert_eq!(denied, vec![("tracker__tool_0", "_gateway"); usize::from(is_reader)], "{}", person.name);
        assert_eq!(answered, person.answered, "{}", person.name);
        for upstream in ["tracker", "vault"] {
            assert!(refused.contains(&format!("{upstream}__trunkline_login")), "{}: {refused:?}", person.name);
        }
    }
    let all = calls.iter().filter_map(|line| line["principal"].as_str()).collect::<BTreeSet<_>>();
    assert_eq!(all.len(), persons.len(), "nobody else has called: {all:?}");
}
