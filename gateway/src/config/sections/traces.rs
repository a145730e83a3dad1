//! `[traces]`: whether calls have spans, where these go, and what of that OpenTelemetry's variables say.

use http::{HeaderMap, HeaderName, HeaderValue, Uri};

use crate::telemetry::config::{Sampler, Traces};
use crate::upstream::config::Remote;

use super::address::is_public;
use super::proxy::proxy;
use super::transport::{TLS_CA, TLS_KEY, trust};
use crate::config::doc::{KeyDoc, TableDoc};
use crate::config::fault::{Fault, Place};
use crate::config::read::{Reading, Section};
use crate::config::secret::decoded;
use crate::config::secret::looks::looks_secret;

/// What a URL without a path is followed by.
const PATH: &str = "/v1/traces";
/// Headers that belong to every POST.
const OWN: [&str; 6] = ["accept", "connection", "content-length", "content-type", "host", "transfer-encoding"];

/// Keys of `[traces]`.
pub(crate) const TRACES_DOC: TableDoc = TableDoc {
    heading: "[traces]",
    path: &["traces"],
    intro: "[Spans of calls](../observability.md#traces), sent to an OTLP collector. Off unless `endpoint` or \
        `enabled` says otherwise.",
    keys: &[&[
        KeyDoc {
            key: "enabled",
            kind: "bool",
            default: "whether `endpoint` is set",
            description: "`true` without `endpoint`: OpenTelemetry's variables say where spans go; `false`: none \
                are made",
        },
        KeyDoc {
            key: "endpoint",
            kind: "URL",
            default: "none",
            description: "the collector, `http` or `https`; without a path `/v1/traces` is meant",
        },
        KeyDoc { key: "headers", kind: "table", default: "`{}`", description: "sent with every batch" },
        KeyDoc {
            key: "service_name",
            kind: "text",
            default: "`\"trunkline\"`",
            description: "`service.name` of the gateway",
        },
        KeyDoc { key: "resource", kind: "table", default: "`{}`", description: "further attributes of the gateway" },
        KeyDoc {
            key: "sample_ratio",
            kind: "number from 0 to 1",
            default: "`1.0`",
            description: "the part of traces that is recorded",
        },
        KeyDoc {
            key: "parent_based",
            kind: "bool",
            default: "`true`",
            description: "whether a caller's own decision holds; `false`: `sample_ratio` alone decides",
        },
        KeyDoc {
            key: "proxy",
            kind: "text",
            default: "`\"env\"`",
            description: "[proxy](../operations.md#proxies) that leads there",
        },
    ]],
    notes: "",
};

/// Keys of `[traces.tls]`.
pub(crate) const TRACES_TLS_DOC: TableDoc = TableDoc {
    heading: "[traces.tls]",
    path: &["traces", "tls"],
    intro: "Files for the collector, as for an [upstream](#upstreamsnametls).",
    keys: &[&[
        TLS_CA,
        KeyDoc {
            key: "cert",
            kind: "absolute path",
            default: "",
            description: "certificate that the collector is shown",
        },
        TLS_KEY,
    ]],
    notes: "",
};

