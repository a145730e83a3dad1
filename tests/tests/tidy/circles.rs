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
