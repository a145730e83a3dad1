//! Descriptions of tables and their keys, as static data beside the code that reads each table.
//!
//! All texts are Markdown. Links are relative to `docs/reference`.

/// A table of the configuration.
#[derive(Debug)]
pub(crate) struct TableDoc {
    /// The heading on the reference page, such as `[server]`.
    pub(crate) heading: &'static str,
    /// The place in the configuration; `*` stands for a name or an index.
    pub(crate) path: &'static [&'static str],
    /// The text above the keys. Its first line describes the table in the JSON Schema.
    pub(crate) intro: &'static str,
    /// The keys in the order of the page. A table that several files read has one group per file.
    pub(crate) keys: &'static [&'static [KeyDoc]],
    /// Examples and remarks below the keys.
    pub(crate) notes: &'static str,
}

/// A key of a table.
#[derive(Debug)]
pub(crate) struct KeyDoc {
    /// The name.
    pub(crate) key: &'static str,
    /// The type, for people.
    pub(crate) kind: &'static str,
    /// The default: a value in backticks, an explanation, or nothing.
    pub(crate) default: &'static str,
    /// The effect of the key.
    pub(crate) description: &'static str,
}
