//! The faults that the machine knows: how each is put in and taken out again, and what may come of it.

use std::time::Duration;

use crate::cable::Carries;
use crate::journal::Order;
use crate::machine::place::Place;
use crate::process;
use crate::script::{Act, Rule};
use crate::seed::Seed;
use crate::upstream::Way;

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The process is killed.
    Kill,
    /// It exits in the middle of a call.
    Exit,
    /// It exits at the first message, whenever it is started.
    CrashLoop,
    /// It writes half an answer and exits.
    HalfThenExit,
    /// It is stopped by a signal, and goes on later.
    Stop,
    /// It is killed, and its next start takes its time.
    SlowStart,
    /// It does not answer calls.
    Hang,
    /// It answers long after it was told to cancel.
    Late,
    /// Lines that are no messages stand between the messages.
    Garbage,
    /// Text without an end of line stands before an answer.
    GluedText,
    /// A line longer than any message may be.
    HugeLine,
    /// Thousands of log messages before an answer.
    Flood,
    /// Megabytes on stderr.
    StderrFlood,
    /// Each answer twice.
    Twice,
    /// Answers to nothing that was asked.
    UnknownIds,
    /// Answers whose id has another type.
    IllTypedIds,
    /// Result and error in one answer.
    Both,
    /// Lines that are no text.
    NotText,
    /// All sessions are forgotten: 404.
    LostSessions,
    /// This status, and no answer.
    Status(u16),
    /// A page of HTML.
    WrongKind,
    /// Nothing where an answer should be.
    Empty,
    /// The stream ends before the answer.
    Cut,
    /// The stream ends within the answer.
    Half,
    /// The wire carries in pieces.
    Pieces,
    /// The wire is slow.
    SlowWire,
    /// The wire carries nothing.
    DeadWire,
    /// The wire resets each connection.
    ResetWire,
    /// The wire resets each connection on which an answer comes: what was asked has run by then.
    ResetAnswers,
    /// The wire breaks off within an answer.
    BrokenWire,
    /// The wire spoils answers.
    SpoiltAnswers,
    /// The wire spoils questions.
    SpoiltQuestions,
}

/// How it is shown that something ails an upstream as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// It is not: it is its calls that say so.
    Nowhere,
    /// In that it was started again.
    Counted,
    /// In that it is not there.
    Down,
    /// In that it is there and not well, or not there at all.
    Ailing,
}

const ON_STDIO: [Kind; 18] = [
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
];

const ON_HTTP: [Kind; 23] = [
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
];

/// The answer that a call would have had.
const GOOD: &str = "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"$NONCE\"}]}}";
/// An answer that must reach nobody, under an id to be filled in.
const FOREIGN: &str =
    "{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"nonce-foreign-0 \"}]}}";
const BOTH: &str = "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{},\"error\":{\"code\":1,\"message\":\"both\"}}";
/// The longest message that the machine's gateway takes from an upstream, in MiB.
pub const MESSAGE_MAX_MIB: usize = 4;
/// How much later than the deadline of its call a late answer comes.
const LATE: Duration = Duration::from_millis(1_500);

