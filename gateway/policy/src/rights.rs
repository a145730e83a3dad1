//! What each principal may see: handles that are found by the principal, and set anew with another configuration.

use super::config::Auth;
use crate::call::caller::rights::Rights;
use crate::call::caller::{Grants, Principal, WeakGrants};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Somebody may see something else now.
pub struct Changed {
    /// What may be seen from now on.
    pub grants: Grants,
    /// What could be seen; `None` is everything.
    pub before: Option<Arc<Rights>>,
}

/// The handles of all who have called and are there.
pub(super) struct RightsBook(Mutex<State>);

struct State {
    auth: Auth,
    /// The same roles are the same rights, so that what they see is written once.
    by_roles: HashMap<Vec<Arc<str>>, Arc<Rights>>,
    /// By principal. Who shows certificates may be anybody: the handles of those who left are let go.
    held: HashMap<Principal, WeakGrants>,
    /// By roles: of those whose roles are told by what they show.
    by_token: HashMap<Vec<Arc<str>>, WeakGrants>,
    /// So many may be held before those who left are looked for.
    look_at: usize,
}

impl RightsBook {
    pub(super) fn new(auth: &Auth) -> Self {
        let (by_roles, held, by_token) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self(Mutex::new(State { auth: auth.clone(), by_roles, held, by_token, look_at: 64 }))
    }

    /// What a principal may see, also from when that changes.
    pub(super) fn of(&self, principal: &Principal) -> Grants {
        let mut state = self.lock();
        if let Some(grants) = state.held.get(principal).and_then(WeakGrants::upgrade) {
            return grants;
        }
        if state.held.len() >= state.look_at {
            state.held.retain(|_, grants| grants.upgrade().is_some());
            state.look_at = state.held.len() * 2 + 64;
        }
        let grants = Grants::of(state.rights(principal));
        if let Some(weak) = grants.downgrade() {
            state.held.insert(principal.clone(), weak);
        }
        grants
    }

    /// What those may see who have these roles, also from when that changes; `None` is everything.
    pub(super) fn of_roles(&self, names: Option<Vec<Arc<str>>>) -> Grants {
        let Some(names) = names else { return Grants::all() };
        let mut state = self.lock();
        if let Some(grants) = state.by_token.get(&names).and_then(WeakGrants::upgrade) {
            return grants;
        }
        state.by_token.retain(|_, grants| grants.upgrade().is_some());
        let grants = Grants::of(Some(state.rights_of(&names)));
        if let Some(weak) = grants.downgrade() {
            state.by_token.insert(names, weak);
        }
        grants
    }

