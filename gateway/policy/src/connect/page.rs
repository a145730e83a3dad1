//! The pages in words: nothing in them is run or loaded, and no other page shows them.

use super::logins::Begun;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:40em;margin:3em auto;padding:0 1em;color:#222;background:#fff}\
dt{font-weight:600}dd{margin:0 0 .6em}a{display:inline-block;padding:.6em 1.2em;background:#1a56c4;color:#fff;border-radius:4px;\
text-decoration:none}code{background:#eee;padding:0 .2em;word-break:break-all}";

/// Nothing but the style above.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let digest = STANDARD.encode(Sha256::digest(STYLE));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"))
});

/// Who the gateway is as a client: a program without a secret.
pub(super) fn client(id: &str, redirect: &str) -> Response<Bytes> {
    let document = json!({
        "client_id": id,
        "client_name": "Trunkline",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "web",
    });
    let mut response = Response::new(Bytes::from(document.to_string()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// What a person is asked.
pub(super) struct Asked<'a> {
    pub(super) upstream: &'a str,
    /// Who has asked for it; empty without tokens.
    pub(super) principal: &'a str,
    pub(super) begun: &'a Begun,
}

/// What a person is told.
pub(super) enum Told<'a> {
    Unknown,
    Taken,
    Again,
    Prefetched,
    Ending,
    Failed { upstream: &'a str, why: &'a str },
    Done { upstream: &'a str, whose: Option<&'a str>, is_connected: bool },
}

/// Says what is asked for by whom, and leads there.
pub(super) fn asked(Asked { upstream, principal, begun }: &Asked<'_>) -> Response<Bytes> {
    let (upstream, issuer, url) = (escaped(upstream), escaped(&begun.issuer), escaped(&begun.url));
    let who = match *principal {
        "" => "A program that uses this gateway".to_owned(),
        name => format!("A program that uses this gateway as <code>{}</code>", escaped(name)),
    };
    let elsewhere = begun
        .elsewhere
        .as_ref()
        .map(|origin| format!("<dt>Its page is on another host</dt><dd><code>{}</code></dd>", escaped(origin)));
    let whose = begun
        .whose
        .as_ref()
        .map(|whose| {
            format!("<dt>It becomes the login of</dt><dd><code>{}</code>, and of nobody else</dd>\n", escaped(whose))
        })
        .unwrap_or_default();
    let scopes: Vec<_> = begun.scopes.iter().map(|scope| format!("<code>{}</code>", escaped(scope))).collect();
    let scopes = if scopes.is_empty() { "what is usual there".to_owned() } else { scopes.join(" ") };
    let body = format!(
        "<p>{who} called something that needs your login.</p>\n\
         <dl><dt>Upstream</dt><dd><code>{upstream}</code></dd>\n{whose}\
         <dt>Authorization server</dt><dd><code>{issuer}</code></dd>\n{}\
         <dt>It is asked to allow</dt><dd>{scopes}</dd></dl>\n\
         <p><strong>Go on only if you have just asked for this yourself.</strong> Whoever gave you this link otherwise would act with your \
         account from then on.</p>\n\
         <p><a href=\"{url}\" rel=\"noreferrer\">Log in</a></p>\n",
        elsewhere.unwrap_or_default()
    );
    response(StatusCode::OK, &format!("Log in to {upstream}"), &body)
}

/// Says what became of it.
pub(super) fn told(status: StatusCode, told: &Told<'_>) -> Response<Bytes> {
    let (title, text) = match told {
        Told::Unknown => (
            "Nothing is here",
            "This link is unknown, was used, or is older than ten minutes. Call the tool again to get another one.".to_owned(),
        ),
        Told::Taken => (
            "Opened elsewhere",
            "This login was begun in another browser, and only that one can finish it. Call the tool again in a minute to get another link."
                .to_owned(),
        ),
        Told::Again => ("Under way", "This login is being finished already. You can close this page.".to_owned()),
        Told::Prefetched => ("Not opened", "This page is opened by a person, and not ahead of that.".to_owned()),
        Told::Ending => ("The gateway is shutting down", "Call the tool again to get another link.".to_owned()),
        Told::Failed { upstream, why } => (
            "Not logged in",
            format!(
                "The login at the upstream <code>{}</code> was not completed: {}. Nothing was kept; what was kept before still is. Call the tool \
                 again to get another link.",
                escaped(upstream),
                escaped(why.trim_end_matches([':', '.', ' ']))
            ),
        ),
        Told::Done { upstream, whose, is_connected } => {
            let whom = whose.map(|whose| format!(" for <code>{}</code>", escaped(whose))).unwrap_or_default();
            let said = match is_connected {
                true => format!("The upstream <code>{}</code> is connected{whom}.", escaped(upstream)),
                false => format!(
                    "The login is kept{whom}, and the upstream <code>{}</code> is not connected yet.",
                    escaped(upstream)
                ),
            };
            ("Logged in", format!("{said} You can close this page."))
        }
    };
    response(status, title, &format!("<p>{text}</p>\n"))
}

fn response(status: StatusCode, title: &str, body: &str) -> Response<Bytes> {
    let html = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title} - Trunkline</title><style>{STYLE}</style>\n<h1>{title}</h1>\n{body}"
    );
    let mut response = Response::new(Bytes::from(html));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(http::header::CONTENT_SECURITY_POLICY, POLICY.clone());
    for (name, value) in [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
        (HeaderName::from_static("x-frame-options"), "DENY"),
        (HeaderName::from_static("referrer-policy"), "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A text of others, as a page shows it.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            char => out.push(char),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(url: &str) -> Begun {
        let finish: super::super::logins::Finish = Box::new(|_, _| Box::pin(async { Ok(true) }));
        let (state, issuer) = ("s".to_owned(), "https://as.example/<b>".to_owned());
        let scopes = vec!["a&b".to_owned(), "<script>".to_owned()];
        let (elsewhere, whose) = (Some("https://x\"'".to_owned()), Some("oauth:<i>bob".to_owned()));
        Begun { url: url.to_owned(), state, issuer, elsewhere, scopes, whose, finish }
    }

    #[test]
    fn words_of_others_are_words_and_nothing_is_run_loaded_or_framed() {
        let begun = begun("https://as.example/?a=1&b=\"><script>");
        let page = asked(&Asked { upstream: "<up>", principal: "token:<ada>", begun: &begun });
        let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(
            policy.starts_with("default-src 'none'; style-src 'sha256-") && policy.contains("frame-ancestors 'none'")
        );
        let html = String::from_utf8(page.into_body().to_vec()).unwrap();
        assert!(
            !html.contains("<script") && !html.contains("<up>") && !html.contains("<ada>") && !html.contains("\"'")
        );
        for words in [
            "&lt;up&gt;",
            "token:&lt;ada&gt;",
            "of</dt><dd><code>oauth:&lt;i&gt;bob</code>",
            "a&amp;b",
            "?a=1&amp;b=&quot;&gt;",
            "&lt;b&gt;",
            "x&quot;&#39;",
        ] {
            assert!(html.contains(words), "{words}: {html}");
        }
        let why = "<img src=x>:";
        let html = told(StatusCode::OK, &Told::Failed { upstream: "u", why }).into_body();
        assert!(String::from_utf8_lossy(&html).contains("completed: &lt;img src=x&gt;. Nothing was kept"));
        for is_connected in [true, false] {
            let done = Told::Done { upstream: "<u>", whose: Some("<w>"), is_connected };
            let html = String::from_utf8(told(StatusCode::OK, &done).into_body().to_vec()).unwrap();
            assert!(html.contains("<code>&lt;u&gt;</code>") && html.contains(" for <code>&lt;w&gt;</code>"), "{html}");
        }
    }
}
