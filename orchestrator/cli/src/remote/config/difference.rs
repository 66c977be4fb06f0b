//! Configurations as text, and the difference between two of them.

use console::Style;
use os_upgrade_kernel::Config;
use os_upgrade_protocol::text::sanitized;
use serde::Serialize;
use serde_json::Value;
use similar::TextDiff;

/// Lines around a change.
const CONTEXT_LINES: usize = 3;

/// A configuration as YAML, its fields in the usual order where this version knows them all; nothing for null.
pub(super) fn yaml(configuration: &Value) -> String {
    if configuration.is_null() {
        return String::new();
    }
    match serde_json::from_value::<Config>(configuration.clone()) {
        Ok(known) => written(&known),
        Err(_) => written(configuration),
    }
}

fn written(value: &impl Serialize) -> String {
    let options = serde_saphyr::ser_options! { compact_list_indent: false, prefer_block_scalars: false };
    let mut text = String::new();
    serde_saphyr::to_fmt_writer_with_options(&mut text, value, options).expect("JSON can be written as YAML");
    text
}

/// The unified difference between two configurations; nothing if there is none. Names are chosen by operators, so control
/// characters are replaced.
pub(super) fn between(before: &Value, after: &Value, colour: bool) -> String {
    let (before, after) = (yaml(before), yaml(after));
    let difference = TextDiff::from_lines(&before, &after);
    let unified =
        difference.unified_diff().context_radius(CONTEXT_LINES).header("before", "after").to_string();
    let lines = unified.lines().map(|line| coloured(&sanitized(line), colour));
    lines.collect::<Vec<_>>().join("\n")
}

fn coloured(line: &str, colour: bool) -> String {
    let plain = Style::new().force_styling(colour);
    let style = match line.as_bytes() {
        [b'-', b'-', b'-', ..] | [b'+', b'+', b'+', ..] => plain.bold(),
        [b'-', ..] => plain.red(),
        [b'+', ..] => plain.green(),
        [b'@', ..] => plain.cyan(),
        _ => plain,
    };
    style.apply_to(line).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changed_lines_are_shown() {
        let before = json!({"worker-applications": [{"name": "a"}], "start-jitter": "10m"});
        let after = json!({"worker-applications": [{"name": "b"}], "start-jitter": "10m"});
        let shown = between(&before, &after, false);
        let expected = "--- before\n+++ after\n@@ -1,3 +1,3 @@\n worker-applications:\n-  - name: a\n+  - name: b\n start-jitter: 10m";
        assert_eq!(shown, expected);
        assert_eq!(between(&before, &before, true), "");
        let created = between(&Value::Null, &before, true);
        assert!(created.ends_with("\u{1b}[32m+start-jitter: 10m\u{1b}[0m"), "{created}");
    }

    /// A newer site may have fields that this version does not know.
    #[test]
    fn unknown_fields_are_shown() {
        let newer = json!({"worker-applications": [], "moon": "full"});
        assert_eq!(yaml(&newer), "moon: full\nworker-applications: []\n");
    }
}
