//! Who may call, by all listeners together.

use crate::call::caller::Principal;
use crate::config::Auth;
use std::time::SystemTime;

/// Who may call by any listener. By none it is nobody.
#[derive(Default)]
pub struct Callers {
    /// Those of tokens, and when each expires.
    tokens: Vec<(Principal, Option<SystemTime>)>,
    /// How the principals of these authorization servers end.
    issuers: Vec<String>,
    /// Who shows nothing, over the network.
    is_anonymous: bool,
    /// Users of this machine.
    has_users: bool,
    /// Bearers of certificates.
    has_certificates: bool,
}

impl Callers {
    /// Adds those who come in at a listener by what counts there: a Unix socket, or one that asks for certificates, or neither.
    pub fn come_in(&mut self, auth: &Auth, is_socket: bool, asks_certificate: bool) {
        for token in &auth.tokens {
            let principal = Principal::of_token(&token.name);
            if !self.tokens.iter().any(|(known, _)| *known == principal) {
                self.tokens.push((principal, token.expires));
            }
        }
        // As a principal of it is named: the server stands last.
        let ends = auth.issuers.iter().map(|issuer| Principal::of_access_token(&issuer.name, "", ""));
        self.issuers.extend(ends.map(|principal| principal.name().trim_start_matches("oauth: ").to_owned()));
        self.has_certificates |= asks_certificate;
        let is_open = !(auth.asks_token() || asks_certificate && auth.is_open());
        self.has_users |= is_open && is_socket;
        self.is_anonymous |= is_open && !is_socket;
    }

    /// Whether a principal may still call.
    pub(super) fn has(&self, principal: &Principal) -> bool {
        let is_over = |until: &Option<SystemTime>| until.is_some_and(|at| at <= SystemTime::now());
        match principal.name().split_once(':') {
            None => self.is_anonymous,
            Some(("cert", _)) => self.has_certificates,
            Some(("unix", _)) => self.has_users,
            Some(("oauth", whole)) => self.issuers.iter().any(|end| whole.ends_with(end)),
            Some(_) => self.tokens.iter().any(|(known, until)| known == principal && !is_over(until)),
        }
    }

    /// Whether nobody else may call: then what this one logs in to for all is for it alone. Certificates, users and access tokens are
    /// those of several.
    pub(super) fn are_only(&self, principal: &Principal) -> bool {
        let are_several = self.has_certificates || self.has_users || !self.issuers.is_empty();
        !are_several && self.tokens.len() + usize::from(self.is_anonymous) == 1 && self.has(principal)
    }

    /// All kinds, and of tokens these.
    #[cfg(test)]
    pub(super) fn all_kinds(tokens: &[&str]) -> Self {
        let tokens = tokens.iter().map(|name| (Principal::of_token(name), None)).collect();
        let issuers = vec![" https://as.example".to_owned()];
        Self { tokens, issuers, is_anonymous: true, has_users: true, has_certificates: true }
    }

    /// The bearers of these tokens, or, without any, whoever reaches the only listener.
    #[cfg(test)]
    pub(super) fn of_tokens(tokens: &[&str]) -> Self {
        let is_anonymous = tokens.is_empty();
        Self { is_anonymous, has_users: false, has_certificates: false, issuers: Vec::new(), ..Self::all_kinds(tokens) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Token;
    use std::time::Duration;

    fn auth(tokens: &[(&str, Option<SystemTime>)]) -> Auth {
        let token = |(name, expires): &(&str, _)| Token {
            name: (*name).into(),
            digest: [0; 32],
            roles: None,
            expires: *expires,
        };
        Auth { tokens: tokens.iter().map(token).collect(), ..Auth::default() }
    }

    fn only(listeners: &[(&Auth, bool, bool)], principal: &Principal) -> bool {
        let mut callers = Callers::default();
        listeners.iter().for_each(|(auth, is_socket, asks)| callers.come_in(auth, *is_socket, *asks));
        callers.are_only(principal)
    }

    #[test]
    fn one_is_alone_where_no_listener_lets_in_anybody_else_by_anything() {
        let (ada, nobody) = (Principal::of_token("ada"), Principal::anonymous());
        let (one, two, none) = (auth(&[("ada", None)]), auth(&[("ada", None), ("bob", None)]), auth(&[]));
        assert!(only(&[(&one, false, false)], &ada) && only(&[(&one, false, false), (&one, true, false)], &ada));
        assert!(only(&[(&none, false, false), (&none, false, false)], &nobody));
        assert!(!only(&[], &ada) && !only(&[(&two, false, false)], &ada) && !only(&[(&one, false, false)], &nobody));
        // Whoever shows no token at another listener, a certificate, or is a user of the machine, is somebody else.
        let both = [(&one, false, false), (&none, false, false)];
        assert!(!only(&both, &ada) && !only(&both, &nobody));
        assert!(!only(&[(&one, false, true)], &ada) && !only(&[(&one, false, false), (&none, true, false)], &ada));
        assert!(!only(&[(&none, false, false), (&none, true, false)], &nobody));
    }

    #[test]
    fn a_principal_may_call_while_a_listener_lets_it_in() {
        let past = SystemTime::now() - Duration::from_secs(1);
        let mut callers = Callers::default();
        callers.come_in(&auth(&[("ada", None), ("old", Some(past))]), false, false);
        assert!(callers.has(&Principal::of_token("ada")));
        for gone in [
            Principal::of_token("old"),
            Principal::of_token("bob"),
            Principal::anonymous(),
            Principal::of_user(7),
            Principal::of_certificate("CN=ada"),
            Principal::of_access_token("https://as.example", "app", "ada"),
        ] {
            assert!(!callers.has(&gone), "{gone:?}");
        }
        let all = Callers::all_kinds(&[]);
        assert!(all.has(&Principal::of_access_token("https://as.example", "app", "ada")));
        assert!(!all.has(&Principal::of_access_token("https://other.example", "app", "ada")));
        // Where a certificate is needed nobody comes without.
        let mut certified = Callers::default();
        certified.come_in(&auth(&[]), false, true);
        assert!(!certified.has(&Principal::anonymous()) && certified.has(&Principal::of_certificate("CN=ada")));
    }
}
