//! Another configuration while the gateway runs: what it changes, what it does not touch, and that no call pays for it.

mod rewritten;

use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http::Method;
use trunkline_tests::client::stream::EventStream;
use trunkline_tests::client::{Client, http as plain};
use trunkline_tests::gateway::{ADMIN_TOKEN, Config, Gateway};
use trunkline_tests::process;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::tape::Tape;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::{until, within};

const LEGACY: Revision = Revision::R2025_11_25;
const MODERN: Revision = Revision::MODERN;
const CHANGED: &str = "notifications/tools/list_changed";

async fn child(name: &str) -> Upstream {
    Upstream::stdio(Script::new(name, LEGACY)).await
}

fn has(tools: &[String], upstream: &str) -> bool {
    tools.contains(&format!("{upstream}__echo"))
}

/// What the gateway says of all upstreams, as JSON.
async fn status(gateway: &Gateway) -> serde_json::Value {
    let page = gateway.look("/readyz?verbose&format=json").await;
    serde_json::from_slice(&page.body).expect("JSON")
}

async fn pid(gateway: &Gateway, name: &str) -> u64 {
    until(&format!("{name} is ready"), || async {
        let status = status(gateway).await;
        let row = status["upstreams"].as_array()?.iter().find(|row| row["name"] == name)?.clone();
        (row["state"] == "ready").then(|| row["pid"].as_u64()).flatten()
    })
    .await
}

async fn count(gateway: &Gateway, metric: &str) -> f64 {
    let page = gateway.look("/metrics").await;
    let text = String::from_utf8_lossy(&page.body).into_owned();
    let line = text.lines().find(|line| line.starts_with(metric)).unwrap_or_else(|| panic!("{metric} in {text}"));
    line.rsplit(' ').next().and_then(|value| value.parse().ok()).expect("a number")
}

/// `trunkline reload`: whether it went well, and what it said.
async fn reload(gateway: &Gateway) -> (bool, String) {
    let run = within("it answers", gateway.command(&["reload"]).output()).await;
    let Output { status, stdout, stderr } = run.expect("it runs");
    (status.success(), format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)))
}

#[tokio::test]
async fn upstreams_come_change_and_go_as_the_file_says_and_the_others_are_not_touched() {
    let (kept, gone, later) = (child("kept").await, child("gone").await, child("later").await);
    let (far, same) =
        (Upstream::http(Script::new("far", LEGACY)).await, Upstream::http(Script::new("same", LEGACY)).await);
    let base = Config::new().upstream(&kept).upstream(&same);
    let gateway = Gateway::serve(&base.clone().upstream(&far).upstream(&gone)).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client
        .tools_until("all are there", |tools| ["kept", "same", "far", "gone"].iter().all(|one| has(tools, one)))
        .await;
    assert_eq!(client.call("same__echo", "{}").await.status, 200);
    let (before, sessions) = (pid(&gateway, "kept").await, same.sessions());
    let (old_far, old_child) = (far.sessions(), gone.started(0).await.0);
    let ear = client.listen(&[]).await;
    let mark = ear.heard.mark();

    gateway.configure(&base.clone().upstream_with(&far, "call_timeout = \"77s\"").upstream(&later));
    ear.hears(mark, CHANGED).await;
    let tools = client.tools_until("the new one is there", |tools| has(tools, "later")).await;
    assert!(!has(&tools, "gone") && ["kept", "same", "far"].iter().all(|one| has(&tools, one)), "{tools:?}");
    gateway.says(&["configuration reloaded", "later", "far", "gone"]).await;
    for name in ["later", "far", "kept", "same"] {
        assert_eq!(client.call(&format!("{name}__echo"), "{}").await.status, 200);
    }
    assert!(client.call("gone__echo", "{}").await.message().contains("Unknown tool"));
    gone.gone(0).await;
    assert!(!process::is_alive(old_child), "its process has ended");
    until("the old session is ended", || async {
        old_far.iter().all(|one| !far.sessions().contains(one)).then_some(())
    })
    .await;
    assert_eq!((pid(&gateway, "kept").await, same.sessions()), (before, sessions), "they are as they were");

    // A child that is configured otherwise is started anew, once the old process has ended.
    gateway.configure(&Config::new().upstream_with(&kept, "queue = 7").upstream(&same));
    kept.gone(0).await;
    let (second, _) = kept.started(1).await;
    assert_ne!(u64::from(second), before);
    assert_eq!(client.call("kept__echo", "{}").await.status, 200);
    assert!(gateway.stop().await.success());
}

