//! A file that is wrong, and written anew over and over.

use super::child;
use tokio::time::Instant;
use trunkline_tests::gateway::{Config, Gateway};

#[tokio::test]
async fn each_is_read_and_shown_and_the_log_has_a_line_now_and_then() {
    let up = child("up").await;
    let gateway = Gateway::serve(&Config::new().upstream(&up)).await;
    let (mark, begun) = (gateway.stderr.mark(), Instant::now());
    for number in 0..40 {
        gateway.configure(&Config::new().upstream_with(&up, &format!("{}bogus = 1", "\n".repeat(number))));
        let text = std::fs::read_to_string(&gateway.file).expect("it is there");
        let line = text.lines().position(|line| line == "bogus = 1").expect("it is written") + 1;
        let place = format!("{}:{line}:", gateway.file.display());
        gateway.look_until("/readyz?verbose", "the newest cause is shown", |page| page.contains(&place)).await;
    }
    gateway.configure(&Config::new().upstream(&up).section("[log]\nlevel = \"debug\"\n"));
    gateway.says(&["configuration reloaded"]).await;
    let lines = gateway.stderr.all().split_off(mark);
    let refusals = lines.iter().filter(|line| line.contains("configuration not reloaded")).count();
    let most = 1 + begun.elapsed().as_secs() as usize / 10;
    assert!((1..=most).contains(&refusals), "{refusals} lines, {most} at most");
}
