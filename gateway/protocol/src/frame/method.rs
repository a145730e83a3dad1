//! The methods that the gateway knows by name; every other one is carried as text.

use crate::json;

macro_rules! methods {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// A request's or a notification's method.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum Method {
            $($(#[$doc])* $variant,)*
            /// One that the gateway does not know.
            Other(Box<str>),
        }

        impl Method {
            /// The method of a name.
            pub fn parse(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)*
                    other => Self::Other(other.into()),
                }
            }

            /// The name on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Other(text) => text,
                }
            }

            /// The name as a label of bounded number: `_other` for what the gateway does not know.
            pub fn label(&self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Other(_) => "_other",
                }
            }

            /// Its place among all methods; the last is that of what the gateway does not know.
            pub fn place(&self) -> usize {
                enum Place {
                    $($variant,)*
                    Other,
                }
                match self {
                    $(Self::$variant => Place::$variant as usize,)*
                    Self::Other(_) => Place::Other as usize,
                }
            }
        }
    };
}

methods! {
    /// The handshake of legacy peers.
    Initialize = "initialize",
    /// What a stateless peer offers.
    Discover = "server/discover",
    /// Liveness, legacy only.
    Ping = "ping",
    /// List tools.
    ToolsList = "tools/list",
    /// Call a tool.
    ToolsCall = "tools/call",
    /// List resources.
    ResourcesList = "resources/list",
    /// List resource templates.
    TemplatesList = "resources/templates/list",
    /// Read a resource.
    ResourcesRead = "resources/read",
    /// Subscribe to a resource, legacy only.
    ResourcesSubscribe = "resources/subscribe",
    /// Unsubscribe, legacy only.
    ResourcesUnsubscribe = "resources/unsubscribe",
    /// A stream of changes, modern only.
    Listen = "subscriptions/listen",
    /// List prompts.
    PromptsList = "prompts/list",
    /// Get a prompt.
    PromptsGet = "prompts/get",
    /// Complete an argument.
    Complete = "completion/complete",
    /// Set the session's log level, legacy only.
    SetLevel = "logging/setLevel",
    /// A question for the client's model.
    Sampling = "sampling/createMessage",
    /// A question for the client's roots.
    RootsList = "roots/list",
    /// A question for the person.
    Elicitation = "elicitation/create",
    /// How a task stands.
    TasksGet = "tasks/get",
    /// A task's result, 2025-11-25 only.
    TasksResult = "tasks/result",
    /// All tasks, 2025-11-25 only.
    TasksList = "tasks/list",
    /// A task is withdrawn.
    TasksCancel = "tasks/cancel",
    /// A task's questions are answered, modern only.
    TasksUpdate = "tasks/update",
    /// How a task stands now, 2025-11-25 only.
    TaskStatus = "notifications/tasks/status",
    /// How a task stands now, modern only.
    TaskChanged = "notifications/tasks",
    /// The handshake's end.
    Initialized = "notifications/initialized",
    /// A request is withdrawn.
    Cancelled = "notifications/cancelled",
    /// A request goes on.
    Progress = "notifications/progress",
    /// A log message.
    Message = "notifications/message",
    /// The tools changed.
    ToolsChanged = "notifications/tools/list_changed",
    /// The prompts changed.
    PromptsChanged = "notifications/prompts/list_changed",
    /// The resources changed.
    ResourcesChanged = "notifications/resources/list_changed",
    /// A resource changed.
    ResourceUpdated = "notifications/resources/updated",
    /// The client's roots changed.
    RootsChanged = "notifications/roots/list_changed",
    /// A page that the person was sent to was seen to, 2025-11-25 only.
    ElicitationComplete = "notifications/elicitation/complete",
    /// A listen call was taken.
    Acknowledged = "notifications/subscriptions/acknowledged",
}

impl Method {
    /// The method of a raw JSON string; `None` where it is none.
    pub(crate) fn of_raw(raw: &[u8]) -> Option<Self> {
        // By far the most frequent one.
        if raw == b"\"tools/call\"" {
            return Some(Self::ToolsCall);
        }
        json::unquote(raw).map(|text| Self::parse(&text))
    }

    /// Whether the name is a notification's.
    pub fn is_notification(&self) -> bool {
        self.as_str().starts_with("notifications/")
    }

    /// Whether the call may take as long as its client waits: `request_timeout` does not bound it.
    pub fn is_long(&self) -> bool {
        matches!(self, Self::ToolsCall | Self::PromptsGet | Self::ResourcesRead | Self::TasksResult)
    }
}
