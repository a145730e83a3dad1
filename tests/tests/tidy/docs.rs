//! The pages for people against the code: configuration keys, metrics, warnings, links.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::tidy::source::{below, product, root};

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The cells of a line of a table.
fn cells(line: &str) -> Option<Vec<&str>> {
    Some(line.strip_prefix("| ")?.strip_suffix('|')?.split(" |").map(str::trim).collect())
}

/// What stands between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// `[upstreams.files]` is an example of `[upstreams.NAME]`, and `[auth.roles.reader]` of `[auth.roles.NAME]`.
fn section_of(line: &str) -> Option<String> {
    let inner = line.trim_start_matches('[').split(']').next().filter(|_| line.starts_with('['))?;
    let mut parts: Vec<&str> = inner.split('.').collect();
    if matches!(parts[0], "upstreams" | "mcpServers") && parts.len() > 1 {
        parts[1] = "NAME";
    }
    if parts.len() == 3 && parts[..2] == ["auth", "roles"] {
        parts[2] = "NAME";
    }
    Some(parts.join("."))
}

/// The keys of `config.example.toml`, each with its value where that is the default.
fn example(text: &str) -> BTreeMap<String, Option<String>> {
    let (mut keys, mut section) = (BTreeMap::new(), String::new());
    for line in text.lines() {
        // `#key` is an example, `# text` is a comment.
        let (is_default, line) = match line.strip_prefix('#') {
            Some(rest) if rest.is_empty() || rest.starts_with(' ') => continue,
            Some(rest) => (false, rest),
            None => (true, line),
        };
        if let Some(named) = section_of(line) {
            section = named;
            continue;
        }
        let Some((key, rest)) = line.split_once(" = ").filter(|(key, _)| is_key(key)) else { continue };
        let value = rest.split(" #").next().unwrap_or(rest).trim();
        let tools = section.ends_with(".override");
        if tools || matches!(key, "health" | "breaker" | "restart") {
            let table = if tools { section.clone() } else { format!("{section}.{key}") };
            let inner = value.trim_matches(['{', '}', ' ']).split(", ").filter_map(|pair| pair.split_once(" = "));
            keys.extend(inner.map(|(key, value)| (format!("{table}.{key}"), is_default.then(|| value.to_owned()))));
        } else {
            keys.entry(format!("{section}.{key}")).or_insert_with(|| is_default.then(|| value.to_owned()));
        }
    }
    keys
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// The keys of the generated page, each with the cell of its default.
fn documented_keys(page: &str) -> BTreeMap<String, String> {
    let (mut keys, mut section) = (BTreeMap::new(), None);
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            section = section_of(heading);
        }
        let Some((section, cells)) = section.as_ref().zip(cells(line)) else { continue };
        if let (Some(key), Some(default)) = (quoted(cells[0]).next(), cells.get(2)) {
            keys.insert(format!("{section}.{key}"), (*default).to_owned());
        }
    }
    keys
}

/// Every key of the example stands in the page with its default, and the reverse.
pub(crate) fn configuration() -> Vec<String> {
    judge_keys(&example(&read("config.example.toml")), &documented_keys(&read("docs/reference/configuration.md")))
}

fn judge_keys(example: &BTreeMap<String, Option<String>>, page: &BTreeMap<String, String>) -> Vec<String> {
    // What `[defaults]` has, every upstream may have, and the page says so once.
    let as_default = |key: &str| key.strip_prefix("upstreams.NAME.").map(|rest| format!("defaults.{rest}"));
    let as_own = |key: &str| key.strip_prefix("defaults.").map(|rest| format!("upstreams.NAME.{rest}"));
    let mut faults = Vec::new();
    for (key, value) in example {
        let cell = page.get(key).or_else(|| page.get(&as_default(key)?));
        match (cell, value) {
            (None, _) => faults.push(format!("docs/reference/configuration.md lacks {key}")),
            // A list of several lines is given in words.
            (Some(cell), Some(value)) if value != "[" && *cell != format!("`{value}`") => {
                faults.push(format!(
                    "docs/reference/configuration.md: the default of {key} is {cell}, and {value} in the example"
                ));
            }
            _ => {}
        }
    }
    let is_there = |key: &str| example.contains_key(key) || as_own(key).is_some_and(|own| example.contains_key(&own));
    faults.extend(page.keys().filter(|key| !is_there(key)).map(|key| format!("config.example.toml lacks {key}")));
    faults
}

