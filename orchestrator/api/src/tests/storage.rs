//! `/metrics` says how large is what is stored.

use os_upgrade_bus::storage::{Count, Usage};
use os_upgrade_store::Extent;

use super::*;

/// The value of a metric without labels.
fn value(text: &str, name: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("{name} is not in {text}")).parse().unwrap()
}

#[tokio::test]
async fn sizes_of_history_and_process_are_exposed() {
    let (site, records) = slots::failed();
    let api = TestApi::new(site, &records).await;
    let (_, _, text) = api.send(build("GET /metrics", "", "")).await;
    let Extent { runs, bytes, log_bytes, since: _, gaps: _ } = api.history.extent().await.unwrap();
    assert_eq!(runs, 1);
    assert!(log_bytes > 0, "the database is open");
    for (name, expected) in [("runs", runs), ("bytes", bytes), ("log_bytes", log_bytes)] {
        assert_eq!(value(&text, &format!("os_upgrade_history_{name}")), expected, "{name}");
    }
    assert!(value(&text, "process_resident_memory_bytes") > bytes, "{text}");
}

#[test]
fn sizes_of_streams_are_exposed() {
    let part = |of: &str, messages, limit| Usage {
        of: of.to_owned(),
        bytes: 7,
        reserved: 0,
        messages,
        drops_oldest: false,
        limit,
        streams: None,
        consumers: None,
    };
    let count = |used, limit| Some(Count { used, limit });
    let nats = vec![
        Usage {
            streams: count(6, Some(8)),
            consumers: count(11, Some(10)),
            ..part("account", None, Some(9))
        },
        Usage { consumers: count(3, Some(5)), ..part("os-upgrade:journal", Some(2), None) },
    ];
    let text = resources::metrics::text(
        &Answers::default(),
        &PublishedState::default(),
        &PublishedState::default().view.clock,
        &resources::metrics::Stored { nats, ..Default::default() },
        &Authenticator::default(),
        &Options::default(),
        chrono::DateTime::UNIX_EPOCH,
    )
    .unwrap();
    let found = text.lines().filter(|line| line.starts_with("os_upgrade_nats_")).collect::<Vec<_>>();
    let expected = [
        r#"os_upgrade_nats_stored_bytes{of="account"} 7"#,
        r#"os_upgrade_nats_stored_bytes{of="os-upgrade:journal"} 7"#,
        r#"os_upgrade_nats_stored_messages{of="os-upgrade:journal"} 2"#,
        r#"os_upgrade_nats_limit_bytes{of="account"} 9"#,
        r#"os_upgrade_nats_streams{of="account"} 6"#,
        r#"os_upgrade_nats_limit_streams{of="account"} 8"#,
        r#"os_upgrade_nats_consumers{of="account"} 11"#,
        r#"os_upgrade_nats_consumers{of="os-upgrade:journal"} 3"#,
        r#"os_upgrade_nats_limit_consumers{of="os-upgrade:journal"} 5"#,
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    assert!(expected.iter().all(|line| found.contains(line)), "{found:?}");
}
