//! Whose login is meant, where each principal has its own.

use anyhow::anyhow;

use crate::cli::process::Failure;
use crate::config::Config;
use crate::config::fault::printable;
use crate::config::import::told;
use crate::upstream::config::Login;

/// How the names of principals begin that are given in full.
const KINDS: [&str; 4] = ["token:", "oauth:", "cert:", "unix:"];

/// The login that a person makes, where `by` is what stands behind `--as`.
pub(super) fn login_of(config: &Config, login: &Login, by: Option<&str>) -> Result<Login, Failure> {
    match by {
        Some(_) if !login.is_personal => Err(shared(login).into()),
        Some(by) => Ok(login.of(&principal(config, by)?)),
        None if login.is_personal && config.auth.tells_apart() => Err(unnamed(config, login)),
        None => Ok(login.of("")),
    }
}

/// The principal that stands behind `--as`: in full, or the name of its token. Nothing is who calls without a credential.
pub(super) fn principal(config: &Config, by: &str) -> Result<String, Failure> {
    let tokens = tokens(config);
    if by.is_empty() || KINDS.iter().any(|kind| by.len() > kind.len() && by.starts_with(kind)) {
        return Ok(by.to_owned());
    }
    match tokens.contains(&by) {
        true => Ok(format!("token:{by}")),
        false => {
            let kinds = "a principal in full begins with `token:`, `oauth:`, `cert:` or `unix:`";
            Err(anyhow!("no token is named `{}`{}; {kinds}", printable(by), told(by, &tokens)).into())
        }
    }
}

/// Why nobody's login in particular is there.
pub(super) fn shared(login: &Login) -> anyhow::Error {
    let name = &login.upstream;
    let keys = "auth = { type = \"oauth\", logins = \"per-principal\" }";
    anyhow!("all principals share one login at `{name}`: leave `--as` away, or write {keys} in [upstreams.{name}]")
}

/// A login as a person is told of it.
pub(super) fn shown(login: &Login) -> String {
    match &login.principal {
        Some(principal) => format!("`{}` as `{}`", login.upstream, printable(principal)),
        None => format!("`{}`", login.upstream),
    }
}

fn unnamed(config: &Config, login: &Login) -> Failure {
    let (name, tokens) = (&login.upstream, tokens(config));
    let such = match tokens.first() {
        Some(token) => Login::command_of(name, Some(token)),
        None => format!("trunkline login {name} --as PRINCIPAL"),
    };
    let known = tokens.iter().map(|token| format!("`{}`", printable(token))).collect::<Vec<_>>().join(", ");
    let known = if known.is_empty() { known } else { format!("the name of a token ({known}), or ") };
    let said = format!(
        "each principal has a login of its own at `{name}`: say whose it is, as in `{}`. PRINCIPAL is {known}what `trunkline calls` \
         shows; `--as ''` is that of `trunkline stdio`",
        printable(&such)
    );
    anyhow!(said).into()
}

fn tokens(config: &Config) -> Vec<&str> {
    config.auth.tokens.iter().map(|token| &*token.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::source::Environment;
    use crate::config::{Inputs, load};

    fn config(lines: &str) -> Config {
        let file = std::path::PathBuf::from("t.toml");
        let drafts = vec![(file.clone(), lines.to_owned())];
        let inputs = Inputs { files: vec![file], drafts, environment: Environment::of(&[]), ..Inputs::default() };
        load(inputs).unwrap().config
    }

    const TOKENS: &str = "[[auth.tokens]]\nname = \"ada\"\ntoken = \"ada-has-a-long-token\"\n\
                          [[auth.tokens]]\nname = \"cert:x\"\ntoken = \"bob-has-a-long-token\"\n";

    fn upstream(more: &str) -> String {
        format!("[upstreams.up]\nurl = \"https://h.example/mcp\"\nauth = {{ type = \"oauth\"{more} }}\n")
    }

    fn of(config: &Config, by: Option<&str>) -> Result<Option<String>, String> {
        let login = config.upstreams[0].may_log_in().unwrap();
        match login_of(config, login, by) {
            Ok(login) => Ok(login.principal.map(|principal| principal.to_string())),
            Err(Failure::Failed(why)) => Err(why.to_string()),
            Err(_) => panic!("it says why"),
        }
    }

    #[test]
    fn a_principal_is_named_in_full_or_by_its_token_and_nobody_logs_in_for_an_unknown_one() {
        let own = config(&(upstream(", logins = \"per-principal\"") + TOKENS));
        for (by, whose) in [
            ("ada", Some("token:ada")),
            ("token:ada", Some("token:ada")),
            // A kind is a kind, whatever a token is named.
            ("cert:x", Some("cert:x")),
            ("token:cert:x", Some("token:cert:x")),
            ("oauth:o'hara app https://as.example", Some("oauth:o'hara app https://as.example")),
            ("", None),
        ] {
            assert_eq!(of(&own, Some(by)), Ok(whose.map(str::to_owned)), "{by}");
        }
        for by in ["adda", "cert:", "ADA", " "] {
            let why = of(&own, Some(by)).unwrap_err();
            assert!(why.contains("no token is named") && why.contains("ada"), "{by}: {why}");
        }
        let why = of(&own, None).unwrap_err();
        assert!(why.contains("`trunkline login up --as ada`") && why.contains("(`ada`, `cert:x`)"), "{why}");
    }

    #[test]
    fn where_all_share_a_login_nobody_is_named_and_where_nobody_is_told_apart_nobody_need_be() {
        let shared = config(&(upstream("") + TOKENS));
        assert_eq!(of(&shared, None), Ok(None));
        let why = of(&shared, Some("ada")).unwrap_err();
        assert!(why.contains("logins = \"per-principal\" } in [upstreams.up]"), "{why}");
        let own = config(&upstream(", logins = \"per-principal\""));
        assert_eq!(of(&own, None), Ok(None));
        assert_eq!(of(&own, Some("cert:CN=ada")), Ok(Some("cert:CN=ada".to_owned())));
    }
}
