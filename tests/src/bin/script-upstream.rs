//! Plays the script in the file named by the first argument, as a child process on stdin and stdout.

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let file = std::env::args_os().nth(1).expect("usage: script-upstream SCRIPT.json");
    trunkline_tests::upstream::child::run(file.as_ref()).await;
    // The thread that reads stdin may be blocked for good; there is nothing to wait for.
    std::process::exit(0);
}