#[tokio::test]
async fn a_file_that_is_wrong_changes_nothing_and_is_reported_with_its_place() {
    let up = child("up").await;
    let config = Config::new().upstream(&up);
    let gateway = Gateway::serve(&config).await;
    let before = pid(&gateway, "up").await;
    assert_eq!(count(&gateway, "trunkline_config_last_reload_successful").await, 1.0);
    for (keys, says) in [("bogus = 1", "unknown"), ("queue = \"many\"", "queue"), ("queue = ", "syntax")] {
        let mark = gateway.stderr.mark();
        gateway.configure(&Config::new().upstream_with(&up, keys));
        let text = std::fs::read_to_string(&gateway.file).expect("it is there");
        let line = text.lines().position(|line| line == keys).expect("it is written") + 1;
        let place = format!("{}:{line}:", gateway.file.display());
        // The log is written beside what it tells of: a line on the file before may still come.
        let is_it =
            |line: &String| line.contains("configuration not reloaded") && line.contains(&place) && line.contains(says);
        let told =
            gateway.stderr.wait_from(mark, "the log has its place", |line| is_it(line).then(|| line.clone())).await;
        assert!(told.contains("\"ERROR\""), "{told}");
        let page = status(&gateway).await;
        assert!(page["configuration"]["error"].as_str().expect("an error").contains(&place), "{page}");
        assert_eq!(count(&gateway, "trunkline_config_last_reload_successful").await, 0.0);
        let (is_done, said) = reload(&gateway).await;
        assert!(!is_done && said.contains(&place) && said.contains("nothing has changed"), "{said}");
        for command in [&["ls"][..], &["status", "up"]] {
            let run = within("it answers", gateway.command(command).output()).await.expect("it runs");
            let said = String::from_utf8_lossy(&run.stdout).into_owned();
            assert!(run.status.success() && said.contains("not reloaded") && said.contains(&place), "{said}");
        }
    }
    gateway.configure(&config);
    until("it is in force again", || async {
        (count(&gateway, "trunkline_config_last_reload_successful").await == 1.0).then_some(())
    })
    .await;
    assert_eq!(pid(&gateway, "up").await, before);
    assert!(count(&gateway, "trunkline_config_reloads_total{outcome=\"refused\"}").await >= 6.0);
}

#[tokio::test]
async fn a_file_that_is_gone_or_empty_or_a_pipe_changes_nothing_and_is_followed_again() {
    let (up, other) = (child("up").await, child("other").await);
    // What is kept on disk would make the folder anew, without the file.
    let of = |config: Config| config.section("[catalog]\ncache = false");
    let config = of(Config::new().upstream(&up));
    let gateway = Gateway::serve(&config).await;
    let before = pid(&gateway, "up").await;
    let refused = async |says: &str| {
        let mark = gateway.stderr.mark();
        let is_it = |line: &String| line.contains("configuration not reloaded") && line.contains(says);
        let (is_done, said) = reload(&gateway).await;
        assert!(!is_done && said.contains(says) && said.contains("nothing has changed"), "{said}");
        gateway.stderr.wait_from(mark, says, |line| is_it(line).then_some(())).await;
        assert_eq!(pid(&gateway, "up").await, before);
    };
    std::fs::remove_file(&gateway.file).expect("it is there");
    refused("no such file").await;
    std::fs::write(&gateway.file, "").expect("it can be written");
    refused("is empty").await;
    // Nobody writes to it, and nobody waits for that.
    std::fs::remove_file(&gateway.file).expect("it is there");
    let made = std::process::Command::new("mkfifo").arg(&gateway.file).status().expect("it runs");
    assert!(made.success());
    refused("not a regular file").await;
    std::fs::remove_file(&gateway.file).expect("it is there");
    std::fs::write(&gateway.file, gateway.text(&config.upstream(&other))).expect("it can be written");
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("what stands there is in force", |tools| has(tools, "other")).await;
    assert_eq!(pid(&gateway, "up").await, before);

    // The folder itself may be gone for a while.
    let folder = gateway.file.parent().expect("a folder").to_owned();
    let away = folder.with_extension("away");
    std::fs::rename(&folder, &away).expect("it can be renamed");
    gateway.says(&["configuration not watched for now"]).await;
    // Somebody who asks is answered all the same.
    let mark = gateway.stderr.mark();
    process::signal(gateway.pid, "HUP");
    let is_it = |line: &String| line.contains("configuration not reloaded") && line.contains("no such file");
    gateway.stderr.wait_from(mark, "the signal is heeded", |line| is_it(line).then_some(())).await;
    std::fs::rename(&away, &folder).expect("it can be renamed");
    gateway.says(&["configuration watched again"]).await;
    gateway.configure(&of(Config::new().upstream(&up)));
    client.tools_until("a change is seen again", |tools| !has(tools, "other")).await;
    assert_eq!(pid(&gateway, "up").await, before);
}

