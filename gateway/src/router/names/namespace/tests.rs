//! Public names: examples, and what holds for any names.

use super::*;
use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Strategy as _;

fn naming(strategy: Strategy) -> Naming {
    Naming { strategy, separator: "__".into(), max_length: 20 }
}

fn names(strategy: Strategy, parties: &[(&str, &str, &[&str])]) -> Vec<Vec<Option<String>>> {
    let parties: Vec<_> =
        parties.iter().map(|(upstream, prefix, names)| Party { upstream, prefix, names: names.to_vec() }).collect();
    assign(&naming(strategy), &parties)
}

fn some(names: &[&str]) -> Vec<Option<String>> {
    names.iter().map(|name| Some((*name).to_owned())).collect()
}

#[test]
fn prefixes_stand_before_every_name() {
    let seen = names(Strategy::Prefix, &[("a", "a", &["x", "y z"]), ("b", "bee", &["x"]), ("c", "", &["x"])]);
    assert_eq!(seen, [some(&["a__x", "a__y_z"]), some(&["bee__x"]), some(&["x"])]);
}

#[test]
fn contested_bare_names_belong_to_the_first() {
    let parties: [(&str, &str, &[&str]); 2] = [("a", "a", &["x"]), ("b", "b", &["x", "y"])];
    assert_eq!(names(Strategy::PrefixOnConflict, &parties), [some(&["x"]), some(&["b__x", "y"])]);
    assert_eq!(names(Strategy::Flat, &parties), [some(&["x"]), vec![None, Some("y".into())]]);
    assert_eq!(names(Strategy::Prefix, &[("a", "", &["x"]), ("b", "", &["x"])]), [some(&["x"]), some(&["b__x"])]);
}

#[test]
fn long_and_colliding_names_end_in_a_stable_hash() {
    let seen = names(Strategy::Prefix, &[("a", "a", &["a-name-that-is-too-long", "x.y", "x_y"])]);
    assert_eq!(seen[0][0].as_deref(), Some(&*format!("a__a-name-tha_{}", hash("a", "a-name-that-is-too-long"))));
    // What needs no change has the right of way inside one upstream.
    assert_eq!(seen[0][2].as_deref(), Some("a__x_y"));
    assert_eq!(seen[0][1].as_deref(), Some(&*format!("a__x_y_{}", hash("a", "x.y"))));
    assert_eq!(hash("a", "x.y"), "plhe5k", "the hash is public: it may never change");
}

#[test]
fn the_only_upstream_of_a_flat_gateway_keeps_its_names() {
    let odd = ["a name that is too long by far", "ä.b", "ä.b"];
    assert_eq!(names(Strategy::Flat, &[("a", "a", &odd)]), [vec![Some(odd[0].into()), Some(odd[1].into()), None]]);
}

/// Any upstreams: their name, whether they bear a prefix, and their tools; made to collide.
fn any_parties() -> impl proptest::strategy::Strategy<Value = Vec<(&'static str, &'static str, Vec<String>)>> {
    let name = prop_oneof!["[xy._]{1,3}", "[a-c]__[xy]{1,2}", "[a-z]{18,24}"];
    prop::collection::vec((any::<bool>(), prop::collection::vec(name, 0..6)), 1..4).prop_map(|parties| {
        let named = ["a", "b", "a__b"].into_iter().zip(parties);
        named.map(|(name, (bare, names))| (name, if bare { "" } else { name }, names)).collect()
    })
}

fn assigned(strategy: Strategy, parties: &[(&str, &str, Vec<String>)]) -> Vec<Vec<Option<String>>> {
    let parties: Vec<_> = parties
        .iter()
        .map(|(upstream, prefix, names)| Party { upstream, prefix, names: names.iter().map(String::as_str).collect() })
        .collect();
    assign(&naming(strategy), &parties)
}

proptest! {
    #[test]
    fn names_are_legal_and_no_two_are_equal(
        parties in any_parties(),
        strategy in prop::sample::select(vec![Strategy::Prefix, Strategy::PrefixOnConflict, Strategy::Flat]),
    ) {
        let mut seen = HashSet::new();
        for name in assigned(strategy, &parties).into_iter().flatten().flatten() {
            let transparent = naming(strategy).is_transparent(parties.len());
            prop_assert!(transparent || (name.len() <= 20 && legalise(&name) == *name), "{}", name);
            prop_assert!(seen.insert(name));
        }
    }

    #[test]
    fn an_upstream_added_at_the_end_changes_no_name(
        parties in any_parties(),
        strategy in prop::sample::select(vec![Strategy::Prefix, Strategy::PrefixOnConflict]),
    ) {
        let whole = assigned(strategy, &parties);
        for upto in 1..parties.len() {
            prop_assert_eq!(&assigned(strategy, &parties[..upto])[..], &whole[..upto]);
        }
    }

    #[test]
    fn with_a_prefix_every_name_can_be_called(parties in any_parties()) {
        for (party, names) in parties.iter().zip(assigned(Strategy::Prefix, &parties)) {
            let distinct: HashSet<_> = party.2.iter().collect();
            prop_assert_eq!(names.iter().flatten().count(), distinct.len());
        }
    }
}
