//! Which templates of different upstreams speak of the same URIs: said of each upstream, since one of them goes without.

use super::by_member::MemberId;
use crate::router::catalog::snapshot::Catalog;
use std::collections::BTreeMap;

/// So many pairs are compared: templates are an upstream's to list, and this must cost little.
const COMPARED_MAX: usize = 1024;
/// So many pairs are named of one upstream.
const NAMED_MAX: usize = 3;
/// So much of a template is shown.
const SHOWN_CHARS: usize = 80;
/// What the remark is kept under.
const REMARK: &str = "templates that overlap";

/// Remarks on each upstream what it shares with others.
pub(crate) fn remark(catalog: &Catalog) {
    let mut found = find(catalog);
    for (id, member) in catalog.members.iter() {
        let remark = found.remove(&id).map(|pairs| {
            let more = pairs.len().saturating_sub(NAMED_MAX);
            let named = pairs[..pairs.len().min(NAMED_MAX)].join(", ");
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            format!("resource templates overlap: {named}{more}; what both match is read from the more literal one's upstream")
        });
        member.owner.remark(REMARK, remark);
    }
}

/// The pairs that overlap, in the words of each upstream.
fn find(catalog: &Catalog) -> BTreeMap<MemberId, Vec<String>> {
    let mut templates: Vec<_> = catalog.templates().collect();
    templates.sort_by_key(|(member, public, template)| (template.begin(), *member, *public));
    let (mut found, mut compared) = (BTreeMap::<_, Vec<_>>::new(), 0);
    for (at, (member, public, template)) in templates.iter().enumerate() {
        // Whatever shares a URI with it begins as it does, and stands behind it at once.
        let alike = templates[at + 1..].iter().take_while(|(.., other)| other.begin().starts_with(template.begin()));
        for (other_member, other_public, other) in alike {
            if compared >= COMPARED_MAX {
                return found;
            }
            compared += 1;
            if member == other_member || !template.overlaps(other) {
                continue;
            }
            let mut say = |of: MemberId, own: &str, whose: MemberId, theirs: &str| {
                let name = catalog.members[whose].owner.name();
                let pair = format!("`{}` with `{}` of upstream `{name}`", shown(own), shown(theirs));
                found.entry(of).or_default().push(pair);
            };
            say(*member, public, *other_member, other_public);
            say(*other_member, other_public, *member, public);
        }
    }
    found
}

fn shown(text: &str) -> &str {
    text.char_indices().nth(SHOWN_CHARS).map_or(text, |(at, _)| &text[..at])
}
