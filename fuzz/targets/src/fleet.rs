//! Requests in the two dialects of fleet.

use os_upgrade_api_types::fleet::contents;
use os_upgrade_api_types::fleet::destroy::Destroy;
use os_upgrade_api_types::fleet::page_token::PageToken;
use os_upgrade_api_types::fleet::put::{Change, Put};
use os_upgrade_api_types::fleet::request_body::REQUEST_BYTES_MAX;
use os_upgrade_api_types::fleet::version::Version;
use os_upgrade_api_types::route::JSON;
use os_upgrade_scheduler::UNIT_BYTES_MAX;

use crate::text::{is_object, split};

/// A PUT and a DELETE of a unit: a line for its name, which is read as a page token too, then the body.
pub fn fleet(input: &[u8]) {
    let [name, body] = split(input, b'\n');
    let Ok(name) = str::from_utf8(name) else { return };
    if let Ok(token) = PageToken::read([name]) {
        assert_eq!(token.to_string(), name);
    }
    for version in Version::ALL {
        if let Ok(put) = Put::read(version, name, [JSON.as_bytes()], body) {
            assert!(body.len() <= REQUEST_BYTES_MAX && is_object(body));
            assert_eq!(put.name.as_str(), name);
            check(put);
        }
        if let Ok(destroy) = Destroy::read(version, [JSON.as_bytes()], body) {
            let refusal = destroy.decide(name, |_| None).expect_err("the unit does not exist");
            assert_eq!(refusal.status(), 404);
        }
    }
}

/// Panics if its contents could not be a unit, or are not the same when they are sent again.
fn check(put: Put) {
    let Some(submitted) = put.submitted.clone() else {
        assert_eq!(put.decide(None).expect_err("there are no contents").status(), 409);
        return;
    };
    let text = submitted.file.text();
    assert!(text.len() <= UNIT_BYTES_MAX);
    assert_eq!(contents::decode(&contents::encode(text)).expect("it is text"), text);
    let changes_state = put.desired.is_some();
    match put.decide(Some(&submitted.file)) {
        Ok(change) => assert!(changes_state && matches!(change, Change::SetState { .. })),
        // A state is missing, or a template cannot have it.
        Err(refusal) => assert!(matches!(refusal.status(), 400 | 409)),
    }
}
