//! What a person pastes: the address that the browser was sent back to.

/// The query of a pasted address, where it is the one that the browser was to come back to; else what is wrong with it.
pub(super) fn query_in<'a>(line: &'a str, own: &str) -> Result<&'a str, &'static str> {
    let line = line.trim();
    // Some servers append a fragment, which a browser would not send.
    let line = line.split_once('#').map_or(line, |(line, _)| line);
    let Some(rest) = line.strip_prefix(own) else {
        let is_here = |text: &str| text.starts_with("127.0.0.1:");
        return Err(match line.strip_prefix("http://") {
            _ if line.starts_with(['"', '\'', '`', '<']) => "it stands in quotes; paste it without them",
            None if is_here(line) => "`http://` is missing before it",
            Some(rest) if is_here(rest) => "its port or its path is another one: it is that of another login",
            _ => "that begins with http://127.0.0.1",
        });
    };
    rest.strip_prefix('?').ok_or("it breaks off before the `?` behind its path, or its path is another one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_what_was_pasted_is_said() {
        let own = "http://127.0.0.1:7/callback";
        for (line, why) in [
            ("\"http://127.0.0.1:7/callback?code=a&state=s\"", "in quotes"),
            ("127.0.0.1:7/callback?code=a&state=s", "`http://` is missing"),
            ("http://127.0.0.1:8/callback?code=a&state=s", "its port or its path"),
            ("http://127.0.0.1:7/callback", "breaks off before the `?`"),
            ("https://as.example/page", "begins with http://127.0.0.1"),
        ] {
            assert!(query_in(line, own).unwrap_err().contains(why), "{line}");
        }
        for line in [" http://127.0.0.1:7/callback?code=a&state=t\n", "http://127.0.0.1:7/callback?code=a&state=t#_=_"]
        {
            assert_eq!(query_in(line, own), Ok("code=a&state=t"));
        }
    }
}