#[tokio::test]
async fn what_was_stopped_by_order_stays_so_however_it_is_configured() {
    let (up, far) = (child("up").await, Upstream::http(Script::new("far", LEGACY)).await);
    let config = |keys: &str| Config::new().upstream_with(&up, keys).upstream_with(&far, keys);
    let gateway = Gateway::serve(&config("")).await;
    pid(&gateway, "up").await;
    for name in ["up", "far"] {
        let run = within("it answers", gateway.command(&["stop", name]).output()).await.expect("it runs");
        assert!(run.status.success());
    }
    // What is left is none of theirs.
    let children = process::children(gateway.pid);
    for keys in ["call_timeout = \"77s\"", "call_timeout = \"78s\"\noverlap = true", "call_timeout = \"79s\""] {
        let mark = gateway.stderr.mark();
        let keys_of_far = keys.replace("\noverlap = true", "");
        gateway.configure(&Config::new().upstream_with(&up, keys).upstream_with(&far, &keys_of_far));
        let is_it = |line: &String| line.contains("configuration reloaded").then_some(());
        gateway.stderr.wait_from(mark, "it is in force", is_it).await;
        let page = status(&gateway).await;
        let states: Vec<_> = page["upstreams"].as_array().expect("rows").iter().map(|row| &row["state"]).collect();
        assert_eq!(states, ["stopped", "stopped"], "{page}");
    }
    assert_eq!(process::children(gateway.pid), children, "nothing was started");
    let run = within("it answers", gateway.command(&["start", "up"]).output()).await.expect("it runs");
    assert!(run.status.success());
    pid(&gateway, "up").await;
}

