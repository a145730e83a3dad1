//! Small readers of blanked code: functions and their lengths, names and their words.

use crate::tidy::source::block_end;

/// The functions with a body: line, name, lines.
pub(crate) fn functions(code: &str) -> Vec<(usize, String, usize)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if code[..at].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_') {
            continue;
        }
        let rest = &code[at + 3..];
        let name: String = rest.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
        if name.is_empty() {
            continue;
        }
        let mut depth = 0i32;
        let open = rest.char_indices().find(|(_, letter)| {
            depth += match letter {
                '(' | '[' => 1,
                ')' | ']' => -1,
                _ => 0,
            };
            depth == 0 && matches!(letter, '{' | ';')
        });
        if let Some((offset, '{')) = open {
            let end = block_end(code, at + 3 + offset);
            let length = code[at..end].lines().count();
            found.push((code[..at].matches('\n').count() + 1, name, length));
        }
    }
    found
}

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
    let code =
        crate::tidy::source::blank("// fn a() {\nfn b<'a>(x: &'a str) {\n  let c = '{'; let s = \"}\";\n}\nfn d();\n");
    assert_eq!(functions(&code), [(2, "b".to_owned(), 3)]);
    assert_eq!(declared_names("pub struct AbC; const X_Y: u8 = 1;"), ["AbC", "X_Y"]);
    assert_eq!(words("HttpServer"), ["", "http", "server"]);
    assert_eq!(words("MAX_TARGET"), ["max", "target"]);
    assert_eq!(words("relay_to"), ["relay", "to"]);
}
