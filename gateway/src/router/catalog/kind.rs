//! The four kinds of things that are listed.

use crate::protocol::capabilities::Supports;
use crate::protocol::frame::Method;

/// One of the four lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Kind {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// The list that a method asks for.
    pub(crate) fn listed_by(method: &Method) -> Option<Self> {
        Some(match method {
            Method::ToolsList => Self::Tools,
            Method::PromptsList => Self::Prompts,
            Method::ResourcesList => Self::Resources,
            Method::TemplatesList => Self::Templates,
            _ => return None,
        })
    }

    /// The member of a list result that holds the items.
    pub(crate) fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// Whether who supports this has any.
    pub(crate) fn is_of(self, supports: &Supports) -> bool {
        match self {
            Self::Tools => supports.tools,
            Self::Prompts => supports.prompts,
            Self::Resources | Self::Templates => supports.resources,
        }
    }

    /// What one item is called in a message.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Tools => "tool",
            Self::Prompts => "prompt",
            Self::Resources | Self::Templates => "resource",
        }
    }
}
