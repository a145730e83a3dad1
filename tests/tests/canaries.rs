//! Two hundred secrets in every place of a configuration, quoted by upstreams in every form and wherever words of theirs are read:
//! none of them reaches a client, the log, a page, a command line or a kept file.

mod quoting;

use tokio::process::Command;
use trunkline_tests::canary::{CORE, Canary, FORMS, base64, form, leak, percent};
use trunkline_tests::client::{Client, Request, tool};
use trunkline_tests::frame::quote;
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::process::{self, GATEWAY, Program, beside};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::{self, Scratch};
use trunkline_tests::within::within;

use quoting::{Host, Manner};

const LEGACY: Revision = Revision::R2025_11_25;
/// How an upstream over HTTP quotes, by the name that it has.
const MANNERS: [(&str, Manner); 13] = [
    ("ascii", Manner::Ascii),
    ("notes", Manner::Notes),
    ("body401", Manner::Status(401)),
    ("body403", Manner::Status(403)),
    ("body500", Manner::Status(500)),
    ("location", Manner::Header(302, "location")),
    ("challenge", Manner::Header(401, "www-authenticate")),
    ("error", Manner::Error(200)),
    ("error400", Manner::Error(400)),
    ("error500", Manner::Error(500)),
    ("kind", Manner::Header(200, "content-type")),
    ("garbage", Manner::Garbage),
    ("meeting", Manner::Always),
];
/// How a child quotes.
const CHILDREN: [&str; 4] = ["stderr", "stdout", "failure", "exit"];

/// A configuration that is full of canaries, and what is quoted by whom.
struct Stage {
    config: Config,
    scratch: Scratch,
    canaries: Vec<Canary>,
    /// Each upstream with those that it was given.
    given: Vec<(String, Vec<usize>)>,
    hosts: Vec<Host>,
}

impl Stage {
    fn new() -> Self {
        let scratch = Scratch::new();
        let config = ["HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"]
            .into_iter()
            .fold(Config::new(), |config, name| config.env(name, &scratch.path().join(name).display().to_string()))
            .section("[log]\nlevel = \"trace\"\nformat = \"json\"");
        Self { config, scratch, canaries: Vec::new(), given: Vec::new(), hosts: Vec::new() }
    }

    /// A new canary; its number.
    fn canary(&mut self) -> usize {
        self.canaries.push(Canary::new(self.canaries.len()));
        self.canaries.len() - 1
    }

    fn text(&self, number: usize) -> &str {
        &self.canaries[number].text
    }

    /// A reference to a canary in a variable.
    fn variable(&mut self, number: usize) -> String {
        let name = format!("OF_THE_TEST_{number}");
        self.config = std::mem::take(&mut self.config).env(&name, &self.canaries[number].text);
        format!("${{{name}}}")
    }

    /// A reference to a text in a file.
    fn file(&self, name: &str, text: &str) -> String {
        format!("${{file:{}}}", self.scratch.file(name, text).display())
    }

    async fn over_http(&mut self, name: &str, manner: Manner, number: usize) {
        let given: Vec<usize> = (0..14).map(|_| self.canary()).collect();
        let authorization = match number % 3 {
            0 => format!("Bearer {}", self.text(given[0])),
            1 => format!("Bearer {}", self.variable(given[0])),
            _ => format!("Basic {}", base64(format!("me:{}", self.text(given[0])).as_bytes())),
        };
        let mut headers = vec![("Authorization".to_owned(), authorization)];
        headers.push(("Cookie".to_owned(), format!("theme=dark; sid={}", self.text(given[1]))));
        headers.push(("X-Api-Key".to_owned(), self.variable(given[2])));
        headers.push(("Proxy-Authorization".to_owned(), self.file(&format!("{name}.token"), self.text(given[3]))));
        for (at, number) in given[4..13].iter().enumerate() {
            headers.push((format!("X-Part-{at}-Token"), self.text(*number).to_owned()));
        }
        let headers: Vec<_> = headers.iter().map(|(name, value)| format!("{name} = {}", quote(value))).collect();
        let host = Host::start(manner, given.iter().map(|number| self.canaries[*number].clone()).collect()).await;
        let query = percent(self.text(given[13]), true);
        let section = format!(
            "[upstreams.{name}]\nurl = \"http://127.0.0.1:{}/mcp?api_key={query}\"\nera = \"legacy\"\nbreaker = {{ failures = 0 }}\n\
             headers = {{ {} }}",
            host.port,
            headers.join(", ")
        );
        self.config = std::mem::take(&mut self.config).section(&section);
        self.given.push((name.to_owned(), given));
        self.hosts.push(host);
    }

