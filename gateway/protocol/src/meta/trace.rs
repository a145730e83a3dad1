//! The trace context of a message, as W3C writes it: the span that caused it, what vendors add to that, and the baggage beside it.

use crate::json;
use crate::json::Members;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::borrow::Cow;
use std::fmt::Write;

/// Names the trace and the span: a header, and a key of `_meta`.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// What vendors add to it.
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
/// What goes with all that a request causes.
pub const BAGGAGE: HeaderName = HeaderName::from_static("baggage");

/// The flag of a span that is recorded.
const SAMPLED: u8 = 1;
/// The flag of a trace whose id is random.
const RANDOM: u8 = 2;
/// A longer `tracestate` is dropped, and one with more members.
const STATE_BYTES_MAX: usize = 512;
const STATE_MEMBERS_MAX: usize = 32;
/// The most bytes of a key or a value in it.
const STATE_WORD_MAX: usize = 256;
/// A longer `baggage` is dropped.
const BAGGAGE_BYTES_MAX: usize = 8192;
/// How long a `traceparent` of the version that is written here is.
const PARENT_BYTES: usize = 55;

/// The span that caused a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// The id of the trace; not all zero.
    pub trace: [u8; 16],
    /// The id of the span; not all zero.
    pub span: [u8; 8],
    flags: u8,
    /// What vendors add: the value of `tracestate`.
    pub state: Option<Box<str>>,
}

/// What a message bears.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Carried {
    /// The span that caused it.
    pub context: Option<Context>,
    /// The baggage, as it was written.
    pub baggage: Option<Box<str>>,
}

/// Whether a key of `_meta` belongs to the trace context.
#[must_use]
pub fn is_key(key: &[u8]) -> bool {
    matches!(key, b"traceparent" | b"tracestate" | b"baggage")
}

impl Context {
    /// The root of a new trace.
    #[must_use]
    pub fn root(trace: [u8; 16], span: [u8; 8], is_sampled: bool) -> Self {
        Self { trace, span, flags: RANDOM | u8::from(is_sampled), state: None }
    }

    /// Reads a `traceparent`; one of a later version is read as far as it is known.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (head, rest) = text.as_bytes().split_at_checked(PARENT_BYTES)?;
        let [version] = hex::<1>(&head[..2])?;
        let is_whole = if version == 0 { rest.is_empty() } else { rest.is_empty() || rest[0] == b'-' };
        if version == 0xff || !is_whole || [2, 35, 52].iter().any(|at| head[*at] != b'-') {
            return None;
        }
        let (trace, span, [flags]) = (hex::<16>(&head[3..35])?, hex::<8>(&head[36..52])?, hex::<1>(&head[53..])?);
        let is_named = trace != [0; 16] && span != [0; 8];
        is_named.then_some(Self { trace, span, flags: flags & (SAMPLED | RANDOM), state: None })
    }

    /// The value of `traceparent`.
    #[must_use]
    pub fn traceparent(&self) -> String {
        let mut text = String::with_capacity(PARENT_BYTES);
        text.push_str("00-");
        push_hex(&mut text, &self.trace);
        text.push('-');
        push_hex(&mut text, &self.span);
        text.push('-');
        push_hex(&mut text, &[self.flags]);
        text
    }

    /// Another span of the same trace, recorded or not.
    #[must_use]
    pub fn next(&self, span: [u8; 8], is_sampled: bool) -> Self {
        Self { span, flags: self.flags & RANDOM | u8::from(is_sampled), ..self.clone() }
    }

    /// Whether the span is recorded.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The flags, as `traceparent` has them.
    #[must_use]
    pub fn flags(&self) -> u8 {
        self.flags
    }
}

impl Carried {
    /// Takes it out of the members of a `_meta`, written as `"key":value` and joined by commas; what is left is the second part. A value that
    /// is no text of its kind, or stands twice, is left out.
    #[must_use]
    pub fn out_of(members: &Bytes) -> (Self, Bytes) {
        let whole: Bytes = [b"{", &members[..], b"}"].concat().into();
        let (mut found, mut rest): ([Vec<Option<Box<str>>>; 3], _) = (Default::default(), Vec::new());
        let Ok(all) = Members::of(&whole) else { return (Self::default(), members.clone()) };
        for member in all {
            let Ok(member) = member else { return (Self::default(), members.clone()) };
            let text = || json::unquote(&whole[member.value..member.end]).map(Into::into);
            match &*member.key(&whole).unwrap_or_default() {
                b"traceparent" => found[0].push(text()),
                b"tracestate" => found[1].push(text()),
                b"baggage" => found[2].push(text()),
                _ => {
                    if !rest.is_empty() {
                        rest.push(b',');
                    }
                    rest.extend_from_slice(&whole[member.start..member.end]);
                }
            }
        }
        let [parent, state, baggage] = found.map(|mut all| if all.len() == 1 { all.pop().flatten() } else { None });
        (Self::of(parent.as_deref(), state, baggage), rest.into())
    }

