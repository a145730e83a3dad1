//! Hosts that take only so many tools, by the name that each gives itself.

/// A host that leaves out what is too much for it.
#[derive(Debug)]
pub struct KnownHost {
    /// What the name of its client begins with, in small letters.
    begins: &'static str,
    /// As people call it.
    pub title: &'static str,
    /// So many tools it takes.
    pub tools: usize,
    /// One bit, by which it is told from the others.
    pub bit: u8,
}

/// All of them.
pub(super) const KNOWN_HOSTS: [KnownHost; 4] = [
    KnownHost { begins: "cursor", title: "Cursor", tools: 80, bit: 1 },
    KnownHost { begins: "visual studio code", title: "VS Code", tools: 128, bit: 2 },
    KnownHost { begins: "github-copilot", title: "Copilot CLI", tools: 128, bit: 4 },
    KnownHost { begins: "windsurf", title: "Windsurf", tools: 100, bit: 8 },
];

impl KnownHost {
    /// The host whose client calls itself so.
    #[must_use]
    pub fn of(client: &str) -> Option<&'static Self> {
        let begins = |with: &str| client.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with));
        KNOWN_HOSTS.iter().find(|host| begins(host.begins))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_known_by_what_their_clients_call_themselves() {
        for (client, title) in [
            ("cursor-vscode 1.0.0", Some("Cursor")),
            ("Visual Studio Code - Insiders 1.1", Some("VS Code")),
            ("windsurf-client", Some("Windsurf")),
            ("claude-code 2", None),
            ("", None),
        ] {
            assert_eq!(KnownHost::of(client).map(|host| host.title), title, "{client}");
        }
        assert!(KNOWN_HOSTS.iter().enumerate().all(|(at, host)| host.bit == 1 << at));
    }
}
