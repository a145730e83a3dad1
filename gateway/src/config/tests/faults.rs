//! Every fault is found, with its place, and no secret is shown on the way.

use super::loading::{load_texts, shown};
use crate::config::source::Environment;
use crate::config::{Inputs, load};
use crate::protocol::capabilities::Capabilities;
use crate::runtime::Scratch;

#[test]
fn an_unknown_key_is_shown_with_its_line_and_the_nearest_known() {
    assert_eq!(
        shown("[upstreams.a]\ncomand = \"npx\"\nurl = \"http://x/\"\n"),
        "error[unknown-key]: `comand` is not a key of an upstream\n  \
           ┌─ a.toml:2:1\n \
          2│ comand = \"***\"\n  \
           │ ^^^^^^ did you mean `command`?\n\
         1 error"
    );
}

#[test]
fn an_unset_variable_is_marked_where_it_stands() {
    assert_eq!(
        shown(
            "[upstreams.a]\nurl = \"http://x/\"\n[upstreams.a.headers]\n  Authorization = \"Bearer ${TOKEN} canary\"\n"
        ),
        "error[unset-variable]: ${TOKEN} has no value and no default\n  \
           ┌─ a.toml:4:27\n \
          4│   Authorization = \"****** ${TOKEN} ******\"\n  \
           │                           ^^^^^^^^\n  \
           = hint: export TOKEN=…, or write ${TOKEN:-} where it may be empty\n\
         1 error"
    );
}

#[test]
fn names_and_keys_are_shown_and_values_are_not() {
    let said = shown(
        "[upstreams.a]\ncommand = \"x\"\nenv = { ONE = \"canary\", TWO = \"canary${NOPE}\" } # canary\n[upstreams.\"A b\".more]\n[x.y]\n",
    );
    let env = "3│ env = { ONE = \"******\", TWO = \"******${NOPE}\" } # ******";
    for line in [env, "4│ [upstreams.\"A b\".more]", "5│ [x.y]"] {
        assert!(said.contains(line), "{line} in {said}");
    }
}

#[test]
fn a_key_outside_of_every_section_is_told_where_it_belongs() {
    for (key, place) in [("listen", "[server] listen"), ("level", "[log] level"), ("sharing", "[defaults] sharing")] {
        let said = shown(&format!("{key} = \"x\"\n"));
        assert!(said.contains(&format!("did you mean `{place}`?")), "{said}");
    }
    assert!(shown("[servr]\n").contains("did you mean `server`?"));
}

#[test]
fn a_name_that_stands_twice_is_told_beside_other_faults() {
    let both = "[upstreams.a]\ncommand = \"x\"\n[upstreams.b]\nprefix = \"a\"\ncomand = \"x\"\n";
    let said = shown(both);
    assert!(
        said.contains("duplicate-name") && said.contains("unknown-key") && said.contains("the same prefix, `a`"),
        "{said}"
    );
    let one = "[[auth.tokens]]\nname = \"ann\"\ntoken = \"0123456789abcdef0\"\n";
    let said = shown(&format!("{one}[[auth.tokens]]\nname = \"ann\"\ntoken = \"short\"\n"));
    assert!(said.contains("two tokens are named `ann`") && said.contains("shorter than 16"), "{said}");
    let said = shown(&format!("{one}{}", one.replace("name = \"ann\"\n", "")));
    assert!(said.contains("duplicate-token") && said.contains("a token has no `name`"), "{said}");
}

/// One fault of every kind that a table can have.
const MANY: &str = r#"
[server]
listen = "8808"
max_body = "8 stones"
pth = "/mcp"

[server.session]
max = 0

[naming]
strategy = "prefx"
separator = ""

[auth]
mode = "token"

[log]
level = "=,="

[defaults]
request_timeout = "soon"
env_inherit = ["[A-Z]"]

[defaults.restart]
backoff_min = "1m"

[serve]

[upstreams.Bad_Name]
command = "x"

[upstreams.none]
enabled = true

[upstreams.both]
command = "x"
url = "http://x/"

[upstreams.odd]
transport = "auto"
url = "http://x/"

