//! Every kind of answer, as tables.

use proptest::prelude::*;

use super::*;
use crate::failure::ConfigurationProblem;

fn now() -> DateTime<Utc> {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn answer(status: u16, body: &str) -> HookAnswer<'static> {
    HookAnswer {
        status,
        date: None,
        retry_after: None,
        content_encoding: None,
        body: Ok(ContentBytes::new(body.as_bytes().to_vec())),
    }
}

fn asked(number: u128, host: &str, event: HookEvent) -> AskedMember {
    AskedMember { event, uuid: Uuid::from_u128(number), host: HostName::new(host).unwrap() }
}

/// Two calls about `h1` and one about `h2`.
fn calls() -> Vec<AskedMember> {
    vec![
        asked(1, "h1", HookEvent::DeviceMetadataUpdate),
        asked(2, "h1", HookEvent::DeviceSpecUpdate),
        asked(3, "h2", HookEvent::DevicePoll),
    ]
}

fn interpret(answer: HookAnswer<'_>, asked: &[AskedMember]) -> HookReply {
    answer.interpret(&ProviderName::new("app").unwrap(), asked, now())
}

/// The replies to [`calls`], and the number of foreign members.
fn replies(body: &str) -> (Vec<MemberReply>, usize) {
    let HookReply { members, foreign, retry_after } = interpret(answer(200, body), &calls());
    assert_eq!(retry_after, None);
    (members, foreign)
}

fn unchanged() -> MemberReply {
    HookOutcome::Unchanged.into()
}

fn revoked() -> MemberReply {
    HookOutcome::Revoked.into()
}

fn not_answered() -> MemberReply {
    Failure::NotAnswered.into()
}

fn text(content: &str) -> MemberReply {
    HookOutcome::Content(Given {
        files: Vec::new(),
        bytes: ContentBytes::new(content.as_bytes().to_vec()),
        hash: crate::digest::hex_of(content.as_bytes()),
    })
    .into()
}

fn bad(why: MemberProblem) -> MemberReply {
    why.into()
}

/// `json` with UUIDs by their last digit: `#1` is that of the first call.
fn with_uuids(json: &str) -> String {
    (0..10).fold(json.to_owned(), |json, number| {
        json.replace(&format!("#{number}"), &Uuid::from_u128(number).to_string())
    })
}

/// What an answer with the one member `json` says about the call about `h2`.
fn reply(json: &str) -> MemberReply {
    let (mut members, foreign) = replies(&with_uuids(&format!("[{json}]")));
    let last = members.pop().unwrap();
    assert_eq!((members, foreign), (vec![not_answered(), not_answered()], 0), "{json}");
    last
}

