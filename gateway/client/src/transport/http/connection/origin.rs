//! Where an upstream is: what it is called with goes nowhere else.

use http::Uri;

/// Where an upstream is: credentials go nowhere else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    is_tls: bool,
    host: String,
    port: u16,
}

impl Origin {
    /// That of a URL; nothing where it names no host.
    pub fn of(url: &Uri) -> Option<Self> {
        let is_tls = match url.scheme_str()? {
            "https" | "wss" => true,
            "http" | "ws" => false,
            _ => return None,
        };
        let port = url.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        Some(Self { is_tls, host: url.host()?.to_ascii_lowercase(), port })
    }

    fn scheme(&self) -> &'static str {
        if self.is_tls { "https" } else { "http" }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}:{}", self.scheme(), self.host, self.port)
    }
}

impl Origin {
    /// A reference that stands in an answer to what was asked for at `place`.
    pub(crate) fn resolve(&self, place: &Uri, to: &str) -> Result<Uri, String> {
        let to = to.split('#').next().unwrap_or_default();
        let absolute = match to.strip_prefix("//") {
            Some(rest) => Some(format!("{}://{rest}", self.scheme())),
            None => to.contains("://").then(|| to.to_owned()),
        };
        let path = match absolute {
            Some(url) => {
                let url: Uri = url.parse().map_err(|_| "and says where in no words of a URL".to_owned())?;
                let origin = Self::of(&url).ok_or("to what is no HTTP address")?;
                if origin != *self {
                    return Err(format!(
                        "to another origin ({origin}), which is not followed: its credentials would go there"
                    ));
                }
                url.path_and_query().map_or_else(|| "/".to_owned(), |path| path.as_str().to_owned())
            }
            // The same document (RFC 3986, 5.2.2).
            None if to.is_empty() => place.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
            None if to.starts_with('/') => to.to_owned(),
            None if to.starts_with('?') => format!("{}{to}", place.path()),
            None => {
                let folder = place.path().rsplit_once('/').map_or("", |(folder, _)| folder);
                format!("{folder}/{to}")
            }
        };
        without_dots(&path).parse().map_err(|_| "and says where in no words of a URL".to_owned())
    }
}

/// A path without `.` and `..`.
fn without_dots(path: &str) -> String {
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let mut kept: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    for (at, segment) in segments.iter().enumerate() {
        let is_last = at + 1 == segments.len();
        match *segment {
            "." | ".." => {
                if *segment == ".." {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            segment => kept.push(segment),
        }
    }
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("/{}{query}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_within_the_same_origin_is_found() {
        let origin = Origin::of(&"http://Example.com/a/mcp".parse().unwrap()).unwrap();
        let place: Uri = "/a/mcp?x=1".parse().unwrap();
        let to = |location: &str| origin.resolve(&place, location).map(|uri| uri.to_string());
        for (location, expected) in [
            ("/mcp/", "/mcp/"),
            ("http://example.com/b?c=d#e", "/b?c=d"),
            ("http://EXAMPLE.com:80", "/"),
            ("//example.com/b", "/b"),
            ("mcp/", "/a/mcp/"),
            ("../b/./c", "/b/c"),
            ("../../../b", "/b"),
            ("?y=2", "/a/mcp?y=2"),
            ("b/..", "/a/"),
            ("", "/a/mcp?x=1"),
            ("#x", "/a/mcp?x=1"),
        ] {
            assert_eq!(to(location).as_deref(), Ok(expected), "{location}");
        }
        for location in [
            "https://example.com/mcp",
            "http://example.com:8080/mcp",
            "http://example.org/mcp",
            "//example.org/mcp",
            "http://example.com@example.org/mcp",
        ] {
            assert!(to(location).unwrap_err().contains("another origin"), "{location}");
        }
        assert!(to("file:///etc/passwd").is_err() && to("/a b").is_err());
    }
}
