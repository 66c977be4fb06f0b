//! No tool output makes a parser panic, and messages for operators are one line.

use std::cmp::Ordering;

use os_upgrade_systems::debian::{failure, kernel, lock, package, plan, progress, size, source, version};
use os_upgrade_systems::image::{self, bootc, rpm_ostree};
use os_upgrade_systems::{logind, script, systemd};
use proptest::prelude::*;

/// Random text with words that the parsers look for.
fn text() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "Inst ",
        "Remv ",
        "[1.0]",
        " (2.0 x)",
        "\n",
        " ",
        "E: ",
        "error: ",
        "{\"deployments\": [",
        "{\"status\": {\"booted\": ",
        "Failed to fetch ",
        "Get:1 file://",
        "http://a/dists/",
        "/InRelease",
        "The repository '",
        "' ",
        "dpkg: error processing ",
        "package ",
        "archive ",
        "dpkg: error: ",
        ":",
        "pmerror",
        "pmstatus",
        "1.5",
        "Need to get ",
        "MB",
        "\t",
        "ii ",
        "iHR",
        "ä",
        "'",
        "(",
        "]",
        "~",
        "-",
        "E: Could not get lock ",
        "held by process ",
        " locked by another process",
        "with pid ",
        "9",
        "\\",
        "\"",
        "1 \"shutdown\" \"a\" \"b\" \"block\" 0 1",
        "The following packages have unmet dependencies:\n",
        "The following packages have been kept back:\n",
    ]);
    prop::collection::vec(prop_oneof![words.prop_map(str::to_owned), any::<String>()], 0..20)
        .prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn parsing_never_panics(text in text(), other in text()) {
        let _ = plan::Plan::parse(&text).summary();
        let awaited = kernel::Awaited::parse(&text);
        prop_assert_eq!(kernel::Awaited::parse(&awaited.to_string()), awaited);
        let _ = size::Sizes::parse(&text);
        let _ = package::parse(&text);
        let _ = lock::find_held(&text);
        let _ = text.lines().map(progress::parse).count();
        let _ = systemd::failed_units(&text);
        let _ = systemd::State::parse(&text);
        let _ = logind::is_login(&format!("s {text}"));
        let _ = logind::sessions(&format!("a(susso) {text}"));
        let inhibitors = logind::inhibitors(&format!("a(ssssuu) {text}")).unwrap_or_default();
        prop_assert!(inhibitors.iter().all(|inhibitor| !inhibitor.to_string().contains('\n')));
        let _ = script::interpreter(text.as_bytes());
        let _ = script::interpreter(format!("#!{text}").as_bytes());
        let _ = bootc::status(&text).and(rpm_ostree::status(&text));
        prop_assert!(!image::describe_failure("x", &text).contains('\n'));
        let running = kernel::Running { release: text.clone(), build: other.clone() };
        let _ = kernel::pending(&running, std::slice::from_ref(&other), Some(&text));
        prop_assert!(!source::describe_update(&text, "/lists").contains('\n'));
        prop_assert!(!source::describe_download(&text).contains('\n'));
        prop_assert!(!source::describe_misread(&text).unwrap_or_default().contains('\n'));
        let _ = source::unreadable_lists(&text, "/lists").count();
        prop_assert!(!failure::describe("x", &text, &other).contains('\n'));
    }

    #[test]
    fn versions_are_totally_ordered(a in text(), b in text(), c in text()) {
        prop_assert_eq!(version::compare(&a, &a), Ordering::Equal);
        prop_assert_eq!(version::compare(&a, &b), version::compare(&b, &a).reverse());
        if version::compare(&a, &b).is_le() && version::compare(&b, &c).is_le() {
            prop_assert!(version::compare(&a, &c).is_le());
        }
    }
}