/// What is said of one metric: its type and its labels.
type Metric = (&'static str, BTreeSet<String>);

/// Every described metric stands in the page with its type and labels, and the reverse.
pub(crate) fn metrics() -> Vec<String> {
    let files = ["metrics.rs".to_owned()].into_iter().chain(of_room("gateway/foundation/src/metrics"));
    let described = files.flat_map(|file| described(&read(&format!("gateway/foundation/src/{file}")))).collect();
    judge_metrics(&described, &read("docs/observability.md"))
}

/// The files of a room, as paths from the folder that it stands in.
fn of_room(room: &str) -> Vec<String> {
    let entries = std::fs::read_dir(root().join(room)).expect("a folder can be listed");
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry can be read").file_name();
    let folder = room.rsplit('/').next().unwrap_or_default();
    entries.map(|entry| format!("{folder}/{}", name(entry).to_string_lossy())).collect()
}

fn described(code: &str) -> BTreeMap<String, Metric> {
    let names: BTreeMap<&str, &str> = code
        .lines()
        .filter_map(|line| line.strip_prefix("const ")?.strip_suffix("\";")?.split_once(": &str = \""))
        .collect();
    let mut found: BTreeMap<String, Metric> = BTreeMap::new();
    for kind in ["counter", "gauge", "histogram"] {
        for (at, call) in code.match_indices(&format!("{kind}!(")) {
            let inside = until_closed(&code[at + call.len()..]);
            let Some(name) = names.get(inside.split(',').next().unwrap_or_default().trim()) else { continue };
            let (_, labels) = found.entry((*name).to_owned()).or_insert_with(|| (kind, BTreeSet::new()));
            let before_arrow = |part: &str| Some(part.trim_end().strip_suffix('"')?.rsplit_once('"')?.1.to_owned());
            let parts = inside.split("=>").collect::<Vec<_>>();
            labels.extend(parts.iter().take(parts.len() - 1).filter_map(|part| before_arrow(part)));
        }
    }
    found
}

/// What stands before the parenthesis that closes.
fn until_closed(code: &str) -> &str {
    let mut depth = 1;
    let end = code.find(|char: char| {
        depth += i32::from(char == '(') - i32::from(char == ')');
        depth == 0
    });
    &code[..end.unwrap_or(code.len())]
}

fn judge_metrics(described: &BTreeMap<String, Metric>, page: &str) -> Vec<String> {
    let rows: BTreeMap<&str, Vec<&str>> =
        page.lines().filter_map(cells).filter_map(|row| Some((quoted(row[0]).next()?, row))).collect();
    let mut faults = Vec::new();
    for (name, (kind, labels)) in described {
        let Some(row) = rows.get(name.as_str()).filter(|row| row.len() == 4) else {
            faults.push(format!("docs/observability.md lacks {name}"));
            continue;
        };
        let said: BTreeSet<String> = quoted(row[2]).map(str::to_owned).collect();
        if row[1] != *kind || said != *labels {
            faults.push(format!("docs/observability.md: {name} is a {kind} with {labels:?}"));
        }
    }
    let is_metric = |name: &str| ["trunkline_", "process_", "mcp_"].iter().any(|prefix| name.starts_with(prefix));
    let unknown =
        rows.iter().filter(|(name, row)| row.len() == 4 && is_metric(name) && !described.contains_key(**name));
    faults.extend(unknown.map(|(name, _)| format!("gateway/foundation/src/metrics has no {name}")));
    faults
}

/// Every warning of the configuration stands in the page, and the reverse.
pub(crate) fn warnings() -> Vec<String> {
    let mut given: BTreeSet<String> = BTreeSet::new();
    // An error elsewhere, and a warning for an upstream that is switched off.
    given.insert("unset-variable".to_owned());
    for source in product().into_iter().filter(|source| !source.product.is_empty()) {
        // Literals are blanked in the product, and stand in the text on the same line or the next.
        let lines: Vec<&str> = source.text.lines().collect();
        // What is said of an entry of a host's file is a note first.
        for call in ["Fault::warning(", "Fault::of_upstream(", "Note::new("] {
            for (number, _) in source.product.lines().enumerate().filter(|(_, line)| line.contains(call)) {
                let here = lines[number..].iter().take(2).copied().collect::<String>();
                let kind = here.split_once(call).and_then(|(_, rest)| rest.split('"').nth(1));
                given.extend(kind.map(str::to_owned));
            }
        }
    }
    let page = read("docs/security.md");
    let section = page.split_once("\n## What check warns of\n").map_or("", |(_, section)| section);
    let rows = section.lines().filter_map(cells).filter(|row| row[0].starts_with('`'));
    let said: BTreeSet<String> = rows.flat_map(|row| quoted(row[0]).map(str::to_owned).collect::<Vec<_>>()).collect();
    let lacks = given.difference(&said).map(|kind| format!("docs/security.md lacks the warning {kind}"));
    lacks.chain(said.difference(&given).map(|kind| format!("nothing warns of {kind}"))).collect()
}

/// The pages for people.
fn pages() -> Vec<PathBuf> {
    let of = |folder: &str| std::fs::read_dir(root().join(folder)).expect("a folder can be listed");
    let entries = ["", "docs", "docs/decisions", "docs/reference", "tests"]
        .into_iter()
        .flat_map(of)
        .map(|entry| entry.expect("an entry can be read").path());
    entries.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect()
}

/// Every relative link leads to a file that is there, and to a heading of it where it names one.
pub(crate) fn links() -> Vec<String> {
    let mut faults = Vec::new();
    for page in pages() {
        let text = prose(&std::fs::read_to_string(&page).expect("a page can be read"));
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if !link.contains("://") && !leads(&page, link) {
                faults.push(format!("{}: {link}", page.display()));
            }
        }
    }
    faults
}

