//! Tokens that clients present: made of chance, and one that the gateway makes for itself where none is configured.

use crate::secrets::private;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::io;
use std::path::{Path, PathBuf};

/// What a token begins with: whoever finds one knows what it is.
const BEGINS: &str = "tl_";
const BYTES: usize = 32;
/// The least that a token may have of characters: a shorter one could be guessed.
pub const LENGTH_MIN: usize = 16;
/// The file of the one that the gateway has made, in the folder of its state.
const FILE: &str = "client-token";
/// A larger file holds no token.
const FILE_BYTES_MAX: u64 = 4096;

/// A new one.
pub fn fresh() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|_| io::Error::other("the system gives no random bytes"))?;
    Ok(format!("{BEGINS}{}", URL_SAFE_NO_PAD.encode(bytes)))
}

/// Where the one that the gateway makes is kept.
pub fn file(state: &Path) -> PathBuf {
    state.join(FILE)
}

/// The one that the gateway has made, if it has.
pub fn kept(state: &Path) -> io::Result<Option<String>> {
    match private::read(&file(state), FILE_BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => text_of(&read?).map(Some),
    }
}

/// The same, made now where there is none; and whether that was so.
pub fn made(state: &Path) -> io::Result<(String, bool)> {
    let fresh = fresh()?;
    let (text, is_new) = private::made_once(&file(state), FILE_BYTES_MAX, || fresh)?;
    Ok((text_of(&text)?, is_new))
}

fn text_of(text: &[u8]) -> io::Result<String> {
    let token = std::str::from_utf8(text.trim_ascii()).unwrap_or_default();
    if token.len() < LENGTH_MIN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(io::Error::other("it holds no token; delete it to have a new one made"));
    }
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Scratch;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn it_is_made_once_for_its_owner_alone_and_one_that_is_none_is_told() {
        let folder = Scratch::new();
        let state = folder.0.join("trunkline");
        assert_eq!(kept(&state).unwrap(), None);
        let (token, is_new) = made(&state).unwrap();
        assert!(is_new && token.starts_with(BEGINS) && token.len() > 40, "{token}");
        assert_eq!(made(&state).unwrap(), (token.clone(), false));
        assert_eq!(kept(&state).unwrap(), Some(token));
        assert_eq!(std::fs::metadata(file(&state)).unwrap().permissions().mode() & 0o777, 0o600);
        for text in ["", "short", "with a blank in it, and long"] {
            std::fs::write(file(&state), text).unwrap();
            assert!(kept(&state).is_err() && made(&state).is_err(), "{text}");
        }
    }
}
