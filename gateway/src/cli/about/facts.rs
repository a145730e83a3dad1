//! `trunkline version`, `config`, `completions`.

use std::io::Write;

use clap::{Command, CommandFactory};
use serde_json::json;

use crate::cli::args::setup::{Completions, ConfigWhat, Settings};
use crate::cli::args::{Args, settings};
use crate::cli::process::failure::note;
use crate::cli::process::{Failure, answer};
use crate::config::Inputs;
use crate::config::fault::printable;
use crate::config::source::{Environment, file};

/// Says which version this is.
pub(crate) fn version() -> Result<(), Failure> {
    writeln!(answer(), "trunkline {}", env!("CARGO_PKG_VERSION"))?;
    Ok(())
}

/// Prints what a shell needs to complete words.
pub(crate) fn completions(completions: &Completions) -> Result<(), Failure> {
    // What makes them panics where it cannot write.
    let mut made = Vec::new();
    clap_complete::generate(completions.shell, &mut shown(), "trunkline", &mut made);
    answer().write_all(&made)?;
    Ok(())
}

/// The command line without the commands that nobody is to type: a script completes those, too, that are hidden.
fn shown() -> Command {
    let whole = Args::command();
    let commands = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    Command::new("trunkline")
        .version(env!("CARGO_PKG_VERSION"))
        .args(whole.get_arguments().cloned())
        .subcommands(commands)
}

/// Prints which files are read, what they say, or what they may say.
pub(crate) fn config(config: &Settings) -> Result<(), Failure> {
    let mut out = answer();
    if config.what == ConfigWhat::Schema {
        return Ok(out.json(&format!("{:#}", Inputs::schema()))?);
    }
    if config.what == ConfigWhat::Path {
        let files = file::find(&config.shared.config, &Environment::of_process());
        let files: Vec<_> =
            files.iter().map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone())).collect();
        match config.json {
            true => {
                let files: Vec<String> = files.iter().map(|path| file::shown(path)).collect();
                out.json(&format!("{:#}", json!({ "files": files })))?;
            }
            false if files.is_empty() => writeln!(out, "no file: the built-in demo")?,
            false => files.iter().try_for_each(|path| writeln!(out, "{}", file::shown(path)))?,
        }
        if let Some(why) = files.iter().find_map(|path| file::written(path).err()) {
            note(&format!("note: bytes that are not UTF-8 are shown as `\\xff`; {why}"));
        }
        return Ok(());
    }
    let loaded = settings::read(&config.shared, Vec::new())?.loaded;
    let settings = &loaded.config.written.settings;
    if config.json {
        let page = format!("{:#}", json!({ "settings": &settings[..] }));
        out.json(&loaded.config.secrets.masked(&page))?;
        return Ok(());
    }
    for setting in settings.iter() {
        let line = format!("{} = {}  # {}", setting.key, setting.value, setting.source);
        writeln!(out, "{}", printable(&loaded.config.secrets.masked(&line)))?;
    }
    Ok(())
}
