//! Which variables of the gateway a child was not given, for whoever looks why it does not answer. Names alone are said, never values.

use std::collections::BTreeSet;
use std::ffi::OsString;

/// So many are named.
const NAMED_MAX: usize = 3;
/// Longer names are not those that a program knows.
const NAME_CHARS_MAX: usize = 64;
/// What stands in the names of variables that a program may wait without: a way out, certificates, credentials.
const PARTS: [&str; 11] =
    ["PROXY", "CERT", "SSL_", "TLS_", "_CA_", "REGISTRY", "TOKEN", "_KEY", "SECRET", "PASSWORD", "CREDENTIAL"];
/// What such names begin with: runtimes, where packages come from, clouds.
const BEGINNINGS: [&str; 12] =
    ["NODE_", "NPM_", "PIP_", "UV_", "PYTHON", "CONDA_", "JAVA_", "AWS_", "AZURE_", "GOOGLE_", "DOCKER_", "KUBE"];

/// Which of our variables may matter to a child and were not `given` to it, for the end of a cause; empty where there are none.
pub fn said(ours: impl Iterator<Item = OsString>, given: &[(OsString, OsString)]) -> String {
    let missing = |name: &OsString| !given.iter().any(|(known, _)| known == name);
    let names = ours.filter(missing).filter_map(|name| name.into_string().ok());
    let names: BTreeSet<String> = names.filter(|name| matters(name)).collect();
    if names.is_empty() {
        return String::new();
    }
    let named: Vec<&str> = names.iter().take(NAMED_MAX).map(String::as_str).collect();
    let more = match names.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("; not passed to it: {}{more} (`env` or `env_inherit` passes them)", named.join(", "))
}

fn matters(name: &str) -> bool {
    let upper = name.to_uppercase();
    let is_ours = upper.starts_with("TRUNKLINE_");
    let may = PARTS.iter().any(|part| upper.contains(part)) || BEGINNINGS.iter().any(|one| upper.starts_with(one));
    may && !is_ours && name.len() <= NAME_CHARS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_matter_and_was_not_given_is_named() {
        let said = |ours: &[&str], given: &[&str]| {
            let given: Vec<_> = given.iter().map(|name| (OsString::from(name), OsString::from("x"))).collect();
            super::said(ours.iter().map(OsString::from), &given)
        };
        let ours = ["PATH", "LS_COLORS", "GITHUB_TOKEN", "HTTPS_PROXY", "npm_config_strict_ssl", "TRUNKLINE_TOKEN"];
        let expected = "; not passed to it: GITHUB_TOKEN, npm_config_strict_ssl (`env` or `env_inherit` passes them)";
        assert_eq!(said(&ours, &["PATH", "HTTPS_PROXY"]), expected);
        assert_eq!(said(&ours, &ours), "");
        assert_eq!(said(&["PATH", "OLDPWD", "PS1", "HISTFILE"], &[]), "");
        let many: Vec<String> = (0..20).map(|number| format!("AWS_{number:02}")).collect();
        let many = said(&many.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
        assert!(many.contains("AWS_02 and 17 more (") && !many.contains("AWS_03"), "{many}");
        assert_eq!(said(&[&format!("AWS_{}", "X".repeat(61))], &[]), "");
    }
}
