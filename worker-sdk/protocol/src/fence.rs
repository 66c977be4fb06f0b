//! The orchestrators' own message in the control stream: a leader's fence.

use serde::Serialize;

/// A leader's fence, on the subject [`LEADER`](crate::subject::LEADER); by that alone it is recognized. It is no command.
/// Workers that read the whole stream look for an action and for hosts in every message, so it has an action that is none
/// of theirs, and names no host.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Fence<'a> {
    action: &'static str,
    host: &'static str,
    hosts: [&'static str; 0],
    leader: &'a str,
    nonce: &'a str,
}

impl<'a> Fence<'a> {
    /// The fence of the instance `leader`, whose process is `nonce`.
    pub fn new(leader: &'a str, nonce: &'a str) -> Self {
        Self { action: "fence", host: "", hosts: [], leader, nonce }
    }

    /// The payload of this fence.
    pub fn to_payload(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a fence has string keys and no fallible part")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{Command, Reply};

    #[test]
    fn fence_is_for_no_worker() {
        let payload = Fence::new("one", "n").to_payload();
        let read: Value = serde_json::from_slice(&payload).unwrap();
        let expected = json!({"action": "fence", "host": "", "hosts": [], "leader": "one", "nonce": "n"});
        assert_eq!(read, expected);
        assert!(Command::parse(&payload).is_err() && Reply::parse_any_result(&payload).is_err());
    }
}
