//! Errors in windows name their place, in the message and in the info, in JSON and YAML.

use super::*;

const CONFIG: &str = "PUT /v1/config/os-upgrade";

/// A configuration whose second window has `changes`.
fn with(changes: &Value) -> Value {
    let good = json!({"days-of-week": "Friday, Saturday", "start-time": "01:00", "duration": "4h"});
    let mut window = json!({"days-of-week": "Monday", "start-time": "01:00", "duration": "4h"});
    let fields = window.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            fields.remove(name);
        } else {
            fields.insert(name.clone(), value.clone());
        }
    }
    json!({ "maintenance-windows": [good, window] })
}

/// The same in YAML, as an operator would write it.
fn in_yaml(config: &Value) -> String {
    let of_window = |window: &Value| {
        let fields = window.as_object().unwrap().iter();
        let lines: Vec<_> = fields.map(|(name, value)| format!("    {name}: {value}\n")).collect();
        format!("  -\n{}", lines.concat())
    };
    let windows = config["maintenance-windows"].as_array().unwrap().iter();
    format!("maintenance-windows:\n{}", windows.map(of_window).collect::<Vec<_>>().concat())
}

/// Puts a configuration. Returns the status and the error.
async fn put(api: &TestApi, kind: &str, body: &str) -> (u16, Value) {
    let (status, _, answer) = api.send(build(CONFIG, kind, body)).await;
    let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
    (status, answer["errors"][0].clone())
}

#[tokio::test]
async fn invalid_window_has_a_place() {
    let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
    for (changes, below) in [
        (json!({"days-of-week": "friday"}), "/days-of-week"),
        (json!({"days-of-week": "Fr"}), "/days-of-week"),
        (json!({"days-of-week": "Friday, Friday"}), "/days-of-week"),
        (json!({"days-of-week": ""}), "/days-of-week"),
        (json!({"days-of-week": "Friday,"}), "/days-of-week"),
        (json!({"days-of-week": []}), "/days-of-week"),
        (json!({"start-time": "24:00"}), "/start-time"),
        (json!({"start-time": "1:00"}), "/start-time"),
        (json!({"timezone": "Europe/Stokholm"}), "/timezone"),
        (json!({"duration": "367d"}), "/duration"),
        (json!({"duration": "0s"}), "/duration"),
        (json!({"not-after": "2026-02-30"}), "/not-after"),
        (json!({"day-of-week": "Friday"}), "/day-of-week"),
        (json!({"start-time": null}), ""),
    ] {
        let config = with(&changes);
        for (kind, body) in [("application/json", config.to_string()), ("application/yaml", in_yaml(&config))]
        {
            let (status, error) = put(&api, kind, &body).await;
            let place = format!("maintenance-windows/1{below}");
            assert_eq!((status, &error["error-info"]), (400, &json!({ "place": place })), "{body}{error}");
            let message = error["error-message"].as_str().unwrap();
            assert!(message.starts_with(&format!("{place}: ")), "{body}{message}");
        }
    }
}

/// Each window is valid alone, but not all together.
#[tokio::test]
async fn conflicting_windows_are_refused() {
    let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
    let every_day = "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday";
    for (changes, place) in [
        (json!({"days-of-week": "Friday, Saturday"}), "maintenance-windows/1: "),
        (json!({"days-of-week": every_day, "duration": "25h"}), "maintenance-windows: "),
    ] {
        let config = with(&changes);
        for (kind, body) in [("application/json", config.to_string()), ("application/yaml", in_yaml(&config))]
        {
            let (status, error) = put(&api, kind, &body).await;
            let message = error["error-message"].as_str().unwrap_or_default();
            assert!(status == 400 && message.starts_with(place), "{body}{error}");
        }
    }
}

#[tokio::test]
async fn valid_windows_are_normalised() {
    let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
    // Longer than a day, and overlapping the other window.
    let config = with(&json!({"days-of-week": "Saturday,Sunday", "duration": "25h"}));
    for (kind, body) in [("application/json", config.to_string()), ("application/yaml", in_yaml(&config))] {
        assert!(put(&api, kind, &body).await.0 < 300, "{body}");
        let (_, kept) = api.call("GET /v1/config/os-upgrade", "").await;
        let window = &kept["maintenance-windows"][1];
        assert_eq!(
            (&window["days-of-week"], &window["duration"]),
            (&json!("Saturday, Sunday"), &json!("1d1h"))
        );
    }
}
