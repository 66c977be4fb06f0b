//! Colours: for terminals, unless variables say otherwise. Standard error is none here.

use std::process::Command;

use harness::programs;

#[test]
fn variables_decide_about_colours() {
    for (variables, is_coloured) in [
        (&[][..], false),
        (&[("CLICOLOR_FORCE", "1")], true),
        (&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "")], true),
        (&[("CLICOLOR_FORCE", "1"), ("CLICOLOR", "0")], true),
        (&[("CLICOLOR_FORCE", "")], false),
        (&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
    ] {
        let mut command = Command::new(programs::path(programs::ORCHESTRATOR));
        // Nothing listens there.
        command.args(["status", "--url", "http://127.0.0.1:1"]).env("TERM", "xterm");
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        let output = command.envs(variables.iter().copied()).output().unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(printed.contains('\u{1b}'), is_coloured, "{variables:?}: {printed}");
    }
}