    fn child(&mut self, name: &str) {
        let given: Vec<usize> = (0..12).map(|_| self.canary()).collect();
        let text = |number: usize| self.canaries[given[number]].text.clone();
        let pem: Vec<String> = (8..12).map(text).collect();
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", pem.join("\n"));
        let quotes: Vec<String> = given
            .iter()
            .flat_map(|number| (0..FORMS).map(|at| form(at, &self.canaries[*number].text)))
            .map(|quoted| if name == "failure" { inside(&quote(&quoted)).to_owned() } else { quoted })
            .collect();
        let quotes = self.scratch.file(&format!("{name}.quotes"), &(quotes.join("\n") + "\n"));
        let script = self.scratch.file(&format!("{name}.sh"), quoting::CHILD);
        let args = [
            script.display().to_string(),
            quotes.display().to_string(),
            name.to_owned(),
            format!("--token={}", text(0)),
            "--password".to_owned(),
            text(1),
            format!("{{\"auth\":{{\"apiKey\":{}}}}}", quote(&text(2))),
            format!("postgres://me:{}@db.example/x", percent(&text(3), true)),
            "--header".to_owned(),
            format!("Authorization: Bearer {}", text(4)),
        ];
        let args: Vec<String> = args.iter().map(|arg| quote(arg)).collect();
        let (own, of_file) = (quote(&text(5)), self.file(&format!("{name}.secret"), &text(6)));
        let (of_variable, pem) = (self.variable(given[7]), self.file(&format!("{name}.pem"), &pem));
        let section = format!(
            "[upstreams.{name}]\ncommand = \"/bin/sh\"\nargs = [{}]\nera = \"legacy\"\n\
             env = {{ API_KEY = {own}, OTHER = \"{of_file}\", THIRD = \"{of_variable}\", KEY = \"{pem}\" }}\n\
             restart = {{ backoff_min = \"10ms\", backoff_max = \"50ms\" }}",
            args.join(", ")
        );
        self.config = std::mem::take(&mut self.config).section(&section);
        self.given.push((name.to_owned(), given));
    }
}

/// What stands between the quotes.
fn inside(quoted: &str) -> &str {
    &quoted[1..quoted.len() - 1]
}

async fn all() -> Stage {
    let mut stage = Stage::new();
    for (number, (name, manner)) in MANNERS.into_iter().enumerate() {
        stage.over_http(name, manner, number).await;
    }
    CHILDREN.iter().for_each(|name| stage.child(name));
    assert!(stage.canaries.len() >= 200, "{}", stage.canaries.len());
    stage
}

/// Has every upstream quote each of its canaries, in forms that change from one to the next; what the client was told.
async fn quoted(stage: &Stage, client: &Client) -> Vec<String> {
    let mut told = Vec::new();
    for (at, (name, given)) in stage.given.iter().enumerate().filter(|(_, (name, _))| name != "meeting") {
        let rounds = if name == "exit" { 1 } else { 3 };
        for round in 0..rounds {
            for number in 0..given.len() {
                let of = (number + at + 3 * round) % FORMS;
                // The line of the file that a child reads, from one.
                let line = number * FORMS + of + 1;
                let arguments = format!("{{\"number\":{number},\"form\":{of},\"n\":{line}}}");
                let request =
                    tool(&format!("{name}__quote"), &arguments).token(&format!("\"{name}-{round}-{number}\""));
                let answer = client.request(request).await;
                assert!(answer.frame().result.is_none(), "{name} refuses: {}", answer.result());
                let events: String = answer.events.iter().filter_map(|event| event.data.as_deref()).collect();
                told.push(format!("{}{}{events}", String::from_utf8_lossy(&answer.body), answer.error()));
            }
        }
    }
    told
}

