//! Reads the lists of one upstream: every page, within limits; a list that fails keeps the rest.

use super::contents::Inventory;
use super::freshness;
use super::item::{DEFINITION_BYTES_MAX, Item};
use super::listing::{LEFT_OUT_MAX, LeftOut, Listing, NewListing};
use super::schedule::{ListKinds, ReadSchedule};
use crate::health::{Cause, CauseCode};
use crate::memory::budget::Spent;
use crate::peer::Peer;
use crate::peer::fault::{Trouble, in_short};
use crate::protocol::frame::Method;
use crate::protocol::frame::rpc_error::METHOD_NOT_FOUND;
use crate::protocol::json;
use crate::protocol::value::Object;
use crate::runtime::aside;
use crate::secrets::mask;
use crate::upstream::config::{Config, Glob};
use crate::upstream::status::Status;
use bytes::Bytes;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use tokio::time::Instant;

/// How many pages of one list are read.
const PAGES_MAX: usize = 1000;
/// How many items of one list are kept.
pub(super) const ITEMS_MAX: usize = 10_000;
/// How many bytes of one list are read.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// Reads these lists anew and takes the others from `before`.
pub(crate) async fn read(
    (config, status, reads): (&Config, &Status, &ReadSchedule),
    peer: &Peer,
    kinds: ListKinds,
    before: Option<&Inventory>,
) -> Result<Inventory, Trouble> {
    let supports = peer.offer.supports;
    let reader = Reader { config, status, reads, peer };
    let old = |pick: fn(&Inventory) -> &Listing| before.map(pick);
    let (tools, resources, templates, prompts) = tokio::join!(
        reader.list(&TOOLS, supports.tools, kinds.has(ListKinds::TOOLS), old(|all| &all.tools)),
        reader.list(&RESOURCES, supports.resources, kinds.has(ListKinds::RESOURCES), old(|all| &all.resources)),
        reader.list(&TEMPLATES, supports.resources, kinds.has(ListKinds::RESOURCES), old(|all| &all.templates)),
        reader.list(&PROMPTS, supports.prompts, kinds.has(ListKinds::PROMPTS), old(|all| &all.prompts)),
    );
    Ok(Inventory {
        revision: peer.revision(),
        tools: tools?,
        resources: resources?,
        templates: templates?,
        prompts: prompts?,
        capabilities: peer.offer.capabilities.clone(),
        instructions: peer.offer.instructions.clone(),
        supports,
        fresh: reads.fresh.clone(),
        announced: before.map(|before| before.announced).unwrap_or_default(),
    })
}

/// One kind of list.
struct Kind {
    method: Method,
    /// The result's member that holds the items.
    member: &'static str,
    /// The item's member that names it.
    key: &'static str,
    /// What it is read with.
    of: ListKinds,
    /// What is remarked of it where definitions are too large.
    large: &'static str,
    /// What is remarked of it where texts are no text for every client.
    torn: &'static str,
}

const TOOLS: Kind = Kind {
    method: Method::ToolsList,
    member: "tools",
    key: "name",
    of: ListKinds::TOOLS,
    large: "large tools",
    torn: "torn tools",
};
const RESOURCES: Kind = Kind {
    method: Method::ResourcesList,
    member: "resources",
    key: "uri",
    of: ListKinds::RESOURCES,
    large: "large resources",
    torn: "torn resources",
};
const TEMPLATES: Kind = Kind {
    method: Method::TemplatesList,
    member: "resourceTemplates",
    key: "uriTemplate",
    of: ListKinds::RESOURCES,
    large: "large templates",
    torn: "torn templates",
};
const PROMPTS: Kind = Kind {
    method: Method::PromptsList,
    member: "prompts",
    key: "name",
    of: ListKinds::PROMPTS,
    large: "large prompts",
    torn: "torn prompts",
};

/// What is remarked of patterns that fit no tool.
const UNMATCHED: &str = "unmatched patterns";

struct Reader<'a> {
    config: &'a Config,
    status: &'a Status,
    reads: &'a ReadSchedule,
    peer: &'a Peer,
}

