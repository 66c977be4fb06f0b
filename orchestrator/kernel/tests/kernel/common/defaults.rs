//! Settings without default values, so that a new setting changes no golden file except the line that pins its format.

use os_upgrade_kernel::Settings;
use os_upgrade_kernel::config::Rollout;
use serde::Serialize;
use serde_json::Value;

/// Removes the default values from every rollout and all settings in `value`. If nothing is left, `{}` stays.
pub(crate) fn leave_out(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(leave_out),
        Value::Object(fields) => {
            let differs_in_rollout = fields.get("path").is_some_and(|path| path == "rollout");
            for (key, value) in fields {
                match key.as_str() {
                    "rollout" => leave_out_of(value, &Rollout::default()),
                    "before" | "after" if differs_in_rollout => leave_out_of(value, &Rollout::default()),
                    "settings" => leave_out_of(value, &Settings::default()),
                    _ => leave_out(value),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn leave_out_of(value: &mut Value, default: &impl Serialize) {
    let default = serde_json::to_value(default).unwrap();
    if let Value::Object(fields) = value {
        fields.retain(|key, value| default.get(key) != Some(value));
    }
}

/// Pretty-printed `json` without the lines of its rollouts that have default values. Unlike [`leave_out`] it keeps the
/// order of the fields.
pub(crate) fn leave_out_lines(json: &str) -> String {
    let field = |line: &str| line.trim().trim_end_matches(',').to_owned();
    let default = serde_json::to_string_pretty(&Rollout::default()).unwrap();
    let default: Vec<String> = default.lines().map(field).collect();
    let mut left: Vec<&str> = Vec::new();
    let mut is_in_rollout = false;
    for line in json.lines() {
        let is_end = line.trim_start().starts_with('}');
        is_in_rollout = is_in_rollout && !is_end || line.ends_with("\"rollout\": {");
        if is_in_rollout && default.contains(&field(line)) {
            continue;
        }
        if let Some(last) = left.last_mut().filter(|_| is_end) {
            // The lines after it may have been left out.
            *last = last.trim_end_matches(',');
        }
        left.push(line);
    }
    left.join("\n")
}
