//! Manual pages and completions, made from the declarations of the commands.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use clap::{Command, ValueEnum};
use clap_complete::CompleteEnv;
use clap_complete::env::{Bash, EnvCompleter, Fish, Shells, Zsh};

/// The variable by which a shell asks the program itself for completions.
const VARIABLE: &str = "_OS_UPGRADE_COMPLETE";

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
    const fn completer(self) -> &'static dyn EnvCompleter {
        match self {
            Self::Bash => &Bash,
            Self::Zsh => &Zsh,
            Self::Fish => &Fish,
        }
    }

    /// The name of the file in which it looks for the completions of `program`.
    fn file_name(self, program: &str) -> String {
        match self {
            Self::Bash => format!("{program}.bash"),
            Self::Zsh => format!("_{program}"),
            Self::Fish => format!("{program}.fish"),
        }
    }
}

/// Answers the shell that completes a command line of the program `command`, and ends the process, if a shell has started it for that.
/// Called before anything else.
pub fn complete(command: fn() -> Command) {
    CompleteEnv::with_factory(command).var(VARIABLE).shells(Shells(&[&Bash, &Zsh, &Fish])).complete();
}

/// Prints what makes `shell` ask the program `command` for completions.
pub fn print_completions(shell: Shell, command: &Command) {
    // Whoever reads them may have ended.
    let _ = io::stdout().write_all(completions(shell, command.get_name()).as_bytes());
}

fn completions(shell: Shell, program: &str) -> String {
    let mut script = Vec::new();
    let written = shell.completer().write_registration(VARIABLE, program, program, program, &mut script);
    written.expect("a vector can be written to");
    let script = String::from_utf8(script).expect("names are UTF-8");
    match shell {
        // Read from its file at the first completion, it would only register, and complete from the second one on.
        Shell::Zsh => {
            let function = format!("_clap_dynamic_completer_{}", program.replace('-', "_"));
            format!("{script}\nif [[ $funcstack[1] = _{program} ]]; then {function} \"$@\"; fi\n")
        }
        Shell::Bash => with_joined_words(&script),
        Shell::Fish => script,
    }
}

/// `script` for bash, which splits words at `:` and `=`, as in `http://h` and `--host=h`, and replaces the last piece alone. `clap_complete` 4.6
/// takes the pieces for words.
fn with_joined_words(script: &str) -> String {
    let mut joined = script.to_owned();
    for (pieces, words) in [
        (
            "    local _CLAP_COMPLETE_INDEX=${COMP_CWORD}\n",
            "    local words=() piece is_joined=\n    \
                 for piece in \"${COMP_WORDS[@]:0:COMP_CWORD}\" \"$2\"; do\n        \
                     if [[ ${#words[@]} -gt 0 && ( $is_joined || $piece == [:=]* ) ]]; then\n            \
                         words[-1]+=$piece\n        \
                     else\n            \
                         words+=(\"$piece\")\n        \
                     fi\n        \
                     [[ $piece == *[:=] ]] && is_joined=1 || is_joined=\n    \
                 done\n    \
                 local _CLAP_COMPLETE_INDEX=$((${#words[@]} - 1)) before=${words[-1]%\"$2\"}\n",
        ),
        ("    local words=(\"${COMP_WORDS[@]}\")\n", ""),
        ("        words[COMP_CWORD]=\"$2\"\n", "        :\n"),
        (
            "    if [[ $? != 0 ]]; then\n        unset COMPREPLY\n",
            "    if [[ $? != 0 ]]; then\n        unset COMPREPLY\n    elif [[ $before ]]; then\n        \
                 COMPREPLY=(\"${COMPREPLY[@]#\"$before\"}\")\n",
        ),
    ] {
        debug_assert!(joined.contains(pieces), "{pieces}");
        joined = joined.replace(pieces, words);
    }
    joined
}

/// Writes a manual page for each command of the program `command`, and the completions of each shell, into `directory`.
///
/// # Errors
/// They cannot be written.
pub fn write(directory: &Path, command: &Command) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    clap_mangen::generate_to(command.clone(), directory)?;
    for shell in Shell::value_variants() {
        let program = command.get_name();
        fs::write(directory.join(shell.file_name(program)), completions(*shell, program))?;
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
            assert!(read(completions).contains("_OS_UPGRADE_COMPLETE="), "{completions}");
        }
    }
}
