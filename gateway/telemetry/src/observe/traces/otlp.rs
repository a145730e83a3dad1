//! Spans in the words of OTLP: the protocol buffers of `opentelemetry/proto/collector/trace/v1`, as far as spans of calls need them.
//!
//! Written by hand: the libraries that do it bring a code generator's runtime, a second HTTP client or a runtime of their own, for five messages
//! whose fields never change.

use crate::call::caller::trace::{Attribute, Side, Span};
use crate::config::Traces as Config;
use bytes::Bytes;
use std::time::{SystemTime, UNIX_EPOCH};

/// The flags of a span and a link beside those of `traceparent`: it is known whether the parent is another process's; it is.
const KNOWS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;
const KIND_SERVER: u64 = 2;
const KIND_CLIENT: u64 = 3;
const STATUS_ERROR: u64 = 2;

/// A message under construction.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn tag(&mut self, field: u32, wire: u8) {
        self.varint(u64::from(field << 3 | u32::from(wire)));
    }

    fn number(&mut self, field: u32, value: u64) {
        self.tag(field, 0);
        self.varint(value);
    }

    fn fixed64(&mut self, field: u32, value: u64) {
        self.tag(field, 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn fixed32(&mut self, field: u32, value: u32) {
        self.tag(field, 5);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn bytes(&mut self, field: u32, value: &[u8]) {
        self.tag(field, 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    fn message(&mut self, field: u32, fill: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        fill(&mut inner);
        self.bytes(field, &inner.0);
    }

    /// An attribute.
    fn attribute(&mut self, field: u32, name: &str, value: &Attribute) {
        self.message(field, |pair| {
            pair.bytes(1, name.as_bytes());
            pair.message(2, |any| match value {
                Attribute::Text(text) => any.bytes(1, text.as_bytes()),
                Attribute::Number(number) => any.number(3, *number as u64),
            });
        });
    }
}

/// What all spans have in common: who makes them. Encoded once.
pub(super) fn resource(config: &Config, instance: &[u8; 16]) -> Bytes {
    let instance: String = instance.iter().map(|byte| format!("{byte:02x}")).collect();
    let own = [
        ("service.name", &*config.service),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("service.instance.id", &*instance),
    ];
    let given = config.resource.iter().map(|(name, value)| (&**name, &**value));
    let is_given = |name: &str| config.resource.iter().any(|(given, _)| given == name);
    let mut message = Message::default();
    for (name, value) in own.into_iter().filter(|(name, _)| !is_given(name)).chain(given) {
        message.attribute(1, name, &Attribute::Text(value.to_owned().into()));
    }
    message.0.into()
}

/// An `ExportTraceServiceRequest`.
pub(super) fn request(resource: &[u8], spans: &[Span]) -> Bytes {
    let mut request = Message::default();
    request.message(1, |of_resource| {
        of_resource.bytes(1, resource);
        of_resource.message(2, |of_scope| {
            of_scope.message(1, |scope| {
                scope.bytes(1, b"trunkline");
                scope.bytes(2, env!("CARGO_PKG_VERSION").as_bytes());
            });
            spans.iter().for_each(|span| of_scope.message(2, |message| write(span, message)));
        });
    });
    request.0.into()
}

fn write(span: &Span, message: &mut Message) {
    message.bytes(1, &span.context.trace);
    message.bytes(2, &span.context.span);
    if let Some(state) = &span.context.state {
        message.bytes(3, state.as_bytes());
    }
    let mut flags = u32::from(span.context.flags()) | KNOWS_REMOTE;
    if let Some((parent, is_remote)) = &span.parent {
        message.bytes(4, parent);
        flags |= if *is_remote { IS_REMOTE } else { 0 };
    }
    message.bytes(5, span.name.as_bytes());
    message.number(6, if span.side == Side::Server { KIND_SERVER } else { KIND_CLIENT });
    message.fixed64(7, nanoseconds(span.time.0));
    // A clock that was set back makes no span end before it began.
    message.fixed64(8, nanoseconds(span.time.1.max(span.time.0)));
    span.attributes.iter().for_each(|(name, value)| message.attribute(9, name, value));
    if let Some(link) = &span.link {
        message.message(13, |message| {
            message.bytes(1, &link.trace);
            message.bytes(2, &link.span);
            link.state.iter().for_each(|state| message.bytes(3, state.as_bytes()));
            message.fixed32(6, u32::from(link.flags()) | KNOWS_REMOTE | IS_REMOTE);
        });
    }
    if span.error.is_some() {
        message.message(15, |status| status.number(3, STATUS_ERROR));
    }
    message.fixed32(16, flags);
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