#[test]
fn every_status_has_a_meaning() {
    let body = with_uuids(r##"[{"event_uuid":"#1"},{"event_uuid":"#2"},{"event_uuid":"#3"}]"##);
    for status in 0..=1000 {
        let expected = match status {
            200 | 304 => unchanged(),
            204 => Failure::NotAnArray { line: 1, column: 0 }.into(),
            429 => Failure::Throttled.into(),
            0..=299 | 600.. => Failure::UnexpectedStatus { status }.into(),
            300..=399 => Failure::Redirected { status }.into(),
            400..=499 => Failure::Refused { status }.into(),
            500..=599 => Failure::Unavailable { status }.into(),
        };
        let reply = interpret(answer(status, &body), &calls());
        let expected = HookReply { members: vec![expected; 3], foreign: 0, retry_after: None };
        assert_eq!(reply, expected, "{status}");
    }
    // The status says it all.
    let cut = || Err(Failure::Cut);
    let reply = interpret(HookAnswer { body: cut(), ..answer(304, "") }, &calls());
    assert_eq!(reply.members, vec![unchanged(); 3]);
    let reply = interpret(HookAnswer { body: cut(), ..answer(200, "") }, &calls());
    assert_eq!(reply.members, vec![MemberReply::from(Failure::Cut); 3]);
}

#[test]
fn answers_are_arrays() {
    let empty = Failure::NotAnArray { line: 1, column: 0 };
    assert_eq!(replies(""), (vec![MemberReply::from(empty); 3], 0));
    for body in [r#"{"event":"ON_DEVICE_POLL"}"#, "null", "\"\"", "<html>", "[{}", "[{},]", "[] []"] {
        let (members, foreign) = replies(body);
        let is_refused =
            |reply: &MemberReply| matches!(reply.outcome, HookOutcome::Failed(Failure::NotAnArray { .. }));
        assert!(members.len() == 3 && members.iter().all(is_refused) && foreign == 0, "{body}: {members:?}");
    }
    // An array that ends in a fault says nothing.
    let (members, foreign) = replies(&with_uuids(r##"[{"event_uuid":"#1"},{"event_uuid":"#9"}"##));
    assert!(matches!(members[0].outcome, HookOutcome::Failed(Failure::NotAnArray { line: 1, .. })));
    assert_eq!(foreign, 0);
    assert_eq!(replies("[]"), (vec![not_answered(); 3], 0));
    let gzip = HookAnswer { content_encoding: Some(b"gzip"), ..answer(200, "[]") };
    assert_eq!(interpret(gzip, &calls()).members, vec![MemberReply::from(Failure::Encoded); 3]);
    let identity = HookAnswer { content_encoding: Some(b"identity"), ..answer(200, "[]") };
    assert_eq!(interpret(identity, &calls()).members, vec![not_answered(); 3]);
}

#[test]
fn pauses_are_asked_for_by_overloaded_servers() {
    for (status, value, seconds) in [
        (429, "7", Some(7)),
        (503, "7200", Some(3600)),
        (503, "soon", None),
        (200, "7", None),
        (403, "7", None),
    ] {
        let answer = HookAnswer { retry_after: Some(value.as_bytes()), ..answer(status, "[]") };
        let reply = interpret(answer, &calls());
        assert_eq!(reply.retry_after, seconds.map(Duration::from_secs), "{status} {value}");
    }
    let dated = HookAnswer {
        date: Some(b"Sun, 01 Mar 2026 11:00:00 GMT"),
        retry_after: Some(b"Sun, 01 Mar 2026 11:00:09 GMT"),
        ..answer(503, "")
    };
    assert_eq!(interpret(dated, &calls()).retry_after, Some(Duration::from_secs(9)));
}

#[test]
fn the_example_of_the_protocol_is_read() {
    let body = r##"[{"event": "ON_DEVICE_SPEC_UPDATE",
      "event_uuid": "#2",
      "device_name": "h1",
      "config-name": "app",
      "configuration": "level = 3"
     }]"##;
    let expected = vec![not_answered(), text("level = 3"), not_answered()];
    assert_eq!(replies(&with_uuids(body)), (expected, 0));
}

#[test]
fn members_are_matched_to_calls() {
    let failed = |why| (vec![bad(why), not_answered(), not_answered()], 0);
    for (body, expected) in [
        // In another order than the calls.
        (
            r##"[{"event_uuid":"#3"},{"event_uuid":"#1","configuration":"x"},{"event_uuid":"#2"}]"##,
            (vec![text("x"), unchanged(), unchanged()], 0),
        ),
        (r#"[{"device_name":"h2"}]"#, (vec![not_answered(), not_answered(), unchanged()], 0)),
        (
            r#"[{"event_uuid":null,"device_name":"h2"}]"#,
            (vec![not_answered(), not_answered(), unchanged()], 0),
        ),
        // Two calls are about this host.
        (r#"[{"device_name":"h1"}]"#, (vec![not_answered(); 3], 1)),
        // Foreign ones.
        (r##"[{"event_uuid":"#4"},{"device_name":"h3"},{},7,null,[{}]]"##, (vec![not_answered(); 3], 6)),
        (r#"[{"event_uuid":"no uuid","device_name":"h2"}]"#, (vec![not_answered(); 3], 1)),
        (r##"[{"event_uuid":"#4","device_name":"h2"}]"##, (vec![not_answered(); 3], 1)),
        // Answered twice, the same or not.
        (r##"[{"event_uuid":"#1"},{"event_uuid":"#1"}]"##, failed(MemberProblem::Doubled)),
        (
            r##"[{"event_uuid":"#3","configuration":"x"},{"device_name":"h2"},{"event_uuid":"#1"}]"##,
            (vec![unchanged(), not_answered(), bad(MemberProblem::Doubled)], 0),
        ),
        (
            r##"[{"event_uuid":"#1"},{"event_uuid":"#1"},{"event_uuid":"#1"}]"##,
            failed(MemberProblem::Doubled),
        ),
        // Those of others are not affected.
        (
            r##"[{"event_uuid":"#1","event":7},{"event_uuid":"#2","configuration":null}]"##,
            (vec![bad(MemberProblem::Malformed), revoked(), not_answered()], 0),
        ),
    ] {
        assert_eq!(replies(&with_uuids(body)), expected, "{body}");
    }
}

#[test]
fn members_agree_with_their_calls() {
    for (json, expected) in [
        (
            r##"{"event_uuid":"#3","event":"ON_DEVICE_POLL","device_name":"h2","config_name":"app"}"##,
            unchanged(),
        ),
        (r##"{"event_uuid":"#3","event":null,"device_name":null,"config_name":null}"##, unchanged()),
        (r##"{"event_uuid":"#3","config-name":"app","config_-_name":"app","more":{"x":1}}"##, unchanged()),
        (r##"{"event_uuid":"#3","config_name":"ap"}"##, bad(MemberProblem::OtherName)),
        (r##"{"event_uuid":"#3","config_-_name":"App"}"##, bad(MemberProblem::OtherName)),
        (r##"{"event_uuid":"#3","config_name":"app","config-name":"b"}"##, bad(MemberProblem::NamesDiffer)),
        (r##"{"event_uuid":"#3","device_name":"h1"}"##, bad(MemberProblem::OtherDevice)),
        (r##"{"event_uuid":"#3","event":"ON_FLEET_JOIN"}"##, bad(MemberProblem::OtherEvent)),
        (r#"{"device_name":"h2","event":"ON_NOTHING"}"#, bad(MemberProblem::OtherEvent)),
        (r##"{"event_uuid":"#3","event":[]}"##, bad(MemberProblem::Malformed)),
        (r##"{"event_uuid":"#3","config_name":7}"##, bad(MemberProblem::Malformed)),
        (r#"{"event_uuid":7,"device_name":"h2"}"#, bad(MemberProblem::Malformed)),
        (r##"{"event_uuid":"#3","configuration":1,"configuration":2}"##, bad(MemberProblem::Malformed)),
    ] {
        assert_eq!(reply(json), expected, "{json}");
    }
}

#[test]
fn configurations_are_given_kept_or_revoked() {
    let failed = |why| MemberReply::from(Failure::BadConfiguration { why });
    for (value, expected) in [
        ("null", revoked()),
        (" null ", revoked()),
        (r#""""#, text("")),
        (r#""null""#, text("null")),
        ("false", text("false")),
        (r#"{"a": [1,  2]}"#, text(r#"{"a": [1,  2]}"#)),
        (r#""\ud800""#, failed(ConfigurationProblem::NotUnicode)),
        (r#"{"ignition":{"version":"3.0.0"}}"#, failed(ConfigurationProblem::NoFiles)),
    ] {
        assert_eq!(
            reply(&format!(r##"{{"event_uuid":"#3","configuration":{value}}}"##)),
            expected,
            "{value}"
        );
    }
}

#[test]
fn poll_intervals_are_bounded() {
    for (value, seconds) in [
        ("null", Ok(None)),
        ("60", Ok(Some(60))),
        ("59", Ok(Some(60))),
        ("0", Ok(Some(60))),
        ("604800", Ok(Some(604_800))),
        ("604801", Ok(Some(604_800))),
        ("18446744073709551615", Ok(Some(604_800))),
        (r#""30m""#, Ok(Some(1800))),
        (r#""1h 30m""#, Ok(Some(5400))),
        (r#""90s500ms""#, Ok(Some(90))),
        (r#""1ms""#, Ok(Some(60))),
        (r#""8days""#, Ok(Some(604_800))),
        ("18446744073709551616", Err(())),
        ("-60", Err(())),
        ("60.5", Err(())),
        (r#""60""#, Err(())),
        (r#""soon""#, Err(())),
        (r#""""#, Err(())),
        ("true", Err(())),
        ("[60]", Err(())),
    ] {
        let json = format!(r##"{{"event_uuid":"#3","poll_interval":{value}}}"##);
        let expected = seconds.map_or(bad(MemberProblem::PollInterval), |seconds| MemberReply {
            poll_interval: seconds.map(Duration::from_secs),
            ..unchanged()
        });
        assert_eq!(reply(&json), expected, "{value}");
    }
    // Beside whatever there is.
    for (value, outcome) in [
        ("null", HookOutcome::Revoked),
        (r#""x""#, text("x").outcome),
        (
            r#""\ud800""#,
            HookOutcome::Failed(Failure::BadConfiguration { why: ConfigurationProblem::NotUnicode }),
        ),
    ] {
        let json = format!(r##"{{"event_uuid":"#3","poll_interval":"2h","configuration":{value}}}"##);
        let poll_interval = Some(Duration::from_hours(2));
        assert_eq!(reply(&json), MemberReply { outcome, poll_interval }, "{value}");
    }
}

#[test]
fn contents_are_not_displayed() {
    let body = with_uuids(
        r##"[{"event_uuid":"#1","configuration":"hunter2"},{"event_uuid":"#2","hunter2":1,"event":"hunter2"}]"##,
    );
    let shown = format!("{:?} {:?}", answer(200, &body), replies(&body));
    assert!(!shown.contains("hunter2") && !shown.contains("104"), "{shown}");
    // The hash of a short secret tells it.
    assert!(!shown.contains(&crate::digest::hex_of(b"hunter2")), "{shown}");
}

/// A member with some of the keys, right and wrong.
fn member() -> impl Strategy<Value = String> {
    let uuids = prop::sample::select(vec![
        "",
        r##""event_uuid":"#1""##,
        r##""event_uuid":"#3""##,
        r##""event_uuid":"#9""##,
    ]);
    let devices = prop::sample::select(vec![
        "",
        r#""device_name":"h1""#,
        r#""device_name":"h2""#,
        r#""device_name":7"#,
    ]);
    let others = prop::sample::select(vec![
        "",
        r#""configuration":"x""#,
        r#""configuration":null"#,
        r#""config_name":"b""#,
        r#""poll_interval":5"#,
        r#""event":"ON_DEVICE_POLL""#,
    ]);
    (uuids, devices, others).prop_map(|(uuid, device, other)| {
        let keys: Vec<&str> = [uuid, device, other].into_iter().filter(|key| !key.is_empty()).collect();
        format!("{{{}}}", keys.join(","))
    })
}

proptest! {
    /// Whatever the answer is, each call has one reply, and each member is about a call or foreign.
    #[test]
    fn every_call_has_a_reply(
        members in prop::collection::vec(member(), 0..8),
        garbage in "[\\[\\]{}\",:a0-9]{0,8}",
        status in prop::sample::select(vec![200_u16, 200, 200, 204, 304, 404, 503]),
    ) {
        let body = with_uuids(&format!("[{}]{garbage}", members.join(",")));
        let reply = interpret(answer(status, &body), &calls());
        prop_assert_eq!(reply.members.len(), 3);
        let is_silent = |reply: &MemberReply| *reply == not_answered();
        if status == 200 && garbage.is_empty() {
            let answered = reply.members.iter().filter(|reply| !is_silent(reply)).count();
            prop_assert!(answered + reply.foreign <= members.len());
            let doubled = reply.members.iter().any(|reply| *reply == bad(MemberProblem::Doubled));
            prop_assert_eq!(answered + reply.foreign == members.len(), !doubled);
        } else {
            prop_assert_eq!(reply.foreign, 0);
            prop_assert!(!reply.members.iter().any(is_silent));
        }
    }

    #[test]
    fn no_bytes_panic(body in prop::collection::vec(any::<u8>(), 0..64)) {
        let body = Ok(ContentBytes::new(body));
        let reply = interpret(HookAnswer { body, ..answer(200, "") }, &calls());
        prop_assert_eq!(reply.members.len(), 3);
    }
}
