//! A cancellation and the answer that it was to prevent cross, again and again, over the whole way through the gateway.

use super::super::{Observe, chain};
use crate::downstream::{config::Config as FaceConfig, stdio};
use crate::memory::Refusals;
use crate::memory::budget::Budget;
use crate::policy::limits::Limits;
use crate::policy::redact::Redact;
use crate::protocol::capabilities::Supports;
use crate::protocol::frame::message::Frame;
use crate::protocol::json;
use crate::protocol::revision::Revision;
use crate::protocol::value::{Key, Object};
use crate::router::config::{Naming, Strategy, Unknown};
use crate::router::{Listeners, Owner, Router, Secret, Terms};
use crate::runtime::Tasks;
use crate::upstream::inventory::{Fresh, Inventory};
use crate::upstream::tests::rig::{Far, Rig, config};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};

const LEGACY: Revision = Revision::V2025_11_25;
/// The variable that says how many cancellations cross their answers, and how many do without it.
const CROSSINGS_IN_ALL: &str = "TRUNKLINE_CROSSINGS";
const CROSSINGS_MIN: usize = 20_000;
/// So many of them in a round.
const CROSSINGS: usize = 100;
/// Beside them in each round so many are only answered, and as many only withdrawn.
const PLAIN: usize = 10;

/// Numbers that look like chance, the same in each run (SplitMix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).expect("it is below a usize")
    }

    async fn pause(&mut self) {
        for _ in 0..self.below(8) {
            yield_now().await;
        }
    }
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is withdrawn, and answered.
    Both,
    Answered,
    Withdrawn,
}

impl Fate {
    /// Of the call with this number in its round; the number goes with the call wherever it goes.
    fn of(number: usize) -> Self {
        match number {
            n if n < CROSSINGS => Self::Both,
            n if n < CROSSINGS + PLAIN => Self::Answered,
            _ => Self::Withdrawn,
        }
    }
}

const CALLS: usize = CROSSINGS + 2 * PLAIN;

/// The gateway between a host on its pipes and an upstream in memory.
struct World {
    rig: Rig,
    stdin: DuplexStream,
    stdout: Lines<BufReader<DuplexStream>>,
    ended: oneshot::Receiver<()>,
}

impl World {
    async fn new() -> Self {
        let rig = Rig::new(config());
        rig.met(LEGACY, r#"{"tools":{}}"#);
        rig.instance.offering.inventory.send_replace(Some(Arc::new(Inventory {
            revision: LEGACY,
            tools: Default::default(),
            resources: Default::default(),
            templates: Default::default(),
            prompts: Default::default(),
            capabilities: Object::empty(),
            instructions: None,
            supports: Supports { tools: true, ..Supports::default() },
            fresh: Arc::new(Fresh::default()),
            announced: Default::default(),
        })));
        let terms = Terms {
            naming: Naming { strategy: Strategy::Flat, ..Naming::default() },
            page_size: 1000,
            first_list_wait: Duration::ZERO,
            instructions: String::new(),
            unknown: Unknown::Pass,
            pins: Default::default(),
            secret: Secret::found_by(|| vec![vec![7; 32]]),
        };
        let owner: Arc<dyn Owner> = Arc::new(rig.upstream());
        let router = Router::start(vec![owner], terms, Listeners::default(), &rig.tasks);
        let (limits, redact) = (Limits::new(&Default::default()), Redact::new(&Default::default(), &rig.tasks));
        let handler = chain(router, (Observe::default(), limits, redact), &rig.tasks);
        let (stdin, theirs) = tokio::io::duplex(1 << 16);
        let (ours, stdout) = tokio::io::duplex(1 << 16);
        let (end, ended) = oneshot::channel();
        let level = Tasks::new();
        rig.tasks.spawn_until_end(async move {
            stdio::serve(
                handler,
                &FaceConfig::default(),
                (theirs, ours, std::future::pending()),
                level,
                (&Budget::default(), &Refusals::default()),
            )
            .await
            .unwrap();
            let _nobody_waits = end.send(());
        });
        Self { rig, stdin, stdout: BufReader::new(stdout).lines(), ended }
    }

    /// One round; how many of the crossed calls were answered, and how many were withdrawn before.
    async fn round(&mut self, round: usize, chance: &mut Chance) -> [usize; 2] {
        let era = if round.is_multiple_of(2) { Era::Legacy } else { Era::Modern };
        let (script, mut pieces) = (script(round, era, chance), Chance(chance.0 ^ 1));
        let writing = async {
            let mut rest = &script[..];
            while !rest.is_empty() {
                let (piece, more) = rest.split_at(rest.len().min(1 + pieces.below(800)));
                self.stdin.write_all(piece).await.unwrap();
                pieces.pause().await;
                rest = more;
            }
        };
        let ((), heard, answers) = tokio::join!(writing, play(&mut self.rig.far, chance), read(&mut self.stdout));
        let (mut answered, mut withdrawn) = (0, 0);
        for number in 0..CALLS {
            let (fate, told) = (Fate::of(number), heard.get(&number).copied());
            let lines = answers.get(&number).map(Vec::as_slice).unwrap_or_default();
            let case = format!("round {round}, {era:?}, call {number}, {fate:?}: told {told:?}, {lines:?}");
            assert!(lines.len() <= 1 && lines.iter().all(|line| line.contains(&text(round, number))), "{case}");
            let told = told.unwrap_or_else(|| panic!("it reached the upstream: {case}"));
            match fate {
                Fate::Both => assert!(told + lines.len() <= 1, "{case}"),
                Fate::Answered => assert_eq!((told, lines.len()), (0, 1), "{case}"),
                Fate::Withdrawn => assert_eq!((told, lines.len()), (1, 0), "{case}"),
            }
            if fate == Fate::Both {
                answered += lines.len();
                withdrawn += told;
            }
        }
        assert_eq!(
            (self.rig.pipe.in_flight(), self.rig.instance.admission.traffic.in_flight()),
            (0, 0),
            "round {round}"
        );
        [answered, withdrawn]
    }
}

/// How a client writes.
#[derive(Clone, Copy, Debug)]
enum Era {
    Legacy,
    Modern,
}

impl Era {
    /// The ids are the same in each round.
    fn call(self, round: usize, number: usize) -> String {
        let meta = match self {
            Self::Legacy => String::new(),
            Self::Modern => format!(",\"_meta\":{META}"),
        };
        let arguments = format!("{{\"number\":{number},\"text\":\"{}\"}}", text(round, number));
        let params = format!("{{\"name\":\"t\",\"arguments\":{arguments}{meta}}}");
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{number},\"method\":\"tools/call\",\"params\":{params}}}")
    }
}

