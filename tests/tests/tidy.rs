//! The structure of the code: first lines, layers, circles, words, and the test of each fault.

mod tidy {
    pub(crate) mod circles;
    pub(crate) mod docs;
    pub(crate) mod faults;
    pub(crate) mod imports;
    pub(crate) mod public;
    pub(crate) mod rooms;
    pub(crate) mod scanner;
    pub(crate) mod source;
}

use std::collections::{BTreeMap, BTreeSet};

use tidy::imports;
use tidy::scanner::{declared_names, words};
use tidy::source::{Source, below, crates, product};

/// The package that still holds several layers; all others are crates of their own, and the compiler holds them apart.
const GATEWAY: &str = "gateway/src";

fn everything() -> Vec<Source> {
    product().into_iter().chain(["tests/src", "tests/tests"].into_iter().flat_map(below)).collect()
}

fn none(faults: Vec<String>) {
    assert!(faults.is_empty(), "\n  {}", faults.join("\n  "));
}

#[test]
fn a_door_says_of_each_child_what_lives_there() {
    none(tidy::rooms::unsaid(&product()));
}

#[test]
fn methods_stand_beside_their_type() {
    none(crates().iter().flat_map(|folder| tidy::rooms::strays(&below(folder))).collect());
}

#[test]
fn every_file_opens_with_what_lives_there() {
    let opens = |source: &Source| {
        let mut lines = source.text.lines();
        let first = lines.next().is_some_and(|line| line.starts_with("//! ") && line.len() > 8);
        first && !source.text.starts_with("//! placeholder")
    };
    none(everything().into_iter().filter(|source| !opens(source)).map(|source| source.path).collect());
}

/// Which layer of `gateway/src` may name which.
const LAYERS: [(&str, &[&str]); 6] = [
    ("upstream", &[]),
    ("router", &["upstream"]),
    ("config", &["upstream", "router"]),
    ("gateway", &["config", "router", "upstream"]),
    ("fuzzing", &["config", "router", "upstream"]),
    ("cli", &["gateway", "config", "upstream", "router"]),
];
/// The crates of which `config` names the configuration alone.
const CONFIGURED: [&str; 3] = ["downstream", "policy", "telemetry"];
/// The modules of the foundation, from below: each may name those before it.
const FOUNDATION: [&str; 6] = ["metrics", "secrets", "runtime", "memory", "health", "process"];

#[test]
fn nothing_points_up_and_layers_meet_at_the_call() {
    let mut faults = names_above(GATEWAY, |layer| {
        LAYERS.iter().find(|(name, _)| *name == layer).map(|(_, may)| may.iter().copied().collect())
    });
    for source in below("gateway/src/config") {
        let more = CONFIGURED.iter().filter(|name| !names_only_config(&source.product, &[(*name).to_string()]));
        faults.extend(more.map(|name| format!("{}: config names more of {name} than its config", source.path)));
    }
    faults.extend(names_above("gateway/foundation/src", |layer| {
        let place = FOUNDATION.iter().position(|name| *name == layer)?;
        Some(FOUNDATION[..place].iter().copied().collect())
    }));
    none(faults);
}

/// The places below a folder where a layer names one that it may not.
fn names_above(folder: &str, may: impl Fn(&str) -> Option<BTreeSet<&'static str>>) -> Vec<String> {
    let files = below(folder);
    let modules: BTreeSet<Vec<String>> = files.iter().map(Source::module).collect();
    let doors = imports::doors(&files);
    let mut faults = Vec::new();
    for source in &files {
        let Some(layer) = source.module().first().cloned() else { continue };
        let Some(may) = may(&layer) else {
            faults.push(format!("{}: {layer} is no layer of the house", source.path));
            continue;
        };
        for named in imports::of(source, &modules, &doors) {
            let other = named[0].as_str();
            if other != layer && !may.contains(other) {
                faults.push(format!("{}: {layer} names {}", source.path, named.join("::")));
            }
            if layer == "config" && other != layer && !names_only_config(&source.product, &named) {
                faults.push(format!("{}: config names more of {other} than its config", source.path));
            }
        }
    }
    faults
}

/// Whether a layer is named for its configuration alone: `upstream::config::…`, wherever `upstream` came from.
fn names_only_config(code: &str, named: &[String]) -> bool {
    if named.len() > 1 {
        return named[1] == "config";
    }
    let prefix = format!("{}::", named[0]);
    code.match_indices(&prefix).all(|(at, _)| code[at + prefix.len()..].starts_with("config"))
}

#[test]
fn the_protocol_is_pure() {
    let impure = ["tokio", "hyper", "axum", "std::time", "std::fs", "std::net", "std::env", "SystemTime", "Instant"];
    let mut faults = Vec::new();
    for source in below("gateway/protocol/src") {
        let named = impure.iter().filter(|word| source.product.contains(**word));
        faults.extend(named.map(|word| format!("{}: {word}", source.path)));
    }
    none(faults);
}

#[test]
fn nothing_goes_round() {
    none(crates().iter().flat_map(|folder| tidy::circles::find(&below(folder))).collect());
}

/// Where rooms still use one another in a circle. No folder comes to this list; what is mended leaves it.
const ROUND: [&str; 6] = [
    "gateway/call/src",
    "gateway/src/config",
    "gateway/downstream/src/http",
    "gateway/src/router",
    "gateway/client/src/transport",
    "gateway/client/src/transport/http",
];

