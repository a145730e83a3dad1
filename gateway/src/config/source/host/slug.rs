//! The name of a server as that of an upstream.

/// A name made of what may stand in a name: lower case, everything else one hyphen.
pub(crate) fn slug(name: &str) -> String {
    let mut slug = String::new();
    for char in name.chars().flat_map(char::to_lowercase) {
        if char.is_ascii_alphanumeric() {
            slug.push(char);
        } else if !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.trim_matches('-').chars().take(32).collect::<String>().trim_end_matches('-').to_owned()
}