const META: &str =
    r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
const GREETING: &str = r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

fn text(round: usize, number: usize) -> String {
    format!("nonce {round} {number}.")
}

/// Each cancellation stands somewhere behind its call, mostly not far.
fn script(round: usize, era: Era, chance: &mut Chance) -> Vec<u8> {
    let mut frames: Vec<(usize, String)> = Vec::new();
    for number in 0..CALLS {
        let at = chance.below(1000);
        frames.push((at, era.call(round, number)));
        if Fate::of(number) != Fate::Answered {
            let reach = if number.is_multiple_of(2) { 20 } else { 400 };
            let cancel = format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{number}}}}}"
            );
            frames.push((at + 1 + chance.below(reach), cancel));
        }
    }
    frames.sort_by_key(|(at, _)| *at);
    frames.into_iter().flat_map(|(_, frame)| (frame + "\n").into_bytes()).collect()
}

/// Plays the upstream until nobody wants anything of it any more: it answers what it may, sooner or later and in any order.
/// Which calls it got, and how often each was withdrawn.
async fn play(far: &mut Far, chance: &mut Chance) -> HashMap<usize, usize> {
    let (mut numbers, mut told, mut open) = (HashMap::new(), HashMap::new(), Vec::new());
    loop {
        match far.line_unless_quiet().await.map(|line| Frame::parse(&line.into()).unwrap()) {
            Some(Frame::Request { id, params, .. }) => {
                let number: usize = parse(json::get(params.find("arguments").unwrap(), "number").unwrap());
                numbers.insert(id.raw().to_vec(), number);
                assert_eq!(told.insert(number, 0), None, "call {number} came twice");
                if Fate::of(number) != Fate::Withdrawn {
                    open.push((id, params));
                }
            }
            Some(Frame::Notification { params, .. }) => {
                let number = numbers[params.get(Key::RequestId).unwrap()];
                *told.get_mut(&number).unwrap() += 1;
            }
            Some(other) => panic!("{other:?}"),
            None if open.is_empty() => return told,
            None => {}
        }
        // All that is left when it is quiet: else only some.
        while !open.is_empty() && chance.below(5) > 0 {
            let (id, params) = open.swap_remove(chance.below(open.len()));
            let text = json::get(params.find("arguments").unwrap(), "text").unwrap();
            let content = format!(r#"[{{"type":"text","text":{}}}]"#, String::from_utf8_lossy(text));
            far.result(&id, &format!(r#"{{"content":{content}}}"#)).await;
            chance.pause().await;
        }
    }
}

/// Reads what the client is told until nothing comes any more: the answers to each call.
async fn read(stdout: &mut Lines<BufReader<DuplexStream>>) -> HashMap<usize, Vec<String>> {
    let mut answers: HashMap<usize, Vec<String>> = HashMap::new();
    while let Ok(line) = timeout(Duration::from_secs(1), stdout.next_line()).await {
        let line = line.unwrap().expect("stdout is open");
        match Frame::parse(&line.clone().into()) {
            Ok(Frame::Response { id: Some(id), .. }) => answers.entry(parse(id.raw())).or_default().push(line),
            other => panic!("{other:?}: {line}"),
        }
    }
    answers
}

fn parse(raw: &[u8]) -> usize {
    std::str::from_utf8(raw).unwrap().parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn whichever_comes_first_of_a_cancellation_and_an_answer_nothing_comes_twice_is_lost_or_left() {
    let mut world = World::new().await;
    world.stdin.write_all(GREETING.as_bytes()).await.unwrap();
    assert!(world.stdout.next_line().await.unwrap().unwrap().contains("\"hello\""));
    let (mut chance, mut came) = (Chance(60), [0, 0]);
    let wanted = std::env::var(CROSSINGS_IN_ALL).ok().and_then(|text| text.parse().ok()).unwrap_or(CROSSINGS_MIN);
    let rounds = wanted.div_ceil(CROSSINGS);
    for round in 0..rounds {
        let [answered, withdrawn] = world.round(round, &mut chance).await;
        came = [came[0] + answered, came[1] + withdrawn];
    }
    assert!(came.iter().all(|came| came * 20 > rounds * CROSSINGS), "either came first now and then: {came:?}");
    eprintln!("{} crossed: {} were answered, {} were withdrawn before", rounds * CROSSINGS, came[0], came[1]);
    // Nothing is left that the end would wait for.
    let begun = Instant::now();
    drop(world.stdin);
    world.ended.await.unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO);
}
