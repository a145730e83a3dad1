//! A catalog that outlives the process: at the next start everything is listed before anything has started.

use std::path::PathBuf;

use trunkline_tests::client::{Answer, Client, Desk, Reach, Request, tool};
use trunkline_tests::frame::Frame;
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::journal::{Event, Order, What};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::upstream::Upstream;

const LEGACY: Revision = Revision::R2025_11_25;
const CHANGED: &str = "notifications/tools/list_changed";

/// A home that several runs share, as those of one person do.
struct Home(Scratch);

impl Home {
    fn new() -> Home {
        Home(Scratch::new())
    }

    fn config(&self) -> Config {
        let home = self.0.path().display().to_string();
        Config::new().env("HOME", &home).env("XDG_CACHE_HOME", &format!("{home}/cache"))
    }

    /// What is kept in it.
    fn kept(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.0.path().join("cache/trunkline/inventories"));
        let mut kept: Vec<_> = entries.into_iter().flatten().map(|entry| entry.expect("it is read").path()).collect();
        kept.sort();
        kept
    }
}

/// An upstream that is never asked for its era: what it writes first is its answer to `initialize`, and every process of it
/// gives that when the test lets it.
async fn upstream() -> Upstream {
    let door = Rule::on("initialize", vec![Act::Gate("door".into())]);
    let script = Script::new("up", LEGACY).rule(door).only_tools(&["echo"]).with(|script| {
        script.instructions = "Say it twice.".into();
    });
    Upstream::stdio(script).await
}

fn over(home: &Home, upstream: &Upstream) -> Config {
    home.config().upstream_with(upstream, "era = \"legacy\"")
}

/// Lets a process that has started since the mark answer `initialize`.
async fn let_in(upstream: &Upstream, mark: usize) {
    upstream.waiting_at_from(mark, "door").await;
    upstream.order(Order::Release("door".into())).await;
}

/// The first run, to its end.
async fn first_run(config: &Config, upstream: &Upstream) {
    let mark = upstream.events.mark();
    let gateway = Gateway::serve(config).await;
    let_in(upstream, mark).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("the tools are listed", |tools| tools == ["up__echo"]).await;
    assert!(gateway.stop().await.success());
}

async fn text(gateway: &Gateway) -> String {
    String::from_utf8_lossy(&gateway.look("/readyz?verbose").await.body).into_owned()
}

fn greeting(client: &Client) -> serde_json::Value {
    client.greeting.as_ref().expect("it was greeted").value()
}

fn is_told(client: &Client) -> bool {
    client.notices.find(0, |frame: &Frame| frame.is_notice(CHANGED).then_some(())).is_some()
}

#[tokio::test]
async fn at_the_second_start_tools_are_listed_before_the_child_has_written_a_byte() {
    let (home, upstream) = (Home::new(), upstream().await);
    let config = over(&home, &upstream);
    first_run(&config, &upstream).await;
    assert_eq!(home.kept().len(), 1);
    let mark = upstream.events.mark();
    let gateway = Gateway::serve(&config).await;
    // It has read `initialize`, and waits: it has written nothing, and goes on when everything below was answered.
    upstream.waiting_at_from(mark, "door").await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    let greeting = greeting(&client);
    assert_eq!(greeting["instructions"], "# up\n\nSay it twice.");
    let capabilities = greeting["capabilities"].as_object().expect("an object").clone();
    assert_eq!(capabilities.keys().collect::<Vec<_>>(), ["logging", "tools"], "what it has, and nothing else");
    assert_eq!(client.tools().await, ["up__echo"]);
    let modern = Client::open(&gateway.reach(), Revision::MODERN).await;
    assert_eq!(modern.tools().await, ["up__echo"]);
    let ear = client.listen(&[]).await;
    // A call waits for the child, and nothing of it is lost.
    let call = client.start(tool("up__echo", "{\"a\":1}")).await;
    upstream.order(Order::Release("door".into())).await;
    assert_eq!(call.answer().await.text(), "{\"a\":1}");
    gateway.look_until("/readyz?verbose", "it is ready", |page| page.contains("ready  ")).await;
    assert_eq!(client.tools().await, ["up__echo"]);
    // Whatever the first read would have told has been told before a later change is.
    let mark = ear.heard.mark();
    upstream.order(Order::AddTool("later".into())).await;
    ear.hears(mark, CHANGED).await;
    let told = ear.heard.all().iter().filter(|frame| frame.is_notice(CHANGED)).count();
    assert_eq!(told, 1, "what had not changed was not told");
}

