//! What lies over what, and what the values become.

use std::time::Duration;

use sha2::{Digest, Sha256};

use super::loading::{good, load_texts};
use crate::config::source::Environment;
use crate::config::{Inputs, load};
use crate::runtime::Scratch;
use crate::upstream::config::{BreakerConfig, Cache, Checks, EraChoice, Remote, RestartPolicy, Transport};

#[test]
fn files_then_environment_then_flags() {
    let folder = Scratch::new();
    let files = vec![
        folder.write("a.toml", "[server]\nname = \"a\"\npath = \"/a\"\nmax_body = \"1MiB\"\ninstructions = \"a\"\n[server.session]\nmax = 5"),
        folder.write("b.toml", "[server]\npath = \"/b\"\nmax_body = \"2MiB\"\ninstructions = \"b\""),
    ];
    let environment = Environment::of(&[
        ("TRUNKLINE_SERVER__MAX_BODY", "3MiB"),
        ("TRUNKLINE_SERVER__INSTRUCTIONS", "${env}"),
        ("TRUNKLINE_SERVER__ALLOWED_HOSTS", "A.example, b.example:80"),
    ]);
    let flags = vec![("--instructions", &["server", "instructions"][..], "${flag}".to_owned())];
    let server = load(Inputs { files, environment, flags, ..Inputs::default() }).unwrap().config.server;
    assert_eq!((server.name.as_str(), server.path.as_str(), server.max_body), ("a", "/b", 3 << 20));
    assert_eq!(server.instructions, "${flag}");
    assert_eq!(server.session.max, 5);
    assert_eq!(server.allowed_hosts, ["a.example", "b.example:80"]);
}

#[test]
fn an_upstream_lies_over_the_defaults() {
    let text = "
        [upstreams.a]
        command = 'x'
        request_timeout = 0
        call_timeout = '2m'
        restart = { max_restarts = 3 }
        health = { timeout = '2s' }
        hang_restart = true
        no_new_privs = false
        overlap = true
        [upstreams.b]
        url = 'https://h.example/mcp'
        era = 'modern'
        prefix = ''
        headers = { Authorization = 'Bearer t' }
        tools = { allow = ['read_*'], deny = ['*_x'] }
        health = { interval = 0 }
        breaker = { failures = 2 }
        [defaults]
        health = { interval = '10s', unhealthy_after = 1 }
        breaker = { failures = 0, open_for = '1m' }
        no_new_privs = true
        request_timeout = '10s'
        max_call_time = 0
        max_response = '1MiB'
        [defaults.restart]
        policy = 'never'";
    let upstreams = good(text).config.upstreams;
    let [a, b] = &upstreams[..] else { panic!() };
    assert_eq!((a.request_timeout, a.call_timeout, a.max_call_time), (None, Some(Duration::from_secs(120)), None));
    assert_eq!((a.restart.policy, a.restart.max_restarts, b.restart.max_restarts), (RestartPolicy::Never, 3, 10));
    assert_eq!((b.request_timeout, b.call_timeout, b.max_message), (Some(Duration::from_secs(10)), None, 1 << 20));
    assert_eq!((&*a.prefix, &*b.prefix, b.era), ("a", "", EraChoice::Modern));
    assert!(b.tools.admits("read_y") && !b.tools.admits("read_x") && !b.tools.admits("z"));
    let health = |interval: Option<u64>, timeout| Checks {
        interval: interval.map(Duration::from_secs),
        timeout: Duration::from_secs(timeout),
        unhealthy_after: 1,
    };
    assert_eq!((&a.health, &b.health), (&health(Some(10), 2), &health(None, 5)));
    assert_eq!((a.hang_restart, b.hang_restart), (true, false));
    assert_eq!((a.no_new_privs, b.no_new_privs), (false, true));
    assert_eq!((a.overlap, b.overlap), (true, true), "over HTTP always");
    assert_eq!(
        (&a.breaker, &b.breaker),
        (&None, &Some(BreakerConfig { failures: 2, open_for: Duration::from_secs(15) }))
    );
    let Transport::Http(Remote { url, headers, .. }) = &b.transport else { panic!() };
    assert_eq!(url.host(), Some("h.example"));
    assert!(headers["authorization"].is_sensitive());
}

#[test]
fn the_client_edge_knows_how_long_each_upstream_is_answered_and_whether_it_is_named() {
    let text = |naming: &str, more: &str| {
        let naming = format!("[naming]\nstrategy = '{naming}'\n");
        let one = "[upstreams.a]\ncommand = 'x'\nquestion_timeout = '30m'\n";
        good(&format!("{naming}[questions]\ntimeout = '1m'\n{one}{more}")).config.server.questions
    };
    let second = "[upstreams.b]\ncommand = 'x'\n";
    let (alone, both, prefixed) = (text("flat", ""), text("flat", second), text("prefix", ""));
    assert_eq!((alone.names_upstream, both.names_upstream, prefixed.names_upstream), (false, true, true));
    let seconds = |upstream| both.timeout_of(upstream).as_secs();
    assert_eq!((seconds("a"), seconds("b"), both.timeouts.len()), (1800, 60, 1));
}