impl Reader<'_> {
    /// One list. Only a peer that is gone is an error: whatever else fails, the other lists stand.
    async fn list(
        &self,
        kind: &Kind,
        is_offered: bool,
        is_due: bool,
        before: Option<&Listing>,
    ) -> Result<Listing, Trouble> {
        match before {
            _ if !is_offered => {
                self.took(kind, None);
                return Ok(Listing::default());
            }
            Some(before) if !is_due => return Ok(before.clone()),
            _ => {}
        }
        self.reads.asks(kind.method.label());
        let before = before.cloned().unwrap_or_default();
        let mut items = Items::new(self, kind, &before);
        self.reads.fresh.read(&kind.method, None);
        if self.status.handle.health().remarks.contains_key(kind.member) {
            self.status.handle.update(|health| _ = health.remarks.remove(kind.member));
        }
        let outcome = self.pages(kind, &mut items).await;
        items.tell_large();
        items.tell_torn();
        if outcome.is_ok() && kind.method == Method::ToolsList {
            items.tell_unmatched();
        }
        let is_missing = matches!(&outcome, Err(Trouble::Refused(error)) if error.code() == Some(METHOD_NOT_FOUND));
        let (is_empty, read) = (items.list.len() == 0, items.list.finish().map_err(|_: Spent| Trouble::full()));
        let (upstream, method) = (&*self.config.name, kind.method.as_str());
        let (trouble, part) = match (outcome, read) {
            (Ok(until), Ok(read)) => {
                self.took(kind, None);
                self.reads.fresh.read(&kind.method, until);
                return Ok(read);
            }
            // An upstream may advertise what it does not have.
            (Err(_), _) if is_missing => {
                self.took(kind, None);
                tracing::debug!(upstream, method, "the list is advertised but not supported");
                // Resources without templates are common.
                if kind.method != Method::TemplatesList {
                    self.remark(kind, format!("`{method}` is advertised but answered as unknown"));
                }
                return Ok(Listing::default());
            }
            (Err(trouble), _) if self.peer.is_gone(&trouble) => return Err(trouble),
            (Ok(_), Err(trouble)) => (trouble, None),
            (Err(trouble), read) => {
                let part = read.ok().filter(|_| !is_empty && !trouble.is_about_memory());
                (trouble, part)
            }
        };
        let cause = trouble.cause();
        if self.took(kind, Some(cause.clone())) {
            let text = "list could not be read; retrying, the last known list stays";
            tracing::warn!(upstream, method, trouble = &*cause.full(), "{text}");
        }
        Ok(part.unwrap_or(before))
    }

    fn took(&self, kind: &Kind, why: Option<Cause>) -> bool {
        self.reads.took(kind.method.label(), kind.of, why)
    }

    /// What is worth a look though the upstream is well.
    fn remark(&self, kind: &Kind, remark: String) {
        self.status.handle.update(|health| _ = health.remarks.insert(kind.member, remark));
    }

    async fn pages(&self, kind: &Kind, items: &mut Items<'_>) -> Result<Option<Instant>, Trouble> {
        let (mut cursors, by_hash) = (HashSet::new(), RandomState::new());
        let mut params = Object::empty();
        let (mut bytes, mut holds) = (0, None);
        for _ in 0..PAGES_MAX {
            let page = self.peer.ask(&kind.method, &params, self.config.ask_limit()).await?;
            bytes += page.raw().len();
            // The whole holds as long as its shortest page.
            let until = if self.peer.revision().is_modern() { freshness::until(&page) } else { None };
            holds = if bytes == page.raw().len() { until } else { holds.min(until) };
            if !aside(mask::cost(page.raw().len()), || items.take(&page))? || bytes > BYTES_MAX {
                let why = format!("more than {ITEMS_MAX} items or {} MiB", BYTES_MAX >> 20);
                self.cut(kind, why);
                return Ok(None);
            }
            let cursor = match page.find("nextCursor") {
                None | Some(b"null") => return Ok(holds),
                Some(cursor) if cursor.starts_with(b"\"") => cursor,
                Some(_) => {
                    let why = "its `nextCursor` is no string";
                    self.status.violated("cursor_not_text", &format_args!("{}: {why}", kind.method.as_str()));
                    self.remark(kind, format!("`{}` is cut: {why}; what was read stays", kind.method.as_str()));
                    return Ok(holds);
                }
            };
            let cursor = page.raw().slice_ref(cursor);
            let next = [b"{\"cursor\":", &cursor[..], b"}"].concat();
            params = Object::parse(next.into()).map_err(|_| Trouble::Odd("its cursor cannot be read"))?;
            if !cursors.insert(by_hash.hash_one(&cursor)) {
                self.cut(kind, "the same cursor twice".to_owned());
                return Ok(None);
            }
        }
        self.cut(kind, format!("more than {PAGES_MAX} pages"));
        Ok(None)
    }

    fn cut(&self, kind: &Kind, why: String) {
        let (upstream, method) = (&*self.config.name, kind.method.as_str());
        self.status.metrics.violations("endless_list").increment(1);
        tracing::warn!(upstream, method, why, "list cut; the part that was read is kept");
        self.remark(kind, format!("`{method}` is cut: {why}; the part that was read is kept"));
    }
}

