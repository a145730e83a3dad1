//! `trunkline man`: the manual page, made from the command line itself, so that both say the same.

use std::io::Write;

use clap::{Arg, Command, CommandFactory};

use crate::cli::args::Args;
use crate::cli::process::{Failure, answer};

/// Prints the page in the words of `man`.
pub(crate) fn run() -> Result<(), Failure> {
    let mut program = Args::command();
    program.build();
    answer().write_all(page(&program).as_bytes())?;
    Ok(())
}

fn page(program: &Command) -> String {
    let name = program.get_name();
    let version = program.get_version().unwrap_or_default();
    let mut out = format!(".TH {} 1 \"\" \"{name} {version}\"\n", name.to_uppercase());
    out.push_str(&format!(".SH NAME\n{name} \\- {}\n", plain(&about(program))));
    out.push_str(&format!(".SH SYNOPSIS\n.B {name}\n[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]\n"));
    out.push_str(".SH OPTIONS\nThese may stand before and after the command.\n");
    shown(program).for_each(|arg| out.push_str(&option(arg)));
    out.push_str(".SH COMMANDS\n");
    for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
        out.push_str(&section(name, command, program));
    }
    if let Some(rest) = program.get_after_help() {
        out.push_str(".SH NOTES\n");
        for paragraph in rest.to_string().split("\n\n") {
            out.push_str(&format!(".PP\n{}\n", plain(paragraph)));
        }
    }
    out
}

fn section(name: &str, command: &Command, program: &Command) -> String {
    let mut out = format!(".SS {name} {}", command.get_name());
    let positionals: Vec<_> = command.get_positionals().map(placeholder).collect();
    positionals.iter().for_each(|one| out.push_str(&format!(" {one}")));
    out.push_str(&format!("\n{}.\n", plain(&about(command))));
    command.get_positionals().for_each(|arg| out.push_str(&option(arg)));
    // What each command has is said once.
    let own = shown(command).filter(|arg| !shown(program).any(|known| known.get_long() == arg.get_long()));
    own.for_each(|arg| out.push_str(&option(arg)));
    out
}

fn shown(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !arg.is_positional() && !arg.is_hide_set())
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

/// How a value stands in a line.
fn placeholder(arg: &Arg) -> String {
    let names = arg.get_value_names().map(|names| names.join(" "));
    let name = plain(&names.unwrap_or_else(|| arg.get_id().to_string().to_uppercase()));
    let many = if arg.get_num_args().is_some_and(|range| range.max_values() > 1) { "…" } else { "" };
    match arg.is_required_set() {
        true => format!("\\fI{name}\\fR{many}"),
        false => format!("[\\fI{name}\\fR{many}]"),
    }
}

fn option(arg: &Arg) -> String {
    let short = arg.get_short().map(|short| format!("\\fB\\-{short}\\fR"));
    let long = arg.get_long().map(|long| format!("\\fB{}\\fR", plain(&format!("--{long}"))));
    let mut flags = short.into_iter().chain(long).collect::<Vec<_>>().join(", ");
    let takes = arg.get_action().takes_values();
    if flags.is_empty() {
        flags = placeholder(arg);
    } else if takes && let Some(names) = arg.get_value_names() {
        flags.push_str(&format!(" \\fI{}\\fR", plain(&names.join(" "))));
    }
    let mut help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let values: Vec<_> = arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    if takes && !values.is_empty() {
        help.push_str(&format!(" ({})", values.join(", ")));
    }
    format!(".TP\n{flags}\n{}\n", plain(&help))
}

/// As text, whatever is in it: no line is taken for a word of `man`.
fn plain(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    let lines = escaped.lines().map(str::trim).map(|line| match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_and_option_stands_in_the_page_and_nothing_that_is_hidden() {
        let mut program = Args::command();
        program.build();
        let page = page(&program);
        for command in program.get_subcommands() {
            let name = format!(".SS trunkline {}", command.get_name());
            assert_eq!(page.contains(&name), !command.is_hide_set(), "{name}");
            for arg in command.get_arguments().filter(|_| !command.is_hide_set()) {
                let long = arg.get_long().map(|long| plain(&format!("--{long}")));
                assert!(long.is_none_or(|long| page.contains(&long)), "{command} {arg}");
            }
        }
        assert!(page.starts_with(".TH TRUNKLINE 1 \"\" \"trunkline "), "{page}");
        assert!(page.contains("Exit codes: 0 done"), "{page}");
    }

    #[test]
    fn text_is_no_word_of_man() {
        assert_eq!(plain("./x\n'a\nb-c\\d"), "\\&./x\n\\&'a\nb\\-c\\ed");
    }
}