#[tokio::test]
async fn a_swapped_link_a_renamed_file_a_signal_and_an_order_put_it_into_force() {
    let (one, two, three, four) = (child("one").await, child("two").await, child("three").await, child("four").await);
    let config = Config::new().upstream(&one);
    let gateway = Gateway::serve(&config).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("it is there", |tools| has(tools, "one")).await;

    // As editors do: another file in the place of the old one.
    let folder = gateway.file.parent().expect("a folder").to_owned();
    let config = config.upstream(&two);
    std::fs::write(folder.join("trunkline.toml~"), gateway.text(&config)).expect("it can be written");
    std::fs::rename(folder.join("trunkline.toml~"), &gateway.file).expect("it can be renamed");
    client.tools_until("the second is there", |tools| has(tools, "two")).await;

    // As a mounted ConfigMap has it: the file is a link into a folder that is a link, which is swapped.
    let version = |name: &str, config: &Config| {
        std::fs::create_dir(folder.join(name)).expect("a folder");
        std::fs::write(folder.join(name).join("trunkline.toml"), gateway.text(config)).expect("it can be written");
    };
    let link = |to: &str, at: &Path| {
        std::os::unix::fs::symlink(to, folder.join("..tmp")).expect("a link");
        std::fs::rename(folder.join("..tmp"), at).expect("it can be renamed");
    };
    version("..1", &config);
    link("..1", &folder.join("..data"));
    link("..data/trunkline.toml", &gateway.file);
    let config = config.upstream(&three);
    version("..2", &config);
    link("..2", &folder.join("..data"));
    client.tools_until("the third is there", |tools| has(tools, "three")).await;
    let config = config.upstream(&four);
    version("..3", &config);
    link("..3", &folder.join("..data"));
    client.tools_until("the fourth is there", |tools| has(tools, "four")).await;

    // What is in force already changes nothing.
    let first = pid(&gateway, "one").await;
    let mark = gateway.stderr.mark();
    process::signal(gateway.pid, "HUP");
    let is_it = |line: &String| line.contains("in force already").then_some(());
    gateway.stderr.wait_from(mark, "the signal is heard", is_it).await;
    let (is_done, said) = reload(&gateway).await;
    assert!(is_done && said.contains("nothing has changed"), "{said}");
    let (_, page) = (pid(&gateway, "one").await, status(&gateway).await);
    assert_eq!((page["configuration"]["reloads"].as_u64(), pid(&gateway, "one").await), (Some(3), first));

    // What only a start takes up is said.
    gateway.configure(&config.server("sse_keepalive = \"3s\""));
    gateway.says(&["take effect at the next start only", "server.sse_keepalive"]).await;
    let (is_done, said) = reload(&gateway).await;
    assert!(is_done && said.contains("needs a restart: server.sse_keepalive"), "also later: {said}");
    let page = status(&gateway).await;
    assert_eq!(page["configuration"]["needs_restart"], serde_json::json!(["server.sse_keepalive"]));
}

fn tokens(names: &[&str]) -> String {
    let one = |name: &&str| format!("[[auth.tokens]]\nname = \"{name}\"\ntoken = \"the-token-of-{name}-here\"\n");
    names.iter().map(one).collect()
}

async fn bearer(gateway: &Gateway, revision: Revision, name: &str) -> Client {
    let mut client = Client::open(&gateway.reach(), revision).await;
    client.http().always("authorization", &format!("Bearer the-token-of-{name}-here"));
    if !revision.is_modern() {
        client.greet().await;
    }
    client
}

#[tokio::test]
async fn a_revoked_token_ends_its_sessions_and_streams_and_a_new_level_of_the_log_holds_at_once() {
    let up = Upstream::http(Script::new("up", LEGACY)).await;
    let config = |names: &[&str], log: &str| Config::new().upstream(&up).section(&tokens(names)).section(log);
    let gateway = Gateway::serve(&config(&["ann", "bob"], "")).await;
    let (ann, bob) = (bearer(&gateway, LEGACY, "ann").await, bearer(&gateway, LEGACY, "bob").await);
    let modern = bearer(&gateway, MODERN, "ann").await;
    ann.tools_until("it is there", |tools| has(tools, "up")).await;
    let stream = |client: &Client| {
        let mut headers = client.http().session();
        headers.push(("accept".into(), "text/event-stream".into()));
        (headers, std::sync::Arc::new(Tape::default()))
    };
    let ((of_ann, heard), (of_bob, other)) = (stream(&ann), stream(&bob));
    let anns = EventStream::open(ann.http(), Method::GET, &of_ann, "", heard).await;
    let bobs = EventStream::open(bob.http(), Method::GET, &of_bob, "", other).await;
    assert_eq!((anns.status, bobs.status), (200, 200));
    let mut listen = modern.listen(&[]).await;
    let listening = listen.listen.take().expect("a call");

    gateway.configure(&config(&["bob", "eve"], "[log]\nlevel = \"debug\""));
    within("the stream of a session ends", anns.ended()).await;
    assert!(listening.outcome().await.is_none_or(|answer| answer.frame.is_none()), "so does that of a listen call");
    gateway.says(&["tokens revoked", "token:ann"]).await;
    let refused =
        plain::exchange(&gateway.url, "POST", &[("authorization", "Bearer the-token-of-ann-here")], "{}").await;
    assert_eq!(refused.status, 401);
    assert_eq!(bob.call("up__echo", "{}").await.status, 200, "others go on in their sessions");
    assert!(bobs.events.all().iter().all(Option::is_some), "and their streams stay");
    let eve = bearer(&gateway, LEGACY, "eve").await;
    assert_eq!(eve.call("up__echo", "{}").await.status, 200);
    let restarted = within("it answers", gateway.command(&["restart", "up"]).output()).await.expect("it runs");
    assert!(restarted.status.success());
    gateway.says(&["\"DEBUG\"", "upstream starting"]).await;

    // Whoever gets a token again begins anew: its session has gone.
    gateway.configure(&config(&["ann", "bob", "eve"], ""));
    until("the token is known again", || async {
        (ann.http().exchange(Method::GET, &of_ann, bytes::Bytes::new(), &Tape::default()).await.ok()?.status == 404)
            .then_some(())
    })
    .await;
}

