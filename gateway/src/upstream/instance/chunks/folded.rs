//! The contents of chunks, put together to one result.

use crate::protocol::json;
use crate::protocol::value::Object;

/// Contents put together.
#[derive(Default)]
pub(super) struct Folded {
    /// Whole blocks, raw, joined by commas.
    blocks: Vec<u8>,
    /// Text that is still growing.
    text: String,
}

impl Folded {
    /// How many bytes it has.
    pub(super) fn len(&self) -> usize {
        self.blocks.len() + self.text.len()
    }

    /// Takes a chunk.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        let Some(content) = json::get(chunk, "content").or_else(|| json::get(chunk, "text")) else { return };
        let is_text = json::get(chunk, "type").and_then(json::unquote).is_none_or(|kind| kind == "text");
        match (content.first(), json::unquote(content)) {
            (_, Some(text)) if is_text => self.text.push_str(&text),
            (Some(b'"'), _) => self.block(&[b"{\"type\":\"text\",\"text\":", content, b"}"].concat()),
            (Some(b'{'), _) => self.block(content),
            (Some(b'['), _) => {
                let places = json::elements(content).unwrap_or_default();
                places.into_iter().for_each(|place| self.block(&content[place]));
            }
            _ => self.text.push_str(&String::from_utf8_lossy(content)),
        }
    }

    fn end_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            self.append(format!("{{\"type\":\"text\",\"text\":{}}}", json::quote(&text)).as_bytes());
        }
    }

    fn block(&mut self, raw: &[u8]) {
        self.end_text();
        self.append(raw);
    }

    fn append(&mut self, raw: &[u8]) {
        if !self.blocks.is_empty() {
            self.blocks.push(b',');
        }
        self.blocks.extend_from_slice(raw);
    }

    /// The result: what the answer said, with the contents that came after it.
    pub(super) fn whole(&mut self, head: &Object) -> Object {
        self.end_text();
        let blocks = std::mem::take(&mut self.blocks);
        let first = head.find("content").and_then(|raw| raw.strip_prefix(b"[")?.strip_suffix(b"]"));
        let first = first.map(<[u8]>::trim_ascii).filter(|raw| !raw.is_empty());
        let parts: Vec<&[u8]> = first.into_iter().chain((!blocks.is_empty()).then_some(&blocks[..])).collect();
        let mut out = [b"{\"content\":[", &parts.join(&b',')[..], b"]"].concat();
        json::others(head.raw(), &["content", "stream", "streamId"], &mut out);
        out.push(b'}');
        Object::parse(out.into()).unwrap_or_default()
    }
}
