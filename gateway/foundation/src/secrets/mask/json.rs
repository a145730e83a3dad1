//! A JSON text without secrets: a string is read for what it says, and only what quotes a secret is written anew.

use super::forms::MASK;
use super::needles::Needles;

/// What of a JSON text may not be changed, since a peer gives it back or the protocol reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The names that the protocol has in an error, and the figures of the object itself.
    Top,
    /// The names that the protocol has in a notification, the figures of the object itself, and the values of some of its members: what a
    /// notification is for.
    Notification,
    /// All names of members and all figures.
    Names,
    /// All names of members and all figures, and the values that name things or constrain them: of what an upstream offers.
    Definition,
}

/// Members of errors.
const IN_ERRORS: [&[u8]; 3] = [b"code", b"message", b"data"];
/// Members of notifications.
const IN_NOTIFICATIONS: [&[u8]; 26] = [
    b"_meta",
    b"progressToken",
    b"progress",
    b"total",
    b"message",
    b"level",
    b"logger",
    b"data",
    b"uri",
    b"taskId",
    b"task",
    b"status",
    b"statusMessage",
    b"createdAt",
    b"lastUpdatedAt",
    b"ttl",
    b"ttlMs",
    b"pollInterval",
    b"pollIntervalMs",
    b"result",
    b"error",
    b"inputRequests",
    b"requestId",
    b"reason",
    b"elicitationId",
    b"notifications",
];
/// Members of notifications whose values the protocol reads, and the result of a task.
const OF_NOTIFICATIONS: [&[u8]; 7] =
    [b"progressToken", b"taskId", b"level", b"status", b"uri", b"createdAt", b"result"];
/// Members of definitions that a client gives back, or that say what it may give.
const OF_DEFINITIONS: [&[u8]; 10] = [
    b"name",
    b"uri",
    b"uriTemplate",
    b"enum",
    b"const",
    b"required",
    b"pattern",
    b"$ref",
    b"mimeType",
    b"x-mcp-header",
];

/// An object or an array that is open.
struct Open {
    is_object: bool,
    /// Whether what it holds stays.
    stays: bool,
    /// Whether the next string in it is the name of a member.
    names: bool,
    /// Whether the value that comes next stays.
    next_stays: bool,
}

/// The text without secrets; `None` where there is none to be seen.
pub(super) fn masked(needles: &Needles, text: &[u8], kept: Kept) -> Option<Vec<u8>> {
    let mut out: Vec<u8> = Vec::new();
    let (mut at, mut written, mut open) = (0, 0, Vec::<Open>::new());
    while at < text.len() {
        match text[at] {
            b'"' => {
                let (inside, stays) = (string(text, at), stays(&mut open, kept, text, at));
                let places = if stays { Vec::new() } else { needles.places(&text[inside.clone()], true) };
                for place in places {
                    out.extend_from_slice(&text[written..inside.start + place.start]);
                    out.extend_from_slice(MASK.as_bytes());
                    written = inside.start + place.end;
                }
                at = inside.end + 1;
                continue;
            }
            byte @ (b'{' | b'[') => {
                let stays = open.last().is_some_and(|above| {
                    above.stays || above.next_stays && (byte == b'[' || kept == Kept::Notification)
                });
                open.push(Open { is_object: byte == b'{', stays, names: byte == b'{', next_stays: false });
            }
            b'}' | b']' => _ = open.pop(),
            b',' => {
                if let Some(last) = open.last_mut() {
                    (last.names, last.next_stays) = (last.is_object, false);
                }
            }
            byte if byte.is_ascii_digit() || byte == b'-' => {
                let end = text[at..].iter().position(|byte| !byte.is_ascii_alphanumeric() && !b"+-.".contains(byte));
                let end = end.map_or(text.len(), |end| at + end);
                let has_figures = matches!(kept, Kept::Names | Kept::Definition);
                let stays =
                    has_figures || open.len() < 2 || open.last().is_some_and(|above| above.stays || above.next_stays);
                if !stays && !needles.places(&text[at..end], false).is_empty() {
                    out.extend_from_slice(&text[written..at]);
                    out.extend_from_slice(format!("\"{MASK}\"").as_bytes());
                    written = end;
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    if written == 0 {
        return None;
    }
    out.extend_from_slice(text.get(written..).unwrap_or_default());
    Some(out)
}

/// Whether the string that begins here stays as it is.
fn stays(open: &mut [Open], kept: Kept, text: &[u8], at: usize) -> bool {
    let depth = open.len();
    let Some(last) = open.last_mut() else { return false };
    if !std::mem::take(&mut last.names) {
        return last.stays || last.next_stays;
    }
    let name = &text[string(text, at)];
    last.next_stays = match kept {
        Kept::Top | Kept::Names => false,
        Kept::Notification => depth == 1 && OF_NOTIFICATIONS.contains(&name),
        Kept::Definition => OF_DEFINITIONS.contains(&name),
    };
    let is_of_protocol = match kept {
        Kept::Top => depth == 1 && IN_ERRORS.contains(&name),
        Kept::Notification => depth == 1 && IN_NOTIFICATIONS.contains(&name),
        Kept::Names | Kept::Definition => true,
    };
    last.stays || is_of_protocol
}

/// What stands between the quotes of the string that begins here.
fn string(text: &[u8], at: usize) -> std::ops::Range<usize> {
    let mut end = at + 1;
    while let Some(found) = text.get(end..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        end += found;
        if text[end] == b'"' {
            return at + 1..end;
        }
        end += 2;
    }
    at + 1..text.len()
}
