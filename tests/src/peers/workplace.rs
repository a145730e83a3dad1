//! A fresh folder for one test: something for the upstreams to work on, and the host's configuration file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::peers::Peers;

/// A folder that nothing has been started in before; it goes when this is dropped.
#[derive(Debug)]
pub struct Workplace {
    dir: PathBuf,
}

impl Workplace {
    /// Makes the folder with a file, an empty repository and a home.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("trunkline-peers-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        // One upstream compares real paths, and the folder for temporary files may be a link.
        let temp = std::env::temp_dir().canonicalize().expect("there is a folder for temporary files");
        let place = Self { dir: temp.join(name) };
        for folder in ["files", "home"] {
            fs::create_dir_all(place.dir.join(folder)).expect("a folder for the test");
        }
        fs::write(place.dir.join("files/hello.txt"), "hello\n").expect("a file for the test");
        let git = Command::new("git").args(["init", "--quiet"]).arg(place.repository()).status();
        assert!(git.expect("git runs").success(), "git init works");
        fs::write(place.repository().join("untracked.txt"), "new\n").expect("a file for the test");
        place
    }

    /// The folder itself.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The folder that the filesystem upstream may see: it holds `hello.txt`.
    pub fn files(&self) -> PathBuf {
        self.dir.join("files")
    }

    /// The repository of the git upstream: it holds `untracked.txt`.
    pub fn repository(&self) -> PathBuf {
        self.dir.join("repository")
    }

    /// An empty home, so that no one's settings, caches or state reach the test.
    pub fn home(&self) -> PathBuf {
        self.dir.join("home")
    }

    /// What every upstream of this place carries in its environment, so that it can be found among all processes.
    pub fn mark(&self) -> String {
        self.dir.display().to_string()
    }

    /// Writes a host's file with the five reference servers.
    pub fn five_upstreams(&self, peers: &Peers) -> PathBuf {
        self.hosts_file(&self.five_entries(peers))
    }

    /// The entries of the five reference servers: `everything`, `filesystem`, `memory`, `time`, `git`.
    pub fn five_entries(&self, peers: &Peers) -> Value {
        json!({
            "everything": self.package(peers, "everything", &[]),
            "filesystem": self.package(peers, "filesystem", &[&self.files().display().to_string()]),
            "memory": self.package(peers, "memory", &[]),
            "time": self.upstream(&peers.python_bin.join("mcp-server-time"), &["--local-timezone", "Etc/UTC"]),
            "git": self.upstream(
                &peers.python_bin.join("mcp-server-git"),
                &["--repository", &self.repository().display().to_string()],
            ),
        })
    }

    /// Writes a host's file with these entries.
    pub fn hosts_file(&self, upstreams: &Value) -> PathBuf {
        let path = self.dir.join("mcp.json");
        let text = serde_json::to_string_pretty(&json!({ "mcpServers": upstreams })).expect("JSON can be written");
        fs::write(&path, text).expect("the host's file can be written");
        path
    }

    /// The entry of a reference server from npm, started by node itself.
    pub fn package(&self, peers: &Peers, name: &str, args: &[&str]) -> Value {
        let script = peers.node_dir.join(format!("node_modules/@modelcontextprotocol/server-{name}/dist/index.js"));
        let script = script.display().to_string();
        let args: Vec<&str> = std::iter::once(script.as_str()).chain(args.iter().copied()).collect();
        self.upstream(&peers.node, &args)
    }

    /// The entry of any program.
    pub fn upstream(&self, command: &Path, args: &[&str]) -> Value {
        json!({
            "command": command,
            "args": args,
            "env": { "TRUNKLINE_TEST_MARK": self.mark(), "MEMORY_FILE_PATH": self.dir.join("memory.jsonl") },
        })
    }
}

impl Default for Workplace {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}
