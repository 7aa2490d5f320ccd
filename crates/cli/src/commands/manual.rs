//! `man` and `completions`, made from the definitions in `args`.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use clap::{Command, CommandFactory as _};
use clap_complete::generate;
use clap_complete::shells::{Bash, Fish, Zsh};

use crate::args::Cli;
use crate::args::daemon::{CompletionsArgs, ManArgs, Shell};
use crate::output;

/// `prorata man`: the page of the program itself, or the pages of all commands
/// as files.
pub fn man(args: &ManArgs) -> Result<()> {
    // `prorata help` has no page to refer to.
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let Some(directory) = &args.directory else {
        return output::write(&page(&command)?);
    };
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make directory {}", directory.display()))?;
    write_pages(&command, directory)
}

/// Writes the page of a command and of its subcommands.
fn write_pages(command: &Command, directory: &Path) -> Result<()> {
    let name = command
        .get_display_name()
        .unwrap_or_else(|| command.get_name());
    let path = directory.join(format!("{name}.1"));
    output::document(&path, &page(command)?)?;
    command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .try_for_each(|command| write_pages(command, directory))
}

fn page(command: &Command) -> Result<String> {
    let mut page = Vec::new();
    let source = format!("prorata {}", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(command.clone())
        .source(source)
        .manual("User Commands")
        .render(&mut page)?;
    let page = String::from_utf8(page)?;
    // What follows the options begins with examples. clap_mangen has its own heading for it.
    let headings = ["Examples:\n", "Example:\n", ""].map(|first| format!("\n.SH EXTRA\n{first}"));
    let heading = headings.iter().find(|heading| page.contains(*heading));
    Ok(match heading {
        Some(heading) => page.replacen(heading, "\n.SH EXAMPLES\n", 1),
        None => page,
    })
}

/// Completes the command that follows `--`, which the generated script for bash does not. The one
/// for zsh does.
const BASH_COMMANDS: &str = r#"
_prorata_or_command() {
    local index
    for ((index = 1; index < COMP_CWORD; index++)); do
        if [[ ${COMP_WORDS[index]} == -- ]]; then
            if declare -F _command_offset > /dev/null; then
                _command_offset $((index + 1))
            elif ((COMP_CWORD == index + 1)); then
                mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
            else
                mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
            fi
            return
        fi
    done
    _prorata "$@"
}

complete -F _prorata_or_command -o bashdefault -o default prorata
"#;

/// `prorata completions`.
pub fn completions(args: &CompletionsArgs) -> Result<()> {
    let mut command = Cli::command();
    let mut script = Vec::new();
    match args.shell {
        Shell::Bash => {
            generate(Bash, &mut command, "prorata", &mut script);
            script.extend_from_slice(BASH_COMMANDS.as_bytes());
        }
        Shell::Fish => generate(Fish, &mut command, "prorata", &mut script),
        Shell::Zsh => generate(Zsh, &mut command, "prorata", &mut script),
    }
    output::write(&String::from_utf8(script)?)
}