#[test]
fn the_signing_key_is_long_and_shown_nowhere() {
    let text = |key: &str| format!("[server.session]\nsigning_key = '{key}'\n");
    let key = "canary0123456789canary0123456789";
    let config = good(&text(key)).config;
    assert!(config.server.session.signing_keys.len() == 1 && !format!("{config:?}").contains("canary"));
    let faults = load_texts(&[("a.toml", &text(&key[1..]))], &[]).unwrap_err().to_string();
    assert!(faults.contains("expected at least 32 characters") && !faults.contains("canary"), "{faults}");
}

#[test]
fn a_child_gets_a_clean_environment() {
    let env =
        [("PATH", "/bin"), ("CANARY", "c"), ("KEY", "k"), ("TRUNKLINE_X", "x"), ("MY_A", "1"), ("SECRET_FILE", "s")];
    let text = "[upstreams.a]\ncommand = 'x'\nenv = { TOKEN = '${KEY}', PORT = 80 }\n[upstreams.b]\ncommand = 'x'\nenv_inherit = ['MY_*']";
    let upstreams = load_texts(&[("a.toml", text)], &env).unwrap().config.upstreams;
    let names = |index: usize| -> Vec<String> {
        let Transport::Stdio { env, .. } = &upstreams[index].transport else { panic!() };
        env.iter().map(|(name, value)| format!("{}={}", name.to_str().unwrap(), value.to_str().unwrap())).collect()
    };
    assert_eq!(names(0), ["PATH=/bin", "PORT=80", "TOKEN=k"]);
    assert_eq!(names(1), ["MY_A=1"]);
}

#[test]
fn the_order_is_that_of_the_files() {
    let toml = "upstreams.zebra.command = 'x'\n[upstreams.mouse]\ncommand = 'x'\n[mcpServers.bee]\ncommand = 'x'\n[upstreams.ant]\ncommand = 'x'\n[upstreams.off]\ncommand = 'x'\nenabled = false\n";
    let json = r#"{"mcpServers": {"yak": {"command": "x"}, "auk": {"command": "x"}}}"#;
    let config = load_texts(&[("m.json", json), ("a.toml", toml)], &[("TRUNKLINE_UPSTREAMS__MOUSE__ARGS", "a,b")])
        .unwrap()
        .config;
    let names: Vec<&str> = config.upstreams.iter().map(|upstream| &*upstream.name).collect();
    assert_eq!(names, ["yak", "auk", "zebra", "mouse", "bee", "ant"]);
}

#[test]
fn tokens_are_hashed_at_once() {
    let digests: [[u8; 32]; 2] =
        [&b"another of some length"[..], b"a token of some length"].map(|token| Sha256::digest(token).into());
    let hex: String = digests[0].iter().map(|byte| format!("{byte:02x}")).collect();
    let text = format!(
        "[auth]\nmode = 'token'\n[[auth.tokens]]\nname = 'a'\nhash = 'sha256:{hex}'\n[[auth.tokens]]\nname = 'b'\ntoken = '${{T}}'"
    );
    let auth = load_texts(&[("a.toml", &text)], &[("T", "a token of some length\n")]).unwrap().config.auth;
    assert_eq!([auth.tokens[0].digest, auth.tokens[1].digest], digests);
    assert!(!format!("{auth:?}").contains("some length"));
}

#[test]
fn references_reach_files_and_variables_but_not_themselves() {
    let folder = Scratch::new();
    let secret = folder.write("secret", "of ${HOME}\n");
    let text = format!("[server]\ninstructions = '${{file:{}}} ${{A}} $$ $A'", secret.display());
    let config = load_texts(&[("a.toml", &text)], &[("A", "${B}"), ("HOME", "/h")]).unwrap().config;
    assert_eq!(config.server.instructions, "of ${HOME} ${B} $ $A");
}

#[test]
fn a_switched_off_upstream_is_checked_but_may_lack_its_variables() {
    let off = "[upstreams.a]\nenabled = false\ncommand = '${NOT_SET}'\n";
    let loaded = good(off);
    assert!(loaded.config.upstreams.is_empty());
    assert_eq!(loaded.warnings[0].kind, "unset-variable");
    assert!(load_texts(&[("a.toml", &format!("{off}colour = 1"))], &[]).is_err());
}

#[test]
fn without_files_there_is_the_demo_unless_variables_name_upstreams() {
    let names = |env: &[(&str, &str)]| {
        let inputs = Inputs {
            environment: Environment::of(env),
            demo: Some("/opt/a $HOME/trunkline".into()),
            ..Inputs::default()
        };
        let upstreams = load(inputs).unwrap().config.upstreams;
        upstreams.into_iter().map(|upstream| (upstream.name.to_string(), upstream.transport)).collect::<Vec<_>>()
    };
    let demo = names(&[]);
    let Transport::Stdio { command, args, .. } = &demo[0].1 else { panic!() };
    assert_eq!(
        (demo[0].0.as_str(), command.as_str(), args[0].as_str()),
        ("demo", "/opt/a $HOME/trunkline", "demo-upstream")
    );
    assert_eq!(names(&[("TRUNKLINE_UPSTREAMS__X__URL", "http://x/")])[0].0, "x");
}

