//! The alerts of `config/prometheus` in Prometheus's own test of rules.

use std::process::Command;

#[test]
fn alerts_fire_when_they_should() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../config/prometheus");
    for arguments in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts.test.yml"]] {
        let output = Command::new("promtool").args(arguments).current_dir(directory).output();
        let output = output.expect(
            "promtool is on PATH: `make test-system` downloads it, and Debian's package prometheus has it",
        );
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
    }
}
