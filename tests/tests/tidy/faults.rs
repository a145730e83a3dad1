//! The tables in `tests/faults.md`, `tests/authorization.md` and `docs/systems.md` against the tests: every row has its line, and every test that is named is there.

use std::collections::BTreeMap;

use crate::tidy::source::{Source, below, product, root};

/// The rows that concern stdio, Streamable HTTP and the gateway itself.
const ROWS: [&str; 85] = [
    "F01", "F03", "F04", "F06", "F07", "F09", "F10", "F12", "F13", "F15", "F16", "F18", "F19", "F21", "F22", "F24",
    "F25", "F27", "F28", "F30", "F31", "F33", "F34", "F36", "F37", "F39", "F40", "F42", "F43", "F45", "F46", "F48",
    "F49", "F51", "F52", "F54", "F55", "F57", "F58", "F60", "F61", "F63", "F64", "F66", "F67", "F69", "F70", "F72",
    "F73", "F75", "F76", "F78", "F79", "F81", "F82", "F84", "F85", "F87", "F88", "F90", "F91", "F93", "F94", "F102",
    "F103", "F105", "F106", "F108", "F109", "F111", "F120", "F121", "F123", "F124", "F126", "F127", "F129", "F130",
    "A15", "A16", "A17", "A18", "A20", "B5", "D1",
];
/// The rows of the systems that people run: so many under each letter.
const SYSTEMS: [(&str, usize); 4] = [("A", 20), ("B", 5), ("C", 11), ("D", 5)];
/// The rules of authorization: for a server, for a client that logs in, and what is tried against both.
const AUTHORIZATION: [&str; 76] = [
    "S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9", "S10", "S11", "S12", "S13", "S14", "S15", "S16", "S17",
    "S18", "S19", "S20", "S21", "S22", "L1a", "L1b", "L1c", "L2a", "L2b", "L3a", "L3b", "L4a", "L4b", "L4c", "L4d",
    "L5a", "L5b", "L6", "L7a", "L7b", "L8a", "L8b", "L8c", "L9a", "L9b", "L9c", "L9d", "L10a", "L10b", "L10c", "L11a",
    "L11b", "L11c", "L12a", "L12b", "L12c", "L12d", "L13a", "L13b", "L14", "A12", "A13", "A15", "A16", "A18", "A19",
    "A21", "A22", "A24", "A25", "A27", "A28", "A30", "A31", "A33", "A34", "A36", "A37",
];
/// Begins the reason of a line without a test.
const LEFT_OUT: &str = "left out: ";
/// The shortest reason that says something.
const REASON: usize = 20;

/// Where tests stand: their files, by the name that `cargo test` puts before theirs.
type Modules = BTreeMap<String, String>;

pub(crate) fn faults() -> Vec<String> {
    judge(&read("tests/faults.md"), &ROWS, &modules())
}

/// Clients and upstreams that ask for tokens.
pub(crate) fn authorization() -> Vec<String> {
    judge_whole("tests/authorization.md", &AUTHORIZATION)
}

/// The systems that Trunkline has to live with.
pub(crate) fn systems() -> Vec<String> {
    let rows: Vec<String> = SYSTEMS
        .iter()
        .flat_map(|(letter, count)| (1..=*count).map(move |number| format!("{letter}{number}")))
        .collect();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    judge_whole("docs/systems.md", &rows)
}

/// A table that has these rows and no others.
fn judge_whole(path: &str, rows: &[&str]) -> Vec<String> {
    let table = read(path);
    let mut faults = judge(&table, rows, &modules());
    let known = |row: &str| rows.contains(&row) || matches!(row, "row" | "---");
    faults.extend(
        table.lines().filter_map(cells).filter(|[row, ..]| !known(row)).map(|[row, ..]| format!("{row} is no row")),
    );
    faults
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect("there is a table")
}

fn modules() -> Modules {
    product().into_iter().chain(below("tests/tests")).map(|source| (path_of(&source), source.code)).collect()
}