/// `[traces]`: how spans are made, and where they go; `None` where there are none.
pub(crate) fn traces(mut section: Section<'_>) -> Option<(Traces, Remote)> {
    let reading = section.reading;
    let (written, place) = (section.has("endpoint"), section.own_place());
    let is_on = section.flag("enabled").unwrap_or(written);
    // A variable that is there for other programs turns nothing on.
    let variables = Variables { reading, is_on };
    let is_disabled = variables.get("OTEL_SDK_DISABLED").is_some_and(|(_, text)| text.eq_ignore_ascii_case("true"));
    let endpoint = section.parse("endpoint", |text| endpoint(text, true));
    let endpoint = if written { endpoint } else { variables.endpoint() };
    let headers = headers(&mut section, variables.headers());
    let (trust, proxy) = (trust(&mut section, false), proxy(&mut section, endpoint.as_ref()));
    let mut resource = variables.resource();
    resource.extend(section.pairs("resource"));
    let service = section.parse("service_name", |text| match text {
        "" => Err("expected a name".to_owned()),
        text => Ok(text.to_owned()),
    });
    let named = resource.iter().rposition(|(name, _)| name == "service.name").map(|at| resource[at].1.clone());
    resource.retain(|(name, _)| name != "service.name");
    let service = service.or_else(|| Some(variables.get("OTEL_SERVICE_NAME")?.1)).or(named);
    let sampler = sampler(&mut section, variables.sampler());
    section.end("[traces]");
    if !is_on || is_disabled {
        return None;
    }
    let Some(url) = endpoint else {
        if !written {
            let text = "[traces] is enabled, and nothing says where traces go";
            let hint = "set `endpoint`, such as \"http://127.0.0.1:4318\", or OTEL_EXPORTER_OTLP_ENDPOINT";
            reading.fault(Fault::error("missing-key", text).at(place).hint(hint));
        }
        return None;
    };
    let mut names = url.query().unwrap_or_default().split('&').map(|pair| pair.split('=').next().unwrap_or(pair));
    let secret = if headers.is_empty() { names.find(|name| looks_secret(name)) } else { Some("headers") };
    if let Some(secret) =
        secret.filter(|_| url.scheme_str() == Some("http") && is_public(url.host().unwrap_or_default()))
    {
        let text = format!("`{secret}` of [traces] would be sent without encryption to a public address");
        reading.fault(Fault::error("cleartext-credentials", text).at(place).hint("begin `endpoint` with https://"));
    }
    let service = service.unwrap_or_else(|| "trunkline".to_owned());
    Some((Traces { service, resource, sampler }, Remote { trust, proxy, ..Remote::new(url, headers) }))
}

/// The URL that spans are posted to. Nothing of the text is repeated in an error: it may hold a key.
fn endpoint(text: &str, stands_for_itself: bool) -> Result<Uri, String> {
    let expected =
        || "expected the http:// or https:// URL of an OTLP collector, such as \"http://127.0.0.1:4318\"".to_owned();
    let url: Uri = text.trim().parse().map_err(|_| expected())?;
    let authority = url.authority().filter(|authority| !authority.host().is_empty()).ok_or_else(expected)?;
    if !matches!(url.scheme_str(), Some("http" | "https")) {
        return Err(expected());
    }
    if authority.as_str().contains('@') {
        return Err(
            "a user name and password in a URL are not sent; use headers = { Authorization = \"Basic …\" }".to_owned()
        );
    }
    if stands_for_itself && !matches!(url.path(), "" | "/") {
        return Ok(url);
    }
    // What OTEL_EXPORTER_OTLP_ENDPOINT names is the root of all signals.
    let base = url.to_string();
    let (base, query) =
        base.split_once('?').map_or((&*base, String::new()), |(base, query)| (base, format!("?{query}")));
    format!("{}{PATH}{query}", base.trim_end_matches('/')).parse().map_err(|_| expected())
}

/// The headers of each POST: those of the file over those of the variables.
fn headers(section: &mut Section<'_>, variables: Vec<(String, String)>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut put = |name: &str, value: &str| {
        let name = HeaderName::from_bytes(name.as_bytes()).ok().filter(|name| !OWN.contains(&name.as_str()));
        let value = HeaderValue::from_str(value).ok();
        let is_sound = name.is_some() && value.is_some();
        if let Some((name, mut value)) = name.zip(value) {
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        is_sound
    };
    // What is wrong in a variable is another program's.
    variables.iter().for_each(|(name, value)| _ = put(name, value));
    let written = section.pairs("headers");
    if !written.iter().all(|(name, value)| put(name, value)) {
        section.wrong(
            "headers",
            "names of headers that the exporter does not set itself, and values that can stand in one",
        );
    }
    headers
}

