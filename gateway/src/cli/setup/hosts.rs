//! The hosts that are known: where each keeps its file, and what an entry of ours looks like there.

use std::path::PathBuf;

use crate::config::fault::printable;
use crate::config::import::{Format, is_of_opencode_two, told};
use crate::config::source::Environment;

/// One host.
#[derive(Debug)]
pub(crate) struct Host {
    /// As it is named on the command line.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// Its file of the user; of several the first that is there, else the first. `HOME`, `CONFIG` and variables of its own stand
    /// before the path.
    user: &'static [(Base, &'static str)],
    /// Its file of a project.
    project: Option<&'static str>,
    /// Under which keys its servers stand, unless its file says otherwise: see `keys`.
    pub(crate) root: &'static [&'static str],
    pub(crate) form: Form,
    /// What to do until it sees a change.
    pub(crate) after: &'static str,
    pub(crate) limits: Limits,
}

/// What a path of a host begins with.
#[derive(Clone, Copy, Debug)]
enum Base {
    Home,
    /// `$XDG_CONFIG_HOME`, else `~/.config`.
    Config,
    /// The folder in this variable; without it the path is below the home folder, with the second name before it.
    Own(&'static str, &'static str),
}

/// What an entry looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `command` and `args`.
    Plain,
    /// With `type: "stdio"`.
    Typed,
    /// With `type: "local"` and `tools`.
    Copilot,
    /// With `timeout` in milliseconds.
    Gemini,
    /// With `type: "local"` and one list.
    OpenCode,
    /// TOML, with time-outs in seconds.
    Codex,
    /// YAML: a table of extensions, with time-outs in seconds.
    Goose,
    /// YAML: a list.
    Continue,
}

impl Form {
    /// What the file is written in.
    pub(crate) fn format(self) -> Format {
        match self {
            Self::Codex => Format::Toml,
            Self::Goose | Self::Continue => Format::Yaml,
            _ => Format::Json,
        }
    }
}

/// The variables that every program of a desktop has.
pub(crate) const EVERYWHERE: [&str; 8] = ["HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR", "PWD"];

/// What a host takes at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// So many tools.
    pub(crate) tools: Option<usize>,
    /// So many characters of a tool's name, with what the host puts before it.
    pub(crate) name: usize,
    /// What the host puts before the name that we give a tool, in characters.
    pub(crate) before: usize,
}

const fn limits(tools: Option<usize>, name: usize, before: usize) -> Limits {
    Limits { tools, name, before }
}

const RESTART: &str = "restart it";
const BY_ITSELF: &str = "it reads the file by itself";