/// The name of a definition that is not read, as it may be shown.
fn name_of(raw: &[u8], kind: &Kind) -> String {
    in_short(&json::get(raw, kind.key).and_then(json::unquote).unwrap_or_default())
}

/// The items of one list as they are read.
struct Items<'a> {
    reader: &'a Reader<'a>,
    kind: &'a Kind,
    seen: HashSet<Arc<str>>,
    list: NewListing,
    /// How many definitions are left out for their size, and the name of the first.
    large: (usize, String),
    /// How many have half of a UTF-16 pair alone in a text, and the name of the first.
    torn: (usize, String),
    /// What the configuration says of tools that were not seen so far: the key, and the pattern or name.
    unmatched: Vec<(&'static str, Glob)>,
}

impl<'a> Items<'a> {
    fn new(reader: &'a Reader<'a>, kind: &'a Kind, before: &Listing) -> Self {
        let list = NewListing::after(before, reader.status.handle.budget());
        let tools = &reader.config.tools;
        let of = |key, globs: &[Glob]| globs.iter().map(move |glob| (key, glob.clone())).collect::<Vec<_>>();
        let mut named: Vec<_> = reader.config.tool_times.keys().collect();
        named.sort();
        let named: Vec<_> = named.into_iter().map(|name| Glob::new(name)).collect();
        let unmatched = match kind.method {
            Method::ToolsList => [of("allow", &tools.allow), of("deny", &tools.deny), of("override", &named)].concat(),
            _ => Vec::new(),
        };
        let nothing = || (0, String::new());
        Self { reader, kind, seen: HashSet::new(), list, large: nothing(), torn: nothing(), unmatched }
    }

    /// Takes one page; false when enough is enough.
    fn take(&mut self, page: &Object) -> Result<bool, Trouble> {
        let Some(array) = page.find(self.kind.member) else {
            return Err(Trouble::Odd("its list has no items"));
        };
        let array = page.raw().slice_ref(array);
        let (places, is_all) =
            json::first_elements(json::ELEMENTS_MAX, &array).map_err(|_| Trouble::Odd("its list is not an array"))?;
        let mut places = places.into_iter();
        while let Some(place) = places.next() {
            if self.list.len() >= ITEMS_MAX {
                for raw in [place].into_iter().chain(places).take(LEFT_OUT_MAX).map(|place| array.slice(place)) {
                    self.list.leave_out(&name_of(&raw, self.kind), LeftOut::Surplus);
                }
                return Ok(false);
            }
            self.item(array.slice(place)).map_err(|_: Spent| Trouble::full())?;
        }
        Ok(is_all)
    }