    /// Reads it from the headers of a request.
    #[must_use]
    pub fn of_headers(headers: &HeaderMap) -> Self {
        // Those two may come in several lines, which is the same as one with commas.
        let joined = |name: &HeaderName| {
            let lines: Option<Vec<&str>> = headers.get_all(name).iter().map(|value| value.to_str().ok()).collect();
            lines.filter(|lines| !lines.is_empty()).map(|lines| lines.join(",").into())
        };
        let mut parents = headers.get_all(&TRACEPARENT).iter();
        let parent = parents.next().filter(|_| parents.next().is_none()).and_then(|value| value.to_str().ok());
        Self::of(parent, joined(&TRACESTATE), joined(&BAGGAGE))
    }

    fn of(parent: Option<&str>, state: Option<Box<str>>, baggage: Option<Box<str>>) -> Self {
        let context = parent
            .and_then(Context::parse)
            .map(|context| Context { state: state.filter(|state| is_state(state)), ..context });
        // It means something by itself.
        Self { context, baggage: baggage.filter(|baggage| is_baggage(baggage)) }
    }

    /// Appends it to the members of a `_meta`.
    pub fn write(&self, members: &mut Vec<u8>) {
        for (name, value) in self.pairs() {
            let comma = if members.is_empty() { "" } else { "," };
            members.extend_from_slice(format!("{comma}\"{name}\":{}", json::quote(&value)).as_bytes());
        }
    }

    /// As headers.
    pub fn headers(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        self.pairs().filter_map(|(name, value)| Some((name, HeaderValue::from_str(&value).ok()?)))
    }

    fn pairs(&self) -> impl Iterator<Item = (HeaderName, Cow<'_, str>)> {
        let parent = self.context.as_ref().map(|context| (TRACEPARENT, Cow::Owned(context.traceparent())));
        let state = self.context.as_ref().and_then(|context| context.state.as_deref());
        let state = state.map(|state| (TRACESTATE, Cow::Borrowed(state)));
        let baggage = self.baggage.as_deref().map(|baggage| (BAGGAGE, Cow::Borrowed(baggage)));
        [parent, state, baggage].into_iter().flatten()
    }
}

/// Whether a text is a `tracestate`: members with a key each that stands once, and a value. Of one that is not, nothing is believed.
fn is_state(text: &str) -> bool {
    let mut known: Vec<&str> = Vec::new();
    text.len() <= STATE_BYTES_MAX
        && members(text).all(|member| {
            let Some((key, value)) = member.split_once('=') else { return false };
            let is_new = !known.contains(&key) && known.len() < STATE_MEMBERS_MAX;
            known.push(key);
            is_new && is_state_key(key) && is_state_value(value)
        })
        && !known.is_empty()
}

/// Small letters, digits and `_-*/@`, the first of them no mark.
fn is_state_key(key: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut bytes = key.bytes();
    key.len() <= STATE_WORD_MAX
        && bytes.next().is_some_and(is_plain)
        && bytes.all(|byte| is_plain(byte) || b"_-*/@".contains(&byte))
}

/// What can be printed, but for the marks between members and values.
fn is_state_value(value: &str) -> bool {
    (1..=STATE_WORD_MAX).contains(&value.len()) && value.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'=')
}

/// Whether a text is a list of members with `=` in them that can stand in a header.
fn is_baggage(text: &str) -> bool {
    text.len() <= BAGGAGE_BYTES_MAX
        && text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
        && members(text).next().is_some()
        && members(text).all(|one| one.find('=').is_some_and(|at| at > 0))
}

fn members(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(|member| member.trim_matches([' ', '\t'])).filter(|member| !member.is_empty())
}

