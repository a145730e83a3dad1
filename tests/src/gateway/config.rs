//! A gateway's configuration, put together by a test.

use crate::frame::quote;
use crate::gateway::ADMIN_TOKEN;
use crate::process::Program;
use crate::upstream::{Upstream, Way};

/// TOML in the making.
#[derive(Clone, Debug, Default)]
pub struct Config {
    server: String,
    admin: String,
    sections: String,
    env: Vec<(String, String)>,
    is_tls: bool,
    /// More keys of the first listener, where listeners are written one by one.
    listed: Option<String>,
}

impl Config {
    /// Nothing but addresses on loopback.
    #[must_use]
    pub fn new() -> Config {
        Config::default()
    }

    /// With this upstream, by its own name.
    #[must_use]
    pub fn upstream(self, upstream: &Upstream) -> Config {
        self.upstream_with(upstream, "")
    }

    /// With this upstream and further keys of its own.
    #[must_use]
    pub fn upstream_with(self, upstream: &Upstream, keys: &str) -> Config {
        match upstream.way() {
            Way::Stdio => self.program(&upstream.name, &upstream.program(), keys),
            Way::Secured => {
                let keys = format!("{}\n{}", tls_of(upstream), patient(keys));
                self.section(&format!("[upstreams.{}]\nurl = \"{}\"\n{keys}", upstream.name, upstream.url()))
            }
            Way::Sse => self.section(&format!(
                "[upstreams.{}]\ntransport = \"sse\"\nurl = \"{}\"\n{}",
                upstream.name,
                upstream.url(),
                patient(keys)
            )),
            _ => {
                self.section(&format!("[upstreams.{}]\nurl = \"{}\"\n{}", upstream.name, upstream.url(), patient(keys)))
            }
        }
    }

    /// With any program as an upstream.
    #[must_use]
    pub fn program(self, name: &str, program: &Program, keys: &str) -> Config {
        // What a program is given is not to be expanded.
        let args = program.args.iter().map(|arg| quote(&arg.replace('$', "$$"))).collect::<Vec<_>>().join(", ");
        let path = quote(&program.path.display().to_string());
        self.section(&format!("[upstreams.{name}]\ncommand = {path}\nargs = [{args}]\n{}", patient(keys)))
    }

    /// With more keys in `[server]`.
    #[must_use]
    pub fn server(mut self, keys: &str) -> Config {
        self.server.push_str(keys);
        self.server.push('\n');
        self
    }

    /// With an endpoint that is reached by TLS, as a section says.
    #[must_use]
    pub fn over_tls(mut self) -> Config {
        self.is_tls = true;
        self
    }

    /// With its endpoint as an entry of the list of listeners, with these keys besides its address.
    #[must_use]
    pub fn listed(mut self, keys: &str) -> Config {
        self.listed = Some(keys.to_owned());
        self
    }

    /// With a Unix socket beside its port: [`Gateway::reach_by`] leads there.
    ///
    /// [`Gateway::reach_by`]: crate::gateway::Gateway::reach_by
    #[must_use]
    pub fn with_socket(self) -> Config {
        self.listed("").section(&format!("[[server.listeners]]\naddress = \"unix:{}\"", socket("$FILE")))
    }

    /// How URLs of its endpoint begin.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.is_tls { "https" } else { "http" }
    }

    /// With more keys in `[admin]`.
    #[must_use]
    pub fn admin(mut self, keys: &str) -> Config {
        self.admin.push_str(keys);
        self.admin.push('\n');
        self
    }

    /// With a variable in the gateway's own environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Config {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// What is added to the gateway's own environment.
    #[must_use]
    pub fn environment(&self) -> &[(String, String)] {
        &self.env
    }

    /// With a section as it is.
    #[must_use]
    pub fn section(mut self, text: &str) -> Config {
        self.sections.push('\n');
        self.sections.push_str(text);
        self.sections.push('\n');
        self
    }

    /// The file's text.
    #[must_use]
    pub fn text(&self, port: u16, admin_port: u16) -> String {
        let address = format!("\"127.0.0.1:{port}\"");
        let server = match &self.listed {
            None => format!("listen = {address}\n{}", self.server),
            Some(keys) => format!("{}\n[[server.listeners]]\naddress = {address}\n{keys}", self.server),
        };
        format!(
            "[server]\n{server}\n[admin]\nlisten = \"127.0.0.1:{admin_port}\"\ntoken = \"{ADMIN_TOKEN}\"\n{}\n{}",
            self.admin, self.sections
        )
    }
}

/// Where the socket of a gateway is whose configuration is this file.
pub(crate) fn socket(file: &str) -> String {
    format!("{file}.run/mcp.sock")
}

/// Whom the gateway has to believe an upstream's certificate.
pub(crate) fn tls_of(upstream: &Upstream) -> String {
    let ca = upstream.ca().expect("it has a certificate").display().to_string();
    format!("tls = {{ ca = {} }}", quote(&ca))
}

/// Keys of an upstream with which calls wait for its start, however long that takes on this machine; unless these say otherwise.
fn patient(keys: &str) -> String {
    match keys.contains("start_wait") {
        true => keys.to_owned(),
        false => format!("start_wait = \"50s\"\n{keys}"),
    }
}
