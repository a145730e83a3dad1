//! Circles among modules. A roof leads to each child that it declares, so a child that names its roof closes one.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::imports;
use crate::tidy::source::Source;

type Module = Vec<String>;
type Graph = BTreeMap<Module, BTreeSet<Module>>;

/// Each circle once, as the way round it.
pub(crate) fn find(files: &[Source]) -> Vec<String> {
    let modules: BTreeSet<Module> = files.iter().map(Source::module).collect();
    let doors = imports::doors(files);
    let mut graph = Graph::new();
    for source in files {
        let edges = graph.entry(source.module()).or_default();
        edges.extend(imports::of(source, &modules, &doors));
        edges.extend(imports::declared(source, &modules));
    }
    graph.remove(&Module::new()); // the root only declares
    let (mut done, mut circles) = (BTreeSet::new(), BTreeSet::new());
    for module in graph.keys() {
        follow(module, &graph, &mut Vec::new(), &mut done, &mut circles);
    }
    circles.into_iter().collect()
}

/// The folders in which rooms use one another in a circle: what stands in a folder or file counts as that room's, however deep.
pub(crate) fn rooms(files: &[Source]) -> BTreeMap<String, String> {
    let modules: BTreeSet<Module> = files.iter().map(Source::module).collect();
    let doors = imports::doors(files);
    let mut folders: BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for source in files {
        let own = source.module();
        for other in imports::of(source, &modules, &doors) {
            let common = own.iter().zip(&other).take_while(|(one, two)| one == two).count();
            if let (Some(room), Some(used)) = (own.get(common), other.get(common)) {
                let rooms = folders.entry(own[..common].to_vec()).or_default();
                rooms.entry(room.clone()).or_default().insert(used.clone());
            }
        }
    }
    let judged = folders.iter().filter_map(|(folder, rooms)| Some((folder.join("/"), judge(rooms)?)));
    judged.collect()
}

/// Takes away the rooms that use no other one, level by level; what is left then stands in a circle, or on one.
fn judge(rooms: &BTreeMap<String, BTreeSet<String>>) -> Option<String> {
    let mut left = rooms.clone();
    while !left.is_empty() {
        let free: Vec<String> = left
            .iter()
            .filter(|(_, used)| !used.iter().any(|used| left.contains_key(used)))
            .map(|(room, _)| room.clone())
            .collect();
        if free.is_empty() {
            let names: Vec<String> = left.into_keys().collect();
            return Some(format!("a circle among {}", names.join(", ")));
        }
        free.iter().for_each(|room| _ = left.remove(room));
    }
    None
}

fn follow(
    module: &Module,
    graph: &Graph,
    way: &mut Vec<Module>,
    done: &mut BTreeSet<Module>,
    circles: &mut BTreeSet<String>,
) {
    if let Some(start) = way.iter().position(|before| before == module) {
        let round: Vec<String> = way[start..].iter().chain([module]).map(|module| module.join("::")).collect();
        circles.insert(round.join(" → "));
        return;
    }
    if !done.insert(module.clone()) {
        return;
    }
    way.push(module.clone());
    for next in graph.get(module).into_iter().flatten() {
        follow(next, graph, way, done, circles);
    }
    way.pop();
}

#[test]
fn a_child_that_names_its_roof_closes_a_circle() {
    let file = |path: &str, code: &str| Source {
        path: format!("gateway/src/{path}"),
        text: code.to_owned(),
        code: code.to_owned(),
        product: code.to_owned(),
    };
    let roof = || file("a/mod.rs", "mod b;\npub(crate) mod c;");
    let good = [roof(), file("a/b.rs", "use super::c::X;"), file("a/c.rs", "")];
    assert_eq!(find(&good), Vec::<String>::new());
    let bad = [roof(), file("a/b.rs", "use super::Y;"), file("a/c.rs", "")];
    assert_eq!(find(&bad), ["a → a::b → a"]);
    let behind = [
        file("a/mod.rs", "mod b;\npub(crate) use b::X;"),
        file("a/b.rs", "use crate::c::Y;"),
        file("c.rs", "use crate::a::X;"),
    ];
    assert_eq!(find(&behind), ["a::b → c → a::b"]);
    let round = [roof(), file("a/b.rs", "use super::c::X;"), file("a/c.rs", "use crate::a::b::Z;")];
    assert_eq!(find(&round).len(), 1);
}

#[test]
fn rooms_that_use_one_another_are_seen_though_no_file_closes_the_circle() {
    let file = |path: &str, code: &str| Source {
        path: format!("gateway/src/{path}"),
        text: code.to_owned(),
        code: code.to_owned(),
        product: code.to_owned(),
    };
    let up = file("a/x.rs", "use crate::b::y::Y;");
    let round = [file("a/w.rs", ""), up, file("b/y.rs", ""), file("b/z.rs", "use crate::a::w::W;")];
    assert_eq!(find(&round), [""; 0]);
    assert_eq!(rooms(&round)[""], "a circle among a, b");
    assert_eq!(rooms(&round[..3]).len(), 0);
}
