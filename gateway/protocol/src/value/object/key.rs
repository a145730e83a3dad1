//! The members that the gateway acts on, by their keys.

use crate::value::spelling;

macro_rules! keys {
    ($($(#[$doc:meta])* $key:ident = $text:literal,)*) => {
        /// A member that the gateway acts on; all others are carried unseen.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Key {
            $($(#[$doc])* $key,)*
        }

        /// In the order of [`Key`].
        pub(super) const KEYS: [&str; ALL.len()] = [$(text($text),)*];

        pub(super) const ALL: [Key; [$(Key::$key,)*].len()] = [$(Key::$key,)*];

        /// The key that is spelled just so: by its length and its bytes, without a look at all the others.
        fn exact(key: &[u8]) -> Option<Key> {
            Some(match key {
                $($text => Key::$key,)*
                _ => return None,
            })
        }
    };
}

const fn text(bytes: &'static [u8]) -> &'static str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // All of them are texts.
        Err(_) => "",
    }
}

keys! {
    /// `name`: a tool's or a prompt's.
    Name = b"name",
    /// `uri`: a resource's.
    Uri = b"uri",
    /// `_meta`.
    Meta = b"_meta",
    /// `arguments`.
    Arguments = b"arguments",
    /// `requestState`.
    RequestState = b"requestState",
    /// `inputResponses`.
    InputResponses = b"inputResponses",
    /// `resultType`.
    ResultType = b"resultType",
    /// `isError`.
    IsError = b"isError",
    /// `content`: of a tool's result.
    Content = b"content",
    /// `structuredContent`.
    StructuredContent = b"structuredContent",
    /// `ttlMs`.
    TtlMs = b"ttlMs",
    /// `cacheScope`.
    CacheScope = b"cacheScope",
    /// `progressToken`, in a progress notification.
    ProgressToken = b"progressToken",
    /// `requestId`, in a cancellation.
    RequestId = b"requestId",
    /// `taskId`.
    TaskId = b"taskId",
    /// `task`.
    Task = b"task",
    /// `ref`: what is to be completed.
    Reference = b"ref",
    /// `cursor`.
    Cursor = b"cursor",
    /// `level`: of log messages.
    Level = b"level",
    /// `uriTemplate`.
    UriTemplate = b"uriTemplate",
    /// `status`: of a task.
    Status = b"status",
    /// `inputRequests`.
    InputRequests = b"inputRequests",
    /// `nextCursor`.
    NextCursor = b"nextCursor",
    /// `notifications`: what a listen call wants to hear of.
    Notifications = b"notifications",
    /// `protocolVersion`.
    ProtocolVersion = b"protocolVersion",
    /// `capabilities`.
    Capabilities = b"capabilities",
}

/// The key, and whether it is spelled just so.
pub(super) fn recognise(key: &[u8]) -> Option<(Key, bool)> {
    exact(key).map(|key| (key, true)).or_else(|| Some((ALL[spelling::almost(key, &KEYS)?], false)))
}