[upstreams.mixed]
url = "ftp://x/"
args = ["x"]
headers = { Host = "x", "a b" = "c" }
tools = { allow = [""] }
"#;

#[test]
fn all_faults_are_found_at_once() {
    let faults = shown(MANY);
    for (kind, at) in [
        ("bad-value", "3:10"),
        ("bad-value", "4:12"),
        ("unknown-key", "5:1"),
        ("bad-value", "8:7"),
        ("bad-value", "11:12"),
        ("bad-value", "12:13"),
        ("bad-value", "15:8"),
        ("bad-value", "18:9"),
        ("bad-value", "21:19"),
        ("bad-value", "22:16"),
        ("bad-order", "24:11"),
        ("unknown-key", "27:2"),
        ("bad-name", "29:12"),
        ("missing-key", "32:12"),
        ("two-forms", "35:12"),
        ("unknown-transport", "40:13"),
        ("bad-value", "44:7"),
        ("useless-key", "45:8"),
        ("bad-value", "46:13"),
        ("bad-value", "46:25"),
        ("bad-value", "47:20"),
    ] {
        let found =
            faults.split("error[").any(|fault| fault.starts_with(kind) && fault.contains(&format!("a.toml:{at}\n")));
        assert!(found, "{kind} at {at} is missing in\n{faults}");
    }
    assert!(faults.ends_with("\n21 errors"), "{faults}");
}

#[test]
fn a_syntax_error_shows_its_place_and_no_value() {
    let faults = shown("[upstreams.a.headers]\nAuthorization = \"Bearer canary\n");
    assert!(faults.contains("error[syntax]") && faults.contains("a.toml:2:"), "{faults}");
    assert!(!faults.contains("canary"), "{faults}");
}

#[test]
fn the_names_of_variables_are_shown_and_what_stands_for_their_values_is_not() {
    let said = shown(
        "[upstreams.a]\ncommand = \"x\"\nenv = { A = \"${AA}\", B = \"canary${BB:-canary}$${CANARY}${canary}\" }\n",
    );
    assert!(said.contains("3│ env = { A = \"${AA}\", B = \"******${BB:*******}**{******}*{******}\" }"), "{said}");
}

#[test]
fn an_excerpt_of_a_broken_file_shows_names_and_no_value() {
    for (text, line) in [
        ("[upstreams.a]\ncommand = \"canary\n", "2│ command = \"******"),
        ("[upstreams.a\ncommand = \"canary\"\n", "1│ [upstreams.a"),
        (
            "[upstreams.a]\nenv = { A = \"canary\", B = canary } # canary\n",
            "2│ env = { A = \"******\", B = ****** } # ******",
        ),
        ("[upstreams.a]\nargs = [\"canary\"\nenv = { A = \"canary\" }\n", "3│ env = { * = \"******\" }"),
    ] {
        let said = shown(text);
        assert!(said.contains(line) && !said.contains("canary"), "{line} is missing in\n{said}");
    }
    let host = load_texts(&[("a.json", "{\"mcpServers\": {\"a\": {\"command\": }, \"b\": \"canary\"}}")], &[]);
    let said = host.unwrap_err().to_string();
    assert!(said.contains("1│ {\"mcpServers\": {\"a\": {\"command\": }, \"*\": \"******\"}}"), "{said}");
    let host = load_texts(&[("a.yaml", "extensions:\n  a:\n    cmd: canary: canary\n")], &[]);
    let said = host.unwrap_err().to_string();
    assert!(said.contains("3│     cmd: ******: ******"), "{said}");
}

#[test]
fn a_file_in_yaml_is_said_to_be_that() {
    let yaml = "this looks like YAML; write TOML or JSON";
    for text in ["# servers\nupstreams:\n  a:\n    command: x\n", "---\nupstreams:\n", "- command: x\n"] {
        assert!(shown(text).contains(yaml), "{text}");
    }
    let toml = shown("[upstreams.a]\ncommand: \"x\"\n");
    assert!(toml.contains("error[syntax]") && !toml.contains(yaml), "{toml}");
}

