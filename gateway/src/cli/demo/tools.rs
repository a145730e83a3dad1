//! The demo's tools: what they are called, and what they do.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::era::{Era, Refusal};
use super::offer::text;

/// The longest sleep and the largest blob that are given.
const SLEEP_MS: u64 = 600_000;
const BLOB_BYTES: u64 = 32 << 20;
/// A sleep tells its progress so often.
const STEP: Duration = Duration::from_millis(100);

/// A call: either its result, or a sleep that takes time.
#[derive(Debug, PartialEq)]
pub(super) enum Call {
    Done(Value),
    Sleep(Duration),
}

/// `tools/list`, as a client of this era may see it.
pub(super) fn list(era: Era) -> Value {
    let number = json!({ "type": "number" });
    let mut tools = vec![
        tool("echo", "Gives a text back as it is", json!({ "text": { "type": "string" } }), &["text"]),
        tool("add", "Adds two numbers", json!({ "a": number, "b": number }), &["a", "b"]),
        tool("clock", "Tells the time (UTC)", json!({}), &[]),
        tool(
            "sleep",
            "Waits, and tells its progress",
            json!({ "ms": { "type": "integer", "minimum": 0, "maximum": SLEEP_MS } }),
            &["ms"],
        ),
        tool("fail", "Fails, with a message", json!({ "message": { "type": "string" } }), &[]),
        tool(
            "blob",
            "Gives so many bytes of text",
            json!({ "bytes": { "type": "integer", "minimum": 0, "maximum": BLOB_BYTES } }),
            &["bytes"],
        ),
    ];
    if era.knows("2025-06-18") {
        tools[1]["outputSchema"] = json!({ "type": "object", "properties": { "sum": number }, "required": ["sum"] });
    }
    if era.knows("2025-03-26") {
        tools.iter_mut().for_each(|tool| tool["annotations"] = json!({ "readOnlyHint": true, "openWorldHint": false }));
    }
    json!({ "tools": tools })
}

fn tool(name: &str, description: &str, properties: Value, required: &[&str]) -> Value {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    json!({ "name": name, "description": description, "inputSchema": schema })
}

/// `tools/call`. Wrong arguments are the tool's failure, so that a model can see what it did.
pub(super) fn call(era: Era, params: &Value) -> Result<Call, Refusal> {
    let arguments = &params["arguments"];
    let whole = |key: &str, most: u64| arguments[key].as_u64().filter(|number| *number <= most);
    Ok(Call::Done(match text(params, "name")? {
        "echo" => match arguments["text"].as_str() {
            Some(text) => said(text),
            None => failed("`text` must be a text"),
        },
        "add" => match add(&arguments["a"], &arguments["b"]) {
            Some(sum) if era.knows("2025-06-18") => {
                let mut result = said(&sum.to_string());
                result["structuredContent"] = json!({ "sum": sum });
                result
            }
            Some(sum) => said(&sum.to_string()),
            None => failed("`a` and `b` must be numbers with a finite sum"),
        },
        "clock" => said(&utc(SystemTime::now())),
        "sleep" => match whole("ms", SLEEP_MS) {
            Some(ms) => return Ok(Call::Sleep(Duration::from_millis(ms))),
            None => failed(&format!("`ms` must be a whole number up to {SLEEP_MS}")),
        },
        "fail" => failed(arguments["message"].as_str().unwrap_or("this tool always fails")),
        "blob" => match whole("bytes", BLOB_BYTES) {
            Some(bytes) => said(&blob(bytes as usize)),
            None => failed(&format!("`bytes` must be a whole number up to {BLOB_BYTES}")),
        },
        name => return Err(Refusal::new(-32602, format!("there is no tool {name}"))),
    }))
}

/// Sleeps, and tells `frames` about it where the caller gave a token. The steps are counted and not
/// measured, so that a late timer skips none.
pub(super) async fn sleep(time: Duration, token: Option<Value>, era: Era, frames: mpsc::Sender<Value>) -> Value {
    let total = time.as_millis() as u64;
    let mut slept = Duration::ZERO;
    while slept < time {
        let step = STEP.min(time - slept);
        tokio::time::sleep(step).await;
        slept += step;
        if let Some(token) = &token {
            let mut params = json!({ "progressToken": token, "progress": slept.as_millis() as u64, "total": total });
            if era.knows("2025-03-26") {
                params["message"] = json!(format!("slept {} of {total} ms", slept.as_millis()));
            }
            // If nobody reads any more, the session ends and this future with it.
            let _ =
                frames.send(json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })).await;
        }
    }
    said(&format!("slept {total} ms"))
}

fn said(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn failed(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }], "isError": true })
}

fn add(a: &Value, b: &Value) -> Option<Value> {
    // Whole numbers stay whole as long as they fit.
    if let Some(sum) = a.as_i64().zip(b.as_i64()).and_then(|(a, b)| a.checked_add(b)) {
        return Some(json!(sum));
    }
    let sum = a.as_f64()? + b.as_f64()?;
    sum.is_finite().then(|| json!(sum))
}

fn blob(bytes: usize) -> String {
    const LINE: &str = "The quick brown fox jumps over the lazy dog, again and again.\r\n\t";
    LINE.chars().cycle().take(bytes).collect()
}

/// The time as `2026-07-28T12:34:56Z`.
fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days since 1 March of the year 0, in cycles of 400 years, where leap days come last.
    let days = days + 719_468;
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = (cycle * 400 + year + month / 10, (month + 2) % 12 + 1);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3_600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_right_around_leap_days() {
        let at = |seconds| utc(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(951_868_800), "2000-03-01T00:00:00Z");
        assert_eq!(at(1_735_689_599), "2024-12-31T23:59:59Z");
        assert_eq!(at(1_785_242_096), "2026-07-28T12:34:56Z");
    }

    #[test]
    fn sums_stay_whole_and_finite() {
        assert_eq!(add(&json!(1), &json!(2)), Some(json!(3)));
        assert_eq!(add(&json!(i64::MAX), &json!(1)), Some(json!(9_223_372_036_854_775_808_u64 as f64)));
        assert_eq!(add(&json!(0.5), &json!(1)), Some(json!(1.5)));
        assert_eq!(add(&json!(1.7e308), &json!(1.7e308)), None);
        assert_eq!(add(&json!("1"), &json!(1)), None);
    }

    #[test]
    fn a_blob_has_its_size() {
        assert_eq!([0, 1, 64, 1000].map(|bytes| blob(bytes).len()), [0, 1, 64, 1000]);
    }
}
