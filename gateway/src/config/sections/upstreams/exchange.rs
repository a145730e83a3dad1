//! Where each client has a token of its own: `auth` of type `token_exchange`, and of type `oauth` with logins of each principal.

use crate::config::fault::{Fault, Place};
use crate::config::read::{Part, Reading, Section};
use crate::upstream::config::{Config, Credentials, Sharing, Transport};

/// Whether each client is to have a token of its own; then each has an instance of its own.
pub(super) fn is_apart(
    section: &Section<'_>,
    credentials: Option<&Credentials>,
    (transport, sharing): (Option<&Transport>, Option<Sharing>),
) -> bool {
    let what = match credentials {
        Some(Credentials::Exchange(_)) => "`auth` of type `token_exchange`",
        Some(Credentials::Login(login)) if login.is_personal => "`logins = \"per-principal\"`",
        _ => return false,
    };
    let fault = |place: Option<Place>, text: &str| section.reading.fault(Fault::error("bad-value", text).at(place));
    if transport.is_some_and(|transport| !matches!(transport, Transport::Http(_))) {
        fault(section.place("auth"), &format!("{what} needs an upstream with transport `http`"));
    }
    if sharing.is_some_and(|sharing| sharing != Sharing::PerPrincipal) {
        let place = section.place("sharing").or_else(|| section.place("auth"));
        fault(place, &format!("{what} needs `sharing = \"per-principal\"`, which it means by itself"));
    }
    true
}

/// Reports upstreams for which there is nothing to exchange, since clients bear no access tokens.
pub(crate) fn needs_issuers(reading: &Reading, upstreams: &[Config], has_issuers: bool) {
    let exchanges = |one: &&Config| one.credentials.as_ref().is_some_and(Credentials::is_exchange);
    for upstream in upstreams.iter().filter(exchanges).filter(|_| !has_issuers) {
        let path = ["upstreams", &*upstream.name, "auth"].map(str::to_owned);
        let text = "`auth` of type `token_exchange` needs clients that bear access tokens";
        let fault = Fault::error("missing-key", text).at(reading.place(&path, Part::Key));
        reading.fault(fault.hint("set `[auth] mode = \"oauth\"` with an issuer"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::source::Environment;
    use crate::config::{Inputs, load};
    use crate::runtime::Scratch;

    const ISSUER: &str = "[server]\npublic_url = \"https://mcp.example.com\"\n\
        [[auth.issuers]]\nissuer = \"https://login.example.com\"\n";

    fn read(sections: &str, lines: &str) -> Result<Config, String> {
        let auth = "{ type = \"token_exchange\", token_url = \"https://as.example/t\", client_id = \"me\" }";
        read_by(sections, auth, lines)
    }

    fn read_by(sections: &str, auth: &str, lines: &str) -> Result<Config, String> {
        let scratch = Scratch::new();
        let path = scratch.write("exchange.toml", &format!("{sections}[upstreams.a]\nauth = {auth}\n{lines}\n"));
        let environment = Environment::of(&[("PATH", "/bin")]);
        let loaded = load(Inputs { files: vec![path], environment, ..Inputs::default() });
        Ok(loaded.map_err(|faults| faults.to_string())?.config.upstreams.into_iter().next().unwrap())
    }

    #[test]
    fn each_client_has_an_instance_of_its_own_and_what_cannot_be_is_said() {
        let url = "url = \"https://h.example/mcp\"";
        let config = read(ISSUER, url).unwrap();
        assert!(config.sharing == Sharing::PerPrincipal && config.credentials.unwrap().is_exchange());
        for (sections, lines, words) in [
            ("", url, "needs clients that bear access tokens"),
            (ISSUER, "url = \"wss://h.example/ws\"", "needs an upstream with transport `http`"),
            (ISSUER, "url = \"https://h.example/mcp\"\nsharing = \"shared\"", "needs `sharing = \"per-principal\"`"),
        ] {
            let why = read(sections, lines).unwrap_err();
            assert!(why.contains(words), "{lines}: {why}");
        }
        for url in ["wss://h.example/ws", "https://h.example/sse\"\ntransport = \"sse"] {
            let why = read_by(ISSUER, "{ type = \"oauth\", logins = \"per-principal\" }", &format!("url = \"{url}\""))
                .unwrap_err();
            assert!(
                why.contains("`logins = \"per-principal\"` needs an upstream with transport `http`"),
                "{url}: {why}"
            );
        }
    }
}
