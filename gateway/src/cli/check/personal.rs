//! The logins that principals have of their own: how many there are, and which have ended.

use std::sync::Arc;

use crate::config::Config;
use crate::config::fault::{Fault, printable};
use crate::upstream::config::Login;
use crate::upstream::logins::{StoredLogins, logged_in};

/// Whether those who call are told apart at an upstream: then nobody's login is missing there, since each principal may come with its own.
pub(super) fn is_of_each(login: &Login, config: &Config) -> bool {
    login.is_personal && config.auth.tells_apart()
}

/// Which logins of principals can be used no more.
pub(super) fn ended(login: &Login, config: &Config) -> Vec<Fault> {
    let judged =
        kept(login, config).into_iter().filter_map(|(principal, login)| Some((principal, logged_in(&login).err()?)));
    let said = judged.map(|(principal, why)| {
        let hint = Some(why.advice().to_owned()).filter(|advice| !advice.is_empty());
        let text = format!("the login of `{principal}`: {}", why.advise_instead("").full());
        Fault { hint, ..Fault::of_upstream("no-login", &login.upstream, text) }
    });
    said.collect()
}

/// Who has logged in to each upstream where that is told apart, a line each.
pub(super) fn told(config: &Config) -> Vec<String> {
    let logins = config.upstreams.iter().filter_map(|upstream| upstream.may_log_in());
    let told = logins.filter(|login| is_of_each(login, config)).map(|login| {
        let good = kept(login, config).into_iter().filter(|(_, login)| matches!(logged_in(login), Ok(Some(_))));
        let names: Vec<String> = good.map(|(principal, _)| printable(&principal)).collect();
        let who = match names.len() {
            0 => "nobody has logged in".to_owned(),
            1 => format!("1 principal has logged in: {}", names[0]),
            many => format!("{many} principals have logged in: {}", names.join(", ")),
        };
        format!("upstream `{}`: {who}", login.upstream)
    });
    told.collect()
}

/// The principals with a login there, in order of their names; of a configured token also one that cannot be read.
fn kept(login: &Login, config: &Config) -> Vec<(Arc<str>, Login)> {
    let stored = login.state.as_ref().and_then(|state| StoredLogins::read(state, &login.keys).ok()).unwrap_or_default();
    let is_here = |one: &&Login| one.upstream == login.upstream && one.resource == login.resource;
    let readable = stored.logins.iter().filter(is_here).filter_map(|one| one.principal.clone());
    let tokens = config.auth.tokens.iter().map(|token| Arc::from(format!("token:{}", token.name)));
    let unreadable: Vec<Arc<str>> = tokens.filter(|token| stored.has_unreadable(&login.of(token))).collect();
    let mut names: Vec<Arc<str>> = readable.chain(unreadable).collect();
    names.sort();
    names.into_iter().map(|principal| (principal.clone(), login.of(&principal))).collect()
}