#[tokio::test]
async fn what_takes_calls_is_ready_while_its_lists_are_still_read() {
    let lists = Rule::on("tools/list", vec![Act::Gate("lists".into())]);
    let upstream = Upstream::stdio(Script::new("up", LEGACY).rule(lists).only_tools(&["echo"])).await;
    let home = Home::new();
    let config = over(&home, &upstream);
    for is_known in [false, true] {
        let mark = upstream.events.mark();
        let gateway = Gateway::serve(&config).await;
        upstream.waiting_at_from(mark, "lists").await;
        if is_known {
            gateway.look_until("/readyz?verbose", "it is ready", |page| page.contains("  ready  ")).await;
        } else {
            assert!(text(&gateway).await.contains("  starting  "), "nothing can be called yet");
        }
        upstream.order(Order::Release("lists".into())).await;
        let client = Client::connect(&gateway.reach(), LEGACY).await;
        client.tools_until("the tools are listed", |tools| tools == ["up__echo"]).await;
        assert!(gateway.stop().await.success());
    }
}

#[tokio::test]
async fn a_host_that_starts_us_again_is_answered_before_the_child_has_written_a_byte() {
    let (home, upstream) = (Home::new(), upstream().await);
    let gateway = StdioGateway::prepare(&over(&home, &upstream));
    for run in 0..2 {
        let mark = upstream.events.mark();
        let client = Client::connect(&gateway.reach(), LEGACY).await;
        if run == 1 {
            let greeting = greeting(&client);
            assert_eq!(greeting["instructions"], "# up\n\nSay it twice.");
            assert!(greeting["capabilities"]["resources"].is_null(), "{greeting}");
            assert_eq!(client.tools().await, ["up__echo"]);
            upstream.waiting_at_from(mark, "door").await;
            assert_eq!(client.tools().await, ["up__echo"]);
        }
        let_in(&upstream, mark).await;
        assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        assert_eq!(client.tools().await, ["up__echo"]);
        client.stdio().close().await;
        assert!(client.stdio().ended().await.success());
        assert!(!is_told(&client) || run == 0, "nothing had changed");
    }
}

/// A host, and the one tool that the upstream has for such as it.
struct Host {
    revision: Revision,
    capabilities: &'static str,
    tool: &'static str,
}

