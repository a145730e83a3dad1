//! What an upstream was given with a call, quoted: a request's head, or a child's environment. What is a canary in it is quoted in
//! every form, one after the other; now and then all of it is.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::AsyncWriteExt;

use crate::canary::{CORE, FORMS, form};
use crate::engine::said::Said;
use crate::engine::{Engine, Out, Outlet};
use crate::frame::{Frame, quote};
use crate::script::Quoting;

/// What stands before each quotation.
pub(crate) const QUOTED: &str = "this is what I was given";
/// Every so many quotations all of it is quoted.
const WHOLE: usize = 5;

/// Quotes, and answers where that belongs to it.
pub(crate) async fn say(engine: &Engine, quoting: Quoting, frame: &Frame, outlet: &Outlet) {
    let name = &engine.script.name;
    let words = words(outlet.head());
    let line = || words.replace('\n', "; ");
    match quoting {
        Quoting::Status(status) => outlet.send(status_of(status, format!("{name}: {words}"), None)).await,
        Quoting::Location => outlet.send(status_of(302, String::new(), Some(("location", line())))).await,
        Quoting::Challenge => {
            let challenge = format!("Bearer realm={}", line());
            outlet.send(status_of(401, "who are you?".into(), Some(("www-authenticate", challenge)))).await;
        }
        Quoting::Error => {
            let data = format!("{{\"why\":{}}}", quote(&words));
            let said = Said::error(-32000, &format!("{name}: {words}"), Some(&data));
            outlet.send(Out::Answer(said.into_frame(frame.id_text()))).await;
        }
        Quoting::Stdout => outlet.send(Out::Raw(format!("{}\n", line()).into_bytes())).await,
        Quoting::Stderr => on_stderr(&line()).await,
        Quoting::Exit => {
            on_stderr(&line()).await;
            std::process::exit(7);
        }
    }
}

fn status_of(status: u16, body: String, header: Option<(&'static str, String)>) -> Out {
    Out::Status { status, kind: "text/plain".into(), body, header }
}

async fn on_stderr(line: &str) {
    let mut stderr = tokio::io::stderr();
    // Where nobody reads it, it is lost.
    let _ = stderr.write_all(format!("{line}\n").as_bytes()).await;
    let _ = stderr.flush().await;
}

/// The next quotation of a head, or without one of the environment.
fn words(head: &str) -> String {
    static SAID: AtomicUsize = AtomicUsize::new(0);
    let number = SAID.fetch_add(1, Ordering::Relaxed);
    let all = if head.is_empty() { environment() } else { head.to_owned() };
    let given: Vec<&str> = all.lines().filter(|line| line.contains(CORE)).collect();
    if given.is_empty() || number.is_multiple_of(WHOLE) {
        return format!("{QUOTED}: {all}");
    }
    let line = given[number % given.len()];
    // An address has its secrets encoded already; a form of that is none that anybody would write.
    let said = match line.split_once([':', '=']) {
        Some((_, value)) if !line.contains('%') => form(number / given.len() % FORMS, value.trim()),
        _ => line.to_owned(),
    };
    format!("{QUOTED}: {said}")
}

fn environment() -> String {
    std::env::vars().map(|(name, value)| format!("{name}={value}\n")).collect()
}
