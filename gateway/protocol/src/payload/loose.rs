//! Results of servers that do not keep to the form of one.

use crate::json;

/// A result as clients know them: what has no contents becomes a text.
pub fn result(raw: &[u8]) -> Vec<u8> {
    if is_list(json::get(raw, "content").unwrap_or_default()) {
        return raw.to_vec();
    }
    if is_list(raw) {
        return [b"{\"content\":", raw, b"}"].concat();
    }
    let text = match json::unquote(raw) {
        Some(_) => String::from_utf8_lossy(raw),
        None => json::quote(&String::from_utf8_lossy(raw)).into(),
    };
    let mut result = [b"{\"content\":[{\"type\":\"text\",\"text\":", text.as_bytes(), b"}]"].concat();
    if raw.starts_with(b"{") {
        result.extend_from_slice(b",\"structuredContent\":");
        result.extend_from_slice(raw);
    }
    result.push(b'}');
    result
}

/// Whether it is a list of contents.
pub fn is_list(raw: &[u8]) -> bool {
    let is_content = |raw: &[u8]| json::get(raw, "type").is_some();
    json::elements(raw).is_ok_and(|places| places.into_iter().all(|place| is_content(&raw[place])))
}
