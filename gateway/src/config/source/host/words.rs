//! The keys of hosts' files: those that have a meaning here, those of which nothing is said, those whose texts may hold references.

use crate::config::doc::{KeyDoc, TableDoc};

/// Keys of `[mcpServers.NAME]`.
pub(crate) const HOST_DOC: TableDoc = TableDoc {
    heading: "[mcpServers.NAME]",
    path: &["mcpServers", "*"],
    intro: "An entry of a host's file, written in TOML, with the same keys.",
    keys: &[&[
        KeyDoc {
            key: "type",
            kind: "`\"stdio\"`, `\"http\"`, `\"sse\"`, `\"ws\"`",
            default: "by `command` or `url`",
            description: "how the server is reached",
        },
        KeyDoc { key: "command", kind: "text", default: "", description: "program" },
        KeyDoc { key: "args", kind: "list", default: "`[]`", description: "its arguments" },
        KeyDoc { key: "env", kind: "table", default: "`{}`", description: "its variables" },
        KeyDoc { key: "cwd", kind: "path", default: "that of the gateway", description: "its working directory" },
        KeyDoc { key: "timeout", kind: "number", default: "`0`", description: "`call_timeout` in milliseconds" },
        KeyDoc { key: "disabled", kind: "bool", default: "`false`", description: "`true`: not judged, not started" },
    ]],
    notes: "",
};

/// Keys of hosts that have a meaning here.
pub(super) const KNOWN: [&str; 16] = [
    "command",
    "args",
    "env",
    "envFile",
    "cwd",
    "type",
    "url",
    "serverUrl",
    "httpUrl",
    "headers",
    "timeout",
    "disabled",
    "enabled",
    "includeTools",
    "excludeTools",
    "disabledTools",
];
/// Keys that change nothing of what a server does, so that nothing is said of them.
pub(super) const SILENT: [&str; 20] = [
    "name",
    "description",
    "display_name",
    "serverName",
    "faviconUrl",
    "title",
    "icon",
    "version",
    "bundled",
    "gallery",
    "dev",
    "metadata",
    "source",
    "required",
    "supports_parallel_tool_calls",
    "default_tools_approval_mode",
    "alwaysLoad",
    "trust",
    "settings",
    "$schema",
];

/// Keys of how a host logs in at a server.
pub(super) const LOGINS: [&str; 4] = ["auth", "oauth", "oauth_resource", "scopes"];

/// Keys whose texts may hold references.
pub(super) const TEXTS: [&str; 18] = [
    "command",
    "cmd",
    "args",
    "env",
    "envs",
    "environment",
    "envFile",
    "cwd",
    "workingDirectory",
    "url",
    "serverUrl",
    "httpUrl",
    "uri",
    "headers",
    "http_headers",
    "transport",
    "requestOptions",
    "bearer_token",
];