/// Small hexadecimal digits, as the standard wants them.
fn hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut out = [0; N];
    for (at, pair) in text.chunks_exact(2).enumerate() {
        *out.get_mut(at)? = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    (text.len() == 2 * N).then_some(out)
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    // Writing to a text does not fail.
    bytes.iter().for_each(|byte| _ = write!(text, "{byte:02x}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_context_survives_its_writing_and_what_is_none_is_refused() {
        let context = Context::parse(PARENT).unwrap();
        assert!(context.is_sampled() && context.traceparent() == PARENT);
        assert_eq!(
            context.next([7; 8], false).traceparent(),
            "00-0af7651916cd43dd8448eb211c80319c-0707070707070707-00"
        );
        assert!(Context::parse(&format!("cc{}-what-comes-later", &PARENT[2..])).is_some(), "a later version");
        for odd in [
            "",
            "00-x",
            &PARENT[..54],
            &format!("{PARENT}-"),
            &format!("{PARENT}0"),
            &format!("ff{}", &PARENT[2..]),
            &format!("cc{}x", &PARENT[2..]),
            &PARENT.to_uppercase(),
            &PARENT.replace('-', "_"),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333é-1",
        ] {
            assert_eq!(Context::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn it_is_taken_out_of_the_members_of_meta_and_written_back() {
        let members = Bytes::from(format!(
            "\"a\":{{\"traceparent\":1}},\"trace\\u0070arent\":\"{PARENT}\",\"tracestate\":\"v=1\", \"baggage\": \"k=a\\\\b\",\"b\":2"
        ));
        let (carried, rest) = Carried::out_of(&members);
        assert_eq!(rest, r#""a":{"traceparent":1},"b":2"#);
        let context = carried.context.as_ref().unwrap();
        assert_eq!((context.state.as_deref(), carried.baggage.as_deref()), (Some("v=1"), Some("k=a\\b")));
        let mut written = rest.to_vec();
        carried.write(&mut written);
        assert_eq!(Carried::out_of(&written.into()), (carried.clone(), rest));
        let headers: HeaderMap = carried.headers().collect();
        assert_eq!(Carried::of_headers(&headers), carried);
    }

    #[test]
    fn what_is_malformed_is_left_out() {
        let of = |members: &str| Carried::out_of(&Bytes::copy_from_slice(members.as_bytes())).0;
        let parent = format!("\"traceparent\":\"{PARENT}\"");
        assert_eq!(of(&format!("{parent},{parent}")), Carried::default());
        assert_eq!(of("\"traceparent\":7,\"tracestate\":\"v=1\""), Carried::default());
        let state = |text: &str| of(&format!("{parent},\"tracestate\":\"{text}\"")).context.unwrap().state;
        assert!(state("v=1, w@x=2").is_some());
        let many = |count: usize| (0..count).map(|at| format!("v{at}=1")).collect::<Vec<_>>().join(",");
        for well in ["1v=a b;c:d", "a_-*/@b=\\u0021", " v=1 ,\\t, w=2,", &many(32), &format!("v={}", "x".repeat(256))] {
            assert!(state(well).is_some(), "{well}");
        }
        for odd in [
            "",
            "v",
            "=1",
            "v=\\n",
            "v=é",
            "v=",
            "V=1",
            "_v=1",
            "v =1",
            "v=1=2",
            "v=a\\tb",
            "v=1,v=2",
            "v=1,bad,w=2",
            &many(33),
            &format!("v={}", "x".repeat(257)),
            &format!("{}=1", "v".repeat(257)),
        ] {
            assert_eq!(state(odd), None, "{odd}");
        }
        let baggage = |text: &str| of(&format!("\"baggage\":\"{text}\"")).baggage;
        assert!(baggage(&format!("k={}", "x".repeat(8190))).is_some());
        assert!(baggage(&format!("k={}", "x".repeat(8191))).is_none() && baggage("k").is_none());
        let mut headers = HeaderMap::new();
        headers.append(TRACEPARENT, HeaderValue::from_static(PARENT));
        headers.append(TRACESTATE, HeaderValue::from_static("v=1"));
        headers.append(TRACESTATE, HeaderValue::from_static("w=2"));
        let state = Carried::of_headers(&headers).context.unwrap().state;
        assert_eq!(state.as_deref(), Some("v=1,w=2"), "several lines are one");
        headers.append(TRACEPARENT, HeaderValue::from_static(PARENT));
        assert_eq!(Carried::of_headers(&headers), Carried::default(), "of two parents none is believed");
    }
}
