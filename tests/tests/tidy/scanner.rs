//! Small readers of blanked code: declared names and their words.

/// The names of what a file declares.
pub(crate) fn declared_names(code: &str) -> Vec<String> {
    let keywords = ["fn", "struct", "enum", "trait", "mod", "type", "const", "static", "union"];
    let mut names = Vec::new();
    let mut last = "";
    for word in code.split(|letter: char| !(letter.is_alphanumeric() || letter == '_')).filter(|word| !word.is_empty())
    {
        if keywords.contains(&last) {
            names.push(word.to_owned());
        }
        last = word;
    }
    names
}

/// The words of a name in any of Rust's spellings.
pub(crate) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let is_shouted = name.chars().all(|letter| !letter.is_lowercase());
    for letter in name.chars() {
        if letter == '_' || (letter.is_uppercase() && !is_shouted) {
            words.push(String::new());
        }
        if letter != '_' {
            words.last_mut().expect("there is one").extend(letter.to_lowercase());
        }
    }
    words
}

#[test]
fn the_readers_see_what_is_there() {
    assert_eq!(declared_names("pub struct AbC; const X_Y: u8 = 1;"), ["AbC", "X_Y"]);
    assert_eq!(words("HttpServer"), ["", "http", "server"]);
    assert_eq!(words("MAX_TARGET"), ["max", "target"]);
    assert_eq!(words("relay_to"), ["relay", "to"]);
}
