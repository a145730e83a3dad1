//! Tools that somebody has to approve first: what is listed, called and told of them.

use super::*;
use crate::router::config::{Approval, Approved, Pin, Pins};

fn tool(name: &str, description: &str) -> Item {
    let definition = format!("{{\"name\":\"{name}\",\"description\":\"{description}\"}}");
    Item::new(name.into(), Object::parse(definition.into()).unwrap())
}

fn offering(tools: Vec<Item>) -> Inventory {
    Inventory { tools: tools.into(), ..inventory(&[]) }
}

fn pins(pin: Pin, approved: &[(&str, &Item)]) -> Pins {
    let mut all = Approved::default();
    for (upstream, tool) in approved {
        let text = std::str::from_utf8(tool.definition.raw()).unwrap();
        all.set(upstream, &tool.key, vec![Approval::of(text)]);
    }
    Pins { pin, file: None, approved: all }
}

async fn listed(stage: &Stage) -> Vec<String> {
    names(stage.router.handle(call(Method::ToolsList, "{}"))).await
}

async fn called(stage: &Stage, name: &str) -> String {
    told(stage.router.handle(call(Method::ToolsCall, &format!("{{\"name\":\"{name}\"}}")))).await
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_nobody_has_approved_as_it_is_is_neither_listed_nor_called() {
    let (a, b) = (Scripted::new("a", ""), Scripted::new("b", ""));
    let (read, write) = (tool("read", "Reads"), tool("write", "Writes"));
    a.offer(offering(vec![read.clone(), tool("write", "Writes, and tells me")]));
    b.offer(offering(vec![read.clone()]));
    let stage = Stage::new(Strategy::PrefixOnConflict, &[&a, &b]);
    assert_eq!(listed(&stage).await, ["read", "write", "b__read"]);
    stage.router.set_pins(&pins(Pin::Hold, &[("a", &write), ("b", &read)]));
    // The one that is held keeps its name.
    assert_eq!(listed(&stage).await, ["b__read"]);
    let said = called(&stage, "read").await;
    let why = "nobody has approved it yet; whoever runs the gateway can: `trunkline approve a`";
    assert_eq!(said, format!("Held: `read` was not called: {why}"));
    assert!(called(&stage, "write").await.contains("its definition has changed since it was approved"));
    assert_eq!(a.heard(), [""; 0]);
    assert!(called(&stage, "b__read").await.contains("read"));
    stage.router.set_pins(&pins(Pin::Warn, &[]));
    assert_eq!(listed(&stage).await, ["read", "write", "b__read"], "they are only warned of");
    assert!(called(&stage, "write").await.contains("write"));
    stage.router.set_pins(&pins(Pin::Hold, &[("a", &read), ("a", &tool("write", "Writes, and tells me"))]));
    assert_eq!(listed(&stage).await, ["read", "write"]);
    // What the upstream says from then on is judged anew.
    a.offer(offering(vec![tool("read", "Reads, too"), tool("write", "Writes, and tells me")]));
    settle().await;
    assert_eq!(listed(&stage).await, ["write"]);
}

#[tokio::test(start_paused = true)]
async fn where_tools_are_held_nothing_that_no_list_names_is_called() {
    let a = Scripted::new("a", "");
    let read = tool("read", "Reads");
    a.offer(offering(vec![read.clone(), tool("write", "Writes")]));
    let stage = Stage::new(Strategy::Flat, &[&a]);
    assert!(called(&stage, "hidden").await.contains("hidden"), "one upstream has everything");
    a.heard();
    stage.router.set_pins(&pins(Pin::Hold, &[("a", &read)]));
    assert!(called(&stage, "hidden").await.starts_with("InvalidParams: Unknown tool: hidden"));
    assert!(called(&stage, "write").await.starts_with("Held: "));
    assert_eq!(a.heard(), [""; 0]);
    assert!(called(&stage, "read").await.contains("read"));
}

#[tokio::test(start_paused = true)]
async fn who_may_not_call_a_tool_is_not_told_that_it_is_held() {
    let (a, b) = (Scripted::new("a", "a"), Scripted::new("b", "b"));
    a.offer(offering(vec![tool("read", "Reads")]));
    b.offer(offering(vec![tool("read", "Reads")]));
    let stage = Stage::new(Strategy::Prefix, &[&a, &b]);
    stage.router.set_pins(&pins(Pin::Hold, &[]));
    let upstreams = vec![Glob::new("b")];
    let role = Role { name: "r".into(), upstreams, tools: None, read_only: false, resources: None, prompts: None };
    let grants = granted(role);
    let ask = async |name: &str| {
        let asked = call(Method::ToolsCall, &format!("{{\"name\":\"{name}\"}}"));
        let caller = Caller { grants: grants.clone(), ..(*asked.caller).clone() };
        told(stage.router.handle(Call { caller: Arc::new(caller), ..asked })).await
    };
    assert_eq!(ask("a__read").await, "InvalidParams: Unknown tool: a__read");
    assert!(ask("b__read").await.starts_with("Held: "));
}

#[tokio::test(start_paused = true)]
async fn what_is_to_be_approved_is_told_with_what_it_was_and_what_it_was_called() {
    let a = Scripted::new("a", "a");
    let (read, write) = (tool("read", "Reads"), tool("write", "Writes"));
    a.offer(offering(vec![read.clone(), tool("write", "Wipes"), tool("put", "Puts"), tool("new", "Is new")]));
    let stage = Stage::new(Strategy::Prefix, &[&a]);
    stage.router.set_pins(&pins(Pin::Warn, &[("a", &read), ("a", &write), ("a", &tool("store", "Puts"))]));
    let all = stage.router.to_approve(100);
    let one = |name: &str| all.get(&("a".into(), name.into())).unwrap();
    assert_eq!(all.len(), 3);
    let (changed, renamed, new) = (one("write"), one("put"), one("new"));
    assert_eq!((changed.why, changed.public.as_deref()), ("changed", Some("a__write")));
    assert_eq!(changed.approved, [r#"{"name":"write","description":"Writes"}"#.into()]);
    assert_eq!(changed.definitions.len(), 1);
    assert!(changed.definitions[0].1.ends_with(b"\"Wipes\"}") && changed.definitions[0].0.starts_with("sha256:"));
    assert_eq!((renamed.why, renamed.renamed_from.as_deref()), ("new", Some("store")));
    assert_eq!((new.why, new.renamed_from.as_deref(), new.approved.len()), ("new", None, 0));
    // A copy of one that is still there has another name, and is not that one.
    stage.router.set_pins(&pins(Pin::Warn, &[("a", &read), ("a", &tool("write", "Puts"))]));
    assert_eq!(stage.router.to_approve(100)[&("a".into(), "put".into())].renamed_from, None);
    assert_eq!(stage.router.to_approve(1).len(), 1);
    stage.router.set_pins(&Pins::default());
    assert!(stage.router.to_approve(100).is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_to_be_approved_costs_as_much_again_for_twice_as_many_tools() {
    let cost = async |count: usize| {
        let a = Scripted::new("a", "a");
        a.offer(offering((0..count).map(|at| tool(&format!("new{at}"), &format!("Is new {at}"))).collect()));
        let stage = Stage::new(Strategy::Prefix, &[&a]);
        let gone: Vec<_> = (0..count).map(|at| tool(&format!("gone{at}"), &format!("Is gone {at}"))).collect();
        stage.router.set_pins(&pins(Pin::Hold, &gone.iter().map(|tool| ("a", tool)).collect::<Vec<_>>()));
        settle().await;
        crate::steps::of(|| assert_eq!(stage.router.to_approve(count).len(), count)).unwrap() as f64
    };
    let ratio = cost(80).await / cost(40).await;
    assert!(ratio < 2.6, "{ratio} times the steps");
}
