//! Roles: what the bearer of a token sees and may use, in every way that leads to a thing, and how that changes while it is there.

use trunkline_tests::client::{Answer, Client, Request, tool};
use trunkline_tests::frame::quote;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::Order;
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::within;

const LEGACY: Revision = Revision::R2025_11_25;
const MODERN: Revision = Revision::MODERN;
const ANN: &str = "ann-has-a-long-token";
const BOB: &str = "bob-has-a-long-token";
const ROOT: &str = "root-has-a-long-token";
const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

/// Ann reads a part of `a`, Bob has `b`, and root everything.
fn roles(reader: &str) -> String {
    format!(
        "[auth.roles.reader]\n{reader}\n[auth.roles.b]\nupstreams = [\"b\"]\n\
         [[auth.tokens]]\nname = \"ann\"\ntoken = \"{ANN}\"\nroles = [\"reader\"]\n\
         [[auth.tokens]]\nname = \"bob\"\ntoken = \"{BOB}\"\nroles = [\"b\"]\n\
         [[auth.tokens]]\nname = \"root\"\ntoken = \"{ROOT}\"\n"
    )
}

const READER: &str = concat!(
    "upstreams = [\"a\"]\ntools = [\"a__echo\", \"a__task\"]\n",
    "resources = [\"script://a/text\", \"script://a/item/\"]\nprompts = []"
);

async fn client(gateway: &Gateway, token: &str, revision: Revision) -> Client {
    Client::bearing(&gateway.reach(), revision, token).await
}

async fn both_are_there(root: &Client) {
    let both = |tools: &[String]| ["a__echo", "b__echo"].iter().all(|one| tools.contains(&(*one).into()));
    root.tools_until("both are there", both).await;
}

/// All that a client is shown: tools, prompts, resources, templates.
async fn seen(client: &Client) -> [Vec<String>; 4] {
    [
        client.tools().await,
        client.list("prompts/list", "prompts", "name").await,
        client.list("resources/list", "resources", "uri").await,
        client.list("resources/templates/list", "resourceTemplates", "uriTemplate").await,
    ]
}

async fn two(revision: Revision) -> (Upstream, Upstream) {
    let script = |name: &str| {
        Script::new(name, revision).tasked().with(|script| script.instructions = format!("instructions of {name}"))
    };
    (Upstream::http(script("a")).await, Upstream::stdio(script("b")).await)
}

/// What must be the same of two refusals, with the name that each has of its own taken out.
fn refusal(answer: &Answer, name: &str) -> String {
    let error = answer.error().replace(name, "X");
    let headers: Vec<_> = ["content-type", "content-length"].map(|name| answer.header(name).is_some()).into();
    format!("{} {headers:?} {error}", answer.status)
}

/// How often an upstream was asked for what the requests of [`pairs`] ask for.
async fn asked(upstream: &Upstream) -> [usize; 5] {
    upstream.caught_up().await;
    let methods = ["tools/call", "prompts/get", "resources/read", "completion/complete", "resources/subscribe"];
    methods.map(|method| upstream.frames_with(&format!("\"{method}\"")))
}

fn about(method: &str, key: &str, value: &str) -> Request {
    Request::new(method, &format!("{{{}:{}}}", quote(key), quote(value)))
}