/// All of them.
pub(crate) const HOSTS: [Host; 16] = [
    Host {
        id: "claude-desktop",
        title: "Claude Desktop",
        user: &[(Base::Config, "Claude/claude_desktop_config.json")],
        project: None,
        root: &["mcpServers"],
        form: Form::Plain,
        after: RESTART,
        limits: limits(None, 64, 0),
    },
    Host {
        id: "claude-code",
        title: "Claude Code",
        user: &[(Base::Own("CLAUDE_CONFIG_DIR", ""), ".claude.json")],
        project: Some(".mcp.json"),
        root: &["mcpServers"],
        form: Form::Typed,
        after: "start a new session; a project's file is asked about once",
        // mcp__trunkline__
        limits: limits(None, 128, 16),
    },
    Host {
        id: "cursor",
        title: "Cursor",
        user: &[(Base::Home, ".cursor/mcp.json")],
        project: Some(".cursor/mcp.json"),
        root: &["mcpServers"],
        form: Form::Plain,
        after: "switch the server on under Settings, MCP",
        limits: limits(Some(80), 60, 9),
    },
    Host {
        id: "vscode",
        title: "VS Code",
        user: &[(Base::Config, "Code/User/mcp.json")],
        project: Some(".vscode/mcp.json"),
        root: &["servers"],
        form: Form::Typed,
        after: "run `MCP: List Servers` and start it",
        limits: limits(Some(128), 64, 14),
    },
    Host {
        id: "copilot-cli",
        title: "Copilot CLI",
        user: &[(Base::Own("COPILOT_HOME", ".copilot/"), "mcp-config.json")],
        project: Some(".github/mcp.json"),
        root: &["mcpServers"],
        form: Form::Copilot,
        after: RESTART,
        limits: limits(Some(128), 64, 10),
    },
    Host {
        id: "windsurf",
        title: "Windsurf",
        user: &[(Base::Home, ".codeium/windsurf/mcp_config.json")],
        project: None,
        root: &["mcpServers"],
        form: Form::Plain,
        after: "refresh its list of servers",
        limits: limits(Some(100), 64, 0),
    },
    Host {
        id: "zed",
        title: "Zed",
        user: &[(Base::Config, "zed/settings.json")],
        project: Some(".zed/settings.json"),
        root: &["context_servers"],
        form: Form::Plain,
        after: BY_ITSELF,
        limits: limits(None, 64, 0),
    },
    Host {
        id: "codex",
        title: "Codex",
        user: &[(Base::Own("CODEX_HOME", ".codex/"), "config.toml")],
        project: Some(".codex/config.toml"),
        root: &["mcp_servers"],
        form: Form::Codex,
        after: RESTART,
        limits: limits(None, 64, 16),
    },
    Host {
        id: "gemini",
        title: "Gemini CLI",
        user: &[(Base::Home, ".gemini/settings.json")],
        project: Some(".gemini/settings.json"),
        root: &["mcpServers"],
        form: Form::Gemini,
        after: RESTART,
        limits: limits(None, 63, 14),
    },
    Host {
        id: "cline",
        title: "Cline",
        user: &[
            (Base::Config, "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
            (Base::Home, ".cline/mcp.json"),
        ],
        project: None,
        root: &["mcpServers"],
        form: Form::Plain,
        after: BY_ITSELF,
        limits: limits(None, 64, 0),
    },
    Host {
        id: "opencode",
        title: "opencode",
        user: &[(Base::Config, "opencode/opencode.json"), (Base::Config, "opencode/opencode.jsonc")],
        project: Some("opencode.json"),
        root: &["mcp"],
        form: Form::OpenCode,
        after: RESTART,
        limits: limits(None, 64, 10),
    },
    Host {
        id: "lm-studio",
        title: "LM Studio",
        user: &[(Base::Home, ".lmstudio/mcp.json")],
        project: None,
        root: &["mcpServers"],
        form: Form::Plain,
        after: BY_ITSELF,
        limits: limits(None, 64, 0),
    },
    Host {
        id: "kiro",
        title: "Kiro",
        user: &[(Base::Home, ".kiro/settings/mcp.json")],
        project: Some(".kiro/settings/mcp.json"),
        root: &["mcpServers"],
        form: Form::Plain,
        after: BY_ITSELF,
        limits: limits(None, 64, 0),
    },
    Host {
        id: "amp",
        title: "Amp",
        user: &[(Base::Config, "amp/settings.json")],
        project: None,
        root: &["amp.mcpServers"],
        form: Form::Plain,
        after: RESTART,
        limits: limits(None, 64, 0),
    },
    Host {
        id: "goose",
        title: "Goose",
        user: &[(Base::Config, "goose/config.yaml")],
        project: None,
        root: &["extensions"],
        form: Form::Goose,
        after: "start a new session",
        // trunkline__
        limits: limits(None, 64, 11),
    },
    Host {
        id: "continue",
        title: "Continue",
        user: &[(Base::Own("CONTINUE_GLOBAL_DIR", ".continue/"), "config.yaml")],
        project: Some(".continue/mcpServers/trunkline.yaml"),
        root: &["mcpServers"],
        form: Form::Continue,
        after: "it reads the file by itself; servers are used in its agent mode alone",
        // trunkline_
        limits: limits(None, 64, 10),
    },
];

impl Host {
    /// Under which keys a server of this name stands, or is put, in a file with this text. opencode 2 has its servers elsewhere than its first
    /// version, whose files it reads.
    pub(crate) fn keys(&self, text: &str, name: &str) -> &'static [&'static str] {
        match self.form {
            Form::OpenCode if is_of_opencode_two(text, name) => &["mcp", "servers"],
            _ => self.root,
        }
    }

    /// What a person does once the entry is taken out.
    pub(crate) fn after_removal(&self) -> &'static str {
        if self.after.starts_with(BY_ITSELF) { BY_ITSELF } else { RESTART }
    }

    /// The host of this name; an error names those that are known.
    pub(crate) fn named(id: &str) -> Result<&'static Self, String> {
        HOSTS.iter().find(|host| host.id == id).ok_or_else(|| {
            let known: Vec<_> = HOSTS.iter().map(|host| host.id).collect();
            format!("unknown host `{}`{}", printable(id), told(id, &known))
        })
    }

    /// Where its file of the user may be; the first is where it is made.
    pub(crate) fn user_files(&self, environment: &Environment) -> Vec<PathBuf> {
        let of = |name: &str| environment.get(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let home = of("HOME");
        let place = |(base, path): &(Base, &str)| {
            Some(match base {
                Base::Home => home.clone()?.join(path),
                Base::Config => of("XDG_CONFIG_HOME").or_else(|| Some(home.clone()?.join(".config")))?.join(path),
                Base::Own(variable, below) => match of(variable) {
                    Some(folder) => folder.join(path),
                    None => home.clone()?.join(format!("{below}{path}")),
                },
            })
        };
        self.user.iter().filter_map(place).collect()
    }

    /// The file of the user that is meant: the one that is there.
    pub(crate) fn user_file(&self, environment: &Environment) -> Option<PathBuf> {
        let all = self.user_files(environment);
        all.iter().find(|path| path.exists()).or_else(|| all.first()).cloned()
    }

    /// All files of the project in this folder, where the host reads a whole folder of them.
    pub(crate) fn project_files(&self) -> Vec<PathBuf> {
        let Some(file) = self.project_file() else { return Vec::new() };
        let folder = file.parent().filter(|_| self.form == Form::Continue).and_then(|folder| folder.read_dir().ok());
        let is_read = |path: &PathBuf| {
            let ending = path.extension().and_then(|ending| ending.to_str());
            ending.is_some_and(|ending| ["yaml", "yml", "json"].contains(&ending))
        };
        let Some(folder) = folder else { return vec![file] };
        let mut files: Vec<_> = folder.flatten().map(|entry| entry.path()).filter(is_read).collect();
        files.sort();
        files
    }

    /// The file of the project in this folder.
    pub(crate) fn project_file(&self) -> Option<PathBuf> {
        std::path::absolute(self.project?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::caller::ClientSession;

    #[test]
    fn a_gateway_knows_the_limits_that_the_doctor_knows() {
        let limited = HOSTS.iter().filter_map(|host| Some((host.title, host.limits.tools?)));
        let mut limited: Vec<_> = limited.collect();
        let mut known: Vec<_> = ClientSession::host_limits().collect();
        limited.sort_unstable();
        known.sort_unstable();
        assert_eq!(limited, known);
    }
}
