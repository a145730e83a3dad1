//! The processes of a benchmark: upstreams, nginx, the gateway; what they cost, read from /proc.

use anyhow::{Context, Result, bail};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use trunkline_tests::gateway::ADMIN_TOKEN;

/// A process that ends with its owner.
pub(crate) struct Process {
    child: Child,
}

impl Process {
    /// Starts a program that is expected to listen at `address`, where one is given.
    pub(crate) fn start(command: &mut Command, address: Option<&str>) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().with_context(|| name.clone())?;
        let mut process = Self { child };
        let Some(address) = address else { return Ok(process) };
        let deadline = Instant::now() + Duration::from_secs(60);
        while std::net::TcpStream::connect(address).is_err() {
            if let Some(status) = process.child.try_wait()? {
                bail!("{name} ended with {status} before it listened at {address}");
            }
            if Instant::now() > deadline {
                bail!("{name} did not listen at {address} within a minute");
            }
            pause();
        }
        Ok(process)
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// CPU time of all its threads so far.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let mut nanoseconds = 0;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = std::fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
            nanoseconds += text.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(Duration::from_nanos(nanoseconds))
    }

    /// Resident memory in KiB.
    pub(crate) fn resident(&self) -> Result<u64> {
        self.status("VmRSS:")
    }

    /// Resident memory in KiB that no file backs: heap and stacks.
    pub(crate) fn resident_anon(&self) -> Result<u64> {
        self.status("RssAnon:")
    }

    /// A size in KiB from `/proc/PID/status`.
    fn status(&self, key: &str) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|line| line.starts_with(key)).with_context(|| format!("no {key}"))?;
        line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).with_context(|| format!("{key} is no number"))
    }

    /// Page faults so far that needed no disk.
    pub(crate) fn faults(&self) -> Result<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name of the program, in parentheses, may hold spaces.
        let fields = stat.rsplit_once(')').context("no program name")?.1;
        fields.split_whitespace().nth(7).and_then(|n| n.parse().ok()).context("minflt is no number")
    }

    /// Asks it to end and waits.
    pub(crate) fn stop(mut self) -> Result<()> {
        let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                bail!("process {} did not end within 30 s of SIGTERM", self.child.id());
            }
            pause();
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).stderr(Stdio::null()).status();
        let _ = self.child.wait();
    }
}

/// A moment between two looks at a process.
pub(crate) fn pause() {
    #[allow(clippy::disallowed_methods, reason = "a program that measures, not a test")]
    std::thread::sleep(Duration::from_millis(10));
}

/// A port that was free a moment ago.
pub(crate) fn free_address() -> Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}

/// A program that was built beside this one; the gateway may be another one: `$TRUNKLINE_BIN`.
pub(crate) fn sibling(name: &str) -> Result<PathBuf> {
    let path = match std::env::var_os("TRUNKLINE_BIN").filter(|_| name == "trunkline") {
        Some(given) => PathBuf::from(given),
        None => std::env::current_exe()?.with_file_name(name),
    };
    if !path.exists() {
        bail!("{} is missing: run `cargo build --release --workspace --bins --locked` first", path.display());
    }
    Ok(path)
}

/// Starts an HTTP upstream with so many tools; returns it and its address.
pub(crate) fn http_upstream(tools: usize) -> Result<(Process, String)> {
    let address = free_address()?;
    let mut command = Command::new(sibling("bench-upstream")?);
    let process = Process::start(command.arg(format!("http:{address}")).arg(tools.to_string()), Some(&address))?;
    Ok((process, address))
}

/// Starts an upstream with one tool that is reached another way: `ws`, `sse`, `h2`, or `unix` with the path of its socket.
pub(crate) fn upstream_by(way: &str, rest: &[&str]) -> Result<(Process, String)> {
    let address = free_address()?;
    let mut command = Command::new(sibling("bench-upstream")?);
    command.arg(format!("{way}:{address}")).arg("1").args(rest);
    Ok((Process::start(&mut command, Some(&address))?, address))
}

