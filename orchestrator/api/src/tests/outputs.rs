//! What hosts' commands printed: which of it belongs to a run, and why there is none.

use os_upgrade_protocol::CommandId;
use os_upgrade_test_site::put_config;

use super::*;

fn stored(command: &str, text: &str) -> Stored<Output> {
    let id: CommandId = command.parse().unwrap();
    let output = Output::parse(&id.host, Some(command), text.as_bytes()).unwrap();
    Stored { report: output, at: "2026-11-21T05:00:07.9Z".parse().unwrap() }
}

/// An API over a site with the runs r1 and r2 of `h01`.
async fn api(kept: Result<Vec<Stored<Output>>, ReportsError>) -> TestApi {
    let mut site = TestSite::new(["h01"]);
    let mut records = vec![site.decide_record(&[put_config()]), site.fence()];
    records.extend(site.whole_run("r1"));
    records.extend(site.whole_run("r2"));
    let api = TestApi::new(site, &records).await;
    api.with_reports(Kept { outputs: kept, versions: Ok(Vec::new()) })
}

fn path(run: &str, host: &str) -> String {
    format!("GET /v1/state/os-upgrade/runs/{run}/hosts/{host}/output")
}

#[tokio::test]
async fn output_of_a_run_is_shown_sanitised() {
    let kept = [
        stored("r1/h01/upgrade/1", "of r1"),
        stored("r2/h01/prepare/1", "reading\nlists\n"),
        stored("r2/h01/upgrade/2", "\u{1b}[31mE:\u{1b}[0m no space\u{7}\u{202e}"),
    ];
    let api = api(Ok(kept.to_vec())).await;
    let item = |action: &str, attempt: u32, text: &str| json!({"action": action, "attempt": attempt, "time": "2026-11-21T05:00:07Z", "text": text});
    let items = [item("prepare", 1, "reading\nlists\n"), item("upgrade", 2, "E: no space\u{fffd}\u{fffd}\n")];
    assert_eq!(api.call(&path("r2", "h01"), "").await, (200, json!({ "items": items })));
}

#[tokio::test]
async fn absent_output_has_a_reason() {
    let not_kept = "no output of h01 in run r1 is kept: its commands printed nothing, its worker sends none or may not \
                    send it, or it is older than 30 days";
    let displaced = "newer output of h01 has taken the place of that of run r1";
    let later = |count: usize| vec![stored("r2/h01/prepare/1", "x"); count];
    for (kept, message, kind) in [
        (Vec::new(), not_kept, "not-kept"),
        (later(2), not_kept, "not-kept"),
        (later(3), displaced, "displaced"),
        (vec![stored("r0/h01/upgrade/1", "x"); 3], not_kept, "not-kept"),
    ] {
        let runs: Vec<_> = kept.iter().map(|stored| stored.report.command.run.to_string()).collect();
        let expected = error_with(message, &json!({ "kind": kind, "kept-of-runs": runs }));
        assert_eq!(api(Ok(kept)).await.call(&path("r1", "h01"), "").await, (404, expected));
    }
    let api_without = api(Ok(later(3))).await;
    for (run, host, message) in [
        ("r9", "h01", r#"there is no run "r9" with a host "h01""#),
        ("a.b", "h01", r#"there is no run "a.b" with a host "h01""#),
        ("r1", "h02", r#"there is no run "r1" with a host "h02""#),
        ("r1", "%00", r#"there is no run "r1" with a host "\0""#),
    ] {
        assert_eq!(api_without.call(&path(run, host), "").await, (404, error(message)));
    }
    let away = api(Err(ReportsError("NATS is unreachable".to_owned()))).await;
    let expected = error("the output cannot be read: NATS is unreachable");
    assert_eq!(away.call(&path("r1", "h01"), "").await, (503, expected));
}