/// Which traces are recorded: as the file says it, else as the variables do.
fn sampler(section: &mut Section<'_>, of_variables: Sampler) -> Sampler {
    let ratio = section.number("sample_ratio", |text| match text.parse::<f64>() {
        Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(ratio),
        _ => Err("expected a number from 0 to 1, such as 0.1".to_owned()),
    });
    let is_parent_based = section.flag("parent_based").unwrap_or(of_variables.is_parent_based);
    Sampler { ratio: ratio.unwrap_or(of_variables.ratio), is_parent_based }
}

/// The variables of OpenTelemetry; they say nothing where traces are off.
struct Variables<'a> {
    reading: &'a Reading,
    is_on: bool,
}

impl Variables<'_> {
    fn get(&self, name: &'static str) -> Option<(&'static str, String)> {
        let value = self.reading.environment.get(name)?.to_str()?.trim();
        (self.is_on && !value.is_empty()).then(|| (name, value.to_owned()))
    }

    fn either(&self, of_traces: &'static str, of_all: &'static str) -> Option<(&'static str, String)> {
        self.get(of_traces).or_else(|| self.get(of_all))
    }

    fn wrong(&self, name: &str, expected: &str) {
        let fault = Fault::error("bad-value", format!("invalid value for {name}"));
        self.reading.fault(fault.at(Some(Place::Variable(name.to_owned()))).label(expected));
    }

    /// Where traces go, in the one encoding that is spoken here.
    fn endpoint(&self) -> Option<Uri> {
        let protocol = self.either("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL");
        if let Some((name, _)) = protocol.filter(|(_, word)| word != "http/protobuf") {
            self.wrong(name, "Trunkline sends \"http/protobuf\"; set `[traces] endpoint` to where that is taken");
        }
        let (name, text) = self.either("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")?;
        match endpoint(&text, name == "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") {
            Ok(url) => Some(url),
            Err(expected) => {
                self.wrong(name, &expected);
                None
            }
        }
    }

    /// Nobody may read the values.
    fn headers(&self) -> Vec<(String, String)> {
        let text = self.either("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS");
        let pairs = pairs(&text.map(|(_, text)| text).unwrap_or_default());
        pairs.iter().for_each(|(_, value)| self.reading.secret(value));
        pairs
    }

    fn resource(&self) -> Vec<(String, String)> {
        pairs(&self.get("OTEL_RESOURCE_ATTRIBUTES").map(|(_, text)| text).unwrap_or_default())
    }

    fn sampler(&self) -> Sampler {
        let default = Sampler::default();
        let Some((name, word)) = self.get("OTEL_TRACES_SAMPLER") else { return default };
        let ratio = || match self.get("OTEL_TRACES_SAMPLER_ARG") {
            None => 1.0,
            Some((name, text)) => text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio)).unwrap_or_else(|| {
                self.wrong(name, "expected a number from 0 to 1");
                1.0
            }),
        };
        let (is_parent_based, word) = word.strip_prefix("parentbased_").map_or((false, &*word), |word| (true, word));
        match word {
            "always_on" => Sampler { ratio: 1.0, is_parent_based },
            "always_off" => Sampler { ratio: 0.0, is_parent_based },
            "traceidratio" => Sampler { ratio: ratio(), is_parent_based },
            _ => {
                self.wrong(
                    name,
                    "expected always_on, always_off or traceidratio, with parentbased_ before it or without",
                );
                default
            }
        }
    }
}

