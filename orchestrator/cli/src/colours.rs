//! Whether text is coloured, by the variables of <https://no-color.org> and <https://bixense.com/clicolors>.

use std::ffi::OsString;

use console::Term;

/// Sets for standard output and standard error whether they are coloured. The library counts an empty `NO_COLOR` as set.
pub(crate) fn set() {
    let variable = |name: &str| std::env::var_os(name);
    console::set_colors_enabled(are_wanted(variable, Term::stdout().is_term()));
    console::set_colors_enabled_stderr(are_wanted(variable, Term::stderr().is_term()));
}

fn are_wanted(variable: impl Fn(&str) -> Option<OsString>, is_terminal: bool) -> bool {
    let is_set_but = |name: &str, value: &str| variable(name).is_some_and(|found| found != value);
    let is_capable = is_terminal && is_set_but("TERM", "dumb");
    let is_refused = is_set_but("NO_COLOR", "") || variable("CLICOLOR").is_some_and(|value| value == "0");
    is_set_but("CLICOLOR_FORCE", "0") || is_capable && !is_refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_decide_about_colours() {
        let term = ("TERM", "xterm");
        for (variables, on_terminal, elsewhere) in [
            (&[term][..], true, false),
            (&[], false, false),
            (&[("TERM", "dumb")], false, false),
            (&[term, ("NO_COLOR", "1")], false, false),
            (&[term, ("NO_COLOR", "")], true, false),
            (&[term, ("CLICOLOR", "0")], false, false),
            (&[term, ("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], true, true),
            (&[term, ("CLICOLOR_FORCE", "0")], true, false),
        ] {
            let variable = |name: &str| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
            };
            let found = [true, false].map(|is_terminal| are_wanted(variable, is_terminal));
            assert_eq!(found, [on_terminal, elsewhere], "{variables:?}");
        }
    }
}
