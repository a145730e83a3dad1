//! What a token claims, and what is read of it.

use crate::call::caller::Principal;
use crate::config::issuer::{Issuer, When};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// The longest name of a subject or of a client.
const NAME_MAX: usize = 256;

/// Which claims say what a token allows beside its scopes (RFC 8693, 4; RFC 9068, 2.2; RFC 9396), in the words of widespread servers, too.
const ALLOWING: [&str; 11] = [
    "aud",
    "acr",
    "act",
    "authorization_details",
    "entitlements",
    "groups",
    "may_act",
    "permissions",
    "realm_access",
    "resource_access",
    "roles",
];

/// The members of an object, none of which it has twice: another reader could take the other one.
#[derive(Debug, Clone, Default)]
pub(super) struct Claims(pub(super) Map<String, Value>);

impl<'de> Deserialize<'de> for Claims {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Claims;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Claims, A::Error> {
                let mut members = Map::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    if members.insert(name, value).is_some() {
                        return Err(A::Error::custom("a member stands there twice"));
                    }
                }
                Ok(Claims(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

impl Claims {
    /// A claim that says something.
    fn present(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Whether it is worth something only with the proof of a key (RFC 7800, 8705, 9449), which nobody here asks for.
    pub(super) fn is_bound(&self) -> bool {
        self.present("cnf").is_some()
    }

    /// Whether it is of a type that is taken as it is shown, where that is said.
    pub(super) fn is_bearer(&self) -> bool {
        let is_it = |of_type: &Value| of_type.as_str().is_some_and(|of_type| of_type.eq_ignore_ascii_case("bearer"));
        self.present("token_type").is_none_or(is_it)
    }

    /// The text of a claim, where it is one.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str().filter(|text| !text.is_empty())
    }

    /// A moment, in seconds since 1970.
    pub(super) fn moment(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64().filter(|moment| moment.is_finite())
    }

    /// Whether a claim is a text, or has it in its list.
    fn has(&self, name: &str, value: &str) -> bool {
        let is = |one: &Value| match one {
            Value::String(text) => text == value,
            Value::Bool(flag) => value == if *flag { "true" } else { "false" },
            Value::Number(number) => value.parse::<serde_json::Number>().is_ok_and(|written| written == *number),
            _ => false,
        };
        match self.found(name) {
            Some(Value::Array(all)) => all.iter().any(is),
            Some(one) => is(one),
            None => false,
        }
    }

    /// A claim by its whole name, else by a path of names.
    fn found(&self, name: &str) -> Option<&Value> {
        self.0.get(name).or_else(|| {
            let mut names = name.split('.');
            let first = self.0.get(names.next()?)?;
            names.try_fold(first, |value, name| value.get(name))
        })
    }

    /// Whether it is for one of these.
    pub(super) fn is_for(&self, audience: &[String]) -> bool {
        audience.iter().any(|one| self.0.contains_key("aud") && self.has_exactly("aud", one))
    }

    fn has_exactly(&self, name: &str, value: &str) -> bool {
        match self.0.get(name) {
            Some(Value::String(text)) => text == value,
            Some(Value::Array(all)) => all.iter().any(|one| one.as_str() == Some(value)),
            _ => false,
        }
    }

    /// Whether it has a scope, or one that includes it.
    pub(super) fn has_scope(&self, scope: &str, issuer: &Issuer) -> bool {
        issuer.as_good_as(scope).any(|scope| self.names_scope(scope))
    }

    /// Whether it names a scope: in a text with blanks between, or in the list that some write.
    fn names_scope(&self, scope: &str) -> bool {
        ["scope", "scp"].iter().any(|name| match self.0.get(*name) {
            Some(Value::String(all)) => all.split(' ').any(|one| one == scope),
            Some(Value::Array(all)) => all.iter().any(|one| one.as_str() == Some(scope)),
            _ => false,
        })
    }

    /// Whose it is: who, at which issuer, by which client. One that a client has for itself names that alone. A subject that cannot be
    /// read is nobody, rather than the client by which so many come; neither is one that is named otherwise only.
    pub(super) fn principal(&self, issuer: &str) -> Option<Principal> {
        let client = self.text("client_id").or_else(|| self.text("azp")).unwrap_or_default();
        let subject = match self.present("sub") {
            Some(_) => self.text("sub")?,
            None if self.present("username").is_some() => return None,
            None => client,
        };
        let is_named = !subject.is_empty() && subject.len() <= NAME_MAX && client.len() <= NAME_MAX;
        is_named.then(|| Principal::of_access_token(issuer, client, subject))
    }

    /// What it allows, as a text that is the same for the next token that allows the same.
    pub(super) fn allowed(&self, issuer: &Issuer) -> String {
        let mut scopes: Vec<&str> = Vec::new();
        for name in ["scope", "scp"] {
            match self.0.get(name) {
                Some(Value::String(all)) => scopes.extend(all.split(' ').filter(|one| !one.is_empty())),
                Some(Value::Array(all)) => scopes.extend(all.iter().filter_map(Value::as_str)),
                _ => {}
            }
        }
        scopes.sort_unstable();
        scopes.dedup();
        let by_rules = issuer.rules.iter().filter_map(|rule| match &rule.when {
            When::Claim { name, .. } => self.found(name),
            When::Scope(_) => None,
        });
        // The order of a list says nothing.
        let in_order = |value: &Value| match value {
            Value::Array(all) => {
                let mut all: Vec<String> = all.iter().map(Value::to_string).collect();
                all.sort_unstable();
                all.into()
            }
            one => one.clone(),
        };
        let said: Vec<Value> = ALLOWING.iter().map(|name| self.0.get(*name).map_or(Value::Null, in_order)).collect();
        let by_rules: Vec<Value> = by_rules.map(in_order).collect();
        serde_json::json!([scopes, said, by_rules]).to_string()
    }

    /// The roles that it gives, in order; `None` where nothing says anything of roles.
    pub(super) fn roles(&self, issuer: &Issuer) -> Option<Vec<Arc<str>>> {
        if issuer.roles.is_none() && issuer.rules.is_empty() {
            return None;
        }
        let met = issuer.rules.iter().filter(|rule| match &rule.when {
            When::Scope(scope) => self.has_scope(scope, issuer),
            When::Claim { name, value } => self.has(name, value),
        });
        let given = issuer.roles.iter().flatten().chain(met.flat_map(|rule| &rule.roles));
        let mut roles: Vec<Arc<str>> = given.cloned().collect();
        roles.sort_unstable();
        roles.dedup();
        Some(roles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_has_a_member_twice_is_none() {
        assert!(serde_json::from_str::<Claims>(r#"{"sub": "ann", "aud": "r"}"#).is_ok());
        assert!(serde_json::from_str::<Claims>(r#"{"sub": "ann", "sub": "bob"}"#).is_err());
    }
}
