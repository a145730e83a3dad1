//! Who calls: clients of two principals over each face of the gateway, or one host.

use std::net::SocketAddr;

use crate::cable::{Cable, Carries};
use crate::client::{Client, Desk, Reach};
use crate::gateway::{Config, Gateway, StdioGateway};
use crate::machine::secured::Door;
use crate::machine::setting::{self, INNOCENT};
use crate::machine::stage::address;
use crate::revision::Revision;
use crate::seed::Seed;
use crate::upstream::Way;

/// How the clients reach the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Face {
    /// Four clients by Streamable HTTP, one of them over a slow wire.
    Http,
    /// Four clients, each on one connection for all that it says: two by WebSocket, one by HTTP+SSE, one by a socket of this machine.
    Connections,
    /// Four clients by Streamable HTTP within TLS: two on one connection of HTTP/2 each, two with HTTP/1.1.
    Secured,
    /// All of these.
    Every,
    /// One host by stdio.
    Stdio,
}

/// What a client takes for ids.
#[derive(Clone, Copy, Debug)]
pub enum Ids {
    /// This one, for each of its calls.
    Always(&'static str),
    /// Texts that count.
    Texts,
    /// Numbers that count, below zero and beyond what a float holds.
    Numbers,
}

/// One that calls.
pub struct Caller {
    /// For whom.
    pub principal: &'static str,
    /// The client.
    pub client: Client,
    /// What it takes for ids.
    pub ids: Ids,
}

/// The gateway with those who call it.
pub(super) struct Callers {
    /// Where it serves others than one host.
    pub(super) gateway: Option<Gateway>,
    /// Where it serves one host.
    pub(super) host: Option<StdioGateway>,
    /// Between it and one of the clients.
    pub(super) cable: Option<Cable>,
    /// Those who call.
    pub(super) callers: Vec<Caller>,
}

/// The gateway starts, and they come.
pub(super) async fn come(face: Face, config: &Config, door: &Door, seed: &Seed) -> Callers {
    match face {
        Face::Http | Face::Connections | Face::Secured | Face::Every => {
            let gateway = Gateway::serve(config).await;
            let (mut cable, mut callers) = (None, Vec::new());
            if matches!(face, Face::Http | Face::Every) {
                let wire = Cable::to(address(&gateway.url), seed.part("client")).await;
                wire.carry(Carries::InPieces);
                callers.extend(by_requests(&gateway, &wire).await);
                cable = Some(wire);
            }
            if matches!(face, Face::Connections | Face::Every) {
                callers.extend(by_connections(&gateway).await);
            }
            if matches!(face, Face::Secured | Face::Every) {
                callers.extend(within_tls(door).await);
            }
            Callers { gateway: Some(gateway), host: None, cable, callers }
        }
        Face::Stdio => {
            let host = StdioGateway::prepare(config);
            let desk = Desk::closed().unjudging();
            let client = Client::connect_with(&host.reach(), Revision::R2025_11_25, desk).await;
            client.stdio().keep_lines();
            let callers = vec![Caller { principal: "host", client, ids: Ids::Texts }];
            Callers { gateway: None, host: Some(host), cable: None, callers }
        }
    }
}

async fn by_requests(gateway: &Gateway, wire: &Cable) -> Vec<Caller> {
    let over_wire = Reach::Url(format!("http://{}/mcp", wire.address));
    let [ann, bob] = INNOCENT;
    let lanes = [
        (ann, gateway.reach(), Revision::MODERN, Ids::Always("1")),
        (bob, gateway.reach(), Revision::R2025_11_25, Ids::Texts),
        (ann, over_wire, Revision::R2025_06_18, Ids::Always("\"1\"")),
        (bob, gateway.reach(), Revision::R2025_03_26, Ids::Numbers),
    ];
    by(lanes, address(&gateway.url)).await
}

async fn within_tls(door: &Door) -> Vec<Caller> {
    let [ann, bob] = INNOCENT;
    let lanes = [
        (ann, door.by_http2().await, Revision::MODERN, Ids::Always("1")),
        (bob, door.by_http2().await, Revision::R2025_11_25, Ids::Texts),
        (ann, door.by_http1().await, Revision::R2025_06_18, Ids::Always("\"1\"")),
        (bob, door.by_http1().await, Revision::MODERN, Ids::Numbers),
    ];
    by(lanes, door.address).await
}

async fn by(lanes: [(&'static str, Reach, Revision, Ids); 4], host: SocketAddr) -> Vec<Caller> {
    let mut callers = Vec::new();
    for (principal, reach, revision, ids) in lanes {
        let mut client = Client::open_with(&reach, revision, Desk::closed().unjudging()).await;
        // Whatever lies between, it is the gateway that is asked for.
        client.http().always("host", &host.to_string());
        client.http().always("authorization", &setting::bearer(principal));
        if !revision.is_modern() {
            client.greet().await;
        }
        callers.push(Caller { principal, client, ids });
    }
    callers
}

async fn by_connections(gateway: &Gateway) -> Vec<Caller> {
    let [ann, bob] = INNOCENT;
    // On one connection no two open calls have the same id.
    let lanes = [
        (ann, Way::WebSocket, Revision::MODERN, Ids::Texts),
        (bob, Way::WebSocket, Revision::R2025_11_25, Ids::Numbers),
        (ann, Way::Sse, Revision::R2024_11_05, Ids::Texts),
        (bob, Way::Unix, Revision::R2025_06_18, Ids::Always("1")),
    ];
    let mut callers = Vec::new();
    for (principal, way, revision, ids) in lanes {
        let reach = gateway.reach_by(way).bearing(&setting::bearer(principal));
        let mut client = Client::open_with(&reach, revision, Desk::closed().unjudging()).await;
        if !revision.is_modern() {
            client.greet().await;
        }
        callers.push(Caller { principal, client, ids });
    }
    callers
}
