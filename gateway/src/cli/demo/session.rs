//! One conversation on one pipe: frames in, answers out; a single owner of all that it remembers.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::era::{Era, Refusal, SUBSCRIPTION_KEY};
use super::offer::{self, COUNTER, text};
use super::tools::{self, Call};
use crate::protocol::json;

/// The counter grows so often.
const TICK: Duration = Duration::from_secs(2);
/// Sleeps and listens at once.
const MOST: usize = 1_024;
/// Lists of the demo never change; a client may keep them so long.
const LIST_FRESH_MS: u64 = 300_000;

/// What is remembered between frames.
pub(super) struct Session {
    frames: mpsc::Sender<Value>,
    /// What a handshake settled on.
    settled: Option<&'static str>,
    /// Sleeps; each ends as the frame that answers it.
    sleeping: JoinSet<Value>,
    /// Whose sleep is whose, for cancellation: ids are kept with their type.
    asleep: Vec<(Value, AbortHandle)>,
    /// The ids of open listens for the counter.
    listens: Vec<Value>,
    /// Whether a handshake client subscribed to the counter.
    subscribed: bool,
    count: u64,
}

/// Why the session goes on.
enum Event {
    Line(Vec<u8>),
    Awake(Option<Value>),
    Tick,
}

/// What becomes of a request.
enum Answer {
    Result(Value, Option<u64>),
    /// The answer comes later, or is on its way.
    Later,
}

impl Session {
    pub(super) fn new(frames: mpsc::Sender<Value>) -> Self {
        Self {
            frames,
            settled: None,
            sleeping: JoinSet::new(),
            asleep: Vec::new(),
            listens: Vec::new(),
            subscribed: false,
            count: 0,
        }
    }

    /// Answers until `lines` end, or nobody reads. What sleeps then is dropped.
    pub(super) async fn run(mut self, lines: &mut mpsc::Receiver<Vec<u8>>) {
        let mut ticks = ticks();
        loop {
            let event = tokio::select! {
                line = lines.recv() => match line {
                    Some(line) => Event::Line(line),
                    None => return,
                },
                Some(awake) = self.sleeping.join_next() => Event::Awake(awake.ok()),
                _ = ticks.tick() => Event::Tick,
            };
            let out = match event {
                Event::Line(line) => self.line(&line),
                Event::Awake(frame) => {
                    self.asleep.retain(|(_, handle)| !handle.is_finished());
                    frame.into_iter().collect()
                }
                Event::Tick => self.tick(),
            };
            for frame in out {
                if self.frames.send(frame).await.is_err() {
                    return;
                }
            }
        }
    }

