//! The keys of hosts' files: those that have a meaning here, those of which nothing is said, those whose texts may hold references.

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