#[test]
fn a_list_of_upstreams_is_told_how_to_write_them() {
    for text in ["[upstreams.a]\ncommand = 'x'\n[[upstreams]]\n", "[[upstreams]]\nname = 'b'\n[upstreams.a]\n"] {
        assert!(shown(text).contains("write [upstreams.NAME], with single brackets, for each"), "{}", shown(text));
    }
}

#[test]
fn what_stands_twice_is_named_with_its_table() {
    let key = shown("[upstreams.a]\ncommand = \"canary\"\n\ncommand = \"canary\"\n");
    assert!(key.starts_with("error[syntax]: the key `command` is defined twice in [upstreams.a]\n"), "{key}");
    assert!(key.contains("a.toml:4:1") && key.contains("command = \"******\""), "{key}");
    let table = shown("[upstreams.a]\ncommand = \"x\"\n[upstreams.b]\ncommand = \"x\"\n[upstreams.a]\nargs = []\n");
    assert!(table.contains("the table [upstreams.a] is defined twice") && table.contains("a.toml:5:"), "{table}");
    assert!(!key.contains("canary"), "{key}");
}

#[test]
fn no_value_of_a_secret_key_is_ever_shown() {
    for text in [
        "[upstreams.a]\ncommand = \"x\"\nargs = \"--key canary\"",
        "[upstreams.a]\ncommand = \"x\"\nenv = \"canary\"",
        "[upstreams.a]\ncommand = \"x\"\nenv = { \"A=B\" = \"canary\" }",
        "[upstreams.a]\nurl = \"ftp://h/?key=canary\"",
        "[upstreams.a]\nurl = \"http://user:canary@h/\"",
        "[upstreams.a]\nurl = \"http://h/\"\nheaders = { \"a b\" = 'canary', x = \"canary\" } # canary\nx = 1",
        "[upstreams.a]\nurl = \"http://h/\"\nheaders = { x = \"canary\\u0000\" }",
        "[upstreams.a]\nurl = \"http://h/\"\nheaders = { x = \"\"\"\ncanary ${NO} canary\n\"\"\" }",
        "[upstreams.a]\ncommand = \"x\"\nenv = { A = [\"canary\"] }",
        "[upstreams]\na = { comand = \"canary\", env = { K = \"canary\" } }",
        "[[auth.tokens]]\nname = \"n\"\ntoken = \"canary\"",
        "[[auth.tokens]]\nname = \"n\"\nhash = \"canary\"",
        "[[auth.tokens]]\nname = \"n\"\ntoken = \"canary-canary-canary\"\nhash = \"sha256:canary\"",
        "[server]\nlisten = \"${NO:-canary\"",
    ] {
        let faults = shown(text);
        assert!(faults.contains("error["), "{text}");
        assert!(!faults.contains("canary"), "{text}\n{faults}");
    }
}

