//! The environment of the process: a snapshot, what children inherit of it, and the overrides in it.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::runtime::system::handed::is_of_sockets;
use crate::upstream::config::Glob;

use super::node::{Origin, Source};

/// A snapshot of the environment, so that loading is a function of its arguments.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: Vec<(OsString, OsString)>,
    /// The folder of what runs, which the system makes for each user that logs in.
    login: Option<PathBuf>,
}

impl Environment {
    /// That of this process.
    pub fn of_process() -> Self {
        Self { variables: std::env::vars_os().collect(), login: login_folder() }
    }

    /// One made of `pairs`.
    pub fn of(pairs: &[(&str, &str)]) -> Self {
        let variables = pairs.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { variables, login: None }
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
    }

    /// The names of all that can be read as text.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().filter_map(|(name, _)| name.to_str())
    }

    /// Where the state of programs is kept, and ours in it, as the XDG base directory specification has it.
    pub(crate) fn state_folder(&self) -> Option<PathBuf> {
        self.folder("XDG_STATE_HOME", ".local/state")
    }

    /// And where what can be made anew is kept.
    pub(crate) fn cache_folder(&self) -> Option<PathBuf> {
        self.folder("XDG_CACHE_HOME", ".cache")
    }

    /// Where the control socket may be: the folder of what runs, which goes with the login, else that of our state. A host that was started
    /// without the variable for the first finds what the others have there.
    pub fn control_folders(&self) -> Vec<PathBuf> {
        let runtime = self.get("XDG_RUNTIME_DIR").map(Path::new).filter(|path| path.is_absolute());
        let runtime = runtime.or(self.login.as_deref()).map(|path| path.join("trunkline"));
        runtime.into_iter().chain(self.state_folder().map(|state| state.join("control"))).collect()
    }

    fn folder(&self, variable: &str, in_home: &str) -> Option<PathBuf> {
        let absolute = |name: &str| self.get(name).map(Path::new).filter(|path| path.is_absolute());
        let named = absolute(variable).map(Path::to_path_buf);
        Some(named.or_else(|| absolute("HOME").map(|home| home.join(in_home)))?.join("trunkline"))
    }

    /// The variables whose names fit a pattern.
    pub(crate) fn fitting(&self, patterns: &[Glob]) -> Arc<[(OsString, OsString)]> {
        let fits = |name: &str| patterns.iter().any(|glob| glob.matches(name)) && !is_of_sockets(name);
        let fitting = self.variables.iter().filter(|(name, _)| name.to_str().is_some_and(fits));
        fitting.cloned().collect()
    }

    /// What a child gets: what it inherits, and `declared` over that; sorted, so that two loads of the same files are equal.
    pub(crate) fn child(
        inherited: &[(OsString, OsString)],
        declared: Vec<(String, String)>,
    ) -> Vec<(OsString, OsString)> {
        let is_declared = |name: &OsStr| declared.iter().any(|(known, _)| name == known.as_str());
        let mut env: Vec<_> = inherited.iter().filter(|(name, _)| !is_declared(name)).cloned().collect();
        env.extend(declared.into_iter().map(|(name, value)| (name.into(), value.into())));
        env.sort();
        env
    }

    /// `TRUNKLINE_SECTION__KEY` as sources, by name; `RUST_LOG` below them. The second part are
    /// variables that cannot be read as text.
    pub(crate) fn overrides(&self) -> (Vec<Source>, Vec<String>) {
        let mut named: Vec<(String, &OsString)> = self
            .variables
            .iter()
            .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value)))
            .filter(|(name, value)| match name.as_str() {
                "RUST_LOG" => !value.is_empty(),
                name => name.starts_with(PREFIX) && name.contains("__"),
            })
            .collect();
        // "RUST_LOG" sorts before "TRUNKLINE_LOG__LEVEL", which therefore wins.
        named.sort();
        let (mut sources, mut unreadable) = (Vec::new(), Vec::new());
        for (name, value) in named {
            match value.to_str() {
                Some(value) => {
                    sources.push(Source::single(Origin::Variable(name.clone()), &path(&name), value.to_owned()))
                }
                None => unreadable.push(name),
            }
        }
        (sources, unreadable)
    }
}

/// The folder of what runs, where the system has made one for this user.
fn login_folder() -> Option<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let path = PathBuf::from(format!("/run/user/{user}"));
    let seen = std::fs::symlink_metadata(&path).ok()?;
    (seen.is_dir() && seen.uid() == user).then_some(path)
}

/// The key that a variable sets. Keys are lower case; only names inside `env`, and `params` of `auth`, keep theirs, and an
/// upstream's name, which a shell cannot write with a hyphen, has one for each underscore.
fn path(variable: &str) -> Vec<String> {
    if variable == "RUST_LOG" {
        return vec!["log".to_owned(), "level".to_owned()];
    }
    let mut path: Vec<String> = Vec::new();
    for part in variable.strip_prefix(PREFIX).unwrap_or(variable).split("__") {
        path.push(match path.as_slice() {
            [section] if section == "upstreams" => part.to_ascii_lowercase().replace('_', "-"),
            [section, _, key] if section == "upstreams" && key == "env" => part.to_owned(),
            [section, _, auth, key]
                if section == "upstreams" && auth == "auth" && ["env", "params"].contains(&&**key) =>
            {
                part.to_owned()
            }
            [section, _, key] if section == "upstreams" && key == "headers" => {
                part.to_ascii_lowercase().replace('_', "-")
            }
            _ => part.to_ascii_lowercase(),
        });
    }
    path
}