    fn item(&mut self, raw: Bytes) -> Result<(), Spent> {
        let Reader { config, status, peer, .. } = self.reader;
        let violated = |what: &'static str, key: &str| {
            status.violated(what, &format_args!("{}: `{key}`", self.kind.method.as_str()));
            Ok(())
        };
        if raw.len() > DEFINITION_BYTES_MAX {
            let name = name_of(&raw, self.kind);
            self.list.leave_out(&name, LeftOut::TooLarge);
            self.large.0 += 1;
            if self.large.0 == 1 {
                self.large.1 = name;
            }
            return Ok(());
        }
        let Some(mut item) = Item::parse(raw, self.kind.key) else {
            return violated("item_without_name", "");
        };
        let is_tool = self.kind.method == Method::ToolsList;
        self.unmatched.retain(|(_, pattern)| !pattern.matches(&item.key));
        if is_tool && let Some(why) = LeftOut::by(config, &item.key) {
            self.list.leave_out(&item.key, why);
            return Ok(());
        }
        if self.seen.contains(&item.key) {
            return violated("item_twice", &item.key);
        }
        // A client that speaks HTTP must not offer such a tool; on other links the annotation means nothing.
        let minds = is_tool && config.is_http() && peer.revision().is_modern();
        if is_tool
            && let Err(why) = item.compile_headers()
            && minds
        {
            let (upstream, tool) = (&*config.name, &*item.key);
            tracing::warn!(upstream, tool, why, "tool left out: invalid header annotations");
            self.list.leave_out(&item.key, LeftOut::Annotations);
            return Ok(());
        }
        if json::has_lone_surrogate(item.definition.raw()) {
            self.torn.0 += 1;
            if self.torn.0 == 1 {
                self.torn.1 = item.key.to_string();
            }
        }
        self.seen.insert(item.key.clone());
        self.list.push(item)
    }

    /// Shows which patterns fit no tool of the whole list, and says so unless that is shown already: a name is misspelt, or was changed.
    fn tell_unmatched(&self) {
        let all: Vec<String> =
            self.unmatched.iter().map(|(key, pattern)| format!("`{}` in `tools.{key}`", pattern.text())).collect();
        let remark = (!all.is_empty()).then(|| format!("no tool is matched by {}", all.join(", ")));
        let handle = &self.reader.status.handle;
        if handle.health().remarks.get(UNMATCHED) == remark.as_ref() {
            return;
        }
        handle.update(|health| match &remark {
            Some(remark) => _ = health.remarks.insert(UNMATCHED, remark.clone()),
            None => _ = health.remarks.remove(UNMATCHED),
        });
        if let Some(remark) = remark {
            tracing::warn!(upstream = &*self.reader.config.name, remark, "a pattern matches no tool");
        }
    }

    /// Shows what was left out for its size, and says so unless that is shown already.
    fn tell_large(&self) {
        let (method, mib) = (self.kind.method.as_str(), DEFINITION_BYTES_MAX >> 20);
        let (count, name) = (self.large.0, &self.large.1);
        let remark = (count > 0).then(|| {
            format!("`{method}`: definitions of more than {mib} MiB are left out: {count}, the first is `{name}`")
        });
        let text = "definitions left out; the others are kept";
        self.tell(self.kind.large, ("a definition is too large", name), (remark, text));
    }

    /// Shows what not every client can read, and says so unless that is shown already. It passes as it is: others can.
    fn tell_torn(&self) {
        let method = self.kind.method.as_str();
        let (count, name) = (self.torn.0, in_short(&self.torn.1));
        let remark = (count > 0).then(|| {
            format!("`{method}`: texts with half of a UTF-16 pair, which not every client can read: {count}, the first is in `{name}`")
        });
        self.tell(self.kind.torn, ("a text is invalid UTF-16", &name), (remark, "definitions hold invalid UTF-16"));
    }

    fn tell(&self, key: &'static str, (fault, name): (&str, &str), (remark, text): (Option<String>, &str)) {
        let handle = &self.reader.status.handle;
        if handle.health().remarks.get(key) == remark.as_ref() {
            return;
        }
        handle.update(|health| match &remark {
            Some(remark) => {
                health.note(Cause::new(CauseCode::ProtocolViolation, fault).foreign(&format!(": `{name}`")));
                health.remarks.insert(key, remark.clone());
            }
            None => _ = health.remarks.remove(key),
        });
        if let Some(remark) = remark {
            let (upstream, method) = (&*self.reader.config.name, self.kind.method.as_str());
            tracing::warn!(upstream, method, remark, "{text}");
        }
    }
}