    /// Takes another configuration; who may see something else by it.
    pub(super) fn set(&self, auth: &Auth) -> Vec<Changed> {
        let mut state = self.lock();
        if state.auth.roles != auth.roles {
            state.by_roles.clear();
        }
        state.auth = auth.clone();
        let held: Vec<_> = state.held.iter().map(|(principal, weak)| (principal.clone(), weak.upgrade())).collect();
        let mut changed = Vec::new();
        for (principal, grants) in held {
            let Some(grants) = grants else { continue };
            let rights = state.rights(&principal);
            if let Some(before) = grants.set(rights) {
                changed.push(Changed { grants, before });
            }
        }
        let by_token: Vec<_> = state.by_token.iter().map(|(names, weak)| (names.clone(), weak.upgrade())).collect();
        for (names, grants) in by_token {
            let Some(grants) = grants else { continue };
            let rights = state.rights_of(&names);
            if let Some(before) = grants.set(Some(rights)) {
                changed.push(Changed { grants, before });
            }
        }
        changed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn rights(&mut self, principal: &Principal) -> Option<Arc<Rights>> {
        let names = self.auth.roles_of(principal)?.to_vec();
        Some(self.rights_of(&names))
    }

    fn rights_of(&mut self, names: &[Arc<str>]) -> Arc<Rights> {
        if let Some(known) = self.by_roles.get(names) {
            return known.clone();
        }
        let roles = self.auth.roles.iter().filter(|role| names.contains(&role.name)).cloned();
        let rights = Arc::new(Rights::of(roles));
        self.by_roles.insert(names.to_vec(), rights.clone());
        rights
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::caller::rights::Role;
    use crate::config::{Certificate, Token};
    use crate::protocol::value::Glob;

    fn role(name: &str, upstream: &str) -> Arc<Role> {
        let upstreams = vec![Glob::new(upstream)];
        let (tools, resources, prompts) = (None, None, None);
        Arc::new(Role { name: name.into(), upstreams, tools, read_only: false, resources, prompts })
    }

    fn auth(roles: &[(&str, &str)], tokens: &[(&str, Option<&[&str]>)], certificates: &[(&str, &[&str])]) -> Auth {
        let names = |names: &[&str]| names.iter().map(|name| Arc::from(*name)).collect::<Vec<_>>();
        let token = |(name, roles): &(&str, Option<&[&str]>)| Token {
            name: (*name).into(),
            digest: [0; 32],
            roles: roles.map(names),
            expires: None,
        };
        let certificate = |(name, roles): &(&str, &[&str])| Certificate { name: (*name).into(), roles: names(roles) };
        Auth {
            roles: roles.iter().map(|(name, upstream)| role(name, upstream)).collect(),
            tokens: tokens.iter().map(token).collect(),
            certificates: certificates.iter().map(certificate).collect(),
            ..Auth::default()
        }
    }

    #[test]
    fn who_has_no_roles_sees_everything_and_a_certificate_that_no_entry_names_sees_nothing() {
        let of = |auth: &Auth, principal: Principal| {
            let grants = RightsBook::new(auth).of(&principal);
            ["a", "b"].map(|upstream| grants.sees(upstream))
        };
        let roles = [("ra", "a"), ("rb", "b")];
        let first = auth(&roles, &[("x", Some(&["ra"])), ("y", None), ("z", Some(&[]))], &[]);
        assert_eq!(of(&first, Principal::of_token("x")), [true, false]);
        assert_eq!(of(&first, Principal::of_token("y")), [true, true]);
        assert_eq!(of(&first, Principal::of_token("z")), [false, false]);
        assert_eq!(of(&first, Principal::of_certificate("x")), [true, true], "there is no entry");
        let second = auth(&roles, &[], &[("x", &["ra", "rb"]), ("y", &["rb"])]);
        assert_eq!(of(&second, Principal::of_certificate("x")), [true, true]);
        assert_eq!(of(&second, Principal::of_certificate("y")), [false, true]);
        assert_eq!(of(&second, Principal::of_certificate("z")), [false, false]);
        let third = auth(&roles, &[], &[("*", &["ra"]), ("y", &["rb"])]);
        assert_eq!(of(&third, Principal::of_certificate("y")), [false, true]);
        assert_eq!(of(&third, Principal::of_certificate("z")), [true, false]);
        assert_eq!(of(&third, Principal::anonymous()), [true, true]);
    }

    #[test]
    fn another_configuration_changes_what_those_see_who_are_there_and_names_them() {
        let book = RightsBook::new(&auth(&[("r", "a")], &[("x", Some(&["r"])), ("y", None)], &[]));
        let [x, y] = ["x", "y"].map(|name| book.of(&Principal::of_token(name)));
        let other = Principal::of_certificate("c");
        let held = book.of(&other);
        assert!(x.sees("a") && !x.sees("b") && y.sees("b") && held.sees("b"));
        let changed = book.set(&auth(&[("r", "b")], &[("x", Some(&["r"])), ("y", None)], &[("d", &["r"])]));
        assert!(!x.sees("a") && x.sees("b") && y.sees("a") && !held.sees("b"));
        assert_eq!((changed.len(), changed.iter().filter(|one| one.grants.is(&x)).count()), (2, 1));
        assert!(book.of(&other).is(&held), "it is the same handle while somebody has it");
        assert!(book.set(&auth(&[("r", "b")], &[("x", Some(&["r"])), ("y", None)], &[("d", &["r"])])).is_empty());
    }

    #[test]
    fn those_who_left_are_let_go() {
        let book = RightsBook::new(&Auth::default());
        for number in 0..1000 {
            drop(book.of(&Principal::of_certificate(&number.to_string())));
        }
        assert!(book.lock().held.len() < 200);
    }
}