fn judge(table: &str, rows: &[&str], modules: &Modules) -> Vec<String> {
    let mut faults = Vec::new();
    let lines: Vec<[&str; 3]> = table.lines().filter_map(cells).collect();
    for row in rows {
        match lines.iter().filter(|[name, ..]| name == row).count() {
            1 => {}
            0 => faults.push(format!("{row} has no line")),
            count => faults.push(format!("{row} has {count} lines")),
        }
    }
    for [row, _, tests] in lines.iter().filter(|[row, ..]| !matches!(*row, "row" | "---")) {
        if tests.strip_prefix(LEFT_OUT).is_some_and(|why| why.len() >= REASON) {
            continue;
        }
        let named: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        if named.is_empty() {
            faults.push(format!("{row} names no test, and does not say {LEFT_OUT:?}"));
        }
        faults
            .extend(named.iter().filter(|test| !is_there(test, modules)).map(|test| format!("{row}: no test {test}")));
    }
    faults
}

/// The three cells of a table's line.
fn cells(line: &str) -> Option<[&str; 3]> {
    let mut cells = line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim);
    let three = [cells.next()?, cells.next()?, cells.next()?];
    cells.next().is_none().then_some(three)
}

/// The path of a file's tests: `faults`, or `upstream::transport::pipe::reader::tests`. In a crate of its own the crate's name comes first:
/// `protocol::framing::sse::tests`.
fn path_of(source: &Source) -> String {
    if let Some(file) = source.path.strip_prefix("tests/tests/") {
        return file.trim_end_matches(".rs").replace('/', "::");
    }
    let (folder, _) = source.path.split_once("/src/").expect("a crate has its sources in `src`");
    let name = folder.strip_prefix("gateway/").map(str::to_owned);
    name.into_iter().chain(source.module()).collect::<Vec<_>>().join("::")
}

/// Whether there is such a test: a function, or an entry of a table of tests, in the file that its path leads to.
fn is_there(test: &str, modules: &Modules) -> bool {
    let parts: Vec<&str> = test.split("::").collect();
    // The longest path that is a file; what comes after it stands in there.
    let file = (1..parts.len()).rev().find_map(|length| Some((length, modules.get(&parts[..length].join("::"))?)));
    file.is_some_and(|(length, code)| parts[length..].iter().all(|name| declares(code, name)))
}

fn declares(code: &str, name: &str) -> bool {
    let function = format!("fn {name}(");
    let module = format!("mod {name} {{");
    let entry = format!("{name}:");
    code.contains(&function) || code.contains(&module) || code.lines().any(|line| line.trim_start().starts_with(&entry))
}

#[test]
fn a_row_without_a_test_is_seen() {
    let modules = Modules::from([
        ("faults".to_owned(), "async fn one() {\n}\nnoises! {\n    two: 3;\n}".to_owned()),
        ("a::b".to_owned(), "mod tests {\n    fn three() {}\n}".to_owned()),
    ]);
    let whole = |test: &str| ROWS.iter().map(|row| format!("| {row} | what | {test} |\n")).collect::<String>();
    for test in ["`faults::one`, `faults::two`", "`a::b::tests::three`", "left out: it is not of this world"] {
        assert_eq!(judge(&whole(test), &ROWS, &modules), Vec::<String>::new(), "{test}");
    }
    for test in ["`faults::three`", "`faults::one`, `a::b::tests::one`", "`c::one`", "", "left out: no", "a test"] {
        assert_eq!(judge(&whole(test), &ROWS, &modules).len(), ROWS.len(), "{test}");
    }
    let twice = whole("`faults::one`") + "| F06 | what | `faults::one` |";
    assert_eq!(judge(&twice, &ROWS, &modules), ["F06 has 2 lines"]);
    assert_eq!(judge(&twice.replace("| D1 ", "| D2 "), &ROWS, &modules), ["F06 has 2 lines", "D1 has no line"]);
}
