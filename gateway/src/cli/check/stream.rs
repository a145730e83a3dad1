//! `trunkline check -`: judges the configuration on stdin.

use std::io::{ErrorKind, Read, stdin};
use std::path::PathBuf;

use anyhow::anyhow;

use crate::cli::args::setup::Check;
use crate::cli::process::Failure;
use crate::config::Inputs;
use crate::config::source::Environment;
use crate::config::source::file::MARK;

use super::report::Report;

/// Bounds the memory that a runaway writer can fill; no configuration is this large.
const BYTES_MAX: u64 = 32 << 20;

/// Reads the configuration from stdin and prints its faults.
pub(super) fn run(check: &Check) -> Result<(), Failure> {
    if !check.shared.config.is_empty() {
        return Err(anyhow!("`-` reads the configuration from stdin; leave `--config` away").into());
    }
    let text = read()?;
    if is_manifest(&text) {
        return Err(anyhow!(
            "stdin holds Kubernetes manifests, not a configuration. \
             Pipe the text of `config.toml` alone: `helm template … --show-only templates/configmap.yaml` prints it. \
             The chart checks the whole configuration in the init container of its pods"
        )
        .into());
    }
    let environment = Environment::of_process();
    let files = vec![PathBuf::from("stdin")];
    let drafts = vec![(files[0].clone(), text)];
    let inputs = Inputs { files: files.clone(), drafts, environment: environment.clone(), ..Inputs::default() };
    Report::new(inputs.load_or_part(), &files, check, &environment)?.print(check)
}

/// Recognizes the output of `helm template` and `kubectl get -o yaml`.
fn is_manifest(text: &str) -> bool {
    ["apiVersion:", "kind:"].iter().all(|key| text.lines().any(|line| line.starts_with(key)))
}

fn read() -> Result<String, Failure> {
    let mut text = String::new();
    match stdin().take(BYTES_MAX + 1).read_to_string(&mut text) {
        Ok(_) if text.len() as u64 > BYTES_MAX => Err(anyhow!("stdin has more than {} MiB", BYTES_MAX >> 20).into()),
        Ok(_) if text.trim().is_empty() => {
            Err(anyhow!("stdin is empty; see whether the command that writes to it has failed").into())
        }
        // Some shells put a byte order mark before the text that they pipe.
        Ok(_) => Ok(text.strip_prefix(MARK).map(str::to_owned).unwrap_or(text)),
        Err(error) if error.kind() == ErrorKind::InvalidData => Err(anyhow!("stdin is not UTF-8 text").into()),
        Err(error) => Err(anyhow!("cannot read stdin: {error}").into()),
    }
}
