//! Manual pages and completions, made from the declarations of the commands.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use clap::{Command, ValueEnum};
use clap_complete::{Generator as _, Shell as Completer, generate};

/// A shell with completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
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

/// Prints the completions of `shell` for the program `command`.
pub fn print_completions(shell: Shell, command: &Command) {
    // Whoever reads them may have ended.
    let _ = io::stdout().write_all(completions(shell, command).as_bytes());
}

/// The completions of `shell` for the program `command`.
fn completions(shell: Shell, command: &Command) -> String {
    let program = command.get_name();
    let mut script = Vec::new();
    generate(shell.completer(), &mut shown(command), program, &mut script);
    let script = String::from_utf8(script).expect("names and help are UTF-8");
    match shell {
        // clap_complete 4.6 names the branches of a program with a hyphen in another way than it refers to them.
        Shell::Bash => script.replace(&program.replace('-', "__subcmd__"), &program.replace('-', "__")),
        Shell::Zsh | Shell::Fish => script,
    }
}

/// `command` without the commands below it that its help hides: completions would offer them.
fn shown(command: &Command) -> Command {
    if !command.get_subcommands().any(Command::is_hide_set) {
        return command.clone();
    }
    // A name from elsewhere must live as long as the program, which prints completions once.
    let name: &'static str = command.get_name().to_owned().leak();
    let below = command.get_subcommands().filter(|below| !below.is_hide_set()).map(shown);
    let bare = Command::new(name).args(command.get_arguments().cloned()).subcommands(below);
    let bare = command.get_about().cloned().map_or(bare.clone(), |about| bare.about(about));
    // For `--version`.
    if command.get_version().is_some() { bare.version("") } else { bare }
}

/// Writes a manual page for each command of the program `command`, and the completions of each shell, into `directory`.
///
/// # Errors
/// They cannot be written.
pub fn write(directory: &Path, command: &Command) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    clap_mangen::generate_to(command.clone(), directory)?;
    for shell in Shell::value_variants() {
        let name = shell.completer().file_name(command.get_name());
        fs::write(directory.join(name), completions(*shell, command))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page() {
        let directory = tempfile::tempdir().unwrap();
        let hidden = Command::new("concealed").hide(true);
        let below = Command::new("hosts").subcommand(Command::new("approve").about("Let them in"));
        write(
            directory.path(),
            &Command::new("tool").after_help("Exit codes").subcommand(below).subcommand(hidden),
        )
        .unwrap();
        let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
        assert!(read("tool-hosts-approve.1").contains("Let them in"));
        assert!(read("tool.1").contains("Exit codes"));
        for completions in ["tool.bash", "_tool", "tool.fish"] {
            assert!(read(completions).contains("approve"), "{completions}");
            assert!(!read(completions).contains("concealed"), "{completions}");
        }
    }

    /// Bash completes the words of subcommands too, also in programs and commands with hyphens.
    #[test]
    fn bash_completes_below_the_first_word() {
        let give_up = Command::new("give-up").arg(clap::Arg::new("reason").long("reason"));
        let command = Command::new("my-tool").subcommand(Command::new("run").subcommand(give_up));
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), &command).unwrap();
        let complete = |words: &str, count: usize, word: &str| {
            let script = format!(
                "source '{}'; COMP_WORDS=({words}); COMP_CWORD={count}; _my__tool my-tool '{word}' ''; echo \"${{COMPREPLY[@]}}\"",
                directory.path().join("my-tool.bash").display()
            );
            let output = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        assert!(complete("my-tool ''", 1, "").contains("run"));
        assert!(complete("my-tool run ''", 2, "").contains("give-up"));
        assert!(complete("my-tool run give-up --", 3, "--").contains("--reason"));
    }
}