fn leads(page: &Path, link: &str) -> bool {
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() { page.to_owned() } else { page.with_file_name(file) };
    match std::fs::read_to_string(&target) {
        Ok(text) if !heading.is_empty() => headings(&prose(&text)).contains(heading),
        Ok(_) => true,
        // A folder, or a picture.
        Err(_) => heading.is_empty() && target.exists(),
    }
}

/// A page without its blocks of code.
fn prose(text: &str) -> String {
    let blocks = text.split("```").step_by(2);
    blocks.collect()
}

/// The anchors of a page's headings, as they are made of their words.
fn headings(text: &str) -> BTreeSet<String> {
    let heading = |line: &str| line.starts_with('#').then(|| line.trim_start_matches('#').trim().to_lowercase());
    let anchor = |words: String| {
        words
            .chars()
            .filter(|char| char.is_alphanumeric() || " -_".contains(*char))
            .collect::<String>()
            .replace(' ', "-")
    };
    text.lines().filter_map(heading).map(anchor).collect()
}

/// README has at most 150 lines, an entry of the changelog two.
pub(crate) fn sizes() -> Vec<String> {
    let mut faults = Vec::new();
    let lines = read("README.md").lines().count();
    if lines > 150 {
        faults.push(format!("README.md has {lines} lines; 150 are allowed"));
    }
    let mut entry = 0;
    for (number, line) in read("CHANGELOG.md").lines().enumerate() {
        entry = if line.starts_with("  ") { entry + 1 } else { usize::from(line.starts_with("- ")) };
        if entry > 2 {
            faults.push(format!("CHANGELOG.md:{}: an entry has two lines at most", number + 1));
        }
    }
    faults
}

mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_missing_or_has_another_default_is_found_in_both_directions() {
        let text = "[a]\nx = 1   # what\n#y = \"z\" # an example\n# a = comment\n[defaults]\nhealth = { every = \"1s\" }\n\
                    [upstreams.one]\n#health = { late = 2 }\n#gone = true\n#[upstreams.one.tools.override]\n#tool = { t = 1 }\n";
        let page = "## [a]\n| `x` | n | `2` | m |\n| `y` | n | | m |\n## [defaults.health]\n| `every` | n | `\"1s\"` | |\n\
                    | `late` | n | | |\n## [upstreams.NAME.tools.override]\n| `t` | | | |\n| `u` | | | |\n";
        assert_eq!(
            judge_keys(&example(text), &documented_keys(page)),
            [
                "docs/reference/configuration.md: the default of a.x is `2`, and 1 in the example",
                "docs/reference/configuration.md lacks upstreams.NAME.gone",
                "config.example.toml lacks upstreams.NAME.tools.override.u"
            ]
        );
    }

    #[test]
    fn a_metric_with_another_type_or_other_labels_is_found() {
        let code = "const A: &str = \"trunkline_a\";\nconst B: &str = \"trunkline_b\";\nfn f() {\ndescribe_counter!(\nA, \"x\");\n\
                    describe_gauge!(B, \"y\");\ncounter!(A, \"kind\" => kind, \"of\" => of.clone()).increment(1);\n}\n";
        let judge = |page: &str| judge_metrics(&described(code), page);
        let (a, b) = ("| `trunkline_a` | counter | `of`, `kind` | m |\n", "| `trunkline_b` | gauge | | m |\n");
        assert_eq!(judge(&format!("{a}{b}")), [""; 0]);
        assert_eq!(judge(b), ["docs/observability.md lacks trunkline_a"]);
        assert_eq!(judge(&a.replace("`of`, ", "")).len(), 2);
        assert_eq!(
            judge(&format!("{a}{b}{}", b.replace("_b", "_c"))),
            ["gateway/foundation/src/metrics has no trunkline_c"]
        );
    }

    #[test]
    fn a_program_of_another_package_is_found_however_it_is_started() {
        let judge = |text: &str| started_elsewhere("a.rs", text, &["ours"].into());
        assert_eq!(judge("beside(\"ours\"); Program::ours(\"ours\", &[]);\n// target/debug/x"), Vec::<String>::new());
        for start in ["beside(\"theirs\")", "Program::ours(\"theirs\", &[])", "const GATEWAY: &str = \"theirs\";"] {
            assert_eq!(judge(start), ["a.rs: theirs is no program of the tests' package"]);
        }
        assert_eq!(judge("Command::new(\"target/release/x\")"), ["a.rs: a program is looked for in target/release"]);
    }

    #[test]
    fn headings_become_the_anchors_that_links_name() {
        let text = "# A page\n## [[auth.tokens]]\n### Why is it `degraded`?\ntext # no\n";
        let expected = ["a-page", "authtokens", "why-is-it-degraded"].map(str::to_owned);
        assert_eq!(headings(text), expected.into());
    }
}

