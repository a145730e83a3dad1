//! How faults are shown: so many of them, with names, without values of references, with what to write; and what is refused in lists.

use super::loading::{load_texts, shown};

#[test]
fn of_many_faults_the_first_are_shown_errors_before_warnings_and_the_work_is_bounded() {
    let text = |count: usize| {
        let switched_off = "[upstreams.a]\nenabled = false\ncommand = \"${NO}\"\nargs = [\"${NO}\"]\n".to_owned();
        let bad = vec!["\"${NO} ${NO2}\""; count].join(",\n");
        format!("{switched_off}[upstreams.b]\ncommand = \"x\"\nargs = [{bad}]\n")
    };
    let said = shown(&text(1000));
    assert_eq!(said.matches("error[").count(), 50, "{said}");
    assert!(!said.contains("warning["), "{said}");
    assert!(said.ends_with("… and 1952 more\n2000 errors, 2 warnings"), "{said}");
    assert!(shown(&text(2)).contains("warning["));
    let cost = |count| crate::steps::of(|| drop(shown(&text(count))));
    let (Some(one), Some(two)) = (cost(500), cost(1000)) else { return };
    assert!(two < one * 3, "{one}, {two}");
    // One text with as many references.
    let long = format!("[upstreams.b]\ncommand = \"x\"\nargs = [\"{}\"]\n", "${NO}".repeat(20_000));
    assert!(shown(&long).len() < 50_000);
}

#[test]
fn one_token_under_two_names_is_refused() {
    let hash = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    let two = |one: &str, other: &str| {
        shown(&format!("[[auth.tokens]]\nname = \"a\"\n{one}\n[[auth.tokens]]\nname = \"b\"\n{other}\nx = 1"))
    };
    let same = two("token = \"a-has-a-long-token\"", "token = \"a-has-a-long-token\"");
    assert!(same.contains("error[duplicate-token]: `a` and `b` have the same token"), "{same}");
    assert!(same.contains("a.toml:4:1"), "{same}");
    let hash = format!("hash = \"{hash}\"");
    assert!(two(&hash, &hash).contains("duplicate-token"));
    assert!(!two("token = \"a-has-a-long-token\"", "token = \"b-has-a-long-token\"").contains("duplicate"));
}

#[test]
fn proxies_that_are_half_of_all_addresses_together_are_refused() {
    let trusted = |list: &str| load_texts(&[("a.toml", &format!("[server]\ntrusted_proxies = {list}\n"))], &[]).is_ok();
    for all in [
        r#"["0.0.0.0/1"]"#,
        r#"["0.0.0.0/1", "128.0.0.0/1"]"#,
        r#"["0.0.0.0/2", "64.0.0.0/3", "192.0.0.0/3"]"#,
        r#"["::ffff:0:0/96"]"#,
        r#"["::/1"]"#,
        r#"["8000::/1"]"#,
        r#"["2000::/3"]"#,
        r#"["2000::/5", "3000::/5", "2800::/5"]"#,
    ] {
        assert!(!trusted(all), "{all}");
    }
    for some in
        [r#"["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "2001:db8::/32"]"#, r#"["0.0.0.0/2"]"#, "[]"]
    {
        assert!(trusted(some), "{some}");
    }
}

#[test]
fn the_name_of_a_header_is_shown_and_never_its_value() {
    let of = |headers: &str| shown(&format!("[upstreams.a]\nurl = \"http://h/\"\nheaders = {{ {headers} }}"));
    let odd = of("\"my header\" = \"canary\", good = \"x\"");
    assert!(odd.contains("invalid name `my header` in `upstreams.a.headers`"), "{odd}");
    assert!(odd.contains("\"my header\" = \"******\"") && odd.contains("^^^^^^^^^^^ use letters, digits"), "{odd}");
    let own = of("Host = \"canary\"");
    assert!(own.contains("Host = \"******\"") && own.contains("^^^^ `host` is set by the gateway itself"), "{own}");
    for swapped in ["\"Bearer canary\" = \"x\"", "\"X-Key: canary\" = \"\"", "\"k=canary\" = \"\""] {
        assert!(!of(swapped).contains("canary"), "{}", of(swapped));
    }
    let env = shown("[upstreams.a]\ncommand = \"x\"\nenv = { \"A=canary\" = \"x\" }");
    assert!(env.contains("must not contain `=`") && !env.contains("canary"), "{env}");
}

#[test]
fn words_of_hosts_files_and_transports_that_are_not_built_say_what_to_write() {
    let of = |keys: &str| shown(&format!("[upstreams.a]\nurl = \"http://h/sse\"\n{keys}\n"));
    let sse = of("type = \"sse\"");
    assert!(sse.contains("`type` is a key of hosts' files") && sse.contains("here the key is `transport`"), "{sse}");
    assert!(sse.contains("or HTTP+SSE where the server has only that") && sse.len() < 500, "{sse}");
    for (key, own) in
        [("disabled = true", "`enabled`"), ("timeout = 5", "`call_timeout`"), ("serverUrl = \"x\"", "`url`")]
    {
        assert!(of(key).contains(&format!("here the key is {own}")), "{}", of(key));
    }
    assert!(of("transport = \"ws\"").contains("begins with ws:// or wss://"));
}

#[test]
fn what_a_reference_fills_in_is_shown_in_no_fault() {
    let env = [("ONE", "canary-value"), ("TWO", "canary-of-two")];
    let said = |text: &str| match load_texts(&[("a.toml", text)], &env) {
        Ok(loaded) => format!("{:?} {:?}", loaded.warnings, loaded.doubts),
        Err(faults) => faults.to_string(),
    };
    for text in [
        "[[auth.tokens]]\nname = \"${ONE}\"\ntoken = \"${TWO}${TWO}\"\n[[auth.tokens]]\nname = \"${ONE}\"\ntoken = \"${TWO}${TWO}\"",
        "[upstreams.a]\ncommand = \"x\"\nprefix = \"${ONE}\"\n[upstreams.b]\ncommand = \"x\"\nprefix = \"${ONE}\"",
        "[server]\nlisten = \"${ONE}\"\n[upstreams.a]\ncommand = \"${file:/${ONE}}\"",
        "[server]\nallowed_hosts = [\"${ONE}\"]\n[naming]\nstrategy = \"${TWO}\"",
        "[upstreams.canary-value]\ncomand = \"${ONE}\"\nenv = { A = \"${ONE}\" }",
    ] {
        assert!(!said(text).contains("canary-"), "{}", said(text));
    }
}