/// `name=value,name=value`, percent-encoded.
fn pairs(text: &str) -> Vec<(String, String)> {
    let read = |text: &str| decoded(text.trim()).unwrap_or_else(|| text.trim().to_owned());
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (read(name), read(value))).filter(|(name, _)| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::source::Environment;
    use crate::config::{Inputs, load};

    /// What a file and an environment make of it; or what is wrong.
    fn of(text: &str, variables: &[(&str, &str)]) -> Result<Option<(Traces, Remote)>, String> {
        let path = std::path::PathBuf::from("/t.toml");
        let inputs = Inputs {
            files: vec![path.clone()],
            drafts: vec![(path, text.to_owned())],
            environment: Environment::of(variables),
            ..Inputs::default()
        };
        load(inputs).map(|loaded| loaded.config.traces).map_err(|faults| faults.to_string())
    }

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/base/");

    #[test]
    fn traces_are_off_until_the_file_turns_them_on_whatever_variables_there_are() {
        for text in ["", "[traces]\nsample_ratio = 0.5", "[traces]\nenabled = false\nendpoint = \"http://c\""] {
            assert_eq!(of(text, &[ENDPOINT, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]), Ok(None), "{text}");
        }
        let (traces, remote) = of("[traces]\nenabled = true", &[ENDPOINT]).unwrap().unwrap();
        assert_eq!((traces.service.as_str(), traces.sampler), ("trunkline", Sampler::default()));
        assert_eq!(remote.url, "http://c:4318/base/v1/traces");
        assert_eq!(of("[traces]\nenabled = true", &[ENDPOINT, ("OTEL_SDK_DISABLED", "True")]), Ok(None));
        assert!(of("[traces]\nenabled = true", &[]).is_err_and(|why| why.contains("nothing says where traces go")));
    }

    #[test]
    fn the_file_is_above_the_variables_which_fill_in_what_it_leaves_out() {
        let variables = [
            ENDPOINT,
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-a=1%202,x-b=b"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=attributes,deployment.environment.name=test"),
            ("OTEL_TRACES_SAMPLER", "traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
        ];
        let text = "[traces]\nendpoint = \"https://h.example\"\nheaders = { x-b = \"own\" }\n";
        let (traces, remote) = of(text, &variables).unwrap().unwrap();
        assert_eq!(remote.url, "https://h.example/v1/traces");
        assert_eq!((remote.headers["x-a"].as_bytes(), remote.headers["x-b"].as_bytes()), (&b"1 2"[..], &b"own"[..]));
        assert_eq!((traces.service.as_str(), traces.resource.len()), ("attributes", 1));
        assert_eq!(traces.sampler, Sampler { ratio: 0.25, is_parent_based: false });
        let text =
            "[traces]\nendpoint = \"http://c/own/path\"\nservice_name = \"own\"\nsample_ratio = 1\nparent_based = true";
        let (traces, remote) = of(text, &[("OTEL_SERVICE_NAME", "variable"), variables[3]]).unwrap().unwrap();
        assert_eq!((traces.service.as_str(), traces.sampler), ("own", Sampler::default()));
        assert_eq!(remote.url, "http://c/own/path");
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_place() {
        let on = "[traces]\nenabled = true";
        for (text, variables, why) in [
            ("[traces]\nendpoint = \"c:4318\"", &[][..], "expected the http:// or https:// URL"),
            ("[traces]\nendpoint = \"http://u:p@c\"", &[], "a user name and password"),
            ("[traces]\nendpoint = \"http://c\"\nsample_ratio = 1.5", &[], "a number from 0 to 1"),
            ("[traces]\nendpoint = \"http://c\"\nheaders = { host = \"x\" }", &[], "does not set itself"),
            ("[traces]\nendpoint = \"http://h.example.com\"\nheaders = { x = \"y\" }", &[], "without encryption"),
            ("[traces]\nendpoint = \"http://h.example.com/x?api_key=y\"", &[], "`api_key` of [traces] would be sent"),
            ("[traces]\nendpoints = \"http://c\"", &[], "did you mean `endpoint`"),
            (on, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "c")], "OTEL_EXPORTER_OTLP_ENDPOINT"),
            (on, &[ENDPOINT, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], "OTEL_EXPORTER_OTLP_PROTOCOL"),
            (on, &[ENDPOINT, ("OTEL_TRACES_SAMPLER", "x")], "OTEL_TRACES_SAMPLER"),
        ] {
            let said = of(text, variables).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }

    #[test]
    fn what_a_url_says_beside_its_host_is_never_shown() {
        for text in ["https://u:canary@c/x?api_key=canary", "ftp://c/x?api_key=canary", "htps://c/canary"] {
            let said = of(&format!("[traces]\nendpoint = \"{text}\""), &[]).unwrap_err();
            assert!(said.contains("endpoint") && !said.contains("canary"), "{said}");
        }
    }
}
