//! nginx as a reverse proxy before gateways, which can be given others while it serves.

use std::path::Path;
use std::process::Stdio;

use tokio::process::{Child, Command};

use crate::gateway::free_port;
use crate::peers::or_skip;
use crate::process;
use crate::scratch::Scratch;
use crate::within::until;

const PROGRAMS: [&str; 2] = ["/usr/sbin/nginx", "/usr/bin/nginx"];

/// A running nginx. It hands on nothing a second time: what its upstream refuses or drops is a 502 for the client.
pub struct Nginx {
    /// Where clients reach it, `http://host:port`.
    pub url: String,
    port: u16,
    child: Child,
    scratch: Scratch,
}

impl Nginx {
    /// Starts it before addresses, or nothing where it is not installed; then the reason stands on stderr.
    ///
    /// # Panics
    /// With `TRUNKLINE_REQUIRE_PEERS=1`, when it is not installed.
    pub async fn before(addresses: &[&str]) -> Option<Nginx> {
        let program = PROGRAMS.into_iter().find(|path| Path::new(path).exists());
        let program = *or_skip(&program.ok_or_else(|| "nginx is not installed".to_owned()))?;
        let (scratch, port) = (Scratch::new(), free_port());
        let file = scratch.file("nginx.conf", &config(scratch.path(), port, addresses));
        let child = Command::new(program)
            .arg("-c")
            .arg(&file)
            .arg("-p")
            .arg(scratch.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .expect("nginx starts");
        let nginx = Nginx { url: format!("http://127.0.0.1:{port}"), port, child, scratch };
        until("nginx listens", || async { std::net::TcpStream::connect(("127.0.0.1", port)).ok() }).await;
        Some(nginx)
    }

    /// Has it send new requests to other addresses; what runs goes on.
    pub fn turn_to(&self, addresses: &[&str]) {
        let _rewritten = self.scratch.file("nginx.conf", &config(self.scratch.path(), self.port, addresses));
        process::signal(self.pid(), "HUP");
    }

    /// What it has to complain about.
    #[must_use]
    pub fn complaints(&self) -> String {
        std::fs::read_to_string(self.scratch.path().join("error.log")).unwrap_or_default()
    }

    fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its workers end with it.
        process::signal(self.pid(), "TERM");
    }
}

/// Requests of a session go where the hash of its id leads, and all others round in a circle.
fn config(folder: &Path, port: u16, addresses: &[&str]) -> String {
    let servers: String = addresses.iter().map(|address| format!("server {address}; ")).collect();
    format!(
        "daemon off; worker_processes 1; pid {0}/nginx.pid; error_log {0}/error.log;\n{user}\
         events {{ worker_connections 512; }}\n\
         http {{ access_log off; client_body_temp_path {0}; proxy_temp_path {0}; fastcgi_temp_path {0}; uwsgi_temp_path {0}; scgi_temp_path {0};\n\
         map $http_mcp_session_id $gateways {{ \"\" any; default by_session; }}\n\
         upstream any {{ {servers}keepalive 32; }}\n\
         upstream by_session {{ hash $http_mcp_session_id consistent; {servers}keepalive 32; }}\n\
         server {{ listen 127.0.0.1:{port}; location / {{\n\
         proxy_pass http://$gateways; proxy_next_upstream off; proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_set_header Host localhost;\n\
         }} }} }}\n",
        folder.display(),
        // The folder is its user's alone.
        user = if is_root() { "user root;\n" } else { "" },
    )
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}
