//! What came back for a request, with every byte of it.

use bytes::Bytes;
use http::HeaderMap;
use serde_json::value::RawValue;

use crate::frame::{Frame, fields, shorten, text};
use crate::sse::SseEvent;

/// An answer. Over stdio the status is 200 and there are no headers.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The HTTP headers.
    pub headers: HeaderMap,
    /// The body, unless it was a stream of events.
    pub body: Bytes,
    /// The events, if it was a stream of events.
    pub events: Vec<SseEvent>,
    /// The answering frame, if there was one.
    pub frame: Option<Frame>,
}

impl Answer {
    /// The answering frame.
    #[must_use]
    pub fn frame(&self) -> &Frame {
        match &self.frame {
            Some(frame) => frame,
            None => panic!("no answer in HTTP {}: {}", self.status, shorten(&String::from_utf8_lossy(&self.body))),
        }
    }

    /// The raw id of the answer.
    #[must_use]
    pub fn id(&self) -> &str {
        self.frame().id_text()
    }

    /// The raw result.
    pub fn result(&self) -> &str {
        match (&self.frame().result, &self.frame().error) {
            (Some(result), None) => result.get(),
            (_, error) => panic!("no result but {}", error.as_ref().map_or("nothing", |raw| raw.get())),
        }
    }

    /// The result as a tree.
    pub fn value(&self) -> serde_json::Value {
        serde_json::from_str(self.result()).unwrap_or_else(|error| panic!("{error} in {}", self.result()))
    }

    /// The raw error.
    #[must_use]
    pub fn error(&self) -> &str {
        match (&self.frame().error, &self.frame().result) {
            (Some(error), None) => error.get(),
            (_, result) => panic!("no error but {}", result.as_ref().map_or("nothing", |raw| raw.get())),
        }
    }

    /// The error as a tree.
    #[must_use]
    pub fn error_value(&self) -> serde_json::Value {
        serde_json::from_str(self.error()).unwrap_or_else(|error| panic!("{error} in {}", self.error()))
    }

    /// The error's code; 0 if it has none.
    #[must_use]
    pub fn code(&self) -> i64 {
        self.error_value()["code"].as_i64().unwrap_or(0)
    }

    /// The error's text.
    #[must_use]
    pub fn message(&self) -> String {
        self.error_value()["message"].as_str().unwrap_or("").to_owned()
    }

    /// Whether this refuses a call, of which nothing was sent, since its upstream still starts.
    #[must_use]
    pub fn is_of_a_start(&self) -> bool {
        let error = self.frame.as_ref().and_then(|frame| frame.error.as_deref());
        error.is_some_and(|error| error.get().contains(" was not sent: ") && error.get().contains("still starting"))
    }

    /// The text of the first content block; nothing else of the result is decoded.
    pub fn text(&self) -> String {
        let first_text = || {
            let content = fields(self.frame().result.as_deref()?).remove("content")?;
            let blocks: Vec<Box<RawValue>> = serde_json::from_str(content.get()).ok()?;
            text(&fields(blocks.first()?).remove("text")?)
        };
        first_text().unwrap_or_else(|| panic!("no text content in {}", shorten(self.result())))
    }

    /// A header's value.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Whether it came as a stream of events.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }
}