#[test]
fn the_level_can_come_from_rust_log_below_our_own_variable() {
    let level =
        |env: &[(&str, &str)]| load_texts(&[("a.toml", "[log]\nlevel = 'error'")], env).unwrap().config.log.level;
    assert_eq!(level(&[]), "error");
    assert_eq!(level(&[("RUST_LOG", "warn,trunkline=debug")]), "warn,trunkline=debug");
    assert_eq!(level(&[("RUST_LOG", "warn"), ("TRUNKLINE_LOG__LEVEL", "trace")]), "trace");
}

#[test]
fn clients_and_probes_have_an_address_each() {
    let both = |clients: &str, admin: &str| {
        let text = format!(
            "[server]\nlisten = '{clients}'\n[admin]\nlisten = '{admin}'\n[auth]\nallow_unauthenticated = true"
        );
        load_texts(&[("a.toml", &text)], &[])
    };
    for (clients, admin) in [("127.0.0.1:9001", "127.0.0.1:9001"), ("0.0.0.0:9001", "127.0.0.1:9001")] {
        let fault = both(clients, admin).unwrap_err().to_string();
        assert!(fault.contains("127.0.0.1:9001 is also the address for clients (`server.listen`)"), "{fault}");
    }
    for admin in ["127.0.0.1:9002", "127.0.0.2:9001", "off"] {
        assert!(both("127.0.0.1:9001", admin).is_ok(), "{admin}");
    }
    assert!(both("127.0.0.1:0", "127.0.0.1:0").is_ok());
}

#[test]
fn a_word_that_is_no_level_is_none() {
    for text in ["loud", "wran", "info,lots"] {
        let fault = load_texts(&[("a.toml", &format!("[log]\nlevel = '{text}'"))], &[]).unwrap_err().to_string();
        assert!(fault.contains("is not a level (off, error, warn"), "{fault}");
    }
    for text in ["OFF", "warn", "info,hyper=debug", "trunkline::upstream=trace,error", "[call]"] {
        assert!(load_texts(&[("a.toml", &format!("[log]\nlevel = '{text}'"))], &[]).is_ok(), "{text}");
    }
}

#[test]
fn a_rust_log_that_is_not_understood_is_a_warning_and_changes_nothing() {
    let loaded = load_texts(&[("a.toml", "[log]\nlevel = 'error'")], &[("RUST_LOG", "=,=")]).unwrap();
    assert_eq!(loaded.config.log.level, "error");
    let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert!(warnings.len() == 1 && warnings[0].starts_with("warning[bad-value]: RUST_LOG is not"), "{warnings:?}");
    assert!(load_texts(&[("a.toml", "")], &[("TRUNKLINE_LOG__LEVEL", "=,=")]).is_err());
}

#[test]
fn the_admin_address_is_found_where_the_rest_cannot_be_used() {
    let folder = Scratch::new();
    let upstream = "[upstreams.a]\nurl = '${NOT_HERE}'\ncomand = 1\n";
    let file = folder.write("a.toml", &format!("[admin]\nlisten = '127.0.0.1:7'\n{upstream}"));
    let wrong = folder.write("b.toml", "[admin]\nlisten = '7'\n");
    let inputs = |file: &std::path::PathBuf| Inputs { files: vec![file.clone()], ..Inputs::default() };
    assert!(load(inputs(&file)).is_err());
    assert_eq!(inputs(&file).admin().unwrap().listen, Some("127.0.0.1:7".parse().unwrap()));
    assert!(inputs(&wrong).admin().unwrap_err().to_string().contains("an address with a port"));
}

#[test]
fn what_is_kept_is_kept_where_it_is_said() {
    let cache = |text: &str, env: &[(&str, &str)]| load_texts(&[("a.toml", text)], env).unwrap().config.cache;
    let home = [("HOME", "/h")];
    assert_eq!(cache("", &home), Cache::Folder("/h/.cache/trunkline".into()));
    assert_eq!(cache("", &[]), Cache::Nowhere);
    assert_eq!(cache("[catalog]\ncache = false\ncache_dir = '/c'", &home), Cache::Off);
    assert_eq!(cache("[catalog]\ncache_dir = '${HOME}/c'", &home), Cache::Folder("/h/c".into()));
    let faults = load_texts(&[("a.toml", "[catalog]\ncache_dir = 'c'")], &home).unwrap_err().to_string();
    assert!(faults.contains("an absolute path"), "{faults}");
    let demo = Inputs { environment: Environment::of(&home), demo: Some("/bin/us".into()), ..Inputs::default() };
    assert_eq!(load(demo).unwrap().config.cache, Cache::Off, "whoever only tries it finds nothing of it later");
}