/// Starts nginx as a plain proxy with one worker before an address; `None` where nginx is not installed.
pub(crate) fn nginx(upstream: &str, folder: &Path) -> Result<Option<(Process, String)>> {
    let address = free_address()?;
    let config = format!(
        "daemon off; worker_processes 1; pid {0}/nginx.pid; error_log {0}/error.log; master_process off;\n\
         events {{ worker_connections 1024; }}\n\
         http {{ access_log off; client_body_temp_path {0}; proxy_temp_path {0}; fastcgi_temp_path {0}; uwsgi_temp_path {0}; scgi_temp_path {0};\n\
         keepalive_requests 10000000;\n\
         upstream u {{ server {upstream}; keepalive 128; keepalive_requests 10000000; }}\n\
         server {{ listen {address}; location / {{ proxy_pass http://u; proxy_http_version 1.1; proxy_set_header Connection \"\"; }} }} }}\n",
        folder.display()
    );
    let file = folder.join("nginx.conf");
    std::fs::write(&file, config)?;
    let Some(program) = ["/usr/sbin/nginx", "/usr/bin/nginx"].into_iter().find(|path| Path::new(path).exists()) else {
        return Ok(None);
    };
    let process = Process::start(Command::new(program).arg("-c").arg(&file).arg("-p").arg(folder), Some(&address))?;
    Ok(Some((process, address)))
}

/// One upstream of the gateway, as its configuration names it.
#[derive(Clone)]
pub(crate) enum Behind<'a> {
    /// A Streamable HTTP upstream at this address.
    Http(&'a str),
    /// A child with so many tools.
    Stdio(usize),
    /// With these keys.
    With(String),
}

/// These upstreams as a configuration has them.
pub(crate) fn upstreams(behind: &[Behind<'_>]) -> Result<String> {
    let program = sibling("bench-upstream")?;
    let all = behind.iter().enumerate().map(|(at, one)| match one {
        Behind::Http(upstream) => format!("[upstreams.u{at}]\nurl = \"http://{upstream}/mcp\"\n"),
        Behind::With(keys) => format!("[upstreams.u{at}]\n{keys}\n"),
        Behind::Stdio(tools) => {
            format!("[upstreams.u{at}]\ncommand = \"{}\"\nargs = [\"stdio\", \"{tools}\"]\n", program.display())
        }
    });
    Ok(all.collect())
}

/// Starts the gateway over some upstreams; `wrapper` runs it under another program.
pub(crate) fn gateway(behind: &[Behind<'_>], folder: &Path, wrapper: &[&str]) -> Result<(Process, String)> {
    let address = free_address()?;
    let process = listening(behind, folder, &format!("listen = \"{address}\""), &address, wrapper)?;
    Ok((process, address))
}

/// The same with these keys of `[server]`, which have it listen at this address at least.
pub(crate) fn listening(
    behind: &[Behind<'_>],
    folder: &Path,
    keys: &str,
    address: &str,
    wrapper: &[&str],
) -> Result<Process> {
    let admin = free_address()?;
    let mut config = format!(
        "[server]\n{keys}\n[admin]\nlisten = \"{admin}\"\ntoken = \"{ADMIN_TOKEN}\"\n[log]\nlevel = \"warn\"\n"
    );
    config += &upstreams(behind)?;
    let file = folder.join(format!("gateway-{}.toml", address.replace(':', "-")));
    std::fs::write(&file, config)?;
    let trunkline = sibling("trunkline")?;
    let mut words = wrapper.iter().map(Path::new).chain([trunkline.as_path()]);
    let mut command = Command::new(words.next().context("there is always the gateway itself")?);
    command.args(words).args(["serve", "--config"]).arg(&file).stderr(Stdio::null());
    command.env("TRUNKLINE_CATALOG__CACHE", "false");
    let process = Process::start(&mut command, Some(address))?;
    await_ready(&admin)?;
    Ok(process)
}

/// Waits until every upstream is ready.
pub(crate) fn await_ready(admin: &str) -> Result<()> {
    use std::io::{Read, Write};
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let mut text = String::new();
        if let Ok(mut socket) = std::net::TcpStream::connect(admin) {
            let authorization = format!("authorization: Bearer {ADMIN_TOKEN}\r\n");
            write!(
                socket,
                "GET /readyz?verbose&format=json HTTP/1.1\r\nhost: {admin}\r\n{authorization}connection: close\r\n\r\n"
            )?;
            socket.read_to_string(&mut text)?;
        }
        let ready = text.matches("\"ready\"").count();
        if ready > 0 && ["\"starting\"", "\"backing_off\"", "\"failed\""].iter().all(|state| !text.contains(state)) {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("the upstreams are not ready: {text}");
        }
        pause();
    }
}