/// Calls a tool until it is told to stop; how many calls went well. The first that fails ends it with a panic.
async fn calls(client: Client, tool: String, stop: &AtomicBool, done: &AtomicUsize) {
    while !stop.load(Ordering::Relaxed) {
        let answer = client.call(&tool, "{}").await;
        assert!(answer.frame.as_ref().is_some_and(|frame| frame.result.is_some()), "{tool}: {answer:?}");
        assert!(!answer.result().contains("\"isError\":true"), "{tool}: {answer:?}");
        done.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_reloads_under_calls_of_both_eras_fail_none_and_leave_nothing_behind() {
    let (kept, turned) = (child("kept").await, child("turned").await);
    let (far, modern) =
        (Upstream::http(Script::new("far", LEGACY)).await, Upstream::http(Script::new("new", MODERN)).await);
    // Two of them change with each reload, a child with every tenth.
    let config = |round: usize| {
        let keys = |every: usize| format!("call_timeout = \"{}s\"", 60 + (round / every) % 2);
        let over = format!("overlap = true\n{}", keys(10));
        let all = Config::new().upstream(&kept).upstream_with(&far, &keys(1)).upstream_with(&modern, &keys(1));
        all.upstream_with(&turned, &over)
    };
    let gateway = Gateway::serve(&config(0)).await;
    let first = pid(&gateway, "kept").await;
    let (stop, done) = (AtomicBool::new(false), [const { AtomicUsize::new(0) }; 8]);
    let mut working = Vec::new();
    for (at, (revision, name)) in [LEGACY, MODERN]
        .into_iter()
        .flat_map(|era| ["kept", "far", "new", "turned"].map(|name| (era, name)))
        .enumerate()
    {
        let client = Client::connect(&gateway.reach(), revision).await;
        client
            .tools_until("all are there", |tools| ["kept", "far", "new", "turned"].iter().all(|one| has(tools, one)))
            .await;
        working.push(calls(client, format!("{name}__echo"), &stop, &done[at]));
    }
    let reloading = async {
        let token = format!("Bearer {ADMIN_TOKEN}");
        let headers = [("authorization", token.as_str()), ("content-type", "application/json")];
        let mut tasks = 0.0;
        for round in 1..=100 {
            let before: Vec<_> = done.iter().map(|one| one.load(Ordering::Relaxed)).collect();
            gateway.configure(&config(round));
            // The file is watched: what the order finds is in force already, or comes into force by it.
            let answer = plain::exchange(&format!("{}/reload", gateway.admin), "POST", &headers, "{}").await;
            assert_eq!(answer.status, 200, "{answer:?}");
            until("every client was answered meanwhile", || async {
                done.iter().zip(&before).all(|(now, before)| now.load(Ordering::Relaxed) > before + 1).then_some(())
            })
            .await;
            if round == 20 {
                tasks = count(&gateway, "trunkline_tasks").await;
            }
        }
        stop.store(true, Ordering::Relaxed);
        tasks
    };
    let (tasks, _) = tokio::join!(reloading, trunkline_tests::within::all(working));
    assert_eq!(pid(&gateway, "kept").await, first, "what did not change is not touched");
    assert_eq!(status(&gateway).await["configuration"]["reloads"].as_u64(), Some(100));
    // What went is gone: nothing piles up.
    until("no task is left of what went", || async {
        (count(&gateway, "trunkline_tasks").await <= tasks + 10.0).then_some(())
    })
    .await;
    assert!(process::children(gateway.pid).len() <= 4, "{:?}", process::children(gateway.pid));
}
