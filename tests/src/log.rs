//! A line of the gateway's log, read alike whether it is JSON or text.

/// The value of a field that is a text, where the line has it.
#[must_use]
pub fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let mark = if is_json(line) { format!("\"{name}\":\"") } else { format!(" {name}=\"") };
    let rest = &line[line.find(&mark)? + mark.len()..];
    Some(&rest[..rest.find('"')?])
}

/// Its level, in capitals.
#[must_use]
pub fn level(line: &str) -> Option<&str> {
    if is_json(line) { field(line, "level") } else { words(line).map(|(_, level, _)| level) }
}

/// Whether this is its message, or in a line of text how that begins.
#[must_use]
pub fn has_message(line: &str, message: &str) -> bool {
    match is_json(line) {
        true => field(line, "message") == Some(message),
        false => words(line).is_some_and(|(_, _, rest)| rest.starts_with(message)),
    }
}

/// When it was written: the date and the time of day, UTC.
#[must_use]
pub fn time(line: &str) -> Option<&str> {
    if is_json(line) { field(line, "timestamp") } else { words(line).map(|(time, _, _)| time) }
}

fn is_json(line: &str) -> bool {
    line.starts_with('{')
}

/// The time, the level and the rest of a line of text that is of the log.
fn words(line: &str) -> Option<(&str, &str, &str)> {
    let (time, rest) = line.split_once(' ')?;
    let (level, rest) = rest.trim_start().split_once(' ')?;
    let is_level = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"].contains(&level);
    (is_level && time.ends_with('Z')).then_some((time, level, rest))
}

#[cfg(test)]
mod tests {
    use super::{field, has_message, level, time};

    #[test]
    fn a_line_of_json_and_one_of_text_are_read_alike() {
        for line in [
            "{\"timestamp\":\"2026-11-22T23:59:59.5Z\",\"level\":\"WARN\",\"message\":\"it is gone\",\"upstream\":\"u1\",\"lines\":3}",
            "2026-11-22T23:59:59.5Z  WARN it is gone upstream=\"u1\" lines=3",
        ] {
            assert_eq!((time(line), level(line)), (Some("2026-11-22T23:59:59.5Z"), Some("WARN")), "{line}");
            assert_eq!((field(line, "upstream"), field(line, "stream")), (Some("u1"), None), "{line}");
            assert!(has_message(line, "it is gone") && !has_message(line, "gone"), "{line}");
        }
        assert_eq!(level("  ready        u1   stdio   3 tools"), None);
    }
}
