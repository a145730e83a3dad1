//! `[defaults]`: what holds for every upstream that does not say otherwise.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use crate::upstream::config::{
    BreakerConfig, Capabilities, Checks, EraChoice, Glob, OFFERS, Restart, RestartPolicy, Sharing, Start,
};

use super::settings::{bounded_size, some_time};
use super::transport::globs;
use crate::config::doc::{KeyDoc, TableDoc};
use crate::config::fault::Fault;
use crate::config::read::{Section, duration};

/// How long a call waits for an upstream that starts, where nothing else is said.
pub(crate) const START_WAIT: Duration = Duration::from_secs(5);

/// What `[defaults]` and each upstream may say.
#[derive(Clone, Debug)]
pub(crate) struct Defaults {
    pub(crate) start: Start,
    pub(crate) idle_stop: Option<Duration>,
    pub(crate) era: EraChoice,
    pub(crate) has_both_eras: bool,
    pub(crate) startup_timeout: Duration,
    pub(crate) start_wait: Duration,
    pub(crate) request_timeout: Option<Duration>,
    pub(crate) call_timeout: Option<Duration>,
    pub(crate) max_call_time: Option<Duration>,
    pub(crate) max_concurrency: Option<usize>,
    pub(crate) queue: usize,
    pub(crate) question_timeout: Duration,
    pub(crate) max_response: usize,
    pub(crate) sharing: Option<Sharing>,
    pub(crate) max_instances: usize,
    pub(crate) max_sessions: usize,
    pub(crate) instance_idle: Duration,
    pub(crate) offer: Option<Capabilities>,
    pub(crate) roots: Option<Arc<[Box<str>]>>,
    pub(crate) restart: Restart,
    pub(crate) health: Checks,
    pub(crate) hang_restart: bool,
    pub(crate) no_new_privs: bool,
    pub(crate) overlap: bool,
    pub(crate) breaker: Option<BreakerConfig>,
    /// What children get of the environment, where the upstream does not say otherwise.
    pub(crate) inherited: Arc<[(OsString, OsString)]>,
}

/// What programs need to find themselves, their user, the tools and desktop of a person, their way out, where packages come from, and
/// the certificates of a company on the way. Patterns are only where no secret has such a name; an address with a password in it is
/// kept out of logs.
pub(crate) const INHERITED: [&str; 78] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LC_*",
    "TZ",
    "TMPDIR",
    "XDG_*",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "NODE_USE_SYSTEM_CA",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "npm_config_registry",
    "npm_config_userconfig",
    "npm_config_globalconfig",
    "npm_config_cache",
    "npm_config_prefix",
    "npm_config_cafile",
    "npm_config_offline",
    "NPM_CONFIG_REGISTRY",
    "NPM_CONFIG_USERCONFIG",
    "NPM_CONFIG_GLOBALCONFIG",
    "NPM_CONFIG_CACHE",
    "NPM_CONFIG_PREFIX",
    "NPM_CONFIG_CAFILE",
    "NPM_CONFIG_OFFLINE",
    "PIP_CERT",
    "PIP_CONFIG_FILE",
    "PIP_CACHE_DIR",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_TRUSTED_HOST",
    "UV_CACHE_DIR",
    "UV_CONFIG_FILE",
    "UV_DEFAULT_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_INSECURE_HOST",
    "UV_LINK_MODE",
    "UV_NATIVE_TLS",
    "UV_OFFLINE",
    "UV_PYTHON",
    "UV_PYTHON_INSTALL_DIR",
    "UV_PYTHON_PREFERENCE",
    "UV_SYSTEM_CERTS",
    "UV_TOOL_BIN_DIR",
    "UV_TOOL_DIR",
    "NVM_DIR",
    "NVM_BIN",
    "FNM_DIR",
    "FNM_MULTISHELL_PATH",
    "VOLTA_HOME",
    "PYENV_ROOT",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "DOCKER_CERT_PATH",
    "DOCKER_TLS_VERIFY",
    "KUBECONFIG",
    "SSH_AUTH_SOCK",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
];

/// So many requests there are to one upstream at most, whatever is configured; no more need wait.
const CONCURRENCY_MAX: usize = 4096;

