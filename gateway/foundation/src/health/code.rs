//! The kinds of causes, as programs tell them apart.

/// What kind of thing happened: one stable word for each, and a number where the kind has one. Logs, metrics and status show it; two
/// causes of the same kinds are one event that happened again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CauseCode {
    /// The command of a child does not exist.
    CommandNotFound,
    /// The command of a child may not be executed.
    CommandNotExecutable,
    /// The working directory of a child does not exist.
    DirectoryNotFound,
    /// The system starts no process; its error number.
    SpawnFailed(Option<i32>),
    /// The child exited with this status.
    Exited(i32),
    /// This signal ended the child.
    Killed(i32),
    /// The child closed one of its pipes, or ended in an unknown way.
    PipeClosed,
    /// What the upstream sends is not MCP.
    NotMcp,
    /// The upstream does not read its input.
    InputNotRead,
    /// The upstream answered no health check, and its child was killed.
    Hung,
    /// The upstream is still starting.
    Starting,
    /// No answer came in time.
    TimedOut,
    /// The upstream answered the handshake with an error.
    HandshakeRefused,
    /// The upstream answered the handshake with what is no answer to it.
    HandshakeInvalid,
    /// An HTTP+SSE stream sends our messages to another origin.
    EndpointElsewhere,
    /// The upstream speaks no revision that is spoken here.
    RevisionUnsupported,
    /// The upstream answered a request of the gateway with this JSON-RPC error code.
    JsonRpcError(i64),
    /// The name service has no address for the host.
    DnsFailed,
    /// Nothing listens at the address.
    ConnectRefused,
    /// No connection was made in time.
    ConnectTimedOut,
    /// No connection was made; the system's error number.
    ConnectFailed(Option<i32>),
    /// The name leads to an address that no name may lead to.
    AddressRefused,
    /// The proxy does not lead there.
    ProxyRefused,
    /// The TLS handshake failed.
    TlsFailed,
    /// The connection broke, or the stream ended before the answer.
    ConnectionLost,
    /// A reused connection broke before the first byte of the answer.
    ReusedConnectionLost,
    /// No request can be made of the configured URL.
    UrlInvalid,
    /// The upstream answered with this HTTP status.
    HttpStatus(u16),
    /// The upstream closed the WebSocket with this code.
    WebSocketClosed(u16),
    /// The upstream refuses the configured credentials.
    CredentialsRejected,
    /// Who gives out tokens for the upstream refuses one.
    TokenRefused,
    /// The access token of a client cannot be exchanged: it has expired, or the authorization server refuses it.
    ClientTokenRefused,
    /// A person is to log in to the upstream.
    LoginRequired,
    /// Another login was made in place of the one whose sessions are open.
    LoginChanged,
    /// The login of a person allows less than the upstream wants.
    ScopeRequired,
    /// There is no token for the upstream now.
    TokenUnavailable,
    /// The upstream asked for a pause.
    RateLimited,
    /// The circuit breaker is open.
    BreakerOpen,
    /// The upstream no longer knows the session.
    SessionLost,
    /// The answer breaks the protocol.
    ResponseInvalid,
    /// A part of the answer is missing.
    ResponseIncomplete,
    /// The upstream did not take a message that has no answer.
    MessageRefused,
    /// A list could not be read.
    ListUnreadable,
    /// A list has not come yet.
    ListPending,
    /// The upstream does what the protocol does not allow.
    ProtocolViolation,
    /// The upstream cancelled a task.
    TaskCancelled,
    /// The call goes on with a request state that nobody waits for.
    StateUnknown,
    /// Too many calls or messages wait, or are in flight.
    QueueFull,
    /// The memory limit leaves no room.
    MemoryFull,
    /// An operator stopped the upstream.
    StoppedByOrder,
    /// An operator restarted the upstream.
    RestartedByOrder,
    /// The upstream starts only when an operator says so.
    StartsByOrder,
    /// The upstream was not used for long.
    Idle,
    /// The upstream is being stopped.
    Stopping,
    /// No more is known than the text says.
    Unknown,
}

