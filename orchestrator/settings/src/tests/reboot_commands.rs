//! The commands that reboot hosts.

use std::time::Duration;

use super::load_text;
use crate::Settings;

#[test]
fn without_a_command_workers_reboot_their_hosts() {
    assert_eq!(Settings::default().reboot_commands(), None);
    // What remains of a command that was removed has no effect.
    let settings = load_text("[reboot]\ncommand-timeout = \"1m\"\ncommand-retries = 3", &[]).unwrap();
    assert_eq!((settings.reboot_commands(), settings.for_kernel().reboot.command), (None, None));
    let warnings: Vec<String> = settings.warnings().iter().map(ToString::to_string).collect();
    let expected = [
        "[reboot] command-timeout has no effect without reboot-command",
        "[reboot] command-retries has no effect without reboot-command",
    ];
    assert_eq!(warnings, expected);
}

#[test]
fn words_are_quoted_as_in_a_shell() {
    let text = r#"
[reboot]
reboot-command = "ipmi-reboot --user 'the operator' \"a b\" c\\ d $HOME"
command-timeout = "90s"
"#;
    let commands = load_text(text, &[]).unwrap().reboot_commands().unwrap();
    let words: Vec<&str> = commands.reboot.iter().collect();
    assert_eq!(words, ["ipmi-reboot", "--user", "the operator", "a b", "c d", "$HOME"]);
    assert_eq!((commands.boot_check, commands.retries, commands.interval), (None, 0, Duration::ZERO));
}

#[test]
fn every_key_has_its_effect() {
    let environment = [
        ("OS_UPGRADE_REBOOT__REBOOT_COMMAND", "reboot-node"),
        ("OS_UPGRADE_REBOOT__BOOT_CHECK_COMMAND", "has-booted -v"),
        ("OS_UPGRADE_REBOOT__COMMAND_TIMEOUT", "20s"),
        ("OS_UPGRADE_REBOOT__COMMAND_RETRIES", "2"),
        ("OS_UPGRADE_REBOOT__COMMAND_INTERVAL", "5s"),
    ];
    let settings = load_text("", &environment).unwrap();
    let commands = settings.reboot_commands().unwrap();
    assert_eq!(commands.boot_check.unwrap().iter().collect::<Vec<_>>(), ["has-booted", "-v"]);
    let seconds = [commands.timeout, commands.interval].map(|time| time.as_secs());
    assert_eq!((seconds, commands.retries), ([20, 5], 2));
    // Three attempts, and the pauses between them.
    let command = settings.for_kernel().reboot.command.unwrap();
    assert_eq!((command.within.as_secs(), command.checks_boot), (70, true));
}
