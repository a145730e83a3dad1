//! One table of the merged configuration: its keys are taken one by one, and what is left is unknown.

use figment::value::{Dict, Value};

use super::kind::{ANY, Kind};
use super::nearest::nearest;
use super::reading::{Part, Reading};
use crate::config::fault::Fault;

/// One table; every key that is asked for is a known one.
pub(crate) struct Section<'a> {
    pub(crate) reading: &'a Reading,
    pub(crate) path: Vec<String>,
    rest: Dict,
    known: Vec<&'static str>,
}

impl<'a> Section<'a> {
    /// The whole.
    pub(crate) fn root(reading: &'a Reading) -> Self {
        Self { reading, path: Vec::new(), rest: reading.merged.clone(), known: Vec::new() }
    }

    /// Whether `key` is written anywhere. While it is noted what keys take, all are: so every one is asked for.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.reading.sketch.is_some() || self.rest.contains_key(key)
    }

    /// Whether it is a configuration that is read, and not only noted what keys take.
    pub(crate) fn reading_is_real(&self) -> bool {
        self.reading.sketch.is_none()
    }

    /// Takes the text at `key` for none where it is empty and no file says so: a variable cannot be taken away by whoever adds others.
    pub(crate) fn forget_empty(&mut self, key: &'static str) {
        let is_empty = matches!(self.rest.get(key), Some(Value::String(_, text)) if text.is_empty());
        if is_empty && !self.reading.is_file(&self.at(key)) {
            self.rest.remove(key);
        }
    }

    /// The table at `key`; an empty one where there is none.
    pub(crate) fn table(&mut self, key: &'static str) -> Section<'a> {
        self.takes(key, || Kind::Table);
        let rest = match self.take(key) {
            None => Dict::new(),
            Some(Value::Dict(_, dict)) => dict,
            Some(Value::Array(..)) if key == "upstreams" => {
                self.reading
                    .wrong_kind(&self.at(key), "a table: write [upstreams.NAME], with single brackets, for each");
                Dict::new()
            }
            Some(_) => {
                self.reading.wrong_kind(&self.at(key), &format!("a table, such as {key} = {{ … }}"));
                Dict::new()
            }
        };
        Section { reading: self.reading, path: self.at(key), rest, known: Vec::new() }
    }

    /// The named tables of this one, in the order of the files.
    pub(crate) fn tables(self) -> Vec<(String, Section<'a>)> {
        if let Some(sketch) = &self.reading.sketch {
            sketch.name(&self.path);
            return vec![(ANY.to_owned(), self.inside())];
        }
        let mut found = Vec::new();
        for (name, value) in self.rest {
            let path: Vec<String> = self.path.iter().cloned().chain([name.clone()]).collect();
            let Value::Dict(_, rest) = value else {
                self.reading.wrong_kind(&path, "a table");
                continue;
            };
            found.push((name, Section { reading: self.reading, path, rest, known: Vec::new() }));
        }
        found.sort_by_cached_key(|(_, section)| section.order());
        found
    }

    /// The tables of the list at `key`.
    pub(crate) fn list_of_tables(&mut self, key: &'static str) -> Vec<Section<'a>> {
        if self.reading.sketch.is_some() {
            self.takes(key, || Kind::Tables);
            return vec![self.table(key).inside()];
        }
        let items = match self.take(key) {
            None => return Vec::new(),
            Some(Value::Array(_, items)) => items,
            Some(_) => {
                self.reading.wrong_kind(&self.at(key), "a list of tables");
                return Vec::new();
            }
        };
        let mut found = Vec::new();
        for (index, item) in items.into_iter().enumerate() {
            let mut path = self.at(key);
            path.push(index.to_string());
            match item {
                Value::Dict(_, rest) => found.push(Section { reading: self.reading, path, rest, known: Vec::new() }),
                _ => self.reading.wrong_kind(&path, "a table"),
            }
        }
        found
    }

    /// The text at `key`, its references filled in.
    pub(crate) fn text(&mut self, key: &'static str) -> Option<String> {
        self.takes(key, || Kind::Text);
        let value = self.take(key)?;
        self.reading.text(&self.at(key), &value)
    }

    /// What `parse` makes of the text at `key`; its error says what was expected.
    pub(crate) fn parse<T>(&mut self, key: &'static str, parse: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        self.takes(key, || Kind::Text);
        let value = self.take(key)?;
        // What is no text is told what an empty one would be.
        if !matches!(value, Value::String(..))
            && let Err(expected) = parse("")
        {
            self.reading.wrong_value(&self.at(key), "a string in quotes", &expected);
            return None;
        }
        let text = self.reading.text(&self.at(key), &value)?;
        parse(&text).map_err(|expected| self.wrong(key, &expected)).ok()
    }

    /// As `parse`, for a value that may be written as a number too.
    pub(crate) fn number<T>(&mut self, key: &'static str, parse: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        // Some times have a bound below an hour, some one above a second.
        self.takes(key, || match (parse("1h").or_else(|_| parse("1s")).is_ok(), parse("64MiB").is_ok()) {
            (true, _) => Kind::Duration,
            (_, true) => Kind::Size,
            _ => Kind::Number,
        });
        let value = self.take(key)?;
        let text = self.reading.scalar(&self.at(key), &value)?;
        parse(&text).map_err(|expected| self.wrong(key, &expected)).ok()
    }

    /// A whole number between `least` and `most`.
    pub(crate) fn count(&mut self, key: &'static str, least: usize, most: usize) -> Option<usize> {
        self.takes(key, || Kind::Count(least, most));
        let expected = format!("expected a whole number from {least} to {most}");
        self.number(key, |text| match text.parse() {
            Ok(number) if (least..=most).contains(&number) => Ok(number),
            _ => Err(expected.clone()),
        })
    }

    /// Yes or no.
    pub(crate) fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.takes(key, || Kind::Flag);
        match self.take(key)? {
            Value::Bool(_, flag) => Some(flag),
            value if !matches!(value, Value::String(..)) => {
                self.reading.wrong_value(&self.at(key), "true or false", "expected true or false");
                None
            }
            value => match self.reading.text(&self.at(key), &value)?.as_str() {
                "true" => Some(true),
                "false" => Some(false),
                _ => {
                    self.wrong(key, "expected true or false");
                    None
                }
            },
        }
    }

    /// One of a few words.
    pub(crate) fn word<T: Copy>(&mut self, key: &'static str, words: &[(&'static str, T)]) -> Option<T> {
        self.takes(key, || Kind::Word(words.iter().map(|(word, _)| *word).collect()));
        self.parse(key, |text| {
            let found = words.iter().find(|(word, _)| *word == text);
            found.map(|(_, meaning)| *meaning).ok_or_else(|| {
                let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                match nearest(text, &all) {
                    Some(word) => format!("did you mean \"{word}\"?"),
                    None => format!("expected \"{}\"", all.join("\", \"")),
                }
            })
        })
    }

    /// A list of texts, such as `example`. A variable or flag holds them with commas between, or as a JSON list.
    pub(crate) fn list(&mut self, key: &'static str, example: &str) -> Option<Vec<String>> {
        self.takes(key, || Kind::List);
        let expected = format!("expected a list such as {example}");
        match self.take(key)? {
            Value::Array(_, items) => {
                let read = |(index, item): (usize, Value)| {
                    let mut path = self.at(key);
                    path.push(index.to_string());
                    if !matches!(item, Value::String(..)) {
                        self.reading.wrong_value(&path, "a string in quotes", &expected);
                        return None;
                    }
                    self.reading.text(&path, &item)
                };
                // Every item is looked at, so that all faults are found.
                let texts: Vec<Option<String>> = items.into_iter().enumerate().map(read).collect();
                texts.into_iter().collect()
            }
            Value::String(_, text) if !self.reading.is_file(&self.at(key)) => match serde_json::from_str(&text) {
                Ok(items) => Some(items),
                Err(_) => {
                    Some(text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect())
                }
            },
            _ => {
                self.reading.wrong_value(&self.at(key), "a list of strings", &expected);
                None
            }
        }
    }

    /// Whether a file refers to a variable or a file in the list at `key`.
    pub(crate) fn refers(&self, key: &str) -> bool {
        let Some(Value::Array(_, items)) = self.rest.get(key) else { return false };
        self.reading.is_file(&self.at(key))
            && items.iter().any(|item| matches!(item, Value::String(_, text) if text.replace("$$", "").contains("${")))
    }

    /// A text, or a list of texts. A variable or flag holds one, or a JSON list.
    pub(crate) fn one_or_list(&mut self, key: &'static str) -> Vec<String> {
        self.takes(key, || Kind::OneOrList);
        let Some(value) = self.take(key) else { return Vec::new() };
        let path = self.at(key);
        match value {
            Value::Array(_, items) => {
                let read = |(index, item): (usize, Value)| {
                    let path: Vec<String> = path.iter().cloned().chain([index.to_string()]).collect();
                    self.reading.text(&path, &item)
                };
                items.into_iter().enumerate().filter_map(read).collect()
            }
            Value::String(_, text) if text.starts_with('[') && !self.reading.is_file(&path) => {
                serde_json::from_str(&text).unwrap_or(vec![text])
            }
            value => self.reading.scalar(&path, &value).into_iter().collect(),
        }
    }

    /// A table of texts, in the order of the files; numbers and flags count as their text.
    pub(crate) fn pairs(&mut self, key: &'static str) -> Vec<(String, String)> {
        self.takes(key, || Kind::Pairs);
        let section = self.table(key);
        let mut found = Vec::new();
        for (name, value) in &section.rest {
            let path = section.at(name);
            if let Some(text) = section.reading.as_written(&path, value) {
                found.push((section.reading.order(&path), name.clone(), text));
            }
        }
        found.sort_by_key(|(order, ..)| *order);
        found.into_iter().map(|(_, name, text)| (name, text)).collect()
    }

    /// Reports what is wrong with the value at `key`.
    pub(crate) fn wrong(&self, key: &str, expected: &str) {
        let text = format!("invalid value for `{}`", self.reading.spelled(&self.at(key)));
        self.reading.fault(Fault::error("bad-value", text).at(self.place(key)).label(expected));
    }

    /// As `wrong`, for one item of a list.
    pub(crate) fn wrong_item(&self, key: &str, index: usize, expected: &str) {
        let mut path = self.at(key);
        path.push(index.to_string());
        // A list that was not written as one has no items with a place.
        let place = self.reading.place(&path, Part::Value).or_else(|| self.place(key));
        let text = format!("invalid item in `{}`", self.reading.spelled(&self.at(key)));
        self.reading.fault(Fault::error("bad-value", text).at(place).label(expected));
    }

    /// The place of the value at `key`.
    pub(crate) fn place(&self, key: &str) -> Option<crate::config::fault::Place> {
        self.reading.place(&self.at(key), Part::Value)
    }

    /// The place of this table's own name.
    pub(crate) fn own_place(&self) -> Option<crate::config::fault::Place> {
        self.reading.place(&self.path, Part::Key)
    }

    /// Where this table stands among others.
    pub(crate) fn order(&self) -> (usize, usize) {
        self.reading.order(&self.path)
    }

    /// Refuses a key that is another program's word for one of ours.
    pub(crate) fn foreign(&mut self, key: &str, own: &str) {
        if self.rest.remove(key).is_some() {
            let text = format!("`{key}` is a key of hosts' files (`mcpServers`), not of [{}]", self.path.join("."));
            let place = self.reading.place(&self.at(key), Part::Key);
            self.reading.fault(Fault::error("unknown-key", text).at(place).label(format!("here the key is {own}")));
        }
    }

    /// Refuses what nobody asked for. `what` names a table of this kind.
    pub(crate) fn end(self, what: &str) {
        self.reading.know(&self.path, &self.known);
        for key in self.rest.keys() {
            // At the root stands what was meant for a section, written before its heading.
            let below = || self.path.is_empty().then(|| self.reading.section_of(key)).flatten();
            let label = match below().or_else(|| Some(nearest(key, &self.known)?.to_owned())) {
                Some(known) => format!("did you mean `{known}`?"),
                None => format!("known: {}", self.known.join(", ")),
            };
            let text = format!("`{key}` is not a key of {what}");
            let place = self.reading.place(&self.at(key), Part::Key);
            self.reading.fault(Fault::error("unknown-key", text).at(place).label(label));
        }
    }

    /// Notes what a key takes, where that is asked for. What is noted first counts.
    pub(crate) fn takes(&self, key: &str, kind: impl FnOnce() -> Kind) {
        if let Some(sketch) = &self.reading.sketch {
            sketch.note(self.at(key), kind());
        }
    }

    /// A table within this one, of any name.
    fn inside(&self) -> Section<'a> {
        Section { reading: self.reading, path: self.at(ANY), rest: Dict::new(), known: Vec::new() }
    }

    fn take(&mut self, key: &'static str) -> Option<Value> {
        #[cfg(test)]
        self.reading.asked.borrow_mut().insert(self.at(key));
        self.known.push(key);
        self.rest.remove(key)
    }

    pub(crate) fn at(&self, key: &str) -> Vec<String> {
        self.path.iter().cloned().chain([key.to_owned()]).collect()
    }
}