/// Who may have an instance in common, in words.
const SHARING: [(&str, Sharing); 3] =
    [("shared", Sharing::Shared), ("per-session", Sharing::PerSession), ("per-principal", Sharing::PerPrincipal)];

/// When an upstream is started, in words.
const STARTS: [(&str, Start); 3] = [("eager", Start::Eager), ("lazy", Start::Lazy), ("manual", Start::Manual)];

impl Default for Defaults {
    fn default() -> Self {
        Self {
            start: Start::Eager,
            idle_stop: None,
            era: EraChoice::Auto,
            has_both_eras: false,
            startup_timeout: Duration::from_secs(60),
            start_wait: START_WAIT,
            request_timeout: Some(Duration::from_secs(30)),
            call_timeout: None,
            max_call_time: Some(Duration::from_secs(3600)),
            max_concurrency: None,
            queue: 256,
            question_timeout: Duration::from_secs(600),
            max_response: 64 << 20,
            sharing: None,
            max_instances: 32,
            max_sessions: 1024,
            instance_idle: Duration::from_secs(600),
            offer: None,
            roots: None,
            restart: Restart::default(),
            health: Checks::default(),
            hang_restart: false,
            no_new_privs: false,
            overlap: false,
            breaker: Some(BreakerConfig::default()),
            inherited: Arc::default(),
        }
    }
}

/// Keys of `[defaults]`.
pub(crate) const DEFAULTS_DOC: TableDoc = TableDoc {
    heading: "[defaults]",
    path: &["defaults"],
    intro: "Defaults of all upstreams. Each key may also stand under `[upstreams.NAME]`.",
    keys: &[&[
        KeyDoc {
            key: "start",
            kind: "`\"eager\"`, `\"lazy\"`, `\"manual\"`",
            default: "`\"eager\"`",
            description: "[when the upstream runs](../reliability.md#start)",
        },
        KeyDoc {
            key: "idle_stop",
            kind: "duration",
            default: "`0`",
            description: "[stopped](../reliability.md#idle_stop) after this long without a call; `0`: never",
        },
        KeyDoc {
            key: "era",
            kind: "`\"auto\"`, `\"legacy\"`, `\"modern\"`",
            default: "`\"auto\"`",
            description: "`\"auto\"` serves [each client in its own era](../bridging.md#era-by-era) wherever the \
                upstream speaks it; `\"legacy\"` speaks by handshake alone; `\"modern\"` never makes one",
        },
        KeyDoc {
            key: "eras",
            kind: "`\"one\"`, `\"both\"`",
            default: "`\"one\"`",
            description: "whether a [second child](../bridging.md#era-by-era) runs for clients of the other era; \
                with HTTP+SSE and WebSocket a second connection; not with Streamable HTTP",
        },
        KeyDoc {
            key: "startup_timeout",
            kind: "duration",
            default: "`\"60s\"`",
            description: "from the start to the end of the handshake",
        },
        KeyDoc {
            key: "start_wait",
            kind: "duration",
            default: "`\"5s\"`",
            description: "so long a call waits while its upstream starts",
        },
        KeyDoc {
            key: "request_timeout",
            kind: "duration",
            default: "`\"30s\"`",
            description: "[limits](../reliability.md#request_timeout) requests other than calls, prompts and \
                reads; `0`: no limit",
        },
        KeyDoc {
            key: "call_timeout",
            kind: "duration",
            default: "`0`",
            description: "[limits](../reliability.md#call_timeout) calls, prompts and reads; progress extends it; \
                `0`: no limit",
        },
        KeyDoc {
            key: "max_call_time",
            kind: "duration",
            default: "`\"1h\"`",
            description: "the most that progress extends a call to; `0`: no limit",
        },
        KeyDoc {
            key: "max_concurrency",
            kind: "number",
            default: "`0`",
            description: "[calls at once](../reliability.md#max_concurrency); `0`: 4,096 requests",
        },
        KeyDoc {
            key: "queue",
            kind: "number",
            default: "`256`",
            description: "[calls that wait](../reliability.md#queue) beyond that",
        },
        KeyDoc {
            key: "question_timeout",
            kind: "duration",
            default: "that of `[questions]`",
            description: "limit for an answer to a question of this upstream",
        },
        KeyDoc {
            key: "max_response",
            kind: "size",
            default: "`\"64MiB\"`",
            description: "largest message from an upstream",
        },
        KeyDoc {
            key: "sharing",
            kind: "`\"shared\"`, `\"per-session\"`, `\"per-principal\"`",
            default: "one child; [sessions of their own](../sharing.md#sessions-with-http-upstreams) with HTTP \
                upstreams",
            description: "[who shares an instance](../sharing.md#who-shares-a-child-with-whom)",
        },
        KeyDoc {
            key: "max_instances",
            kind: "number",
            default: "`32`",
            description: "instances at once beside the primary",
        },
        KeyDoc {
            key: "max_sessions",
            kind: "number",
            default: "`1024`",
            description: "[sessions of clients](../sharing.md#sessions-with-http-upstreams) with an HTTP upstream",
        },
        KeyDoc {
            key: "instance_idle",
            kind: "duration",
            default: "`\"10m\"`",
            description: "the instance, or session, of a token ends after this long without a call; at \
                `max_sessions` one of a client too",
        },
        KeyDoc {
            key: "offer",
            kind: "list of `\"elicitation\"`, `\"sampling\"`, `\"roots\"`",
            default: "elicitation; nothing where several tokens share a child",
            description: "[what a child may ask](../sharing.md#which-client-an-upstream-can-ask), or a connection \
                of HTTP+SSE or WebSocket; not with Streamable HTTP",
        },
        KeyDoc {
            key: "roots",
            kind: "list of file URIs",
            default: "the client is asked",
            description: "answers a handshake upstream that asks for roots",
        },
        KeyDoc {
            key: "hang_restart",
            kind: "bool",
            default: "`false`",
            description: "a child that does not answer [health checks](../reliability.md#health) is killed and \
                started again, a connection of HTTP+SSE or WebSocket opened anew; not with Streamable HTTP",
        },
        KeyDoc {
            key: "no_new_privs",
            kind: "bool",
            default: "`false`",
            description: "a child and what it starts [gain no rights](../security.md#children); not with `url`",
        },
        KeyDoc {
            key: "overlap",
            kind: "bool",
            default: "`false`",
            description: "after a change at run time the new child is ready before the old one ends; `false`: it \
                starts after the old one has ended. Not with `url`, where the new connection is always ready first",
        },
        KeyDoc {
            key: "env_inherit",
            kind: "patterns",
            default: "`PATH`, `HOME`, `USER`, `LOGNAME`, `SHELL`, `TERM`, `LANG`, `LC_*`, `TZ`, `TMPDIR`, `XDG_*`, \
                [proxies, certificates, package managers, desktop](../configuration.md#variables-of-children)",
            description: "variables that children inherit",
        },
    ]],
    notes: "",
};

