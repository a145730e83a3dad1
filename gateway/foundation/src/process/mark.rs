//! The mark that every process of one child's tree inherits in its environment, whatever else it changes about itself.

use std::ffi::{OsStr, OsString};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The variable that holds it.
pub(crate) const VARIABLE: &str = "TRUNKLINE_MARK";

/// What tells one child's tree from all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark(String);

impl Mark {
    /// One that no process bears yet.
    #[allow(clippy::new_without_default)] // each one is another mark
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(format!("{}.{};", run(), NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// The variable's value for a child. A gateway that is itself somebody's upstream adds to the mark that it bears, so that
    /// its children belong to that tree too.
    pub(crate) fn value(&self) -> OsString {
        let mut value = std::env::var_os(VARIABLE).unwrap_or_default();
        value.push(&self.0);
        value
    }

    /// What the value of a process in the tree contains.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// What the marks of all children of this gateway begin with: random, and the same for as long as the gateway runs.
pub(crate) fn run() -> &'static str {
    static RUN: OnceLock<String> = OnceLock::new();
    RUN.get_or_init(|| {
        let mut bytes = [0u8; 16];
        getrandom::fill(&mut bytes).expect("the system's random source does not fail once it has worked");
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    })
}

/// Whether an environment, as `/proc` shows it, bears a mark that contains this text.
pub(crate) fn bears(environment: &[u8], text: &str) -> bool {
    environment.split(|byte| *byte == 0).any(|variable| {
        let value = variable.strip_prefix(VARIABLE.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        value.is_some_and(|value| memchr::memmem::find(value, text.as_bytes()).is_some())
    })
}

/// Whether a name is that of the variable.
pub(crate) fn is_variable(name: &OsStr) -> bool {
    name == VARIABLE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_alone_and_behind_another_and_nowhere_else() {
        let (one, other) = (Mark::new(), Mark::new());
        let environment = |value: &str| format!("A=1\0{VARIABLE}={value}\0B=2\0").into_bytes();
        let (own, nested) = (environment(one.text()), environment(&format!("outer.1;{}", one.text())));
        for bearing in [&own, &nested] {
            assert!(bears(bearing, one.text()) && bears(bearing, run()) && !bears(bearing, other.text()));
        }
        assert!(!bears(format!("X{VARIABLE}={}\0", one.text()).as_bytes(), one.text()));
        // The eleventh is not taken for the first.
        assert!(!bears(&environment(&format!("{}.11;", run())), &format!("{}.1;", run())));
    }
}
