//! The headers of a plain request: made once a session, and copied whole with what differs put in its place.

use crate::protocol::frame::Method;
use crate::protocol::http::headers;
use crate::protocol::value::Object;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderMap, HeaderName, HeaderValue};

const NOTHING: HeaderValue = HeaderValue::from_static("");

/// The headers of a plain request, with a place for each that differs: the map never grows, and no name is looked up in it.
pub(crate) struct Head {
    map: HeaderMap,
    /// How many values stand before the places.
    before: usize,
}

/// The headers that say what a stateless request asks.
pub(crate) struct Named {
    method: HeaderValue,
    name: Option<HeaderValue>,
}

impl Head {
    /// With what every request of a session says; a stateless one says besides what it asks.
    pub(crate) fn new(mut fixed: HeaderMap, is_modern: bool) -> Self {
        let differing: &[HeaderName] =
            if is_modern { &[CONTENT_LENGTH, headers::MCP_METHOD, headers::MCP_NAME] } else { &[CONTENT_LENGTH] };
        differing.iter().for_each(|name| _ = fixed.remove(name));
        let mut map = HeaderMap::with_capacity(fixed.keys_len() + differing.len());
        // The host comes first, as is good practice, and then what differs.
        fixed.get_all(HOST).iter().for_each(|host| _ = map.append(HOST, host.clone()));
        let before = map.len();
        differing.iter().for_each(|name| _ = map.insert(name, NOTHING));
        for name in fixed.keys().filter(|name| **name != HOST) {
            fixed.get_all(name).iter().for_each(|value| _ = map.append(name, value.clone()));
        }
        Self { map, before }
    }

    /// The headers of a request with a body of this length.
    pub(crate) fn filled(&self, length: HeaderValue, named: Option<Named>) -> HeaderMap {
        let mut map = self.map.clone();
        let mut places = map.values_mut().skip(self.before);
        let mut put = |value| {
            if let Some(place) = places.next() {
                *place = value;
            }
        };
        put(length);
        let Some(Named { method, name }) = named else { return map };
        put(method);
        match name {
            Some(name) => put(name),
            None => _ = map.remove(headers::MCP_NAME),
        }
        map
    }
}

impl Named {
    /// Of a request.
    pub(crate) fn of(method: &Method, params: &Object, target_name: Option<&Bytes>) -> Self {
        Self { method: headers::method(method), name: headers::name(method, params, target_name) }
    }

    /// Puts them into other headers.
    pub(crate) fn put(self, map: &mut HeaderMap) {
        map.insert(headers::MCP_METHOD, self.method);
        match self.name {
            Some(name) => _ = map.insert(headers::MCP_NAME, name),
            None => _ = map.remove(headers::MCP_NAME),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::ACCEPT;

    #[test]
    fn what_differs_stands_in_its_place_and_the_host_before_all() {
        let mut fixed = HeaderMap::new();
        let value = HeaderValue::from_static;
        fixed.insert(ACCEPT, value("a"));
        fixed.insert(HOST, value("h"));
        fixed.append("x-twice", value("1"));
        fixed.append("x-twice", value("2"));
        // What a configuration says here is not for it to say.
        fixed.insert(CONTENT_LENGTH, value("7"));
        let told = |map: &HeaderMap| {
            map.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect::<Vec<_>>()
        };
        let head = Head::new(fixed.clone(), true);
        let params = Object::parse(r#"{"name":"n"}"#.into()).unwrap();
        let named = |params: &Object| Some(Named::of(&Method::ToolsCall, params, None));
        let filled = head.filled(9.into(), named(&params));
        let rest = ["accept: a", "x-twice: 1", "x-twice: 2"];
        let expected = ["host: h", "content-length: 9", "mcp-method: tools/call", "mcp-name: n"];
        assert_eq!(told(&filled), [&expected[..], &rest].concat());
        let nameless = head.filled(9.into(), named(&Object::empty()));
        assert!(nameless.len() == filled.len() - 1 && !nameless.contains_key(headers::MCP_NAME));
        let legacy = Head::new(fixed, false).filled(9.into(), None);
        assert_eq!(told(&legacy), [&expected[..2], &rest].concat());
    }
}