impl Defaults {
    /// `[defaults]`; `question_timeout` is what `[questions]` says.
    pub(crate) fn read(mut section: Section<'_>, question_timeout: Duration) -> Self {
        let built_in = Self { question_timeout, ..Self::default() };
        let mut defaults = built_in.over(&mut section);
        let patterns = globs(&mut section, "env_inherit");
        let patterns = patterns.unwrap_or_else(|| INHERITED.into_iter().map(Glob::new).collect());
        // Once for all upstreams: each would try every variable with every pattern.
        defaults.inherited = section.reading.environment.fitting(&patterns);
        section.end("[defaults]");
        defaults
    }

    /// These, with what `section` says over them. `env_inherit` is the transport's business.
    pub(crate) fn over(&self, section: &mut Section<'_>) -> Self {
        let times = |section: &mut Section<'_>, key, or| section.number(key, duration).map_or(or, bound);
        Self {
            start: section.word("start", &STARTS).unwrap_or(self.start),
            idle_stop: times(section, "idle_stop", self.idle_stop),
            era: section
                .word("era", &[("auto", EraChoice::Auto), ("legacy", EraChoice::Legacy), ("modern", EraChoice::Modern)])
                .unwrap_or(self.era),
            has_both_eras: section.word("eras", &[("one", false), ("both", true)]).unwrap_or(self.has_both_eras),
            startup_timeout: section.number("startup_timeout", some_time).unwrap_or(self.startup_timeout),
            start_wait: section.number("start_wait", some_time).unwrap_or(self.start_wait),
            request_timeout: times(section, "request_timeout", self.request_timeout),
            call_timeout: times(section, "call_timeout", self.call_timeout),
            max_call_time: times(section, "max_call_time", self.max_call_time),
            max_concurrency: section
                .count("max_concurrency", 0, CONCURRENCY_MAX)
                .map_or(self.max_concurrency, |most| (most > 0).then_some(most)),
            queue: section.count("queue", 0, CONCURRENCY_MAX).unwrap_or(self.queue),
            question_timeout: section.number("question_timeout", some_time).unwrap_or(self.question_timeout),
            max_response: section.number("max_response", bounded_size).unwrap_or(self.max_response),
            sharing: section.word("sharing", &SHARING).or(self.sharing),
            max_instances: section.count("max_instances", 1, 10_000).unwrap_or(self.max_instances),
            max_sessions: section.count("max_sessions", 1, 100_000).unwrap_or(self.max_sessions),
            instance_idle: section.number("instance_idle", some_time).unwrap_or(self.instance_idle),
            offer: offer(section).or(self.offer),
            roots: roots(section).or_else(|| self.roots.clone()),
            restart: restart(section.table("restart"), &self.restart),
            health: health(section.table("health"), &self.health),
            hang_restart: section.flag("hang_restart").unwrap_or(self.hang_restart),
            no_new_privs: section.flag("no_new_privs").unwrap_or(self.no_new_privs),
            overlap: section.flag("overlap").unwrap_or(self.overlap),
            breaker: breaker(section.table("breaker"), self.breaker.as_ref()),
            inherited: self.inherited.clone(),
        }
    }
}

