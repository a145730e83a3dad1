//! Server-sent events as the browser's rules read them: a decoder for any chunk borders, and an encoder.

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The `id` field, if the event had one.
    pub id: Option<String>,
    /// The `event` field, empty for a plain message.
    pub name: String,
    /// The joined `data` lines; `None` if there was no `data` line at all.
    pub data: Option<String>,
    /// The `retry` field in milliseconds.
    pub retry: Option<u64>,
    /// A comment line; such an entry has nothing else.
    pub comment: Option<String>,
}

/// Cuts a byte stream into events.
#[derive(Default)]
pub struct SseDecoder {
    rest: Vec<u8>,
    event: SseEvent,
    touched: bool,
}

impl SseDecoder {
    /// Takes the next bytes and gives the events that they complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<SseEvent> {
        // What was there already has no end of a line: to look through it again with each piece takes minutes for a long one.
        let (mut begin, mut from) = (0, self.rest.len());
        self.rest.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some(length) = self.rest[from..].iter().position(|byte| *byte == b'\n') {
            let line = &self.rest[begin..from + length];
            let line = line.strip_suffix(b"\r").unwrap_or(line).to_vec();
            (begin, from) = (from + length + 1, from + length + 1);
            self.line(&String::from_utf8(line).expect("a stream of events is UTF-8"), &mut events);
        }
        self.rest.drain(..begin);
        events
    }

    fn line(&mut self, line: &str, events: &mut Vec<SseEvent>) {
        if line.is_empty() {
            if std::mem::take(&mut self.touched) {
                events.push(std::mem::take(&mut self.event));
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" => {
                events.push(SseEvent { comment: Some(value.to_owned()), ..SseEvent::default() });
                return;
            }
            "data" => match &mut self.event.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.event.data = Some(value.to_owned()),
            },
            "id" => self.event.id = Some(value.to_owned()),
            "event" => value.clone_into(&mut self.event.name),
            "retry" => self.event.retry = value.parse().ok(),
            _ => return,
        }
        self.touched = true;
    }
}

/// A plain message with an optional id, as bytes for the wire.
#[must_use]
pub fn encode(id: Option<&str>, data: &str) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("{id}data: {}\n\n", data.replace(['\r', '\n'], " "))
}

#[cfg(test)]
mod tests {
    use super::{SseDecoder, SseEvent, encode};

    #[test]
    fn any_chunk_border_gives_the_same_events() {
        let text = format!(
            ": hi\n\nid: 7\nretry: 10\ndata:\n\n{}event: x\r\ndata: a\r\ndata: b\r\n\r\n",
            encode(Some("8"), "{}")
        );
        let whole = SseDecoder::default().feed(text.as_bytes());
        assert_eq!(whole.len(), 4);
        assert_eq!(
            whole[1],
            SseEvent { id: Some("7".into()), retry: Some(10), data: Some(String::new()), ..SseEvent::default() }
        );
        assert_eq!(whole[3].data.as_deref(), Some("a\nb"));
        for cut in 0..text.len() {
            let mut decoder = SseDecoder::default();
            let mut parts = decoder.feed(&text.as_bytes()[..cut]);
            parts.extend(decoder.feed(&text.as_bytes()[cut..]));
            assert_eq!(parts, whole, "cut at {cut}");
        }
    }
}
