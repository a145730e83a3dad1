//! Ids of frames, put in the place of others: all else of a frame stays as it is, byte for byte.

use bytes::{Bytes, BytesMut};

use crate::protocol::json::Members;

/// The frame with another id in the place of its own; as it is where it has none.
pub(super) fn with_id(frame: &Bytes, id: &[u8]) -> Bytes {
    for member in Members::of(frame).into_iter().flatten().flatten() {
        if member.key(frame).as_deref() == Some(b"id") {
            let mut out = BytesMut::with_capacity(frame.len() + id.len());
            out.extend_from_slice(&frame[..member.value]);
            out.extend_from_slice(id);
            out.extend_from_slice(&frame[member.end..]);
            return out.freeze();
        }
    }
    frame.clone()
}

/// The frames as one array.
pub(super) fn array(frames: &[Bytes]) -> Bytes {
    let mut out = BytesMut::with_capacity(frames.iter().map(|frame| frame.len() + 1).sum::<usize>() + 1);
    for (at, frame) in frames.iter().enumerate() {
        out.extend_from_slice(if at == 0 { b"[" } else { b"," });
        out.extend_from_slice(frame);
    }
    out.extend_from_slice(b"]");
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_the_id_of_the_frame_itself_is_replaced() {
        let of = |frame: &'static str, id: &str| with_id(&Bytes::from_static(frame.as_bytes()), id.as_bytes());
        let frame = r#"{ "params":{"id":7}, "id" : "a\"b" ,"x":1}"#;
        assert_eq!(of(frame, "12"), r#"{ "params":{"id":7}, "id" : 12 ,"x":1}"#);
        assert_eq!(of(r#"{"method":"x"}"#, "12"), r#"{"method":"x"}"#);
        assert_eq!(array(&["{}".into(), "1".into()]), "[{},1]");
    }
}
