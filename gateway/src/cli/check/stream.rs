//! `trunkline check -`: the configuration comes from stdin, by itself or within the manifests that `helm template` prints.

use std::io::{ErrorKind, Read, stdin};
use std::path::PathBuf;

use anyhow::anyhow;

use crate::cli::args::setup::Check;
use crate::cli::process::{Failure, failure};
use crate::config::Inputs;
use crate::config::fault::{Fault, Faults, Severity};
use crate::config::source::Environment;
use crate::config::source::file::MARK;

use super::found::{self, Found};
use super::manifests::{self, Gateway};

/// Larger than what any chart prints.
const BYTES_MAX: u64 = 32 << 20;
/// Kinds of what is wrong with files that are read where the gateway runs, and not here.
const OF_FILES: [&str; 2] = [Fault::CERTIFICATE, "unreadable-file"];
/// Kinds of doubts about the machine on which this runs; an admin address that other machines reach is what a pod is meant to have.
const OF_MACHINES: [&str; 5] = ["no-command", "no-folder", "no-audit", "no-login", "open-admin"];

/// Judges what stdin has.
pub(super) fn run(check: &Check) -> Result<(), Failure> {
    if !check.shared.config.is_empty() {
        return Err(anyhow!("`-` reads the configuration from stdin; leave `--config` away").into());
    }
    let text = read()?;
    if !manifests::is_stream(&text) {
        let environment = Environment::of_process();
        let files = vec![PathBuf::from("stdin")];
        let drafts = vec![(files[0].clone(), text)];
        let inputs = Inputs { files: files.clone(), drafts, environment: environment.clone(), ..Inputs::default() };
        let found = Found::of(inputs.load_or_part(), &files, check, &environment)?;
        return found::tell(check, vec![found]);
    }
    let gateways = match manifests::gateways(&text) {
        Ok(gateways) => gateways,
        Err(fault) => return found::tell(check, vec![Found::nothing(vec![*fault])]),
    };
    let found = gateways.into_iter().map(|gateway| judged(gateway, check)).collect::<Result<Vec<_>, _>>()?;
    found::tell(check, found)
}

fn read() -> Result<String, Failure> {
    let mut text = String::new();
    match stdin().take(BYTES_MAX + 1).read_to_string(&mut text) {
        Ok(_) if text.len() as u64 > BYTES_MAX => Err(anyhow!("stdin has more than {} MiB", BYTES_MAX >> 20).into()),
        Ok(_) if text.trim().is_empty() => {
            Err(anyhow!("stdin is empty: what writes to it has failed, or has nothing to say").into())
        }
        // Some shells put a mark before what they pipe.
        Ok(_) => Ok(text.strip_prefix(MARK).map(str::to_owned).unwrap_or(text)),
        Err(error) if error.kind() == ErrorKind::InvalidData => Err(anyhow!("stdin is not UTF-8 text").into()),
        Err(error) => Err(anyhow!("cannot read stdin: {error}").into()),
    }
}

/// One gateway as it would find itself where it runs.
fn judged(gateway: Gateway, check: &Check) -> Result<Found, Failure> {
    let Gateway { of, files, absent, variables, stand_ins } = gateway;
    if !absent.is_empty() {
        return Ok(Found::nothing(absent).of_what(of));
    }
    if !stand_ins.is_empty() {
        failure::note(&format!(
            "note: {of}: these variables have their values elsewhere, and stand-ins here: {}",
            stand_ins.join(", ")
        ));
    }
    let pairs: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let environment = Environment::of(&pairs);
    let paths: Vec<PathBuf> = files.iter().map(|(path, _)| path.clone()).collect();
    let inputs = Inputs { files: paths.clone(), drafts: files, environment: environment.clone(), ..Inputs::default() };
    let loaded = inputs.load_or_part().or_else(|mut part| {
        let Faults(faults) = &mut part.faults;
        faults.iter_mut().filter(|fault| OF_FILES.contains(&fault.kind)).for_each(unseen);
        let is_error = |fault: &Fault| fault.severity == Severity::Error;
        match faults.iter().any(is_error) {
            true => Err(part),
            false => Ok(part.without_errors()),
        }
    });
    let mut found = Found::of(loaded, &paths, check, &environment)?;
    found.forget(&OF_MACHINES);
    Ok(found.of_what(of))
}

/// What is wrong with a file here may be right where it is mounted.
fn unseen(fault: &mut Fault) {
    fault.severity = Severity::Warning;
    fault.hint = Some("it is read where the gateway runs, and was not looked at".to_owned());
}