impl Kind {
    /// Those that an upstream reached this way can have.
    #[must_use]
    pub fn of(way: Way) -> &'static [Kind] {
        match way {
            Way::Stdio => &ON_STDIO,
            Way::Http => &ON_HTTP,
        }
    }

    /// Whether it may cost calls of that upstream their answers; else each of them must come all the same.
    #[must_use]
    pub fn may_spoil(self) -> bool {
        use Kind as K;
        let harmless = [
            K::Garbage,
            K::HugeLine,
            K::Flood,
            K::StderrFlood,
            K::Twice,
            K::UnknownIds,
            K::IllTypedIds,
            K::NotText,
            K::LostSessions,
            K::Pieces,
            K::SlowWire,
        ];
        !harmless.contains(&self)
    }

    /// Whether its calls do not end before their deadline, or before it is taken out.
    #[must_use]
    pub fn holds_calls(self) -> bool {
        matches!(self, Kind::Hang | Kind::Stop | Kind::DeadWire | Kind::GluedText)
    }

    /// Whether it is over by itself, or nothing happens any more, as soon as it has been met.
    #[must_use]
    pub fn passes(self) -> bool {
        use Kind as K;
        matches!(self, K::Kill | K::SlowStart | K::HugeLine | K::Flood | K::StderrFlood)
    }

    /// Whether it ends the process.
    #[must_use]
    pub fn ends_process(self) -> bool {
        matches!(self, Kind::Kill | Kind::Exit | Kind::CrashLoop | Kind::HalfThenExit | Kind::SlowStart)
    }

    /// How it is shown that something ails the upstream as a whole, for as long as it lasts.
    #[must_use]
    pub fn shown(self) -> Shown {
        match self {
            // Over before anybody looks, on a machine that is busy: what remains of it is the count.
            Kind::Kill | Kind::SlowStart => Shown::Counted,
            Kind::Exit | Kind::CrashLoop | Kind::HalfThenExit => Shown::Down,
            Kind::Stop | Kind::DeadWire | Kind::Status(500..) => Shown::Ailing,
            _ => Shown::Nowhere,
        }
    }

    /// Whether something of it is counted. What does no harm and breaks no rule is not.
    #[must_use]
    pub fn is_counted(self) -> bool {
        !matches!(self, Kind::Flood | Kind::LostSessions | Kind::Pieces | Kind::SlowWire | Kind::Twice)
    }

    fn carries(self) -> Option<Carries> {
        match self {
            Kind::Pieces => Some(Carries::InPieces),
            Kind::SlowWire => Some(Carries::Late(40)),
            Kind::DeadWire => Some(Carries::Nothing),
            Kind::ResetWire => Some(Carries::Resets),
            Kind::ResetAnswers => Some(Carries::ResetsAnswers),
            Kind::BrokenWire => Some(Carries::Only(0)),
            Kind::SpoiltAnswers => Some(Carries::Spoilt),
            Kind::SpoiltQuestions => Some(Carries::SpoiltQuestions),
            _ => None,
        }
    }

    fn rules(self, way: Way, late: Duration) -> Vec<Rule> {
        let echo = |acts: Vec<Act>| vec![Rule::on_tool("echo", acts)];
        // What loses its answer has run all the same: whoever sends it again is found out.
        let ran = |acts: &[Act]| echo([&[Act::Run], acts].concat());
        let few = |acts: Vec<Act>, times: usize| vec![Rule { times, ..Rule::on_tool("echo", acts) }];
        let foreign = |id: &str| FOREIGN.replace('@', id);
        let stream = |frames: &[&str]| {
            let events: String = frames.iter().map(|frame| format!("data: {frame}\n\n")).collect();
            Act::status(200, "text/event-stream", &events)
        };
        // On stdio the strangers come first and then the ordinary answer; in a stream all of it is one.
        let strangers = |id: &str| match way {
            Way::Stdio => echo(vec![Act::Write(format!("{}\n", foreign(id)))]),
            Way::Http => ran(&[stream(&[&foreign(id), GOOD])]),
        };
        match self {
            Kind::Exit => ran(&[Act::Exit(42)]),
            Kind::CrashLoop => [ran(&[Act::Exit(3)]), vec![Rule::on("*", vec![Act::Exit(3)])]].concat(),
            Kind::HalfThenExit => ran(&[Act::Write("{\"jsonrpc\":\"2.0\",\"id\":".into()), Act::Exit(0)]),
            Kind::SlowStart => {
                ["initialize", "server/discover"].map(|method| Rule::on(method, vec![Act::Delay(1_500)])).to_vec()
            }
            Kind::Hang => ran(&[Act::Hang]),
            Kind::Late => echo(vec![Act::Late(u64::try_from(late.as_millis()).expect("it is short"))]),
            Kind::Garbage => echo(vec![Act::Write("[INFO] {not json}\n\n\r\n   \nready\n".repeat(50))]),
            Kind::GluedText => ran(&[Act::Frame(format!("Loading...{GOOD}"))]),
            Kind::HugeLine => few(vec![Act::WriteLong(MESSAGE_MAX_MIB << 21)], 1),
            Kind::Flood => few(vec![Act::Flood(5_000)], 3),
            Kind::StderrFlood => few(vec![Act::Stderr(100_000)], 1),
            Kind::Twice if way == Way::Http => ran(&[stream(&[GOOD, GOOD])]),
            Kind::Twice => ran(&[Act::Frame(format!("{GOOD}\n{GOOD}"))]),
            Kind::UnknownIds => strangers("987654321987"),
            Kind::IllTypedIds => strangers("\"$ID\""),
            Kind::Both => ran(&[Act::Frame(BOTH.into())]),
            Kind::NotText => echo(vec![Act::WriteHex("7b226a736f6e727063223a22322e30ff227d0a".into())]),
            Kind::Status(status) => ran(&[Act::status(status, "text/plain", "not now")]),
            Kind::WrongKind => ran(&[Act::status(200, "text/html", "<html>log in</html>")]),
            Kind::Empty => ran(&[Act::status(200, "application/json", "")]),
            Kind::Cut => ran(&[Act::Cut]),
            Kind::Half => echo(vec![Act::Half]),
            _ => Vec::new(),
        }
    }
}

/// A fault in one upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which upstream.
    pub at: usize,
    /// What is wrong with it.
    pub kind: Kind,
    /// After how many bytes a wire that breaks off does.
    pub bytes: usize,
    /// After what time a late answer comes.
    pub late: Duration,
}

impl Fault {
    /// A fault of that kind in that upstream, whose calls have this deadline.
    #[must_use]
    pub fn new(at: usize, kind: Kind, deadline: Option<Duration>, seed: &mut Seed) -> Fault {
        Fault { at, kind, bytes: seed.below(400), late: deadline.unwrap_or_default() + LATE }
    }

    /// Puts it in.
    pub async fn inject(&self, place: &Place) {
        let rules = self.kind.rules(place.upstream.way(), self.late);
        if !rules.is_empty() {
            self.order(place, rules).await;
        }
        if let (Some(carries), Some(cable)) = (self.kind.carries(), &place.cable) {
            cable.carry(if self.kind == Kind::BrokenWire { Carries::Only(self.bytes) } else { carries });
        }
        match self.kind {
            Kind::Kill | Kind::SlowStart => place.signal("KILL"),
            Kind::Stop => place.signal("STOP"),
            Kind::LostSessions => place.forgets().await,
            _ => {}
        }
    }

    /// Takes it out.
    pub async fn heal(&self, place: &Place) {
        if !self.kind.rules(place.upstream.way(), self.late).is_empty() {
            self.order(place, Vec::new()).await;
        }
        if let Some(cable) = &place.cable {
            cable.carry(Carries::Plainly);
        }
        if self.kind == Kind::LostSessions {
            place.is_known_again().await;
        }
        if self.kind == Kind::Stop && place.pid().is_some_and(process::is_alive) {
            place.signal("CONT");
        }
    }

    /// Gives it other rules. A process that comes and goes is not waited for: whichever comes has them.
    async fn order(&self, place: &Place, rules: Vec<Rule>) {
        match self.kind.ends_process() {
            true => place.upstream.order(Order::Rules(rules)).await,
            false => place.upstream.order_now(Order::Rules(rules)).await,
        }
    }
}
