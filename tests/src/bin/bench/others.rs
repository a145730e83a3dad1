//! The transports beside stdio and Streamable HTTP: each directly, as an upstream's, and as a client's.

use super::load::{Dialect, Target};
use super::stage::{self, Behind, Process};
use super::wire::Way;
use super::{Scale, rounds};
use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A line for each: the upstream directly, the gateway before it, and the gateway before an HTTP upstream, reached this way.
pub(crate) async fn measure(scale: Scale, folder: &Path) -> Result<()> {
    let files = Files::write(folder)?;
    let (http, behind) = stage::http_upstream(1)?;
    let sockets = folder.join("sockets");
    std::fs::DirBuilder::new().mode(0o700).create(&sockets)?;
    let socket = sockets.join("clients.sock");
    let (address, secured) = (stage::free_address()?, stage::free_address()?);
    let keys = format!(
        "[[server.listeners]]\naddress = \"{address}\"\n[[server.listeners]]\naddress = \"unix:{}\"\n\
         [[server.listeners]]\naddress = \"{secured}\"\ntls = {{ cert = \"{}\", key = \"{}\" }}",
        socket.display(),
        files.cert.display(),
        files.key.display()
    );
    let faces = stage::listening(&[Behind::Http(&behind)], folder, &keys, &address, &[])?;
    let lines = sockets.join("lines.sock");
    let (cert, key) = (files.cert.display().to_string(), files.key.display().to_string());
    let ca = files.authority.display();
    for (title, mode, rest, url, more, direct, client) in [
        ("HTTP+SSE", "sse", vec![], "http://@/sse".to_owned(), "transport = \"sse\"".to_owned(), Way::Sse, Way::Sse),
        ("WebSocket", "ws", vec![], "ws://@/ws".into(), String::new(), Way::WebSocket, Way::WebSocket),
        (
            "Unix socket",
            "unix",
            vec![lines.display().to_string()],
            format!("unix:{}", lines.display()),
            String::new(),
            Way::Lines(lines.clone()),
            Way::HttpAtSocket(socket),
        ),
        (
            "HTTP/2 over TLS, one connection",
            "h2",
            vec![cert, key],
            "https://@/mcp".into(),
            format!("tls = {{ ca = \"{ca}\" }}"),
            Way::Http2(files.authority.clone()),
            Way::Http2(files.authority.clone()),
        ),
    ] {
        let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
        let (upstream, at) = stage::upstream_by(mode, &rest)?;
        let url = url.replace('@', &at);
        let (before, reached) = stage::gateway(&[Behind::With(format!("url = \"{url}\"\n{more}"))], folder, &[])?;
        // HTTP+SSE belongs to a revision with a handshake.
        let dialect = if mode == "sse" { Dialect::Legacy } else { Dialect::Modern };
        let own = if mode == "h2" { &secured } else { &address };
        let target = |address: &str, tool: &str, dialect, way: &Way| Target {
            address: address.to_owned(),
            path: "/mcp".to_owned(),
            tool: tool.to_owned(),
            dialect,
            way: way.clone(),
            token: None,
        };
        let targets: [(&'static str, Target, Option<&Process>); 3] = [
            ("direct", target(&at, "echo", dialect, &direct), None),
            ("trunkline, as its upstream", target(&reached, "u0__echo", Dialect::Modern, &Way::Http), Some(&before)),
            ("trunkline, as its client", target(own, "u0__echo", dialect, &client), Some(&faces)),
        ];
        rounds(&format!("{title}, tools/call, 64-byte echo"), &targets, scale).await?;
        drop((before, upstream));
    }
    drop((faces, http));
    Ok(())
}

/// A certificate for loopback, its key, and who has signed it.
struct Files {
    cert: PathBuf,
    key: PathBuf,
    authority: PathBuf,
}

impl Files {
    fn write(folder: &Path) -> Result<Self> {
        let signs = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = params.self_signed(&signs)?.pem();
        let key = KeyPair::generate()?;
        let issuer = Issuer::new(params, signs);
        let cert = CertificateParams::new(vec!["127.0.0.1".to_owned()])?.signed_by(&key, &issuer)?.pem();
        let write = |name: &str, text: &str| -> Result<PathBuf> {
            let path = folder.join(name);
            std::fs::write(&path, text)?;
            Ok(path)
        };
        Ok(Self {
            cert: write("cert.pem", &cert)?,
            key: write("key.pem", &key.serialize_pem())?,
            authority: write("authority.pem", &authority)?,
        })
    }
}
