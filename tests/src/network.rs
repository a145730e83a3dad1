//! What lies around the gateway, made by a test: a network of its own that can be cut, and names that nobody answers for.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::process::Command;

use crate::process::Program;
use crate::scratch::Scratch;

/// A network in which only the gateway is; it reaches this test, and nothing else, by a wire.
#[derive(Debug)]
pub struct Network {
    name: String,
    /// What this test is called there.
    pub near: Ipv4Addr,
}

impl Network {
    /// Makes it.
    ///
    /// # Errors
    /// Why this machine does not let us.
    pub fn make() -> Result<Network, String> {
        // A block of four addresses out of those that are kept for trying out networks, another one for each process.
        let own = std::process::id();
        let [third, block] = [(own >> 6) % 256, own % 64 * 4].map(|part| u8::try_from(part).expect("below 256"));
        let (near, far) = (Ipv4Addr::new(198, 18, third, block + 1), Ipv4Addr::new(198, 18, third, block + 2));
        let network = Network { name: format!("trunkline{own}"), near };
        let (ours, theirs) = (network.wire(), format!("tb{own}"));
        run("ip", &["netns", "add", &network.name])?;
        run("ip", &["link", "add", &ours, "type", "veth", "peer", "name", &theirs])?;
        run("ip", &["link", "set", &theirs, "netns", &network.name])?;
        run("ip", &["address", "add", &format!("{near}/30"), "dev", &ours])?;
        run("ip", &["link", "set", &ours, "up"])?;
        for words in [
            &["address", "add", &format!("{far}/30"), "dev", &theirs][..],
            &["link", "set", &theirs, "up"],
            &["link", "set", "lo", "up"],
        ] {
            run("ip", &[&["-n", &network.name], words].concat())?;
        }
        Ok(network)
    }

    fn wire(&self) -> String {
        format!("ta{}", std::process::id())
    }

    fn enter(&self) -> [String; 2] {
        ["nsenter".to_owned(), format!("--net=/run/netns/{}", self.name)]
    }

    /// The same program, there.
    #[must_use]
    pub fn inside(&self, program: &Program) -> Program {
        let [enter, place] = self.enter();
        let args = [place, program.path.display().to_string()].into_iter().chain(program.args.iter().cloned());
        Program { path: enter.into(), args: args.collect(), env: program.env.clone() }
    }

    /// From now on nothing passes in either direction, and nobody is told.
    ///
    /// # Panics
    /// When the system does not do it.
    pub fn cut(&self) {
        run("ip", &["link", "set", &self.wire(), "down"]).expect("a wire that is ours can be cut");
    }

    /// The connections from there to this test, each as `ss` shows it, with its timer.
    ///
    /// # Panics
    /// When they cannot be looked at.
    #[must_use]
    pub fn connections(&self) -> Vec<String> {
        let [enter, place] = self.enter();
        let near = self.near.to_string();
        let shown = run(&enter, &[&place, "ss", "-tnoH", "state", "established", "dst", &near]);
        shown.expect("sockets can be looked at").lines().map(str::to_owned).collect()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // What is not there any more need not be taken away.
        let _gone = run("ip", &["link", "delete", &self.wire()]);
        let _gone = run("ip", &["netns", "delete", &self.name]);
    }
}

/// A system of names in which this one means loopback, until it is forgotten: then nobody answers for it, for minutes.
pub struct Names {
    /// Asked by whoever looks for a name, and deaf.
    _deaf: UdpSocket,
    hosts: PathBuf,
    resolver: PathBuf,
    _scratch: Scratch,
}

impl Names {
    /// Makes it.
    ///
    /// # Errors
    /// Why this machine does not let us.
    pub fn make(name: &str) -> Result<Names, String> {
        let [_, _, high, low] = std::process::id().to_be_bytes();
        let place = Ipv4Addr::new(127, 53, high, low.max(1));
        let deaf = UdpSocket::bind((place, 53)).map_err(|error| format!("{place} port 53: {error}"))?;
        let scratch = Scratch::new();
        let resolver = format!("nameserver {place}\noptions timeout:30 attempts:3\n");
        let names = Names {
            hosts: scratch.file("hosts", &format!("127.0.0.1 localhost\n127.0.0.1 {name}\n")),
            resolver: scratch.file("resolv.conf", &resolver),
            _deaf: deaf,
            _scratch: scratch,
        };
        let program = Program { path: "true".into(), args: Vec::new(), env: Vec::new() };
        let tried = names.inside(&program);
        let args: Vec<&str> = tried.args.iter().map(String::as_str).collect();
        run(&tried.path.display().to_string(), &args)?;
        Ok(names)
    }

    /// The same program, where names are looked up so.
    #[must_use]
    pub fn inside(&self, program: &Program) -> Program {
        let (hosts, resolver) = (self.hosts.display(), self.resolver.display());
        let habit =
            format!("mount --bind '{hosts}' /etc/hosts && mount --bind '{resolver}' /etc/resolv.conf && exec \"$@\"");
        let before = ["--mount".to_owned(), "/bin/sh".to_owned(), "-c".to_owned(), habit, "sh".to_owned()];
        let own = [program.path.display().to_string()].into_iter().chain(program.args.iter().cloned());
        Program { path: "unshare".into(), args: before.into_iter().chain(own).collect(), env: program.env.clone() }
    }

    /// From now on the name is to be asked for, and nobody answers.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn forget(&self) {
        // In place: it is this very file that is seen inside.
        fs::write(&self.hosts, "127.0.0.1 localhost\n").expect("a file of ours can be written");
    }
}

fn run(program: &str, words: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(words).output();
    let output = output.map_err(|error| format!("{program} {}: {error}", words.join(" ")))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{program} {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim())),
    }
}
