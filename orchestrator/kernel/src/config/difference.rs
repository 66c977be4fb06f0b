//! The difference between two configurations.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::state::Config;

/// One place at which two configurations differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Difference {
    /// The path, such as `rollout/max-failures` or `maintenance-windows`; empty for the whole configuration.
    pub path: String,
    /// The value before; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The value after; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// Every place at which `after` differs from `before`. A list counts as one place: otherwise an entry inserted at its
/// head would make all entries differ.
pub(crate) fn between(before: Option<&Config>, after: Option<&Config>) -> Vec<Difference> {
    let mut differences = Vec::new();
    compare(String::new(), value(before), value(after), &mut differences);
    differences
}

fn value(config: Option<&Config>) -> Option<Value> {
    config.map(|config| serde_json::to_value(config).expect("a configuration serializes to JSON"))
}

fn compare(path: String, before: Option<Value>, after: Option<Value>, differences: &mut Vec<Difference>) {
    match (before, after) {
        (before, after) if before == after => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            fields(&path, before, after, differences);
        }
        (before, after) => differences.push(Difference { path, before, after }),
    }
}

fn fields(
    path: &str,
    before: Map<String, Value>,
    mut after: Map<String, Value>,
    differences: &mut Vec<Difference>,
) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
    for (name, value) in before {
        compare(below(&name), Some(value), after.remove(&name), differences);
    }
    for (name, value) in after {
        compare(below(&name), None, Some(value), differences);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(value: Value) -> Config {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn differences_name_their_paths() {
        let one = config(json!({"worker-applications": [{"name": "a"}]}));
        let two = config(json!({"worker-applications": [{"name": "a"}], "rollout": {"max-concurrent": 2}}));
        let three = config(json!({"worker-applications": [{"name": "b"}], "rollout": {"max-concurrent": 3}}));
        let paths = |before, after| -> Vec<String> {
            between(before, after).into_iter().map(|difference| difference.path).collect()
        };
        assert_eq!(paths(Some(&one), Some(&one)), [""; 0]);
        assert_eq!(paths(None, Some(&one)), [""]);
        assert_eq!(paths(Some(&one), None), [""]);
        assert_eq!(paths(Some(&one), Some(&two)), ["rollout"]);
        assert_eq!(paths(Some(&two), Some(&three)), ["rollout/max-concurrent", "worker-applications"]);
        let difference = &between(Some(&two), Some(&three))[0];
        assert_eq!((&difference.before, &difference.after), (&Some(json!(2)), &Some(json!(3))));
    }
}