/// A request with the name in it.
type Named = (Request, &'static str);

/// Requests for what Ann may not use, each beside one of its kind for what is nowhere.
fn pairs(revision: Revision) -> Vec<[Named; 2]> {
    let mut all = Vec::new();
    let mut both = |refused: &'static str, unknown: &'static str, make: &dyn Fn(&str) -> Request| {
        all.push([(make(refused), refused), (make(unknown), unknown)]);
    };
    for (refused, unknown) in [("a__progress", "a__zzzzzzzz"), ("b__echo", "c__echo"), ("b__wait", "c__wait")] {
        both(refused, unknown, &|name| tool(name, "{}"));
    }
    let complete = |reference: String| {
        let argument = "{\"name\":\"who\",\"value\":\"v\"}";
        Request::new("completion/complete", &format!("{{\"ref\":{reference},\"argument\":{argument}}}"))
    };
    for (refused, unknown) in [("a__greet", "a__xxxxx"), ("b__greet", "c__greet")] {
        both(refused, unknown, &|name| about("prompts/get", "name", name));
        both(refused, unknown, &|name| complete(format!("{{\"type\":\"ref/prompt\",\"name\":{}}}", quote(name))));
    }
    for (refused, unknown) in [
        ("script://a/changing", "script://z/changing"),
        ("script://a/textual", "script://z/textual"),
        ("script://a/text/../changing", "script://z/text/../changing"),
        ("script://a/item/%2e.%01/changing", "script://z/item/%2e.%01/changing"),
        ("script://b/text", "script://z/text"),
        ("script://b/item/1", "script://z/item/1"),
        ("script://b/item/{id}", "script://z/item/{id}"),
    ] {
        both(refused, unknown, &|uri| about("resources/read", "uri", uri));
        both(refused, unknown, &|uri| complete(format!("{{\"type\":\"ref/resource\",\"uri\":{}}}", quote(uri))));
        if !revision.is_modern() {
            both(refused, unknown, &|uri| about("resources/subscribe", "uri", uri));
        }
    }
    all
}

#[tokio::test]
async fn lists_calls_reads_completions_and_subscriptions_have_one_view_and_what_is_beyond_it_is_not_there() {
    for revision in [LEGACY, MODERN] {
        let (a, b) = two(revision).await;
        let gateway = Gateway::serve(&Config::new().upstream(&a).upstream(&b).section(&roles(READER))).await;
        let root = client(&gateway, ROOT, revision).await;
        let has = |tools: &[String], upstream: &str| tools.contains(&format!("{upstream}__echo"));
        root.tools_until("all are there", |tools| has(tools, "a") && has(tools, "b")).await;
        let ann = client(&gateway, ANN, revision).await;
        let [tools, prompts, resources, templates] = seen(&ann).await;
        assert!(
            tools.contains(&"a__echo".into()) && tools.iter().all(|tool| tool == "a__echo" || tool == "a__task"),
            "{tools:?}"
        );
        assert_eq!((prompts, resources), (vec![], vec!["script://a/text".to_owned()]));
        assert_eq!(templates, ["script://a/item/{id}"]);
        if let Some(greeting) = &ann.greeting {
            let said = greeting.result();
            assert!(said.contains("instructions of a") && !said.contains("instructions of b"), "{said}");
        } else {
            let said = ann.request(Request::new("server/discover", "{}")).await;
            let said = said.result();
            assert!(said.contains("instructions of a") && !said.contains("instructions of b"), "{said}");
        }
        let bob = client(&gateway, BOB, revision).await;
        let everything = seen(&bob).await;
        assert!(everything.iter().flatten().all(|one| one.contains("b__") || one.contains("//b/")), "{everything:?}");
        assert!(everything.iter().all(|list| !list.is_empty()), "{everything:?}");

        let before = [asked(&a).await, asked(&b).await];
        for [(refused, name), (unknown, other)] in pairs(revision) {
            let (method, one) = (refused.method.clone(), ann.request(refused).await);
            let other = refusal(&ann.request(unknown).await, other);
            assert_eq!(refusal(&one, name), other, "{revision} {method} {name}");
        }
        let after = [asked(&a).await, asked(&b).await];
        assert_eq!(before, after, "no upstream was asked anything");

        let own = ann.call("a__echo", "{\"nonce\":\"mine\"}").await;
        assert!(own.text().contains("mine"), "{own:?}");
        let read = ann.request(about("resources/read", "uri", "script://a/item/7")).await;
        assert!(read.result().contains("item/7 of a"), "{read:?}");
        let all = root.request(about("resources/read", "uri", "script://a/changing")).await;
        assert!(all.result().contains("changing of a"), "{all:?}");
    }
}

/// A completion of a template asks an upstream about the URIs that its values make.
#[tokio::test]
async fn completions_with_values_that_leave_the_prefixes_of_a_role_are_refused() {
    for revision in [LEGACY, MODERN] {
        let (a, b) = two(revision).await;
        let gateway = Gateway::serve(&Config::new().upstream(&a).upstream(&b).section(&roles(READER))).await;
        let root = client(&gateway, ROOT, revision).await;
        both_are_there(&root).await;
        let ann = client(&gateway, ANN, revision).await;
        let complete = |value: &str, other: &str| {
            let reference = "{\"type\":\"ref/resource\",\"uri\":\"script://a/item/{id}\"}";
            let (value, other) = (quote(value), quote(other));
            let argument = format!("{{\"name\":\"id\",\"value\":{value}}}");
            let context = format!("{{\"arguments\":{{\"other\":{other}}}}}");
            let params = format!("{{\"ref\":{reference},\"argument\":{argument},\"context\":{context}}}");
            Request::new("completion/complete", &params)
        };
        let before = asked(&a).await;
        for (value, other) in [("../secret", "x"), ("x", "../secret"), ("..%2fsecret", "x"), ("..", "x")] {
            let refused = ann.request(complete(value, other)).await;
            assert!(refused.error().contains("leads out of the resources"), "{value} {other}: {refused:?}");
        }
        assert_eq!(before, asked(&a).await, "no upstream was asked anything");
        for (caller, value) in [(&ann, "my file.v2"), (&root, "../secret")] {
            let answer = caller.request(complete(value, "x")).await;
            assert!(answer.result().contains("completion"), "{value}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_listen_call_hears_of_what_its_caller_may_read_alone() {
    let (a, b) = two(MODERN).await;
    let gateway = Gateway::serve(&Config::new().upstream(&a).upstream(&b).section(&roles(READER))).await;
    let root = client(&gateway, ROOT, MODERN).await;
    root.tools_until("all are there", |tools| tools.contains(&"b__echo".into())).await;
    let ann = client(&gateway, ANN, MODERN).await;
    let uris = ["script://a/text", "script://a/changing", "script://b/changing"];
    let filter = format!(
        "{{\"notifications\":{{\"toolsListChanged\":true,\"resourceSubscriptions\":{}}}}}",
        serde_json::json!(uris)
    );
    let (ear, first) = ann.listen_by(Request::new("subscriptions/listen", &filter)).await;
    let honoured: serde_json::Value =
        serde_json::from_str(first.param("notifications").expect("a filter").get()).expect("JSON");
    assert_eq!(honoured["resourceSubscriptions"], serde_json::json!(["script://a/text"]), "{honoured}");
    let all = root.listen(&uris).await;
    let (mark, at_root) = (ear.heard.mark(), all.heard.mark());
    // What changes at `b` is news for root alone; what then changes at `a` is the first that Ann hears of.
    b.order(Order::AddTool("fresh".into())).await;
    all.hears(at_root, TOOLS_CHANGED).await;
    b.order(Order::Notify("notifications/resources/updated".into(), "{\"uri\":\"script://b/changing\"}".into())).await;
    all.hears(at_root, "notifications/resources/updated").await;
    a.order(Order::Notify("notifications/resources/updated".into(), "{\"uri\":\"script://a/text\"}".into())).await;
    ear.hears(mark, "notifications/resources/updated").await;
    let heard: Vec<_> = ear.heard.all().into_iter().skip(mark).filter_map(|frame| frame.method).collect();
    assert_eq!(heard, ["notifications/resources/updated"]);
}

#[tokio::test]
async fn a_reload_changes_rights_on_open_sessions_and_streams_and_tells_those_alone_whose_view_it_changes() {
    for revision in [LEGACY, MODERN] {
        let (a, b) = two(revision).await;
        let config = |reader: &str| Config::new().upstream(&a).upstream(&b).section(&roles(reader));
        let gateway = Gateway::serve(&config(READER)).await;
        let root = client(&gateway, ROOT, revision).await;
        both_are_there(&root).await;
        let (ann, bob) = (client(&gateway, ANN, revision).await, client(&gateway, BOB, revision).await);
        let (ear, others) = (ann.listen(&[]).await, bob.listen(&[]).await);
        let (mark, at_others) = (ear.heard.mark(), others.heard.mark());
        assert!(ann.call("a__fail", "{}").await.message().contains("Unknown tool"));

        gateway.configure(&config("upstreams = [\"a\"]\ntools = [\"a__*\"]\nprompts = []"));
        ear.hears(mark, TOOLS_CHANGED).await;
        ear.hears(mark, "notifications/resources/list_changed").await;
        let tools = ann.tools().await;
        assert!(tools.contains(&"a__fail".into()) && !tools.contains(&"b__echo".into()), "{tools:?}");
        assert!(
            !ann.call("a__fail", "{}").await.message().contains("Unknown tool"),
            "the session is as good as a new one"
        );

        let mark = ear.heard.mark();
        gateway.configure(&config("upstreams = [\"a\"]\ntools = [\"a__fail\"]\nresources = []\nprompts = []"));
        ear.hears(mark, TOOLS_CHANGED).await;
        assert_eq!(ann.tools().await, ["a__fail"]);
        assert!(ann.call("a__echo", "{}").await.message().contains("Unknown tool: a__echo"));
        assert!(ear.heard.all().iter().all(|frame| !frame.is_notice("notifications/prompts/list_changed")));
        // A change of its own ends the wait: nothing came for Bob before it.
        b.order(Order::AddTool("fresh".into())).await;
        others.hears(at_others, TOOLS_CHANGED).await;
        let heard: Vec<_> = others.heard.all().into_iter().skip(at_others).filter_map(|frame| frame.method).collect();
        assert_eq!(heard, [TOOLS_CHANGED]);
    }
}

#[tokio::test]
async fn a_reader_has_what_says_of_itself_that_it_changes_nothing() {
    let hint = |name: &str, hint: &str| {
        format!(
            "{{\"name\":\"{name}\",\"annotations\":{{\"readOnlyHint\":{hint}}},\"inputSchema\":{{\"type\":\"object\"}}}}"
        )
    };
    let script = Script::new("a", LEGACY).only_tools(&["echo"]).with(|script| {
        script.raw_tools = vec![hint("look", "true"), hint("poke", "false")];
    });
    let a = Upstream::http(script).await;
    let gateway =
        Gateway::serve(&Config::new().upstream(&a).section(&roles("upstreams = [\"*\"]\nread_only = true"))).await;
    let ann = client(&gateway, ANN, LEGACY).await;
    assert_eq!(ann.tools_until("they are there", |tools| !tools.is_empty()).await, ["a__look"]);
    for name in ["a__poke", "a__echo"] {
        assert!(ann.call(name, "{}").await.message().contains("Unknown tool"), "{name}");
    }
}

fn check(text: &str, args: &[&str]) -> (bool, String) {
    let scratch = Scratch::new();
    let file = scratch.file("a.toml", text);
    let mut command = std::process::Command::new(trunkline_tests::process::beside(trunkline_tests::process::GATEWAY));
    command.env("HOME", scratch.path()).env_remove("XDG_CACHE_HOME").env_remove("TRUNKLINE_CONFIG");
    let output = command.arg("check").args(args).arg("--config").arg(file).output().expect("it runs");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn what_is_wrong_with_roles_is_told_at_its_place_and_what_is_of_no_use_is_a_warning() {
    let upstream = "[upstreams.docs]\ncommand = \"sh\"\n";
    let token = |roles: &str| format!("[[auth.tokens]]\nname = \"x\"\ntoken = \"{ANN}\"\nroles = [{roles}]\n");
    for (text, says) in [
        ("[auth.roles.reader]\nupstreams = [\"docs\"]\n".to_owned() + &token("\"raeder\""), "did you mean \"reader\"?"),
        (token("\"other\""), "there is no [auth.roles.other]"),
        (
            "[auth.roles.reader]\ntools = [\"x\"]\n".to_owned() + &token("\"reader\""),
            "role `reader` names no `upstreams`",
        ),
        (
            "[auth.roles.r]\nupstreams = [\"docs\"]\nresources = [\"file:///x/*\"]\n".to_owned(),
            "expected what URIs begin with",
        ),
        (
            "[auth.roles.r]\nupstreams = [\"docs\"]\nresources = [\"file:///x/%2e%2e/etc/\"]\n".to_owned(),
            "expected no `.` or `..` in the path",
        ),
        ("[auth.roles.r]\nupstreams = [\"docs\"]\ntool = []\n".to_owned(), "did you mean `tools`?"),
        ("[[auth.certificates]]\nname = \"x\"\n".to_owned(), "`x` has no `roles`"),
    ] {
        let (good, said) = check(&(upstream.to_owned() + &text), &[]);
        assert!(!good && said.contains(says) && said.contains("a.toml:"), "{says}:\n{said}");
    }
    for (role, says) in [
        ("upstreams = [\"docs\", \"nope\"]", "\"nope\" in `upstreams` matches nothing: no upstream has such a name"),
        (
            "upstreams = [\"docs\"]\ntools = [\"read_*\"]",
            "\"read_*\" in `tools` matches nothing: public names of its upstreams begin with `docs__`",
        ),
        ("upstreams = [\"docs\"]\nprompts = [\"docs\"]", "\"docs\" in `prompts` matches nothing"),
    ] {
        let (good, said) = check(&format!("{upstream}[auth.roles.r]\n{role}\n{}", token("\"r\"")), &[]);
        assert!(good && said.contains("warning[matches-nothing]") && said.contains(says), "{says}:\n{said}");
    }
    let (good, said) =
        check(&format!("{upstream}[auth.roles.r]\nupstreams = [\"docs\"]\ntools = [\"docs__*\", \"*_x\"]\n"), &[]);
    assert!(
        good && said.contains("warning[unused-role]: nobody has the role `r`") && !said.contains("matches-nothing"),
        "{said}"
    );
}

#[test]
fn a_listener_that_asks_for_no_token_beside_roles_is_a_warning() {
    let said = |first: &str, second: &str| {
        let listener =
            |port: u16, keys: &str| format!("[[server.listeners]]\naddress = \"127.0.0.1:{port}\"\n{keys}\n");
        let (first, second) = (listener(1, first), listener(2, second));
        let (good, said) = check(&format!("{first}{second}[upstreams.a]\ncommand = \"sh\"\n{}", roles(READER)), &[]);
        assert!(good, "{said}");
        said
    };
    let warned = said("", "tokens = []");
    let says = "warning[open-beside-roles]: no token is asked for at 127.0.0.1:2";
    assert!(warned.contains(says) && !warned.contains("127.0.0.1:1"), "{warned}");
    assert!(!said("", "tokens = [\"ann\"]").contains("open-beside-roles"));
}

#[tokio::test]
async fn what_a_client_wants_to_hear_is_asked_of_those_alone_that_it_may_see() {
    // First the one that is hidden: it is told first.
    let [b, a] = ["b", "a"].map(|name| Upstream::stdio(Script::new(name, LEGACY)));
    let (b, a) = (b.await, a.await);
    let gateway = Gateway::serve(&Config::new().upstream(&b).upstream(&a).section(&roles(READER))).await;
    gateway.look_until("/readyz?verbose", "both are there", |page| page.matches("ready").count() >= 2).await;
    let ann = client(&gateway, ANN, LEGACY).await;
    ann.tools_until("it is there", |tools| tools.contains(&"a__echo".into())).await;
    ann.request(Request::new("logging/setLevel", "{\"level\":\"debug\"}")).await.result();
    a.received("logging/setLevel").await;
    ann.call("a__echo", "{\"nonce\":\"after\"}").await.result();
    b.caught_up().await;
    assert_eq!(b.frames_with("\"logging/setLevel\""), 0);
}

#[tokio::test]
async fn a_change_at_an_upstream_is_no_news_for_a_client_of_any_kind_that_may_not_see_it() {
    for revision in [LEGACY, MODERN] {
        let [a, b] = ["a", "b"].map(|name| Upstream::http(Script::new(name, revision)));
        let (a, b) = (a.await, b.await);
        let config = |reader: &str| Config::new().upstream(&a).upstream(&b).section(&roles(reader));
        let gateway = Gateway::serve(&config(READER)).await;
        let root = client(&gateway, ROOT, revision).await;
        both_are_there(&root).await;
        let ann = client(&gateway, ANN, revision).await;
        ann.call("a__echo", "{\"nonce\":\"1\"}").await.result();
        root.call("b__echo", "{\"nonce\":\"2\"}").await.result();
        let (ear, all) = (ann.listen(&[]).await, root.listen(&[]).await);
        let (mark, at_root) = (ear.heard.mark(), all.heard.mark());
        b.order(Order::AddTool("fresh".into())).await;
        all.hears(at_root, TOOLS_CHANGED).await;
        // A change of its own ends the wait.
        gateway.configure(&config(&READER.replace("prompts = []", "")));
        ear.hears(mark, "notifications/prompts/list_changed").await;
        let heard: Vec<_> = ear.heard.all().into_iter().skip(mark).filter_map(|frame| frame.method).collect();
        assert!(!heard.contains(&TOOLS_CHANGED.to_owned()), "{revision} {heard:?}");
    }
}

#[tokio::test]
async fn check_shows_what_somebody_sees_by_the_lists_that_were_kept() {
    let (a, b) = two(LEGACY).await;
    let gateway = Gateway::serve(&Config::new().upstream(&a).upstream(&b).section(&roles(READER))).await;
    let root = client(&gateway, ROOT, LEGACY).await;
    both_are_there(&root).await;
    assert!(gateway.stop().await.success());
    let run = async |name: &str, more: &[&str]| {
        let cache = gateway.file.parent().expect("a folder").join("cache");
        let mut command = gateway.command(&[&["check", "--as", name], more].concat());
        let run = within("it answers", command.env("XDG_CACHE_HOME", cache).output()).await.expect("it runs");
        (run.status.success(), String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned())
    };
    let (good, said) = run("ann", &[]).await;
    let line =
        |what: &str| said.lines().find(|line| line.trim_start().starts_with(what)).unwrap_or_default().to_owned();
    assert!(good && said.contains("token:ann\n"), "{said}");
    assert!(
        line("roles").ends_with("reader") && line("upstreams").ends_with(" a") && line("prompts").ends_with('-'),
        "{said}"
    );
    assert!(line("tools").contains("a__echo") && !said.contains("b__") && !said.contains("a__fail"), "{said}");
    assert!(
        line("resources").ends_with("script://a/text") && line("templates").ends_with("script://a/item/{id}"),
        "{said}"
    );
    let (good, said) = run("token:bob", &["--json"]).await;
    let said: serde_json::Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
    assert!(
        good && said["seen"]["principal"] == "token:bob" && said["seen"]["roles"] == serde_json::json!(["b"]),
        "{said}"
    );
    assert!(
        said["seen"]["tools"].to_string().contains("b__echo") && !said["seen"].to_string().contains("a__"),
        "{said}"
    );
    let (good, said) = run("root", &[]).await;
    assert!(good && said.contains("none: it sees everything") && said.contains("a__fail"), "{said}");
    let (good, said) = run("nobody", &[]).await;
    assert!(!good && said.contains("no token is named `nobody`. Known: ann, bob, root"), "{said}");
}
