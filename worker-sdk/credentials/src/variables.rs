//! Environment variables that set options.

use clap::{Arg, Command};

/// `command`, changed so that an empty environment variable counts as unset. Required options keep their variable: the
/// code that reads its value reports the missing value more precisely.
pub fn without_empty_variables(command: Command) -> Command {
    command.mut_args(without_empty_variable).mut_subcommands(without_empty_variables)
}

fn without_empty_variable(arg: Arg) -> Arg {
    let is_empty = arg.get_env().and_then(std::env::var_os).is_some_and(|value| value.is_empty());
    if is_empty && !arg.is_required_set() { arg.env(None::<&str>) } else { arg }
}