const PREFIX: &str = "TRUNKLINE_";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_names_a_key() {
        let key = |name: &str| path(name).join(".");
        assert_eq!(key("TRUNKLINE_SERVER__LISTEN"), "server.listen");
        assert_eq!(key("TRUNKLINE_SERVER__SESSION__IDLE_TIMEOUT"), "server.session.idle_timeout");
        assert_eq!(key("TRUNKLINE_UPSTREAMS__MY_GIT__ENV__Token"), "upstreams.my-git.env.Token");
        assert_eq!(key("TRUNKLINE_UPSTREAMS__GH__AUTH__ENV__Token"), "upstreams.gh.auth.env.Token");
        assert_eq!(key("TRUNKLINE_UPSTREAMS__GH__AUTH__PARAMS__Aud"), "upstreams.gh.auth.params.Aud");
        assert_eq!(key("TRUNKLINE_UPSTREAMS__GH__AUTH__CLIENT_ID"), "upstreams.gh.auth.client_id");
        assert_eq!(key("TRUNKLINE_UPSTREAMS__GH__HEADERS__X_API_KEY"), "upstreams.gh.headers.x-api-key");
        assert_eq!(key("RUST_LOG"), "log.level");
    }

    #[test]
    fn only_nested_names_are_overrides() {
        let env = Environment::of(&[
            ("TRUNKLINE_LOG__LEVEL", "debug"),
            ("RUST_LOG", "warn"),
            ("TRUNKLINE_CONFIG", "x"),
            ("TRUNKLINE_PORT", "1"),
            ("OTHER__KEY", "1"),
        ]);
        let names: Vec<_> = env.overrides().0.into_iter().map(|source| source.origin).collect();
        assert_eq!(
            names,
            [Origin::Variable("RUST_LOG".to_owned()), Origin::Variable("TRUNKLINE_LOG__LEVEL".to_owned())]
        );
    }

    #[test]
    fn state_is_kept_where_the_specification_says() {
        let of = |pairs: &[(&str, &str)]| Environment::of(pairs).state_folder().map(|path| path.display().to_string());
        let home = ("HOME", "/h");
        assert_eq!(of(&[home, ("XDG_STATE_HOME", "/s")]).as_deref(), Some("/s/trunkline"));
        assert_eq!(of(&[home, ("XDG_STATE_HOME", "")]).as_deref(), Some("/h/.local/state/trunkline"));
        assert_eq!(of(&[home, ("XDG_STATE_HOME", "s")]), of(&[home]));
        assert_eq!(of(&[("HOME", "")]), None);
        let cache =
            |pairs: &[(&str, &str)]| Environment::of(pairs).cache_folder().map(|path| path.display().to_string());
        assert_eq!(cache(&[home]).as_deref(), Some("/h/.cache/trunkline"));
        assert_eq!(cache(&[home, ("XDG_CACHE_HOME", "/c")]).as_deref(), Some("/c/trunkline"));
        let control = |pairs: &[(&str, &str)]| Environment::of(pairs).control_folders();
        let state = Path::new("/h/.local/state/trunkline/control");
        assert_eq!(control(&[home]), [state]);
        assert_eq!(control(&[home, ("XDG_RUNTIME_DIR", "/r")]), [Path::new("/r/trunkline"), state]);
        assert!(control(&[("XDG_RUNTIME_DIR", "r")]).is_empty());
        // Of two hosts of one user one has the variable, as after a login, and one has not.
        let of_login = |pairs: &[(&str, &str)]| {
            Environment { login: Some("/run/user/7".into()), ..Environment::of(pairs) }.control_folders()
        };
        let both = [Path::new("/run/user/7/trunkline"), state];
        assert_eq!(of_login(&[home]), both);
        assert_eq!(of_login(&[home, ("XDG_RUNTIME_DIR", "/run/user/7")]), both);
        assert_eq!(of_login(&[home, ("XDG_RUNTIME_DIR", "/r")]), [Path::new("/r/trunkline"), state]);
    }

    #[test]
    fn a_child_gets_what_is_named_and_nothing_else() {
        let env = Environment::of(&[("PATH", "/bin"), ("LC_ALL", "C"), ("CANARY", "secret"), ("HOME", "/root")]);
        let globs: Vec<Glob> = ["PATH", "LC_*", "HOME"].into_iter().map(Glob::new).collect();
        let declared = vec![("HOME".to_owned(), "/tmp".to_owned()), ("KEY".to_owned(), "v".to_owned())];
        let child = Environment::child(&env.fitting(&globs), declared);
        let pairs: Vec<_> =
            child.iter().map(|(name, value)| (name.to_str().unwrap(), value.to_str().unwrap())).collect();
        assert_eq!(pairs, [("HOME", "/tmp"), ("KEY", "v"), ("LC_ALL", "C"), ("PATH", "/bin")]);
    }
}
