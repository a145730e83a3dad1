//! What of the text of a shell (`-c`) is read as more than one word, or as commands.

use crate::config::shell::{is_shell, takes_commands};

/// What is doubtful about such a text, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// The value of a variable is read as commands.
    Commands,
    /// The output of a command, or a variable, stands without quotes.
    Words,
}

impl Doubt {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Commands => {
                "a variable stands in the text of a shell (`-c`) that is read as commands again (`eval`, another `-c`), so whatever its \
                 value holds is a command; start the program itself, without a shell"
            }
            Self::Words => {
                "a variable or the output of a command stands in the text of a shell (`-c`) without quotes, so its value is split into \
                 words and may be taken for options or names of files; write it in quotes (\"$NAME\")"
            }
        }
    }
}

/// What is doubtful about a text, its quotes read as a shell reads them.
pub(super) fn doubt(script: &str) -> Option<Doubt> {
    let words = || script.split(|char: char| !char.is_ascii_alphanumeric() && char != '-');
    let starts_shell = words().any(is_shell) && words().any(|word| word.len() > 1 && takes_commands(word));
    let is_again = starts_shell || words().any(|word| matches!(word, "eval" | "source"));
    let (mut is_quoted, mut chars, mut worst) = (false, script.chars().peekable(), None);
    while let Some(char) = chars.next() {
        match char {
            '\\' => _ = chars.next(),
            '"' => is_quoted = !is_quoted,
            // In single quotes nothing is filled in.
            '\'' if !is_quoted => while chars.next().is_some_and(|char| char != '\'') {},
            '`' => worst = Some(Doubt::Words),
            '$' if chars.peek().is_some_and(|next| next.is_ascii_alphanumeric() || "_{(@*".contains(*next)) => {
                match (is_again, is_quoted) {
                    (true, _) => return Some(Doubt::Commands),
                    (false, true) => {}
                    (false, false) => worst = Some(Doubt::Words),
                }
            }
            _ => {}
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_in_quotes_is_one_word_and_one_that_is_read_again_is_a_command() {
        for script in [
            "exec run",
            "exec run \"$TOKEN\"",
            "exec run 'a $b `c`'",
            "exec run \\$x",
            "cost 5$",
            "run \"${A}/b\" x",
            "grep -c \"$1\" x",
        ] {
            assert_eq!(doubt(script), None, "{script}");
        }
        for script in
            ["exec run $TOKEN", "exec run ${A}", "exec run $(cat x)", "exec run `x`", "run \"a\" $1", "run \"a'$b'\"$1"]
        {
            assert_eq!(doubt(script), Some(Doubt::Words), "{script}");
        }
        for script in ["eval \"$CODE\"", "exec sh -c \"run $TOKEN\"", "bash -ec '$1'; sh -c \"$2\""] {
            assert_eq!(doubt(script), Some(Doubt::Commands), "{script}");
        }
    }
}
