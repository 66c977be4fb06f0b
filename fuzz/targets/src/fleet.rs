//! Requests in the two dialects of fleet.

use os_upgrade_api_types::fleet::contents;
use os_upgrade_api_types::fleet::destroy::Destroy;
use os_upgrade_api_types::fleet::page_token::PageToken;
use os_upgrade_api_types::fleet::put::Put;
use os_upgrade_api_types::fleet::request_body::REQUEST_BYTES_MAX;
use os_upgrade_api_types::fleet::version::Version;
use os_upgrade_api_types::route::JSON;
use os_upgrade_scheduler::{UNIT_BYTES_MAX, UnitFile};

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
            if let Some(file) = &put.contents {
                check(file);
            }
        }
        if let Ok(destroy) = Destroy::read(version, name, [JSON.as_bytes()], body) {
            assert_eq!(destroy.name.as_str(), name);
            if let Some(expected) = &destroy.expected {
                check(expected);
            }
        }
    }
}

/// Panics if the file could not be a unit's, or is another one when it is sent again.
fn check(file: &UnitFile) {
    let text = file.text();
    assert!(text.len() <= UNIT_BYTES_MAX);
    assert_eq!(contents::decode(&contents::encode(text)).expect("it is text"), text);
    assert_eq!(UnitFile::parse(text).expect("it is a unit file"), *file);
}
