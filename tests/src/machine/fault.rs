//! The faults that the machine knows: how each is put in and taken out again, and what may come of it.

use std::time::Duration;

use crate::cable::Carries;
use crate::journal::Order;
use crate::machine::place::Place;
use crate::machine::rules::rules;
use crate::machine::ways;
use crate::process;
use crate::script::{Quoting, Rule};
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
    /// It stops reading, while calls come that are longer than its pipe.
    StopsReading,
    /// Answers in which a key of the protocol stands twice.
    Doubled,
    /// An answer that is nested ever so deep.
    Deep,
    /// An answer with as many members as there is room for.
    Wide,
    /// It quotes what it was given: credentials in headers and address, secrets in its environment.
    Quotes(Quoting),
    /// The gateway itself stands still for longer than a call may take.
    Freeze,
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

/// The longest message that the machine's gateway takes from an upstream, in MiB.
pub const MESSAGE_MAX_MIB: usize = 4;
/// How much later than the deadline of its call a late answer comes.
const LATE: Duration = Duration::from_millis(1_500);

impl Kind {
    /// Those that an upstream reached this way can have.
    #[must_use]
    pub fn of(way: Way) -> &'static [Kind] {
        ways::kinds(way)
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
            K::Wide,
            K::Quotes(Quoting::Stderr),
            K::Quotes(Quoting::Stdout),
            K::Freeze,
        ];
        !harmless.contains(&self)
    }

    /// Whether its calls do not end before their deadline, or before it is taken out.
    #[must_use]
    pub fn holds_calls(self) -> bool {
        matches!(self, Kind::Hang | Kind::Stop | Kind::StopsReading | Kind::DeadWire | Kind::GluedText)
    }

    /// Whether calls take their whole time under it, whoever makes them.
    #[must_use]
    pub fn is_slow(self) -> bool {
        self.holds_calls() || matches!(self, Kind::Late | Kind::CrashLoop | Kind::Freeze)
    }

    /// Whether it is over by itself, or nothing happens any more, as soon as it has been met.
    #[must_use]
    pub fn passes(self) -> bool {
        use Kind as K;
        matches!(self, K::Kill | K::SlowStart | K::HugeLine | K::Flood | K::StderrFlood | K::Freeze)
    }

    /// Whether it ends the process.
    #[must_use]
    pub fn ends_process(self) -> bool {
        use Kind as K;
        matches!(self, K::Kill | K::Exit | K::CrashLoop | K::HalfThenExit | K::SlowStart | K::Quotes(Quoting::Exit))
    }

    /// How it is shown that something ails the upstream as a whole, for as long as it lasts.
    #[must_use]
    pub fn shown(self) -> Shown {
        match self {
            // Over before anybody looks, on a machine that is busy: what remains of it is the count.
            Kind::Kill | Kind::SlowStart => Shown::Counted,
            Kind::Exit | Kind::CrashLoop | Kind::HalfThenExit | Kind::Quotes(Quoting::Exit) => Shown::Down,
            Kind::Stop | Kind::StopsReading | Kind::DeadWire | Kind::Status(500..) => Shown::Ailing,
            Kind::Quotes(Quoting::Status(_) | Quoting::Challenge) => Shown::Ailing,
            _ => Shown::Nowhere,
        }
    }

    /// Whether something of it is counted. What does no harm and breaks no rule is not.
    #[must_use]
    pub fn is_counted(self) -> bool {
        use Kind as K;
        !matches!(self, K::Flood | K::LostSessions | K::Pieces | K::SlowWire | K::Twice | K::Wide | K::Freeze)
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
        let rules = rules(self.kind, place.upstream.way(), self.late);
        if !rules.is_empty() {
            self.order(place, rules).await;
        }
        if let (Some(carries), Some(cable)) = (self.kind.carries(), &place.cable) {
            cable.carry(if self.kind == Kind::BrokenWire { Carries::Only(self.bytes) } else { carries });
        }
        match self.kind {
            Kind::Kill | Kind::SlowStart => place.signal("KILL"),
            Kind::Stop | Kind::StopsReading => place.signal("STOP"),
            Kind::LostSessions => place.forgets().await,
            _ => {}
        }
    }

    /// Takes it out.
    pub async fn heal(&self, place: &Place) {
        if !rules(self.kind, place.upstream.way(), self.late).is_empty() {
            self.order(place, Vec::new()).await;
        }
        if let Some(cable) = &place.cable {
            cable.carry(Carries::Plainly);
        }
        if self.kind == Kind::LostSessions {
            place.is_known_again().await;
        }
        if matches!(self.kind, Kind::Stop | Kind::StopsReading) && place.pid().is_some_and(process::is_alive) {
            place.signal("CONT");
        }
    }

    /// Gives it other rules. A process that comes and goes is not waited for: whichever comes has them.
    async fn order(&self, place: &Place, rules: Vec<Rule>) {
        match self.kind.ends_process() {
            true => place.upstream.order(Order::Rules(rules)).await,
            false => place.order_now(Order::Rules(rules)).await,
        }
    }
}