impl Host {
    /// One run of it, with what it is shown first: at once where it was here before, else what the child says.
    async fn runs(&self, gateway: &StdioGateway, upstream: &Upstream, was_here: bool) {
        let mark = upstream.events.mark();
        let desk = Desk::closed().declaring(self.capabilities);
        let mut client = Client::open_with(&gateway.reach(), self.revision, desk).await;
        if self.revision == LEGACY {
            client.greet().await;
        }
        let first = client.start(Request::new("tools/list", "{}").capabilities(self.capabilities)).await;
        let names = |answer: &Answer| answer.value()["tools"][0]["name"].as_str().unwrap_or_default().to_owned();
        let shown = format!("up__{}", self.tool);
        if was_here {
            assert_eq!(names(&first.answer().await), shown, "before the child has written a byte");
            upstream.waiting_at_from(mark, "door").await;
        } else {
            upstream.waiting_at_from(mark, "door").await;
            let list = format!(r#"{{"tools":[{{"name":"{}","inputSchema":{{"type":"object"}}}}]}}"#, self.tool);
            let door = Rule::on("initialize", vec![Act::Gate("door".into())]);
            upstream.order(Order::Rules(vec![door, Rule::on("tools/list", vec![Act::Result(list)])])).await;
            upstream.order(Order::Release("door".into())).await;
            assert_eq!(names(&first.answer().await), shown, "what was offered to another host is none of its");
        }
        client.stdio().close().await;
        assert!(client.stdio().ended().await.success());
    }
}

#[tokio::test]
async fn hosts_that_take_turns_are_shown_what_is_offered_to_each_and_not_to_the_one_before() {
    let (home, upstream) = (Home::new(), upstream().await);
    let gateway = StdioGateway::prepare(&over(&home, &upstream));
    let host = |revision, capabilities, tool| Host { revision, capabilities, tool };
    let hosts = [
        host(LEGACY, "{\"roots\":{}}", "for_roots"),
        host(LEGACY, "{\"sampling\":{}}", "for_sampling"),
        host(LEGACY, "{}", "for_nothing"),
        host(Revision::MODERN, "{\"roots\":{}}", "for_roots_stateless"),
    ];
    for was_here in [false, true, true] {
        for host in &hosts {
            host.runs(&gateway, &upstream, was_here).await;
        }
    }
    assert_eq!(home.kept().len(), hosts.len(), "{:?}", home.kept());
}

#[tokio::test]
async fn what_changed_meanwhile_is_told_and_kept() {
    let (home, upstream) = (Home::new(), upstream().await);
    let config = over(&home, &upstream);
    first_run(&config, &upstream).await;
    let mark = upstream.events.mark();
    let gateway = Gateway::serve(&config).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    let ear = client.listen(&[]).await;
    assert_eq!(client.tools().await, ["up__echo"]);
    upstream.waiting_at_from(mark, "door").await;
    let tools = r#"{"tools":[{"name":"other","inputSchema":{"type":"object"}}]}"#;
    upstream.order(Order::Rules(vec![Rule::on("tools/list", vec![Act::Result(tools.into())])])).await;
    upstream.order(Order::Release("door".into())).await;
    ear.hears(0, CHANGED).await;
    assert_eq!(client.tools().await, ["up__other"]);
    assert!(gateway.stop().await.success());
    let third = Gateway::serve(&config).await;
    let client = Client::connect(&third.reach(), LEGACY).await;
    assert_eq!(client.tools().await, ["up__other"]);
}

#[tokio::test]
async fn another_configuration_or_a_damaged_file_finds_nothing() {
    let (home, upstream) = (Home::new(), upstream().await);
    let config = over(&home, &upstream);
    first_run(&config, &upstream).await;
    let now = "[catalog]\nfirst_list_wait = 0";
    let listed = async |config: Config| {
        let gateway = Gateway::serve(&config.section(now)).await;
        let client = Client::connect(&gateway.reach(), LEGACY).await;
        (client.tools().await, gateway)
    };
    assert_eq!(listed(config.clone()).await.0, ["up__echo"]);
    let env = home.config().upstream_with(&upstream, "era = \"legacy\"\nenv = { KEY = \"secret-of-mine\" }");
    assert!(listed(env.clone()).await.0.is_empty(), "another environment");
    let off = config.clone().env("TRUNKLINE_CATALOG__CACHE", "false");
    assert!(listed(off).await.0.is_empty(), "switched off");
    let [file] = &home.kept()[..] else { panic!("{:?}", home.kept()) };
    let text = std::fs::read_to_string(file).expect("it is text");
    assert!(!text.contains("secret-of-mine") && !file.display().to_string().contains("secret-of-mine"));
    std::fs::write(file, text.replace("echo", "ohce")).expect("it is written");
    let (tools, gateway) = listed(config.clone()).await;
    assert!(tools.is_empty(), "damaged: {tools:?}");
    gateway.says(&["cached inventory not used", "damaged"]).await;
    // What is read anew takes its place.
    upstream.order(Order::Open("door".into())).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("the tools are listed", |tools| tools == ["up__echo"]).await;
    assert!(gateway.stop().await.success());
    assert_eq!(std::fs::read_to_string(file).expect("it is text"), text);
}

#[tokio::test]
async fn the_demo_keeps_nothing() {
    let home = Scratch::new();
    let path = |name: &str| home.path().join(name).display().to_string();
    let mut program = trunkline_tests::process::Program::ours(trunkline_tests::process::GATEWAY, &["stdio"]);
    program.env = vec![("HOME".into(), path("")), ("XDG_CACHE_HOME".into(), path("cache"))];
    let client = Client::connect(&Reach::Child(program), LEGACY).await;
    client.tools_until("its tools are listed", |tools| !tools.is_empty()).await;
    client.stdio().close().await;
    assert!(client.stdio().ended().await.success());
    assert!(!home.path().join("cache").exists());
}

#[tokio::test]
async fn what_clients_are_told_that_they_can_be_asked_decides_what_is_kept() {
    let (home, upstream) = (Home::new(), upstream().await);
    first_run(&over(&home, &upstream), &upstream).await;
    let other = home.config().upstream_with(&upstream, "era = \"legacy\"\noffer = [\"elicitation\", \"sampling\"]");
    first_run(&other, &upstream).await;
    assert_eq!(home.kept().len(), 2, "{:?}", home.kept());
    let asks =
        |event: &Event| matches!(&event.what, What::Frame { raw, .. } if raw.contains("\"sampling\"")).then_some(());
    upstream.events.wait("what clients can be asked is declared", asks).await;
}

#[tokio::test]
async fn an_inventory_with_a_list_that_failed_is_not_kept() {
    let home = Home::new();
    let failing = Rule::on("tools/list", vec![Act::error(-32603, "not now")]);
    let upstream = Upstream::stdio(Script::new("up", LEGACY).rule(failing)).await;
    let gateway = Gateway::serve(&over(&home, &upstream)).await;
    let is_shown = |page: &str| page.contains("  degraded ") && page.contains("`tools/list` could not be read");
    gateway.look_until("/readyz?verbose", "it is up, and there is nothing of it", is_shown).await;
    assert!(gateway.stop().await.success());
    assert_eq!(home.kept(), Vec::<PathBuf>::new(), "its tools would be missing at the next start");
}