    /// The frames that one line is answered by, at once.
    fn line(&mut self, line: &[u8]) -> Vec<Value> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Vec::new();
        }
        let Ok(frame) = serde_json::from_slice::<Value>(line) else {
            return vec![unread(line)];
        };
        match (frame["method"].as_str(), frame.get("id")) {
            (Some(method), Some(id)) => match self.request(method, id, &frame["params"]) {
                Ok(frames) => frames,
                Err(refusal) => vec![refusal.frame(id)],
            },
            (Some("notifications/cancelled"), None) => {
                self.cancel(&frame["params"]["requestId"]);
                Vec::new()
            }
            // An answer to what was never asked, or a notice that means nothing here.
            _ if frame.is_object() => Vec::new(),
            _ => vec![Refusal::new(-32600, "a frame is one object").frame(&Value::Null)],
        }
    }

    fn request(&mut self, method: &str, id: &Value, params: &Value) -> Result<Vec<Value>, Refusal> {
        let era = Era::of(method, params, self.settled)?;
        if (era, method) == (Era::Modern, "subscriptions/listen") {
            return Ok(vec![self.listen(id, params)?]);
        }
        let answer = match era {
            Era::Legacy(_) => self.legacy(method, params),
            Era::Modern => (method == "server/discover").then(|| Answer::Result(Era::discovery(), Some(LIST_FRESH_MS))),
        };
        let answer = match answer {
            Some(answer) => answer,
            None => self.shared(era, method, id, params)?,
        };
        Ok(match answer {
            Answer::Result(result, fresh) => vec![answered(id, era.dress(result, fresh))],
            Answer::Later => Vec::new(),
        })
    }

    /// What only handshake clients may ask.
    fn legacy(&mut self, method: &str, params: &Value) -> Option<Answer> {
        let result = match method {
            "initialize" => {
                let (revision, result) = Era::handshake(params);
                self.settled = Some(revision);
                result
            }
            "ping" => json!({}),
            "resources/subscribe" | "resources/unsubscribe" if params["uri"] == COUNTER => {
                self.subscribed = method == "resources/subscribe";
                json!({})
            }
            "resources/unsubscribe" => json!({}),
            _ => return None,
        };
        Some(Answer::Result(result, None))
    }

    /// What clients of both eras may ask.
    fn shared(&mut self, era: Era, method: &str, id: &Value, params: &Value) -> Result<Answer, Refusal> {
        Ok(match method {
            "tools/list" => Answer::Result(tools::list(era), Some(LIST_FRESH_MS)),
            "resources/list" => Answer::Result(offer::resources(), Some(LIST_FRESH_MS)),
            "resources/templates/list" => Answer::Result(offer::templates(), Some(LIST_FRESH_MS)),
            "prompts/list" => Answer::Result(offer::prompts(), Some(LIST_FRESH_MS)),
            "resources/read" => Answer::Result(offer::read(era, params, self.count)?, Some(0)),
            "prompts/get" => Answer::Result(offer::prompt(params)?, None),
            "completion/complete" => Answer::Result(offer::complete(params)?, None),
            "tools/call" => match tools::call(era, params)? {
                Call::Done(result) => Answer::Result(result, None),
                Call::Sleep(time) => self.sleep(era, id, params, time)?,
            },
            "resources/subscribe" if era != Era::Modern => {
                return Err(Refusal::new(-32002, format!("there is no resource {}", text(params, "uri")?)));
            }
            _ => return Err(Refusal::new(-32601, format!("there is no method {method}"))),
        })
    }

    fn sleep(&mut self, era: Era, id: &Value, params: &Value, time: Duration) -> Result<Answer, Refusal> {
        if self.sleeping.len() >= MOST {
            return Err(Refusal::new(-32603, "too many calls sleep already"));
        }
        let token = params["_meta"].get("progressToken").cloned();
        let (frames, answered_id) = (self.frames.clone(), id.clone());
        let handle = self.sleeping.spawn(async move {
            let result = tools::sleep(time, token, era, frames).await;
            answered(&answered_id, era.dress(result, None))
        });
        self.asleep.push((id.clone(), handle));
        Ok(Answer::Later)
    }

    /// Opens a listen: its first frame says what of it is honoured.
    fn listen(&mut self, id: &Value, params: &Value) -> Result<Value, Refusal> {
        if self.listens.len() >= MOST {
            return Err(Refusal::new(-32603, "too many listens are open already"));
        }
        let wanted = params["notifications"]["resourceSubscriptions"].as_array();
        let honoured = wanted.is_some_and(|uris| uris.iter().any(|uri| uri == COUNTER));
        let mut filter = json!({});
        if honoured {
            filter["resourceSubscriptions"] = json!([COUNTER]);
            self.listens.push(id.clone());
        }
        let params = json!({ "_meta": { SUBSCRIPTION_KEY: id }, "notifications": filter });
        Ok(json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params }))
    }

    /// The newest sleep or listen with this id ends, and nothing more is said about it.
    fn cancel(&mut self, id: &Value) {
        if let Some(at) = self.asleep.iter().rposition(|(known, _)| known == id) {
            self.asleep.remove(at).1.abort();
        } else if let Some(at) = self.listens.iter().rposition(|known| known == id) {
            self.listens.remove(at);
        }
    }

    /// The counter grows, and whoever wants to know is told.
    fn tick(&mut self) -> Vec<Value> {
        self.count += 1;
        let updated =
            |params: Value| json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params });
        let plain = self.subscribed.then(|| updated(json!({ "uri": COUNTER })));
        let tagged =
            self.listens.iter().map(|id| updated(json!({ "uri": COUNTER, "_meta": { SUBSCRIPTION_KEY: id } })));
        plain.into_iter().chain(tagged).collect()
    }
}

/// What is said of a line that cannot be held: to whoever sent it, where that can be told. Numbers such as 1e400 are JSON.
fn unread(line: &[u8]) -> Value {
    match json::get(line, "id").and_then(|raw| serde_json::from_slice::<Value>(raw).ok()) {
        Some(id) => {
            Refusal::new(-32602, "this line is not JSON, or a number in it is too large for the demo").frame(&id)
        }
        None => Refusal::new(-32700, "this line is not JSON").frame(&Value::Null),
    }
}

fn answered(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// The first tick is a whole one away; after a suspended hour there is one, and not a thousand.
fn ticks() -> Interval {
    let mut ticks = interval_at(Instant::now() + TICK, TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