#[test]
fn what_a_terminal_would_obey_is_escaped() {
    let faults = shown("[server]\n\"\u{9b}31m\\u001b[31m\u{202e}\" = 1\n");
    assert!(faults.contains("unknown-key"), "{faults}");
    assert!(!faults.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{faults}");
}

#[test]
fn variables_and_flags_are_named() {
    let environment = Environment::of(&[("TRUNKLINE_SERVER__LISTN", "x"), ("TRUNKLINE_LOG__FORMAT", "jsn")]);
    let flags = vec![("--listen", &["server", "listen"][..], "nowhere".to_owned())];
    let faults = load(Inputs { environment, flags, ..Inputs::default() }).unwrap_err().to_string();
    assert!(faults.contains("`listn` is not a key of [server]\n ┌─ environment variable TRUNKLINE_SERVER__LISTN\n = did you mean `listen`?"), "{faults}");
    assert!(faults.contains("┌─ environment variable TRUNKLINE_LOG__FORMAT\n = did you mean \"json\"?"), "{faults}");
    assert!(faults.contains("invalid value for `server.listen`\n ┌─ flag --listen\n"), "{faults}");
}

#[test]
fn only_regular_files_of_a_sane_size_are_read() {
    let folder = Scratch::new();
    let big = folder.write("big.toml", &"#".repeat((1 << 20) + 1));
    let bytes = folder.0.join("bytes.toml");
    std::fs::write(&bytes, [0xff, 0xfe]).unwrap();
    let files = vec![folder.0.clone(), big, bytes, folder.0.join("none.toml"), "/dev/zero".into()];
    let faults = load(Inputs { files, ..Inputs::default() }).unwrap_err();
    let texts: Vec<_> = faults.0.iter().map(|fault| fault.text.rsplit(": ").next().unwrap()).collect();
    assert_eq!(texts, ["it is a folder", "larger than 1 MiB", "not UTF-8 text", "no such file", "not a regular file"]);
}

#[test]
fn the_door_stays_shut_beyond_loopback() {
    let open = "[server]\nlisten = \"0.0.0.0:1\"\n";
    assert!(shown(open).contains("error[open-door]") && shown(open).contains("a.toml:2:10"));
    assert!(load_texts(&[("a.toml", &format!("{open}[auth]\nallow_unauthenticated = true"))], &[]).is_ok());
    assert!(
        load_texts(&[("a.toml", &format!("{open}[[auth.tokens]]\nname = \"n\"\ntoken = \"0123456789abcdef\""))], &[])
            .is_ok()
    );
    assert!(load_texts(&[("a.toml", "[server]\nlisten = \"[::1]:1\"")], &[]).is_ok());
}

#[test]
fn names_and_prefixes_are_unique() {
    let twice = "[upstreams.a]\ncommand = \"x\"\n[upstreams.b]\ncommand = \"x\"\nprefix = \"a\"\n[mcpServers.B]\ncommand = \"x\"\n";
    let faults = shown(twice);
    assert!(
        faults.contains("the upstreams `a` and `b` have the same prefix, `a`") && faults.contains("a.toml:3:12"),
        "{faults}"
    );
    assert!(faults.contains("`b` and `B` are both named `b`: a.toml:3:12 and a.toml:6:13"), "{faults}");
    assert_eq!(faults.matches("error[").count(), 2, "one name that is taken twice is one fault: {faults}");
    let both = shown("[upstreams.a]\ncommand = \"x\"\n[mcpServers.a]\ncommand = \"x\"\n");
    assert!(both.contains("`a` is defined twice: a.toml:1:12 and a.toml:3:13"), "{both}");
    let bare = "[upstreams.a]\ncommand = \"x\"\nprefix = \"\"\n[upstreams.b]\ncommand = \"x\"\nprefix = \"\"\n";
    assert!(load_texts(&[("a.toml", bare)], &[]).is_ok());
}

#[test]
fn what_an_upstream_may_ask_is_said_of_children_only() {
    let child = "[upstreams.a]\ncommand = \"x\"\n";
    let faults = shown(&format!("{child}offer = [\"elicitation\", \"rots\"]\nsharing = \"per-client\"\n"));
    assert!(faults.contains("expected \"elicitation\", \"sampling\" or \"roots\""), "{faults}");
    assert!(faults.contains("a.toml:3:25"), "{faults}");
    assert!(faults.contains("invalid value for `upstreams.a.sharing`"), "{faults}");
    let faults = shown("[upstreams.a]\nurl = \"http://h.example/\"\noffer = []\n");
    assert!(faults.contains("error[useless-key]: `offer` has no meaning"), "{faults}");
    assert!(faults.contains("an HTTP upstream is told the capabilities of each caller; remove the key"), "{faults}");
    let of =
        |offer: &str| load_texts(&[("a.toml", &format!("{child}{offer}"))], &[]).unwrap().config.upstreams.remove(0);
    assert_eq!(of("offer = []").offered(), Capabilities::NONE);
    assert!(of("").offered().has(Capabilities::FORM) && !of("").offered().has(Capabilities::ROOTS));
    assert!(of("offer = [\"roots\", \"sampling\"]").offered().has(Capabilities::ROOTS.with(Capabilities::SAMPLING)));
}

#[test]
fn what_is_for_the_other_transport_is_refused() {
    let faults = shown("[upstreams.a]\nurl = \"http://h.example/\"\nhang_restart = true\n");
    assert!(faults.contains("error[useless-key]: `hang_restart` has no meaning"), "{faults}");
    let faults = shown("[upstreams.a]\nurl = \"http://h.example/\"\noverlap = true\n");
    assert!(faults.contains("error[useless-key]: `overlap` has no meaning"), "{faults}");
    let faults = shown("[upstreams.a]\nurl = \"http://h.example/\"\nno_new_privs = true\n");
    assert!(faults.contains("error[useless-key]: `no_new_privs` has no meaning"), "{faults}");
    let faults = shown("[upstreams.a]\nurl = \"ws://127.0.0.1:1\"\nbreaker = { failures = 1 }\n");
    assert!(faults.contains("error[useless-key]: `breaker` has no meaning"), "{faults}");
    let faults =
        shown("[upstreams.a]\ncommand = \"x\"\nhealth = { intervall = \"1s\", timeout = 0, unhealthy_after = 0 }\n");
    assert!(faults.contains("did you mean `interval`?"), "{faults}");
    assert!(faults.contains("`upstreams.a.health.timeout`"), "{faults}");
    assert!(faults.contains("expected a whole number from 1 to 1000"), "{faults}");
}

#[test]
fn roots_are_file_uris() {
    let child = "[upstreams.a]\ncommand = \"x\"\n";
    for wrong in ["/home/me", "file:/home/me", "file://", "https://h/", "file:///a b", "file:///%g0", "file:///a?b"] {
        let faults = shown(&format!("{child}roots = [\"file:///ok\", \"{wrong}\"]\n"));
        assert!(faults.contains("error[bad-value]: invalid item in `upstreams.a.roots`"), "{wrong}: {faults}");
    }
    let of = |text: &str| load_texts(&[("a.toml", text)], &[]).unwrap().config.upstreams.remove(0).roots;
    assert_eq!(of(child), None);
    assert_eq!(of(&format!("{child}roots = []\n")).as_deref(), Some(&[][..]));
    let inherited = of(&format!("{child}[defaults]\nroots = [\"file:///a%20b\", \"file://h/c\"]\n")).unwrap();
    assert_eq!(inherited.iter().map(|root| &**root).collect::<Vec<_>>(), ["file:///a%20b", "file://h/c"]);
}

#[test]
fn a_value_of_another_kind_is_shown_with_what_to_write() {
    let child = "[upstreams.a]\ncommand = \"x\"\n";
    for (line, said) in [
        ("sharing = 1", "expected \"shared\", "),
        ("era = true", "expected \"auto\", \"legacy\", \"modern\""),
        ("offer = \"elicitation\"", "expected a list such as [\"elicitation\"]"),
        ("offer = [1]", "expected a list such as [\"elicitation\"]"),
        ("roots = \"file:///x\"", "expected a list such as [\"file:///home/me/projects\"]"),
        ("enabled = 5", "expected true or false"),
        ("roots = [\"/home\"]", "expected the URI of a folder"),
        ("offer = [\"elicit\"]", "expected \"elicitation\""),
    ] {
        let faults = shown(&format!("{child}{line}\n"));
        assert!(faults.contains(said) && faults.contains(&format!("3│ {line}\n")), "{line}: {faults}");
    }
    let faults = shown("[extensions]\nunknown = true\n[server.session]\nsigning_key = 51\n");
    assert!(faults.contains("unknown = true\n") && faults.contains("\"pass\", \"strip\", \"refuse\""), "{faults}");
    assert!(faults.contains("signing_key = **\n") && faults.contains("expected at least"), "{faults}");
    // What may be secret stays hidden in a list too, whatever kind it is; keys do not.
    for (line, hidden) in [
        ("args = [\"canary ${NO}\"]", "args = [\"****** ${NO}\"]"),
        ("args = [[\"canary\"]]", "args = [[\"******\"]]"),
        ("args = [{ x = \"canary\" }]", "args = [{ x = \"******\" }]"),
        ("args = \"canary\"", "args = \"******\""),
    ] {
        let faults = shown(&format!("{child}{line}\n"));
        assert!(faults.contains(hidden) && !faults.contains("canary"), "{line}: {faults}");
    }
}