/// A newcomer's `cargo test` builds the programs of a package for its own tests alone: those that tests start are of the tests' package.
pub(crate) fn programs() -> Vec<String> {
    let manifest = read("tests/Cargo.toml");
    let built: BTreeSet<&str> = manifest.split("[[bin]]").skip(1).filter_map(|bin| bin.split('"').nth(1)).collect();
    let sources = ["tests/src", "tests/tests"].into_iter().flat_map(below);
    // What is measured is built for it, and here stands what is looked for.
    let judged = sources
        .filter(|source| !source.path.starts_with("tests/src/bin/bench/") && source.path != "tests/tests/tidy/docs.rs");
    judged.flat_map(|source| started_elsewhere(&source.path, &source.text, &built)).collect()
}

/// What a file starts that is none of these programs.
fn started_elsewhere(file: &str, text: &str, built: &BTreeSet<&str>) -> Vec<String> {
    let started = ["beside(\"", "Program::ours(\"", "sibling(\"", "const GATEWAY: &str = \""];
    let names = started.iter().flat_map(|call| text.split(call).skip(1)).filter_map(|rest| rest.split('"').next());
    let foreign = names
        .filter(|name| !name.is_empty() && !name.contains(['{', '\\', ',', ' ', '/']) && !built.contains(name))
        .map(|name| format!("{file}: {name} is no program of the tests' package"));
    let is_used = |path: &&str| text.lines().any(|line| line.contains(path) && !line.trim_start().starts_with("//"));
    let paths = ["target/debug", "target/release"].into_iter().filter(is_used);
    foreign.chain(paths.map(|path| format!("{file}: a program is looked for in {path}"))).collect()
}

/// What is wrong with how the checks before a change begin: with the commands that README has, in a folder that was emptied.
pub(crate) fn first_steps() -> Vec<String> {
    const TEST: &str = "cargo test --workspace --locked";
    const RUN: &str = "cargo run --release --locked -- serve";
    let (readme, run, once) = (read("README.md"), read(".ci/run"), read(".ci/serve-once"));
    let mut faults = Vec::new();
    let has = |text: &str, command: &str| text.contains(&format!("`{command}`"));
    for command in [TEST, RUN] {
        if !has(&readme, command) {
            faults.push(format!("README.md does not have the command `{command}`"));
        }
    }
    if !once.lines().any(|line| line.starts_with(RUN)) {
        faults.push(format!(".ci/serve-once does not run `{RUN}`"));
    }
    // What builds nothing may stand before them.
    let steps = run.lines().map(str::trim).skip_while(|line| !line.starts_with("rm -rf \"$CARGO_TARGET_DIR\""));
    let steps: Vec<_> = steps.take(3).collect();
    let begins = |at: usize, command: &str| steps.get(at).is_some_and(|step| step.contains(command));
    if !(begins(1, TEST) && begins(2, ".ci/serve-once")) {
        faults.push(format!(
            ".ci/run does not begin with README's two commands in an emptied folder, but with {steps:?}"
        ));
    }
    let before = run.split("rm -rf").next().unwrap_or_default().lines().map(str::trim);
    let builds =
        |line: &&str| ["build", "test", "run", "clippy"].iter().any(|word| line.contains(&format!("cargo {word}")));
    faults.extend(
        before
            .filter(|line| !line.starts_with('#'))
            .filter(builds)
            .map(|line| format!(".ci/run builds before that: {line}")),
    );
    faults
}
