//! Where the document of an authorization server may lie (RFC 8414, and as OpenID Connect has it).

use super::super::way::with_path;
use http::Uri;

const OAUTH: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// Where the document of an issuer may lie.
pub(super) fn places(issuer: &Uri) -> Vec<Uri> {
    let path = issuer.path().trim_end_matches('/');
    let paths = match path {
        "" => vec![OAUTH.to_owned(), OPENID.to_owned()],
        path => vec![format!("{OAUTH}{path}"), format!("{OPENID}{path}"), format!("{path}{OPENID}")],
    };
    paths.iter().filter_map(|path| with_path(issuer, path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_looked_for_in_all_its_places() {
        let at = |issuer: &str| -> Vec<String> {
            places(&issuer.parse().unwrap()).iter().map(|url| url.path().to_owned()).collect()
        };
        for issuer in ["https://as.example", "https://as.example/"] {
            assert_eq!(at(issuer), [OAUTH, OPENID]);
        }
        let expected = [
            "/.well-known/oauth-authorization-server/t/1",
            "/.well-known/openid-configuration/t/1",
            "/t/1/.well-known/openid-configuration",
        ];
        assert_eq!(at("https://as.example/t/1"), expected);
    }
}
