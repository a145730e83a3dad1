//! Loads a configuration: reads all sources, merges them, reads every section.

use super::checked::Config;
use super::fault::{Fault, Faults, Place, Severity};
use super::import;
use super::judged::Judged;
use super::read::{Reading, Section, Sketch};
use super::schema;
use super::secret;
use super::sections::{self, Upstreams, listeners, settings};
use super::source::Environment;
use super::source::host::PART;
use super::source::node::{Names, Node, Origin, Shape, Source};
use super::source::torn::Gaps;
use crate::policy::config::{Generated, Resource};
use crate::secrets::Secrets;
use crate::secrets::sealer::keyring;
use crate::{downstream, telemetry, upstream};
use std::path::{Path, PathBuf};

/// What is read.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// Files, the later over the earlier.
    pub files: Vec<PathBuf>,
    /// What stands in some of the files, before it is written there.
    pub drafts: Vec<(PathBuf, String)>,
    /// Overrides, values of references, and what children inherit.
    pub environment: Environment,
    /// Flags, over all else: its name, the key that it sets, its value.
    pub flags: Vec<(&'static str, &'static [&'static str], String)>,
    /// The gateway runs already: where the files of its certificate cannot be used, it keeps what it has, and that is a warning.
    pub is_running: bool,
    /// Without any file: the program that is the built-in demo upstream.
    pub demo: Option<PathBuf>,
}

impl Inputs {
    /// The JSON Schema of what can be read: made of what the sections ask for.
    pub(crate) fn schema() -> serde_json::Value {
        let mut reading = Reading::new(Vec::new(), Environment::default(), Vec::new());
        reading.sketch = Some(Sketch::default());
        let _nothing = check(&reading);
        schema::of_keys(reading.sketch.map(Sketch::into_keys).unwrap_or_default())
    }

    /// Reads `[admin]` alone: who looks at a running gateway need not be able to start it.
    pub(crate) fn admin(self) -> Result<telemetry::config::Admin, Faults> {
        let (reading, _) = read(self);
        let admin = settings::admin(Section::root(&reading).table("admin"));
        let secrets = Secrets::of(reading.secrets());
        sorted(reading)
            .map_err(|Faults(faults)| Faults(faults.into_iter().map(|fault| fault.masked(&secrets)).collect()))?;
        Ok(admin)
    }

    /// As `load`; what is without faults can be judged further where there are some.
    pub(crate) fn load_or_part(self) -> Result<Loaded, Box<Part>> {
        let is_running = self.is_running;
        let (reading, is_demo) = read(self);
        let mut config = check(&reading);
        if is_running {
            if config.auth.generated == Generated::Lacking {
                reading.fault(listeners::lost_token(config.server.state_folder.as_deref()));
            }
            reading.revise(0, |fault| {
                if fault.kind == Fault::CERTIFICATE {
                    fault.severity = Severity::Warning;
                }
            });
        }
        if is_demo {
            // Whoever only tries it finds nothing of it later.
            config.cache = upstream::config::Cache::Off;
        }
        let masked = |faults: Vec<Fault>| faults.into_iter().map(|fault| fault.masked(&config.secrets)).collect();
        let doubts = masked(reading.doubts());
        match sorted(reading) {
            Ok(warnings) => {
                let warnings = masked(warnings);
                Ok(Loaded { config, warnings, doubts })
            }
            Err(Faults(faults)) => {
                let faults = Faults(masked(faults));
                Err(Box::new(Part { faults, doubts, config }))
            }
        }
    }
}

/// A configuration without errors.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// What is doubtful in it.
    pub warnings: Vec<Fault>,
    /// What is doubtful about the files that it names: for whoever checks it.
    pub doubts: Vec<Fault>,
}

/// What there is of a configuration with errors.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) faults: Faults,
    /// As those of `Loaded`.
    pub(crate) doubts: Vec<Fault>,
    /// All but what the faults are about.
    pub(crate) config: Config,
}

/// Reads, merges and checks all of it. Every fault is found, not only the first.
pub fn load(inputs: Inputs) -> Result<Loaded, Faults> {
    inputs.load_or_part().map_err(|part| part.faults)
}

/// The warnings, where there is no error among what was found.
fn sorted(reading: Reading) -> Result<Vec<Fault>, Faults> {
    let mut faults = reading.into_faults();
    faults.sort_by(|a, b| a.order().cmp(&b.order()));
    match faults.iter().any(|fault| fault.severity == Severity::Error) {
        true => Err(Faults(faults)),
        false => Ok(faults),
    }
}

/// Reads and merges all sources; whether that is the built-in demo.
fn read(inputs: Inputs) -> (Reading, bool) {
    let (mut faults, mut gaps) = (Vec::new(), Gaps::default());
    let mut sources: Vec<Source> = Vec::new();
    for path in &inputs.files {
        let draft = inputs.drafts.iter().find(|(draft, _)| draft == path).map(|(_, text)| text);
        let Judged { source, doubts, faults: own, gaps: missing } = Judged::of(path, draft);
        faults.extend(own);
        gaps.add(missing);
        faults.extend(doubts.into_iter().filter(|fault| fault.kind != PART));
        if let Some(source) = source {
            faults.extend(import::replaced(&mut sources, &source));
            sources.push(source);
        }
    }
    let (overrides, unreadable) = inputs.environment.overrides();
    for name in unreadable {
        faults.push(Fault::error("bad-value", "the value is not UTF-8").at(Some(Place::Variable(name))));
    }
    for source in overrides {
        match settings::misunderstood(&source) {
            // It is there for other programs too: none of them ends because of it.
            Some(warning) => faults.push(warning),
            None => sources.push(source),
        }
    }
    for (flag, key, value) in inputs.flags {
        let key: Vec<String> = key.iter().map(|part| (*part).to_owned()).collect();
        sources.push(Source::single(Origin::Flag(flag), &key, value));
    }
    let has_upstreams = sources.iter().any(|source| source.node(&["upstreams".to_owned()]).is_some());
    let demo_of = inputs.demo.filter(|_| inputs.files.is_empty() && !has_upstreams);
    let is_demo = demo_of.is_some();
    sources.splice(0..0, demo_of.map(|program| demo(&program)));
    let mut reading = Reading::new(sources, inputs.environment, faults);
    reading.gaps = gaps;
    (reading, is_demo)
}

