//! A token taken out of a file: the comments above it stay, above what follows.

use toml_edit::{Decor, DocumentMut, Item, Table, Value};

/// Takes out the token at this place.
pub(super) fn take_out(document: &mut DocumentMut, at: usize) {
    let tokens = document.get_mut("auth").and_then(|auth| auth.as_table_like_mut()?.get_mut("tokens"));
    let (above, place) = match tokens {
        Some(Item::ArrayOfTables(tables)) => {
            let Some(table) = tables.get(at) else { return };
            let taken = (comments(table.decor()), table.position());
            tables.remove(at);
            taken
        }
        Some(Item::Value(Value::Array(values))) => {
            let above = comments(values.remove(at).decor());
            match values.get_mut(at) {
                _ if above.is_empty() => {}
                Some(next) => put_above(next.decor_mut(), &above, "\n"),
                None => {
                    let end = on_a_line(values.trailing().as_str().unwrap_or_default());
                    values.set_trailing(format!("{above}{end}"));
                }
            }
            return;
        }
        _ => return,
    };
    if above.is_empty() {
        return;
    }
    let next = place.and_then(|place| following(document, place));
    match next.and_then(|next| at_place(document, next)) {
        // A blank line: they are not about what follows.
        Some(next) => put_above(next.decor_mut(), &above, "\n\n"),
        None => {
            let end = document.trailing().as_str().unwrap_or_default().to_owned();
            document.set_trailing(format!("{above}\n{end}"));
        }
    }
}

/// What stands above something, where a comment is among it, up to its last line.
fn comments(decor: &Decor) -> String {
    let text = decor.prefix().and_then(|text| text.as_str()).unwrap_or_default();
    if text.contains('#') { text.trim_end().to_owned() } else { String::new() }
}

/// Puts comments above something, with this between them.
fn put_above(decor: &mut Decor, above: &str, between: &str) {
    let own = decor.prefix().and_then(|text| text.as_str()).unwrap_or_default();
    decor.set_prefix(format!("{above}{between}{}", own.trim_start_matches(['\n', '\r'])));
}

/// What follows a comment.
fn on_a_line(text: &str) -> String {
    if text.starts_with(['\n', '\r']) { text.to_owned() } else { format!("\n{text}") }
}

/// The place of the table that follows in the file.
fn following(table: &Table, place: isize) -> Option<isize> {
    let own = table.position().filter(|own| *own > place);
    let inner = table.iter().flat_map(|(_, item)| tables(item)).filter_map(|table| following(table, place)).min();
    own.into_iter().chain(inner).min()
}

fn tables(item: &Item) -> Vec<&Table> {
    match item {
        Item::Table(table) => vec![table],
        Item::ArrayOfTables(tables) => tables.iter().collect(),
        _ => Vec::new(),
    }
}

fn at_place(table: &mut Table, place: isize) -> Option<&mut Table> {
    if table.position() == Some(place) {
        return Some(table);
    }
    table.iter_mut().find_map(|(_, item)| match item {
        Item::Table(table) => at_place(table, place),
        Item::ArrayOfTables(tables) => tables.iter_mut().find_map(|table| at_place(table, place)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(text: &str, at: usize) -> String {
        let mut document: DocumentMut = text.parse().unwrap();
        take_out(&mut document, at);
        document.to_string()
    }

    #[test]
    fn comments_above_a_token_stay_where_they_stood() {
        let (first, ann) = ("# of the team\n", "[[auth.tokens]]\nname = \"ann\"\n");
        let bob = "\n# Bob, of sales\n[[auth.tokens]]\nname = \"bob\" # his\n";
        let (cid, after) =
            ("[[auth.tokens]]\nname = \"cid\"\n", "\n# the docs\n[upstreams.docs]\ncommand = \"x\"\n# end\n");
        let text = format!("{first}{ann}{bob}{cid}{after}");
        assert_eq!(without(&text, 0), format!("# of the team\n\n{}{cid}{after}", bob.trim_start()));
        assert_eq!(without(&text, 1), format!("{first}{ann}\n# Bob, of sales\n\n{cid}{after}"));
        assert_eq!(without(&text, 2), format!("{first}{ann}{bob}{after}"));
        // Another table follows, and then none.
        let text = format!("{cid}{bob}[upstreams.docs]\ncommand = \"x\"\n");
        assert_eq!(without(&text, 1), format!("{cid}\n# Bob, of sales\n\n[upstreams.docs]\ncommand = \"x\"\n"));
        assert_eq!(without(&format!("{cid}{bob}"), 1), format!("{cid}\n# Bob, of sales\n"));
    }

    #[test]
    fn comments_in_a_list_stay_too() {
        let text = "auth.tokens = [\n  # Ann\n  { name = \"ann\" },\n  # Bob\n  { name = \"bob\" }, # his\n]\n";
        assert_eq!(without(text, 0), "auth.tokens = [\n  # Ann\n  # Bob\n  { name = \"bob\" }, # his\n]\n");
        assert_eq!(without(text, 1), "auth.tokens = [\n  # Ann\n  { name = \"ann\" },\n  # Bob\n # his\n]\n");
        // A comment ends with its line.
        let first = without("auth.tokens = [ # a\n {name = \"x\"}, {name = \"y\"} ]\n", 0);
        assert_eq!(first, "auth.tokens = [ # a\n {name = \"y\"} ]\n");
        let last = without("auth.tokens = [{name = \"x\"}, # a\n {name = \"y\"} ]\n", 1);
        assert!(last.contains("# a\n") && last.ends_with("]\n"), "{last}");
    }
}