async fn command(arguments: &[&str], gateway: &Gateway) -> String {
    let mut command = Command::new(beside(GATEWAY));
    command.args(arguments).args(["--admin", gateway.admin.trim_start_matches("http://")]).env("HOME", "/nonexistent");
    let output = within("it answers", command.kill_on_drop(true).output()).await.expect("it runs");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[tokio::test]
async fn no_secret_that_an_upstream_quotes_is_told_to_anybody() {
    let stage = all().await;
    let gateway = Gateway::serve(&stage.config).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    let count = MANNERS.len() - 1 + CHILDREN.len();
    client.tools_until("all but one are listed", |tools| tools.len() == count).await;
    let mut seen: Vec<(String, String)> = Vec::new();
    let tools = client.request(Request::new("tools/list", "{}")).await.result().to_owned();
    assert!(tools.contains("quoted: [secret] , [secret]"), "{tools}");
    seen.push(("the list".to_owned(), tools));
    seen.push(("the greeting".to_owned(), client.greeting.as_ref().expect("it was greeted").result().to_owned()));
    for (number, told) in quoted(&stage, &client).await.into_iter().enumerate() {
        seen.push((format!("answer {number}"), told));
    }
    for path in ["/readyz?verbose", "/readyz?verbose&format=json", "/metrics"] {
        seen.push((path.to_owned(), String::from_utf8_lossy(&gateway.look(path).await.body).into_owned()));
    }
    seen.push(("ls".to_owned(), command(&["ls"], &gateway).await));
    for (name, _) in &stage.given {
        seen.push((format!("status {name}"), command(&["status", name], &gateway).await));
        seen.push((format!("status {name} --json"), command(&["status", name, "--json"], &gateway).await));
    }
    seen.push(("its command line".to_owned(), process::command_line(gateway.pid)));
    for child in gateway.children() {
        let line = process::command_line(child);
        // What is configured to stand in a child's arguments is there, and nothing else.
        let own = stage.given.iter().find(|(name, _)| line.contains(&format!("{name}.quotes")));
        let rest = own.map_or(&[][..], |(_, given)| given).iter().fold(line, |line, number| {
            let text = stage.text(*number);
            let line = line.replace(text, "").replace(&percent(text, true), "");
            line.replace(inside(&quote(text)), "")
        });
        seen.push((format!("the command line of {child}"), rest));
    }
    assert!(gateway.stop().await.success());
    seen.extend(gateway.stderr.all().into_iter().map(|line| ("the log".to_owned(), line)));
    for folder in ["HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"] {
        seen.extend(scratch::texts(&stage.scratch.path().join(folder)));
    }
    let leaks: Vec<String> =
        seen.iter().filter_map(|(place, text)| Some(format!("{place}: {}", leak(text)?))).collect();
    assert!(leaks.is_empty(), "{} of {} texts:\n{}", leaks.len(), seen.len(), leaks.join("\n"));
    // The log has the words of others, and what was masked in them.
    assert!(seen.iter().any(|(place, text)| place == "the log" && text.contains("quoted: [secret]")));
    let told = |text: &str| seen.iter().any(|(place, seen)| place.starts_with("answer") && seen.contains(text));
    assert!(told("HTTP 401") && told("HTTP 500") && told("\"retriable\"") && told("\"upstream\":\"body403\""));
    assert!(told("quoted: [secret]"), "an upstream's own error is its own to say");
    assert!(
        told("\"message\":\"quoted: [secret]\",\"data\":[{\"quoted: [secret]\":\"quoted: [secret]\"}]"),
        "by what it means"
    );
    assert!(
        told("\"progress\":1,\"message\":\"quoted: [secret]\"") && told("\"said\":[\"quoted: [secret]\"]"),
        "notifications"
    );
    assert!(
        seen.iter().any(|(place, text)| place.contains("XDG_CACHE_HOME") && text.contains("[secret]")),
        "kept lists"
    );
}

#[tokio::test]
async fn a_result_passes_as_it_is_whatever_it_quotes() {
    let mut stage = Stage::new();
    stage.over_http("result", Manner::Result, 0).await;
    let gateway = Gateway::serve(&stage.config).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("it is listed", |tools| tools.len() == 1).await;
    let answer = client.call("result__quote", "{\"number\":0,\"form\":0}").await;
    assert_eq!(answer.text(), stage.text(stage.given[0].1[0]));
}

#[tokio::test]
async fn the_client_of_stdio_is_told_causes_without_secrets() {
    let mut stage = Stage::new();
    stage.over_http("body401", Manner::Status(401), 0).await;
    let host = StdioGateway::prepare(&stage.config);
    let client = Client::connect(&host.reach(), LEGACY).await;
    client.tools_until("it is listed", |tools| tools.len() == 1).await;
    let answer = client.call("body401__quote", "{\"number\":0,\"form\":0}").await;
    assert!(answer.message().contains("HTTP 401 Unauthorized: quoted: [secret]"), "{}", answer.error());
    assert_eq!((answer.code(), leak(answer.error())), (-32603, None));
}

#[tokio::test]
async fn where_a_program_lies_is_told_to_the_operator_alone() {
    let program = Program { path: "/no/such/program".into(), args: Vec::new(), env: Vec::new() };
    let config = Config::new().program("absent", &program, "");
    let gateway = Gateway::serve(&config).await;
    gateway.says(&["absent", "/no/such/program"]).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    let answer = client.call("absent__x", "{}").await;
    let error = answer.error();
    assert!(error.contains("absent") && !error.contains("/no/such"), "{error}");
    assert!(process::is_alive(gateway.pid));
}

/// What a command says of a configuration whose references stand where their values are shown.
#[tokio::test]
async fn no_command_shows_what_a_reference_fills_in() {
    let scratch = Scratch::new();
    let secret = |number: usize| Canary::new(number).text;
    let plain = format!("{CORE}-{CORE}-{CORE}");
    let cwd = scratch.path().display();
    let configurations = [
        "[upstreams.a]\ncommand = \"/nope/${ONE}\"\ncwd = \"/nope/${TWO}\"".to_owned(),
        "[upstreams.a]\ncommand = \"${THREE}\"\nargs = [\"-c\", \"${ONE}\"]".to_owned(),
        "[upstreams.a]\ncommand = \"sh\"\nenv = { LD_PRELOAD = \"${ONE}\", \"A=${TWO}\" = \"x\" }".to_owned(),
        "[upstreams.a]\nurl = \"http://169.254.169.254/${THREE}?x=${THREE}\"\nheaders = { \"a b\" = \"${ONE}\" }".to_owned(),
        "[upstreams.a]\nurl = \"${ONE}\"\nprefix = \"${THREE}\"\n[upstreams.b]\ncommand = \"x\"\nprefix = \"${THREE}\"".to_owned(),
        "[server]\nlisten = \"${ONE}\"\n[server.session]\nsigning_key = \"${TWO}\"".to_owned(),
        "[[auth.tokens]]\nname = \"${THREE}\"\ntoken = \"${ONE}\"\n[[auth.tokens]]\nname = \"${THREE}\"\ntoken = \"${ONE}\"".to_owned(),
        format!("[upstreams.a]\ncommand = \"sh\"\nargs = [\"${{file:{cwd}/${{ONE}}}}\"]\nroots = [\"${{TWO}}\"]"),
        "[admin]\nlisten = \"127.0.0.1:1\"\ntoken = \"${THREE}\"\n[log]\nlevel = \"${TWO}\"\n[naming]\nstrategy = \"${ONE}\"".to_owned(),
    ];
    let mut masked = 0;
    for (number, text) in configurations.iter().enumerate() {
        let file = scratch.file(&format!("{number}.toml"), text).display().to_string();
        for arguments in [&["check"][..], &["ls"], &["status", "a"], &["start", "a"], &["stop", "a"]] {
            let mut command = Command::new(beside(GATEWAY));
            command.args(arguments).args(["--config", &file]).env("HOME", "/nonexistent");
            command.env("ONE", secret(1)).env("TWO", secret(2)).env("THREE", &plain);
            let output = within("it answers", command.kill_on_drop(true).output()).await.expect("it runs");
            let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            assert_eq!(leak(&said), None, "{arguments:?} of {text}");
            masked += usize::from(said.contains("[secret]"));
        }
    }
    assert!(masked > 0, "some of them are shown masked");
}
