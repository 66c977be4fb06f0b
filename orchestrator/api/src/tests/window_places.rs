//! What is wrong in a window: where it stands, in the message and beside it, in JSON as in YAML.

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

/// The same in YAML, as somebody would write it.
fn in_yaml(config: &Value) -> String {
    let of_window = |window: &Value| {
        let fields = window.as_object().unwrap().iter();
        let lines: Vec<_> = fields.map(|(name, value)| format!("    {name}: {value}\n")).collect();
        format!("  -\n{}", lines.concat())
    };
    let windows = config["maintenance-windows"].as_array().unwrap().iter();
    format!("maintenance-windows:\n{}", windows.map(of_window).collect::<Vec<_>>().concat())
}

/// The status, and the only error of the answer.
async fn put(api: &TestApi, kind: &str, body: &str) -> (u16, Value) {
    let (status, _, answer) = api.send(build(CONFIG, kind, body)).await;
    let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
    (status, answer["errors"][0].clone())
}

#[tokio::test]
async fn a_window_is_wrong_at_a_place() {
    let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
    for (changes, below) in [
        (json!({"days-of-week": "friday"}), "/days-of-week"),
        (json!({"days-of-week": "Fri"}), "/days-of-week"),
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

/// What each window alone is right about, and all together are not.
#[tokio::test]
async fn windows_are_wrong_together() {
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
async fn what_is_no_error_is_kept_as_it_is_meant() {
    let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
    // Longer than a day, and into the window before.
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