/// `roots`: a list of file URIs.
fn roots(section: &mut Section<'_>) -> Option<Arc<[Box<str>]>> {
    let roots = section.list("roots", "[\"file:///home/me/projects\"]")?;
    for (index, root) in roots.iter().enumerate() {
        if !is_file_uri(root) {
            section.wrong_item("roots", index, "expected the URI of a folder, as \"file:///home/me/projects\"");
        }
    }
    Some(roots.into_iter().map(String::into_boxed_str).collect())
}

/// Whether it is a `file` URI as they are written: what is no character of a URI stands behind `%`.
fn is_file_uri(text: &str) -> bool {
    let Some((_host, path)) = text.strip_prefix("file://").and_then(|rest| Some(rest.split_at(rest.find('/')?))) else {
        return false;
    };
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/%".contains(byte);
    let coded =
        |at: usize| path.as_bytes().get(at + 1..at + 3).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
    text.as_bytes()[7..].iter().all(plain) && path.match_indices('%').all(|(at, _)| coded(at))
}

/// `offer`: a list of kinds of questions.
fn offer(section: &mut Section<'_>) -> Option<Capabilities> {
    let mut offered = Capabilities::NONE;
    for (index, kind) in section.list("offer", "[\"elicitation\"]")?.iter().enumerate() {
        match OFFERS.iter().find(|(word, _)| word == kind) {
            Some((_, set)) => offered = offered.with(*set),
            None => section.wrong_item("offer", index, "expected \"elicitation\", \"sampling\" or \"roots\""),
        }
    }
    Some(offered)
}

/// 0 means that there is no bound.
pub(crate) fn bound(duration: Duration) -> Option<Duration> {
    (!duration.is_zero()).then_some(duration)
}

/// Keys of `[defaults.restart]`.
pub(crate) const RESTART_DOC: TableDoc = TableDoc {
    heading: "[defaults.restart]",
    path: &["defaults", "restart"],
    intro: "[Restarts](../reliability.md#restart).",
    keys: &[&[
        KeyDoc {
            key: "policy",
            kind: "`\"always\"`, `\"on-failure\"`, `\"never\"`",
            default: "`\"always\"`",
            description: "which exits lead to a restart",
        },
        KeyDoc {
            key: "backoff_min",
            kind: "duration",
            default: "`\"250ms\"`",
            description: "first delay; each further one doubles, each is shortened at random",
        },
        KeyDoc { key: "backoff_max", kind: "duration", default: "`\"30s\"`", description: "longest delay" },
        KeyDoc {
            key: "healthy_after",
            kind: "duration",
            default: "`\"30s\"`",
            description: "after this long without a failure the delays start anew",
        },
        KeyDoc {
            key: "max_restarts",
            kind: "number",
            default: "`10`",
            description: "starts of a child within `window`; after them one per `window`",
        },
        KeyDoc { key: "window", kind: "duration", default: "`\"60s\"`", description: "the window of `max_restarts`" },
        KeyDoc {
            key: "stop_timeout",
            kind: "duration",
            default: "`\"5s\"`",
            description: "from closed stdin over SIGTERM to SIGKILL",
        },
    ]],
    notes: "",
};

