//! Metrics: name, type, unit and labels, and the words that label values consist of. Read from the calls of the recorder's macros.

use std::collections::{BTreeMap, BTreeSet};

use trunkline_tests::tokens::lexer::{Kind, Token};

use super::product::{files, is_path, macros, text, tokens};

const DESCRIBING: [&str; 3] = ["describe_counter", "describe_gauge", "describe_histogram"];
const MAKING: [&str; 3] = ["counter", "gauge", "histogram"];

#[derive(Default)]
struct Metric {
    kind: String,
    unit: String,
    labels: BTreeSet<String>,
}

pub(crate) fn metrics() -> Vec<String> {
    let mut found: BTreeMap<String, Metric> = BTreeMap::new();
    let mut values = BTreeSet::new();
    for source in files() {
        let tokens = tokens(&source);
        let constants = constants(&tokens);
        let name = |inside: &[Token<'_>]| {
            let first = inside.first()?;
            text(first).or_else(|| constants.get(first.text).cloned())
        };
        for (kind, inside) in macros(&tokens, &DESCRIBING) {
            let metric = found.entry(name(inside).unwrap_or_default()).or_default();
            metric.kind = kind.trim_start_matches("describe_").to_owned();
            let unit = inside.windows(3).find(|part| is_path(part, &["Unit", "::"])).map(|part| part[2].text);
            metric.unit = unit.unwrap_or("-").to_lowercase();
        }
        for (_, inside) in macros(&tokens, &MAKING) {
            let Some(name) = name(inside) else { continue };
            let labels = inside.windows(2).filter(|pair| pair[1].is("=>")).filter_map(|pair| text(&pair[0]));
            found.entry(name).or_default().labels.extend(labels);
        }
        let is_word = |text: &String| {
            !text.is_empty()
                && text.chars().all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_')
        };
        if !macros(&tokens, &MAKING).is_empty() {
            values.extend(tokens.iter().filter_map(text).filter(is_word));
        }
    }
    values.retain(|value| !found.contains_key(value));
    let lines = found.into_iter().map(|(name, Metric { kind, unit, labels })| {
        format!("{name} {kind} {unit} {{{}}}", labels.into_iter().collect::<Vec<_>>().join(", "))
    });
    lines.chain(values.into_iter().map(|value| format!("word of labels and their values: {value}"))).collect()
}

/// The strings that constants of a file stand for.
fn constants(tokens: &[Token<'_>]) -> BTreeMap<String, String> {
    let constant = |part: &[Token<'_>]| {
        let is_constant =
            part[0].is_word("const") && part[1].kind == Kind::Word && is_path(&part[2..], &[":", "&", "str", "="]);
        is_constant.then(|| text(&part[6])).flatten().map(|value| (part[1].text.to_owned(), value))
    };
    tokens.windows(7).filter_map(constant).collect()
}
