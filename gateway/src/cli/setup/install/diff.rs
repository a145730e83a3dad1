//! Which lines of a file are changed. What else stands in it may be secret, and is not shown.

/// The changed lines, with their number; `ours` are texts that may be shown.
pub(super) fn lines(before: &str, after: &str, ours: &[String]) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let rest = old.len().min(new.len()) - same;
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(old, new)| old == new).count();
    let (gone, come) = (&old[same..old.len() - tail], &new[same..new.len() - tail]);
    if gone.is_empty() && come.is_empty() {
        return String::new();
    }
    let mut out = format!("@@ line {} @@\n", same + 1);
    let shown = |mark: char, line: &str| {
        if is_plain(line, ours) {
            format!("{mark}{line}\n")
        } else {
            format!("{mark} … (not shown: it may hold a secret)\n")
        }
    };
    out.extend(gone.iter().map(|line| shown('-', line)));
    out.extend(come.iter().map(|line| shown('+', line)));
    out
}

/// Whether a line is made of our words, and of what every such file has.
fn is_plain(line: &str, ours: &[String]) -> bool {
    let mut line = line.to_owned();
    for text in ours {
        line = line.replace(text.as_str(), "");
    }
    line.chars().all(|char| char.is_whitespace() || "{}[]\",:=.-".contains(char))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_lines_are_shown() {
        let ours = ["/bin/trunkline".to_owned(), "trunkline".to_owned(), "command".to_owned()];
        let after = "{\n  \"a\": {},\n  \"trunkline\": {\n    \"command\": \"/bin/trunkline\"\n  }\n}";
        assert_eq!(
            lines("{\n  \"a\": {}\n}", after, &ours),
            "@@ line 2 @@\n- … (not shown: it may hold a secret)\n+ … (not shown: it may hold a secret)\n+  \"trunkline\": {\n+    \"command\": \"/bin/trunkline\"\n+  }\n"
        );
        assert_eq!(lines("x", "x", &ours), "");
    }
}