#[test]
fn no_room_uses_one_above_it() {
    let mut faults = BTreeMap::new();
    for folder in crates() {
        let found = tidy::circles::rooms(&below(&folder)).into_iter();
        faults.extend(found.map(|(room, fault)| (format!("{folder}/{room}").trim_end_matches('/').to_owned(), fault)));
    }
    let mended = ROUND.iter().filter(|folder| !faults.contains_key(**folder));
    let mended = mended.map(|folder| format!("{folder}: mended, and still on the list"));
    let new = faults.iter().filter(|(folder, _)| !ROUND.contains(&folder.as_str()));
    none(new.map(|(folder, fault)| format!("{folder}: {fault}")).chain(mended).collect());
}

#[test]
fn tasks_are_spawned_in_one_place() {
    let spawns = |source: &Source| {
        ["tokio::spawn", "task::spawn(", "thread::spawn"].iter().any(|call| source.product.contains(call))
    };
    let elsewhere = product().into_iter().filter(|source| !source.path.starts_with("gateway/foundation/src/runtime/"));
    none(elsewhere.filter(spawns).map(|source| source.path).collect());
}

#[test]
fn nothing_is_unwrapped() {
    let mut faults = Vec::new();
    for source in product() {
        for (number, line) in source.product.lines().enumerate() {
            if [".unwrap()", "panic!(", "todo!(", "unimplemented!("].iter().any(|word| line.contains(word)) {
                faults.push(format!("{}:{}: {}", source.path, number + 1, line.trim()));
            }
        }
    }
    none(faults);
}

/// Words that say nothing of what a thing is for.
const AVOIDED: [&str; 6] = ["util", "utils", "helper", "helpers", "common", "misc"];

#[test]
fn no_name_is_empty_of_meaning() {
    let mut faults = Vec::new();
    for source in product() {
        let names = source.module().last().cloned().into_iter().chain(declared_names(&source.product));
        for name in names {
            if let Some(word) = words(&name).into_iter().find(|word| AVOIDED.contains(&word.as_str())) {
                faults.push(format!("{}: `{name}` says {word}", source.path));
            }
        }
    }
    none(faults);
}

#[test]
fn every_fault_has_its_test() {
    none(tidy::faults::faults());
}

#[test]
fn every_rule_of_authorization_has_its_tests() {
    none(tidy::faults::authorization());
}

#[test]
fn every_system_that_people_run_has_its_tests() {
    none(tidy::faults::systems());
}

#[test]
fn docs_name_every_key_of_the_configuration_with_its_default() {
    none(tidy::docs::configuration());
}

#[test]
fn docs_name_every_metric_with_its_type_and_labels() {
    none(tidy::docs::metrics());
}

#[test]
fn docs_name_every_warning_of_check() {
    none(tidy::docs::warnings());
}

#[test]
fn links_in_docs_lead_to_files_and_headings() {
    none(tidy::docs::links());
}

#[test]
fn the_checks_begin_with_the_commands_of_the_readme() {
    none(tidy::docs::first_steps());
}

#[test]
fn tests_start_no_program_of_another_package() {
    none(tidy::docs::programs());
}

#[test]
fn readme_and_changelog_entries_are_short() {
    none(tidy::docs::sizes());
}

#[test]
fn nothing_names_where_it_was_made() {
    let forbidden = [
        "/work/",
        concat!("crates", ".io-"),
        concat!("registry.np", "mjs"),
        concat!("pypi", ".org"),
        "/root/",
        "TODO",
        "FIXME",
        "XXX",
    ];
    let mut faults = Vec::new();
    for source in everything().into_iter().filter(|source| source.path != "tests/tests/tidy.rs") {
        let named = forbidden.iter().filter(|word| source.text.contains(**word));
        faults.extend(named.map(|word| format!("{}: {word}", source.path)));
    }
    none(faults);
}

#[test]
fn public_metrics_are_those_of_the_file() {
    tidy::public::compare("metrics.txt", &tidy::public::metrics());
}

#[test]
fn public_keys_are_those_of_the_file() {
    tidy::public::compare("keys.txt", &tidy::public::keys());
}

#[test]
fn public_defaults_are_those_of_the_file() {
    tidy::public::compare("defaults.txt", &tidy::public::defaults());
}

#[test]
fn public_causes_are_those_of_the_file() {
    tidy::public::compare("causes.txt", &tidy::public::errors());
}

#[test]
fn public_commands_are_those_of_the_file() {
    tidy::public::compare("commands.txt", &tidy::public::commands());
}

#[test]
fn public_json_are_those_of_the_file() {
    tidy::public::compare("json.txt", &tidy::public::json());
}

#[test]
fn public_meta_are_those_of_the_file() {
    tidy::public::compare("meta.txt", &tidy::public::names());
}

#[test]
fn public_exit_codes_are_those_of_the_file() {
    tidy::public::compare("exit-codes.txt", &tidy::public::exit_codes());
}

#[test]
fn public_reference_page_is_that_of_the_code() {
    tidy::public::compare_page("docs/reference/configuration.md", &trunkline::config::reference_page());
}
