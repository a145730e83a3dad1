//! A connection with one message a line as a pipe: to a socket of this machine, or to a host. It ends, and all that is open ends with it.

use crate::config::Place;
use crate::health::{Cause, CauseCode};
use crate::runtime::Tasks;
use crate::runtime::watched::{Counted, Watched};
use crate::transport::dial::{Host, to_socket};
use crate::transport::events::LinkEvents;
use crate::transport::pipe::reader::{self, Source};
use crate::transport::pipe::{Pipe, ReadEnd, writer};
use std::future::pending;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

/// Connects. What it starts belongs to the level; the end of the level closes the pipe.
pub async fn open(
    place: &Place,
    (upstream, max): (&str, usize),
    inbox: Arc<dyn LinkEvents>,
    level: &Tasks,
) -> Result<Arc<Pipe>, Cause> {
    let bytes = inbox.bytes();
    let pipe = Pipe::new(inbox, level.clone());
    match place {
        Place::Socket(path) => {
            let advice = "name the path of its endpoint behind `#` in `url`, as in \"unix:///run/mcp.sock#/mcp\"";
            run(Watched::new(to_socket(path).await?, Counted(bytes)), &pipe, (max, advice), level);
        }
        Place::Host(name, port) => {
            let stream = Host::new(name, *port).connect().await?;
            let advice =
                "write its URL in `url`, as in \"http://127.0.0.1:9000/mcp\"; where it has a certificate, https://";
            run(Watched::new(stream, Counted(bytes)), &pipe, (max, advice), level);
        }
    }
    pipe.count_for(upstream);
    Ok(pipe)
}

/// Reads and writes a connection until the pipe closes; `advice` is what to do where HTTP is spoken there.
fn run(
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
    pipe: &Arc<Pipe>,
    (max, advice): (usize, &'static str),
    level: &Tasks,
) {
    let (input, output) = tokio::io::split(stream);
    let (reading, ending) = (pipe.clone(), level.clone());
    level.spawn(async move {
        reader::until_over(&reading, &ending, async {
            match reader::read_from(Source::Network, &reading, input, max).await {
                ReadEnd::Eof => Cause::new(CauseCode::ConnectionLost, "it closed the connection"),
                ReadEnd::Failed(why) => Cause::new(CauseCode::ConnectionLost, why),
                ReadEnd::NotMcp(why) => Cause::new(CauseCode::NotMcp, why),
                ReadEnd::Speaks(scheme) => {
                    let name = if scheme == "https" { "TLS" } else { "HTTP" };
                    let why = format!("not an MCP server with one message per line: it speaks {name}");
                    Cause::new(CauseCode::NotMcp, why).advise(advice)
                }
            }
        })
        .await;
    });
    let writing = pipe.clone();
    level.spawn(async move {
        if let Err(error) = writer::write(&writing, output, pending()).await {
            // The reader knows better why, if it hears of it at all.
            tracing::debug!(%error, "cannot write to the connection");
            writing.close(Cause::new(CauseCode::ConnectionLost, format!("the connection broke: {error}")));
        }
    });
}