impl CauseCode {
    /// The word for programs; it never changes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CommandNotFound => "command_not_found",
            Self::CommandNotExecutable => "command_not_executable",
            Self::DirectoryNotFound => "directory_not_found",
            Self::SpawnFailed(_) => "spawn_failed",
            Self::Exited(_) => "exited",
            Self::Killed(_) => "killed",
            Self::PipeClosed => "pipe_closed",
            Self::NotMcp => "not_mcp",
            Self::InputNotRead => "input_not_read",
            Self::Hung => "hung",
            Self::Starting => "starting",
            Self::TimedOut => "timed_out",
            Self::HandshakeRefused => "handshake_refused",
            Self::HandshakeInvalid => "handshake_invalid",
            Self::EndpointElsewhere => "endpoint_elsewhere",
            Self::RevisionUnsupported => "revision_unsupported",
            Self::JsonRpcError(_) => "json_rpc_error",
            Self::DnsFailed => "dns_failed",
            Self::ConnectRefused => "connect_refused",
            Self::ConnectTimedOut => "connect_timed_out",
            Self::ConnectFailed(_) => "connect_failed",
            Self::AddressRefused => "address_refused",
            Self::ProxyRefused => "proxy_refused",
            Self::TlsFailed => "tls_failed",
            Self::ConnectionLost => "connection_lost",
            Self::ReusedConnectionLost => "reused_connection_lost",
            Self::UrlInvalid => "url_invalid",
            Self::HttpStatus(_) => "http_status",
            Self::WebSocketClosed(_) => "websocket_closed",
            Self::CredentialsRejected => "credentials_rejected",
            Self::TokenRefused => "token_refused",
            Self::ClientTokenRefused => "client_token_refused",
            Self::LoginRequired => "login_required",
            Self::LoginChanged => "login_changed",
            Self::ScopeRequired => "scope_required",
            Self::TokenUnavailable => "token_unavailable",
            Self::RateLimited => "rate_limited",
            Self::BreakerOpen => "breaker_open",
            Self::SessionLost => "session_lost",
            Self::ResponseInvalid => "response_invalid",
            Self::ResponseIncomplete => "response_incomplete",
            Self::MessageRefused => "message_refused",
            Self::ListUnreadable => "list_unreadable",
            Self::ListPending => "list_pending",
            Self::ProtocolViolation => "protocol_violation",
            Self::TaskCancelled => "task_cancelled",
            Self::StateUnknown => "state_unknown",
            Self::QueueFull => "queue_full",
            Self::MemoryFull => "memory_full",
            Self::StoppedByOrder => "stopped_by_order",
            Self::RestartedByOrder => "restarted_by_order",
            Self::StartsByOrder => "starts_by_order",
            Self::Idle => "idle",
            Self::Stopping => "stopping",
            Self::Unknown => "unknown",
        }
    }

    /// The number of the kind: an exit status, a signal, an HTTP status, a JSON-RPC code, or the system's error number.
    pub fn number(self) -> Option<i64> {
        match self {
            Self::Exited(number) | Self::Killed(number) => Some(number.into()),
            Self::SpawnFailed(number) | Self::ConnectFailed(number) => number.map(i64::from),
            Self::HttpStatus(code) | Self::WebSocketClosed(code) => Some(code.into()),
            Self::JsonRpcError(code) => Some(code),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// The words between two signs, on each line that has both.
    fn words<'a>(text: &'a str, begin: &str, end: &str) -> BTreeSet<&'a str> {
        text.lines().flat_map(|line| line.split(begin).skip(1).filter_map(|rest| rest.split(end).next())).collect()
    }

    #[test]
    fn every_code_has_a_word_of_its_own_that_is_documented() {
        let own = include_str!("code.rs").split("#[cfg(test)]").next().unwrap();
        let code = words(own, "=> \"", "\"");
        assert_eq!(code.len(), own.matches("=> \"").count(), "no word is two codes'");
        let docs = include_str!("../../../../docs/observability.md");
        let section = docs.split("\n## ").find(|section| section.starts_with("Cause codes")).unwrap();
        let rows =
            section.lines().filter_map(|line| line.strip_prefix("| `")).filter_map(|row| row.split(" | ").next());
        let documented: BTreeSet<_> = rows.flat_map(|row| row.split(", ")).map(|word| word.trim_matches('`')).collect();
        assert_eq!(documented, code);
    }
}
