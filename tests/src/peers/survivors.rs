//! Finds what an upstream left behind: processes that carry a test's mark in their environment.

use std::fs;
use std::time::Duration;

/// The command lines of live processes that carry this mark, children of children included.
pub fn survivors(mark: &str) -> Vec<String> {
    let needle = format!("TRUNKLINE_TEST_MARK={mark}");
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .flatten()
        .filter(|process| process.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|process| {
            // A process that is gone, or a zombie, has no environment any more.
            let environment = fs::read(process.path().join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == needle.as_bytes())
        })
        .map(|process| {
            let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            format!("{} {}", process.file_name().to_string_lossy(), line.trim_end())
        })
        .collect()
}

/// Waits a moment for the last of them to be gone: a killed process is not gone at the instant of the kill.
///
/// # Panics
/// When some stay.
pub async fn none_left(mark: &str) {
    let gone = async {
        while !survivors(mark).is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(Duration::from_secs(5), gone).await.is_err() {
        panic!("left behind:\n  {}", survivors(mark).join("\n  "));
    }
}
