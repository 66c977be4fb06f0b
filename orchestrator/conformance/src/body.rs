//! Request bodies, and the bodies of unlocks that give back what a request may have taken.

use serde_json::{Value, json};

use super::case::{Body, Sent};
use super::names::Names;

/// The protocol's object.
pub(super) fn claim(group: &str, id: &str) -> Vec<u8> {
    object(&json!({ "client_params": { "id": id, "group": group } }))
}

/// The body of `sent`.
pub(super) fn bytes(sent: &Sent, names: &Names) -> Vec<u8> {
    let id = names.who(sent.who);
    let group = &names.group;
    let whole = || claim(group, &id);
    match sent.body {
        Body::Claim => whole(),
        Body::Pretty => format!(
            "{{\n  \"client_params\": {{\n    \"id\": {},\n    \"group\": {}\n  }}\n}}",
            Value::from(id),
            Value::from(group.as_str())
        )
        .into_bytes(),
        Body::ExtraFields => object(&json!({
            "version": 2,
            "client_params": { "id": id, "group": group, "node": { "arch": ["x86_64"] } },
        })),
        Body::Padded(length) => {
            let mut bytes = whole();
            bytes.resize(length, b' ');
            bytes
        }
        Body::OtherGroup(other) => claim(&names.other_group(other), &id),
        Body::OtherId(other) => claim(group, &names.other_id(other)),
        Body::Empty => Vec::new(),
        Body::Half => whole().split_last().map(|(_, half)| half.to_vec()).unwrap_or_default(),
        Body::List => object(&json!([{ "id": id, "group": group }])),
        Body::NoParams => object(&json!({ "id": id, "group": group })),
        Body::NoId => object(&json!({ "client_params": { "group": group } })),
        Body::NoGroup => object(&json!({ "client_params": { "id": id } })),
        Body::Trailing => [whole(), b" x".to_vec()].concat(),
        Body::TwoIds => {
            let params = format!(
                r#"{{"id":{},"id":{},"group":{}}}"#,
                Value::from(id),
                Value::from(names.second()),
                Value::from(group.as_str())
            );
            format!(r#"{{"client_params":{params}}}"#).into_bytes()
        }
        Body::NumberId => object(&json!({ "client_params": { "id": names.number, "group": group } })),
    }
}

/// The bodies of unlocks that give back what a server may have granted for `sent`, however it interprets it.
pub(super) fn releases(sent: &Sent, names: &Names) -> Vec<Vec<u8>> {
    let (group, id) = (&names.group, names.who(sent.who));
    match sent.body {
        Body::Claim
        | Body::Pretty
        | Body::ExtraFields
        | Body::Padded(_)
        | Body::Half
        | Body::List
        | Body::NoParams
        | Body::Trailing => vec![claim(group, &id)],
        Body::OtherGroup(_) | Body::OtherId(_) | Body::NoId | Body::NoGroup => vec![bytes(sent, names)],
        Body::Empty => Vec::new(),
        Body::TwoIds => vec![claim(group, &id), claim(group, &names.second())],
        Body::NumberId => vec![bytes(sent, names), claim(group, &names.number.to_string())],
    }
}

fn object(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}
