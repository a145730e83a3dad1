//! Where upstreams are: addresses, sockets, proxies, and what may not be sent there.

use super::loading::{load_texts, shown};

#[test]
fn credentials_in_the_clear_go_to_no_public_address_unless_the_file_says_so() {
    let of = |url: &str, more: &str| {
        let text = format!("[upstreams.a]\nurl = \"{url}\"\nheaders = {{ Authorization = \"canary-value\" }}\n{more}");
        load_texts(&[("a.toml", &text)], &[]).map(drop).map_err(|faults| faults.to_string())
    };
    for url in ["http://h.example/", "ws://8.8.8.8/"] {
        let said = of(url, "").unwrap_err();
        assert!(said.contains("error[cleartext-credentials]") && !said.contains("canary"), "{said}");
        assert_eq!(of(url, "cleartext_credentials = true"), Ok(()));
    }
    for (url, header) in
        [("http://h.example/?api_key=canary", "A = \"b\""), ("http://h.example/", "A = \"Bearer canary\"")]
    {
        let said = shown(&format!("[upstreams.a]\nurl = \"{url}\"\nheaders = {{ {header} }}\n"));
        assert!(said.contains("error[cleartext-credentials]") && !said.contains("canary"), "{said}");
    }
    // Two labels are a service of a cluster and its namespace, or a domain: nothing in them tells which.
    let (short, long) = (of("http://mcp.default/", "").unwrap_err(), of("http://a.mcp.default/", "").unwrap_err());
    assert!(
        short.contains("write `mcp.default.svc` if that is a service") && !long.contains(".svc"),
        "{short}\n{long}"
    );
    for url in ["https://h.example/", "http://h/", "http://10.0.0.9/", "http://db.ns.svc/", "http://127.0.0.1/"] {
        assert_eq!(of(url, ""), Ok(()), "{url}");
    }
}

#[test]
fn credentials_in_the_clear_go_by_no_public_proxy_and_its_own_password_goes_to_none() {
    let of = |url: &str, proxy: &str, more: &str| {
        let headers = "headers = { Authorization = \"canary-value\" }";
        let text = format!("[upstreams.a]\nurl = \"{url}\"\nproxy = \"{proxy}\"\n{headers}\n{more}");
        load_texts(&[("a.toml", &text)], &[]).map(drop).map_err(|faults| faults.to_string())
    };
    let by = of("http://10.0.0.9/", "http://p.example:1", "").unwrap_err();
    assert!(by.contains("by way of a proxy at a public address") && !by.contains("canary"), "{by}");
    let own = of("https://h.example/", "http://u:canary-word@p.example:1", "").unwrap_err();
    assert!(own.contains("the password of the proxy") && !own.contains("canary"), "{own}");
    for (url, proxy, more) in [
        ("http://10.0.0.9/", "http://p.lan:1", ""),
        ("https://h.example/", "http://p.example:1", ""),
        ("https://h.example/", "http://u:canary-word@10.0.0.1:1", ""),
        ("https://h.example/", "http://u:canary-word@p.example:1", "cleartext_credentials = true"),
    ] {
        assert_eq!(of(url, proxy, more), Ok(()), "{url} {proxy}");
    }
}

#[test]
fn what_a_transport_has_no_use_for_is_refused() {
    let said = |keys: &str| shown(&format!("[upstreams.a]\n{keys}\n"));
    assert!(said("transport = \"unix\"\nurl = \"https://h/\"").contains("begins with unix: and has no `#`"));
    assert!(said("transport = \"http\"\nurl = \"tcp://h:1\"").contains("begins with http:// or https://"));
    assert!(said("transport = \"tcp\"\nurl = \"unix:/run/x\"").contains("begins with tcp:"));
    assert!(said("transport = \"unix\"").contains("needs `url`, such as \"unix:/run/mcp.sock\""));
    for (key, value) in [("headers", "{ A = \"b\" }"), ("proxy", "\"off\""), ("cwd", "\"/\"")] {
        let said = said(&format!("url = \"unix:/run/x\"\n{key} = {value}"));
        assert!(said.contains(&format!("`{key}` has no meaning")), "{said}");
    }
    let at = |url: &str, key: &str| {
        let text = format!("[upstreams.a]\nurl = \"{url}\"\n{key}\n");
        load_texts(&[("a.toml", &text)], &[]).is_err_and(|faults| faults.to_string().contains("useless-key"))
    };
    let (tls, off) = ("tls = { ca = \"/dev/null\" }", "proxy = \"off\"");
    for url in ["http://h/", "ws://h/"] {
        assert!(at(url, tls) && !at(url, off), "{url}");
    }
    for url in ["unix:/run/x#/mcp", "http+unix://%2Frun%2Fx/mcp"] {
        assert!(at(url, tls) && at(url, off) && at(url, "cleartext_credentials = true"), "{url}");
    }
    assert!(!at("https://h/", tls) && !at("wss://h/", tls));
    for proxy in ["socks5://canary", "https://u:canary@h:1", "http://u:canary @h:1"] {
        let said = said(&format!("url = \"https://h/\"\nproxy = \"{proxy}\""));
        assert!(said.contains("the URL of an HTTP proxy") && !said.contains("canary"), "{said}");
    }
    let missing = said("url = \"https://h/\"\ntls = { cert = \"/no/such/file\" }");
    assert!(missing.contains("needs both `tls.cert` and `tls.key`"), "{missing}");
    let unread = said("url = \"https://h/\"\ntls = { ca = \"/no/such/file\" }");
    assert!(unread.contains("cannot read /no/such/file"), "{unread}");
}

#[test]
fn hosts_that_reach_an_upstream_by_another_proxy_of_their_environment_do_not_share_a_gateway() {
    let text = "[upstreams.a]\nurl = 'https://h.example/mcp'\n[upstreams.b]\ncommand = 'x'\n";
    let of = |env: &[(&str, &str)]| load_texts(&[("a.toml", text)], env).unwrap().config.written.identity();
    let none = of(&[]);
    let by_one = of(&[("HTTPS_PROXY", "http://one.example:1")]);
    assert!(by_one != none && by_one != of(&[("https_proxy", "http://two.example:1")]));
    assert_eq!(by_one, of(&[("ALL_PROXY", "http://one.example:1")]), "it is the same way");
    // What leads nowhere else keeps nobody apart.
    for env in [
        &[("HTTP_PROXY", "http://one.example:1")][..],
        &[("HTTPS_PROXY", "http://one.example:1"), ("NO_PROXY", "h.example")],
        &[("HTTPS_PROXY", "not a proxy/")],
    ] {
        assert_eq!(of(env), none, "{env:?}");
    }
}
