//! Pages that a person must visit before a call can be made, as 2025-11-25 says it (-32042), for stateless clients.

use crate::protocol::frame::Method;
use crate::protocol::frame::rpc_error::{RpcError, URL_ELICITATION_REQUIRED};
use crate::protocol::payload::input;
use crate::protocol::payload::input::Embedded;
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use crate::protocol::{json, translate};
use crate::response::Label;

/// More pages than this are no request to a person.
const PAGES_MAX: usize = 16;

/// What the person has said to all the pages of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// All will be, or were, visited.
    Accepted,
    /// One was not said anything to.
    Missing,
    /// One will not be visited.
    Declined,
}

/// The questions that an error of a handshake upstream stands for; `None` where it is any other error.
pub(crate) fn of(
    error: &RpcError,
    upstream: &str,
    label: Label,
    from: Revision,
    to: Revision,
) -> Option<Vec<Embedded>> {
    if error.code() != Some(URL_ELICITATION_REQUIRED) || from.is_modern() {
        return None;
    }
    let items = json::get(error.data()?, "elicitations")?;
    let places = json::elements(items).ok().filter(|places| (1..=PAGES_MAX).contains(&places.len()))?;
    let question = |(at, place): (usize, std::ops::Range<usize>)| {
        let item = Object::parse(bytes::Bytes::copy_from_slice(&items[place])).ok()?;
        item.find("url")?;
        let params = translate::question(&Method::Elicitation, &item, from, to)?;
        let params = label.put(upstream, &Method::Elicitation, params);
        Some(Embedded { key: format!("page-{}", at + 1), method: Method::Elicitation, params })
    };
    places.into_iter().enumerate().map(question).collect()
}

/// What a retry's parameters say to these pages.
pub(crate) fn said(params: &Object, pages: &[Embedded]) -> Said {
    let action = |page: &Embedded| {
        let answer = input::answer(params, &page.key);
        match answer.as_ref().and_then(|answer| json::unquote(answer.find("action")?)).as_deref() {
            Some("accept") => Said::Accepted,
            Some("decline" | "cancel") => Said::Declined,
            _ => Said::Missing,
        }
    };
    let all: Vec<_> = pages.iter().map(action).collect();
    [Said::Declined, Said::Missing].into_iter().find(|said| all.contains(said)).unwrap_or(Said::Accepted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::{V2025_11_25, V2026_07_28};

    fn error(data: &str) -> RpcError {
        RpcError::new(URL_ELICITATION_REQUIRED, "visit", Some(data))
    }

    #[test]
    fn each_page_is_a_question_of_its_own() {
        let item = |n| format!(r#"{{"mode":"url","elicitationId":"e{n}","url":"https://h/{n}","message":"m{n}"}}"#);
        let data = format!(r#"{{"elicitations":[{},{}]}}"#, item(1), item(2));
        let pages = of(&error(&data), "up", Label(true), V2025_11_25, V2026_07_28).unwrap();
        let keys: Vec<_> = pages.iter().map(|page| &*page.key).collect();
        assert_eq!(keys, ["page-1", "page-2"]);
        assert_eq!(pages[1].params.find("message"), Some(&br#""[up] m2""#[..]));
        assert_eq!(pages[1].params.find("url"), Some(&br#""https://h/2""#[..]));
        for data in ["{}", r#"{"elicitations":[]}"#, r#"{"elicitations":[7]}"#, r#"{"elicitations":[{"mode":"url"}]}"#]
        {
            assert!(of(&error(data), "up", Label(true), V2025_11_25, V2026_07_28).is_none(), "{data}");
        }
        assert!(of(&error(&data), "up", Label(true), V2026_07_28, V2026_07_28).is_none());
    }

    #[test]
    fn one_no_is_a_no_and_silence_is_none() {
        let page = |key: &str| Embedded { key: key.into(), method: Method::Elicitation, params: Object::empty() };
        let pages = [page("a"), page("b")];
        let of = |a: &str, b: &str| {
            let text = format!(r#"{{"inputResponses":{{"a":{a},"b":{b}}}}}"#);
            said(&Object::parse(text.into()).unwrap(), &pages)
        };
        let (yes, no) = (r#"{"action":"accept"}"#, r#"{"action":"decline"}"#);
        assert_eq!(
            (of(yes, yes), of(yes, no), of(yes, "{}"), of("7", no)),
            (Said::Accepted, Said::Declined, Said::Missing, Said::Declined)
        );
        assert_eq!(said(&Object::empty(), &pages), Said::Missing);
    }
}
