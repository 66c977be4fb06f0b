//! Manual pages and completions, made from the declarations of the commands.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::Context as _;
use clap::{Command, ValueEnum};
use clap_complete::{Shell as Completer, generate, generate_to};

/// The name of the program.
const PROGRAM: &str = "os-upgrade";

/// A shell with completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    /// The GNU shell
    Bash,
    /// The Z shell
    Zsh,
    /// The friendly interactive shell
    Fish,
}

impl Shell {
    const fn completer(self) -> Completer {
        match self {
            Self::Bash => Completer::Bash,
            Self::Zsh => Completer::Zsh,
            Self::Fish => Completer::Fish,
        }
    }
}

/// Prints the completions of `shell`.
pub(crate) fn print_completions(shell: Shell, mut command: Command) {
    generate(shell.completer(), &mut command, PROGRAM, &mut io::stdout());
}

/// Writes a manual page for each command, and the completions of each shell, into `directory`.
///
/// # Errors
/// They cannot be written.
pub(crate) fn write(directory: &Path, command: &Command) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", directory.display());
    fs::create_dir_all(directory).with_context(cannot)?;
    clap_mangen::generate_to(command.clone(), directory).with_context(cannot)?;
    for shell in Shell::value_variants() {
        generate_to(shell.completer(), &mut command.clone(), PROGRAM, directory).with_context(cannot)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_command_has_a_page() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), &crate::Cli::command()).unwrap();
        let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
        assert!(read("os-upgrade-hosts-approve.1").contains("Examples:"));
        assert!(read("os-upgrade.1").contains("Exit codes:"));
        for completions in ["os-upgrade.bash", "_os-upgrade", "os-upgrade.fish"] {
            assert!(read(completions).contains("approve"), "{completions}");
        }
    }
}