fn restart(mut section: Section<'_>, or: &Restart) -> Restart {
    let touched = section.has("backoff_min") || section.has("backoff_max");
    let restart = Restart {
        policy: section.word("policy", &RestartPolicy::WORDS).unwrap_or(or.policy),
        backoff_min: section.number("backoff_min", some_time).unwrap_or(or.backoff_min),
        backoff_max: section.number("backoff_max", some_time).unwrap_or(or.backoff_max),
        healthy_after: section.number("healthy_after", duration).unwrap_or(or.healthy_after),
        max_restarts: section.count("max_restarts", 1, 100_000).map_or(or.max_restarts, |count| count as u32),
        window: section.number("window", some_time).unwrap_or(or.window),
        stop_timeout: section.number("stop_timeout", duration).unwrap_or(or.stop_timeout),
    };
    // Said once, where it was written, and not for every upstream that inherits it.
    if touched && restart.backoff_min > restart.backoff_max {
        let text = "`backoff_min` is longer than `backoff_max`";
        section.reading.fault(Fault::error(Fault::ORDER, text).at(section.own_place()));
    }
    section.end("a `restart` table");
    restart
}

/// Keys of `[defaults.health]`.
pub(crate) const HEALTH_DOC: TableDoc = TableDoc {
    heading: "[defaults.health]",
    path: &["defaults", "health"],
    intro: "[Health checks](../reliability.md#health). In one line: `health = { interval = \"10s\" }`.",
    keys: &[&[
        KeyDoc {
            key: "interval",
            kind: "duration",
            default: "`\"30s\"`",
            description: "silence after which Trunkline pings the upstream; `0`: never",
        },
        KeyDoc { key: "timeout", kind: "duration", default: "`\"5s\"`", description: "limit for the answer" },
        KeyDoc {
            key: "unhealthy_after",
            kind: "number",
            default: "`3`",
            description: "missing answers in a row until it is `degraded`",
        },
    ]],
    notes: "",
};

fn health(mut section: Section<'_>, or: &Checks) -> Checks {
    let health = Checks {
        interval: section.number("interval", duration).map_or(or.interval, bound),
        timeout: section.number("timeout", some_time).unwrap_or(or.timeout),
        unhealthy_after: section.count("unhealthy_after", 1, 1000).map_or(or.unhealthy_after, |count| count as u32),
    };
    section.end("a `health` table");
    health
}

/// Keys of `[defaults.breaker]`.
pub(crate) const BREAKER_DOC: TableDoc = TableDoc {
    heading: "[defaults.breaker]",
    path: &["defaults", "breaker"],
    intro: "The [breaker](../reliability.md#breaker) of HTTP upstreams and children.",
    keys: &[&[
        KeyDoc {
            key: "failures",
            kind: "number",
            default: "`5`",
            description: "failures in a row that open the breaker; `0`: no breaker",
        },
        KeyDoc {
            key: "open_for",
            kind: "duration",
            default: "`\"15s\"`",
            description: "how long no call is sent; then one tries",
        },
    ]],
    notes: "",
};

/// 0 failures mean that there is none.
fn breaker(mut section: Section<'_>, or: Option<&BreakerConfig>) -> Option<BreakerConfig> {
    let built_in = BreakerConfig::default();
    let failures = section.count("failures", 0, 100_000).map(|count| count as u32);
    let open_for = section.number("open_for", some_time);
    section.end("a `breaker` table");
    let failures = failures.unwrap_or_else(|| or.map_or(0, |or| or.failures));
    let open_for = open_for.unwrap_or_else(|| or.unwrap_or(&built_in).open_for);
    (failures > 0).then_some(BreakerConfig { failures, open_for })
}
