//! Which faults an upstream can have, by the way that it is reached.

use crate::machine::fault::Kind;
use crate::script::Quoting;
use crate::upstream::Way;

const ON_STDIO: [Kind; 27] = [
    Kind::Kill,
    Kind::Exit,
    Kind::CrashLoop,
    Kind::HalfThenExit,
    Kind::Stop,
    Kind::SlowStart,
    Kind::Hang,
    Kind::Late,
    Kind::Garbage,
    Kind::GluedText,
    Kind::HugeLine,
    Kind::Flood,
    Kind::StderrFlood,
    Kind::Twice,
    Kind::UnknownIds,
    Kind::IllTypedIds,
    Kind::Both,
    Kind::NotText,
    Kind::StopsReading,
    Kind::Doubled,
    Kind::Deep,
    Kind::Wide,
    Kind::Quotes(Quoting::Error),
    Kind::Quotes(Quoting::Stderr),
    Kind::Quotes(Quoting::Stdout),
    Kind::Quotes(Quoting::Exit),
    Kind::Freeze,
];

const ON_HTTP: [Kind; 32] = [
    Kind::Hang,
    Kind::Late,
    Kind::Flood,
    Kind::Twice,
    Kind::UnknownIds,
    Kind::IllTypedIds,
    Kind::Both,
    Kind::LostSessions,
    Kind::Status(500),
    Kind::Status(503),
    Kind::Status(429),
    Kind::WrongKind,
    Kind::Empty,
    Kind::Cut,
    Kind::Half,
    Kind::Pieces,
    Kind::SlowWire,
    Kind::DeadWire,
    Kind::ResetWire,
    Kind::ResetAnswers,
    Kind::BrokenWire,
    Kind::SpoiltAnswers,
    Kind::SpoiltQuestions,
    Kind::Doubled,
    Kind::Deep,
    Kind::Wide,
    Kind::Quotes(Quoting::Status(401)),
    Kind::Quotes(Quoting::Status(403)),
    Kind::Quotes(Quoting::Status(500)),
    Kind::Quotes(Quoting::Location),
    Kind::Quotes(Quoting::Challenge),
    Kind::Quotes(Quoting::Error),
];

/// What a connection can have that carries all messages of an upstream, and nothing beside them.
const ON_UNIX: [Kind; 10] = [
    Kind::Hang,
    Kind::Late,
    Kind::Flood,
    Kind::UnknownIds,
    Kind::IllTypedIds,
    Kind::Both,
    Kind::Doubled,
    Kind::Deep,
    Kind::Wide,
    Kind::Quotes(Quoting::Error),
];

/// What HTTP/2 can have beside what it is tried with in cleartext: many exchanges on one connection, which fails for all of them.
const ON_SECURED: [Kind; 18] = [
    Kind::Hang,
    Kind::Late,
    Kind::Flood,
    Kind::Twice,
    Kind::Both,
    Kind::LostSessions,
    Kind::Status(503),
    Kind::Empty,
    Kind::Cut,
    Kind::Half,
    Kind::Pieces,
    Kind::SlowWire,
    Kind::DeadWire,
    Kind::ResetWire,
    Kind::ResetAnswers,
    Kind::BrokenWire,
    Kind::SpoiltAnswers,
    Kind::Quotes(Quoting::Error),
];

const ON_SSE: [Kind; 15] = [
    Kind::Hang,
    Kind::Late,
    Kind::Flood,
    Kind::UnknownIds,
    Kind::IllTypedIds,
    Kind::Both,
    Kind::Doubled,
    Kind::Deep,
    Kind::Wide,
    Kind::Quotes(Quoting::Error),
    Kind::Pieces,
    Kind::SlowWire,
    Kind::DeadWire,
    Kind::ResetWire,
    Kind::BrokenWire,
];

const ON_WEBSOCKET: [Kind; 13] = [
    Kind::Hang,
    Kind::Late,
    Kind::Flood,
    Kind::Both,
    Kind::Doubled,
    Kind::Deep,
    Kind::Wide,
    Kind::Quotes(Quoting::Error),
    Kind::Pieces,
    Kind::SlowWire,
    Kind::DeadWire,
    Kind::ResetWire,
    Kind::BrokenWire,
];

/// Those that an upstream reached this way can have.
pub(super) fn kinds(way: Way) -> &'static [Kind] {
    match way {
        Way::Stdio => &ON_STDIO,
        Way::Http => &ON_HTTP,
        Way::Secured => &ON_SECURED,
        Way::Sse => &ON_SSE,
        Way::WebSocket => &ON_WEBSOCKET,
        Way::Unix | Way::Tcp => &ON_UNIX,
    }
}
