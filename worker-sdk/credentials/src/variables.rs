//! Variables of the environment that stand for options.

use clap::{Arg, Command};

/// `command`, for which a variable that is empty is one that is not set. What has to be given keeps its variable: whoever
/// reads it says better what is missing.
pub fn without_empty_variables(command: Command) -> Command {
    command.mut_args(without_empty_variable).mut_subcommands(without_empty_variables)
}

fn without_empty_variable(arg: Arg) -> Arg {
    let is_empty = arg.get_env().and_then(std::env::var_os).is_some_and(|value| value.is_empty());
    if is_empty && !arg.is_required_set() { arg.env(None::<&str>) } else { arg }
}