/// Reads every section.
pub(super) fn check(reading: &Reading) -> Config {
    let first = reading.faults_so_far();
    let mut root = Section::root(reading);
    let questions = settings::questions(root.table("questions"));
    let defaults = sections::Defaults::read(root.table("defaults"), questions.timeout);
    let (catalog, cache) = settings::catalog(root.table("catalog"));
    reading.keep_certain(first);
    let Upstreams { on: upstreams, off: disabled, left_out, lacking } =
        sections::upstreams(root.table("upstreams"), &defaults);
    let beside = reading.faults_so_far();
    let mut config = Config {
        server: downstream::config::Config { questions, ..settings::server(root.table("server")) },
        admin: settings::admin(root.table("admin")),
        log: settings::log(root.table("log")),
        audit: settings::audit(root.table("audit")),
        metrics: settings::metrics(root.table("metrics")),
        traces: sections::traces(root.table("traces")),
        auth: sections::auth(root.table("auth")),
        redact: settings::redact(root.table("redact")),
        limits: sections::limits(root.table("limits")),
        naming: settings::naming(root.table("naming")),
        catalog,
        cache,
        extensions: settings::extensions(root.table("extensions")),
        upstreams,
        disabled,
        left_out,
        lacking,
        written: reading.written(),
        login_keys: Vec::new(),
        secrets: Secrets::default(),
    };
    root.end("the configuration");
    config.server.state_folder = reading.environment.state_folder();
    let at =
        |public: &downstream::config::PublicUrl| Resource::at(&public.origin, &public.prefix, &config.server.paths());
    config.auth.resource = config.server.public_url.as_ref().map(at).unwrap_or_default();
    sections::needs_issuers(reading, &config.upstreams, !config.auth.issuers.is_empty());
    let principals = config.auth.principals();
    config.upstreams.iter_mut().for_each(|one| one.principals = principals);
    config.login_keys = login_keys(reading, &config.server);
    let all = config.upstreams.iter_mut().chain(&mut config.lacking);
    all.for_each(|one| one.keeps_login_in(config.server.state_folder.as_deref(), &config.login_keys));
    let timeouts = config.upstreams.iter().map(|one| (one.name.clone(), one.question_timeout));
    let questions = &mut config.server.questions;
    questions.timeouts = timeouts.filter(|(_, own)| *own != questions.timeout).collect();
    questions.names_upstream = !config.naming.is_transparent(config.upstreams.len());
    reading.keep_certain(beside);
    if !reading.gaps.has_section() {
        listeners::judge(reading, &config.server, &mut config.auth, &config.admin);
    }
    if config.auth.tells_apart() {
        config
            .upstreams
            .iter_mut()
            .filter_map(|one| one.credentials.as_mut())
            .for_each(upstream::config::Credentials::tell_apart);
    }
    let collector = config.traces.as_ref().map(|(_, collector)| collector);
    let all = config.upstreams.iter().chain(&config.lacking);
    config.secrets = secret::of(reading, &config.server.session.signing_keys, (all, collector));
    let Config { left_out, secrets, .. } = &mut config;
    left_out.iter_mut().for_each(|one| one.why = secrets.masked(&one.why).into_owned());
    config
}

/// The keys that seal logins: that of the system's keyring, where it is wanted, then those of sessions. The first seals, all open.
fn login_keys(reading: &Reading, server: &downstream::config::Config) -> Vec<Vec<u8>> {
    let mut keys: Vec<_> = server.session.signing_keys.iter().map(|key| key.as_bytes().to_vec()).collect();
    let Some(state) = server.state_folder.as_ref().filter(|_| server.keyring) else { return keys };
    match keyring::login_key(state) {
        Ok(key) => keys.insert(0, key),
        Err(why) => {
            let said = format!("`server.keyring`: the keyring of the system gives no key for logins: {why}");
            reading.fault(Fault::error("bad-value", said));
        }
    }
    keys
}

/// The built-in configuration: one upstream, which is this program.
fn demo(program: &Path) -> Source {
    let leaf = |shape| Node { shape, ..Node::default() };
    let entry = vec![
        ("command".to_owned(), leaf(Shape::Text(program.display().to_string()))),
        ("args".to_owned(), leaf(Shape::List(vec![leaf(Shape::Text("demo-upstream".to_owned()))]))),
    ];
    let table = |name: &str, shape| Shape::Table(vec![(name.to_owned(), leaf(shape))]);
    let root = leaf(table("upstreams", table("demo", Shape::Table(entry))));
    Source {
        origin: Origin::Builtin,
        text: String::new(),
        root,
        imported: Vec::new(),
        left_out: Vec::new(),
        names: Names::default(),
    }
}
