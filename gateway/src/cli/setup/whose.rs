//! Whose login is meant, where each principal has its own.

use anyhow::anyhow;

use crate::cli::process::Failure;
use crate::config::Config;
use crate::config::fault::printable;
use crate::config::import::told;
use crate::downstream::config::{Address, Listener};
use crate::upstream::config::Login;

/// How the names of principals begin that are given in full.
const KINDS: [&str; 4] = ["token:", "oauth:", "cert:", "unix:"];
/// Nobody's name is longer: one of an access token has three parts of 256 bytes, coded.
const NAME_MAX: usize = 4096;

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
    if by.len() > NAME_MAX {
        return Err(
            anyhow!("what stands behind `--as` has more than {NAME_MAX} bytes: no principal has such a name").into()
        );
    }
    if by.is_empty() || by == Login::ANONYMOUS {
        return Ok(String::new());
    }
    if let Some((kind, rest)) =
        KINDS.iter().find_map(|kind| Some((*kind, by.strip_prefix(kind)?))).filter(|(_, rest)| !rest.is_empty())
    {
        return match cannot_be(kind, rest) {
            None => Ok(by.to_owned()),
            Some(why) => Err(anyhow!("`{}` is no principal: {why}", printable(by)).into()),
        };
    }
    match tokens.contains(&by) {
        true => Ok(format!("token:{by}")),
        false => {
            let kinds = "a principal in full begins with `token:`, `oauth:`, `cert:` or `unix:`";
            Err(anyhow!("no token is named `{}`{}; {kinds}", printable(by), told(by, &tokens)).into())
        }
    }
}

/// Why nobody can have such a name of a kind.
fn cannot_be(kind: &str, rest: &str) -> Option<&'static str> {
    let parts = || rest.split(' ').filter(|part| !part.is_empty()).count();
    match kind {
        _ if rest.chars().any(char::is_control) => Some("it has a control character"),
        "oauth:" if parts() != 3 || rest.split(' ').count() != 3 => {
            Some("it is `oauth:SUBJECT CLIENT ISSUER`, with one space between them, as `trunkline calls` shows it")
        }
        "unix:" if rest.parse::<u32>().is_err() => Some("it is `unix:` and the number of a user"),
        _ => None,
    }
}

/// Why a principal that could be there is not known by the configuration, so that nobody may ever use its login.
pub(super) fn doubt(config: &Config, principal: &str) -> Option<String> {
    let (kind, rest) = principal.split_once(':')?;
    let listeners = &config.server.listeners;
    let why = match kind {
        "token" if !tokens(config).contains(&rest) => {
            format!("no token of [[auth.tokens]] is named `{}`{}", printable(rest), told(rest, &tokens(config)))
        }
        "oauth" => {
            let issuer = rest.rsplit(' ').next().unwrap_or_default();
            if config.auth.issuers.iter().any(|known| *known.name == *issuer) {
                return None;
            }
            format!("`{}` is none of [[auth.issuers]]", printable(issuer))
        }
        "cert" if !listeners.iter().any(Listener::asks_certificate) => {
            "no listener asks for certificates (`tls.client_ca`)".to_owned()
        }
        "unix" if !listeners.iter().any(|one| matches!(one.address, Address::Unix(_) | Address::Handed(_))) => {
            "no listener is a Unix socket".to_owned()
        }
        _ => return None,
    };
    Some(format!("warning: nobody can call as `{}` now: {why}", printable(principal)))
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
         shows; `--as {}` is that of `trunkline stdio`",
        printable(&such),
        Login::ANONYMOUS
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
            ("unix:1000", Some("unix:1000")),
            ("", None),
            ("anonymous", None),
            ("token:anonymous", Some("token:anonymous")),
        ] {
            assert_eq!(of(&own, Some(by)), Ok(whose.map(str::to_owned)), "{by}");
        }
        for by in ["adda", "cert:", "ADA", " "] {
            let why = of(&own, Some(by)).unwrap_err();
            assert!(why.contains("no token is named") && why.contains("ada"), "{by}: {why}");
        }
        let long = format!("token:{}", "x".repeat(20_000));
        for (by, words) in [
            ("oauth:ada", "`oauth:SUBJECT CLIENT ISSUER`"),
            ("oauth:ada  https://as.example", "`oauth:SUBJECT CLIENT ISSUER`"),
            ("unix:ada", "the number of a user"),
            ("cert:CN=a\nb", "a control character"),
            (&long, "more than 4096 bytes"),
        ] {
            let why = of(&own, Some(by)).unwrap_err();
            assert!(why.contains(words) && why.len() < 200, "{by}: {why}");
        }
        let why = of(&own, None).unwrap_err();
        assert!(why.contains("`trunkline login up --as ada`") && why.contains("(`ada`, `cert:x`)"), "{why}");
    }

    #[test]
    fn a_principal_that_nobody_can_call_as_now_is_doubted_and_others_are_not() {
        let issuer =
            "[server]\npublic_url = \"https://mcp.example.com\"\n[[auth.issuers]]\nissuer = \"https://as.example\"\n";
        let config = config(&(upstream(", logins = \"per-principal\"") + TOKENS + issuer));
        for (principal, words) in [
            ("token:adda", "no token of [[auth.tokens]] is named `adda`; did you mean `ada`?"),
            ("oauth:ada app https://other.example", "`https://other.example` is none of [[auth.issuers]]"),
            ("cert:CN=ada", "no listener asks for certificates"),
            ("unix:7", "no listener is a Unix socket"),
        ] {
            let why = doubt(&config, principal).unwrap_or_default();
            assert!(why.starts_with("warning: nobody can call as `") && why.contains(words), "{why}");
        }
        for principal in ["", "token:ada", "oauth:ada app https://as.example"] {
            assert_eq!(doubt(&config, principal), None);
        }
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
