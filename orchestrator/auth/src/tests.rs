//! Tests of token files, of watching them, and of credentials.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use axum::http::{HeaderMap, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_protocol::GroupName;
use tempfile::TempDir;

use super::*;

fn now() -> DateTime<Utc> {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

fn group(name: &str) -> Rights {
    Rights::Group(GroupName::new(name).unwrap())
}

/// A token and its secret.
fn token(name: &str, rights: Rights) -> (Token, Secret) {
    let secret = Secret::random().unwrap();
    let proof = Proof::Secret(SecretHash::of(&secret).unwrap());
    (Token::new(name.parse().unwrap(), rights, proof, now() - TimeDelta::days(1), None), secret)
}

struct TokenDir {
    directory: TempDir,
}

impl TokenDir {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> std::path::PathBuf {
        self.directory.path().join("tokens.toml")
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn secret_matches_only_its_hash() {
    let secret = Secret::random().unwrap();
    let text = secret.reveal();
    assert_eq!((text.len(), text.starts_with("osup_")), (48, true));
    assert_eq!(format!("{secret:?}"), "Secret");
    let hashed = SecretHash::of(&secret).unwrap();
    assert!(hashed.matches(text));
    assert!(
        !hashed.matches(&text[..47])
            && !hashed.matches("")
            && !hashed.matches(Secret::random().unwrap().reveal())
    );
    assert_ne!(hashed, SecretHash::of(&secret).unwrap(), "each has its own salt");
}

#[test]
fn file_round_trips_without_secrets() {
    let dir = TokenDir::new();
    let (mut first, secret) = token("ci", Rights::Role(Role::Operator));
    first.expires = Some(now() + TimeDelta::days(90));
    let (second, _) = token("zincati@a.b_c-d", group("workers"));
    let third = Token { proof: Proof::Certificate("node.example".to_owned()), ..token("n", group("w")).0 };
    let tokens = vec![first, second, third];
    write(&dir.path(), &tokens).unwrap();
    assert_eq!(read(&dir.path()).unwrap(), tokens);
    assert_eq!(mode(&dir.path()), 0o600);
    assert!(!fs::read_to_string(dir.path()).unwrap().contains(&secret.reveal()[5..]));

    // Read permissions set by an operator are kept.
    set_mode(&dir.path(), 0o640);
    write(&dir.path(), &tokens[..1]).unwrap();
    assert_eq!((mode(&dir.path()), read(&dir.path()).unwrap().len()), (0o640, 1));
    let leftovers = fs::read_dir(dir.directory.path()).unwrap().count();
    assert_eq!(leftovers, 1);
}

#[test]
fn symlinks_are_kept() {
    let dir = TokenDir::new();
    let target = dir.directory.path().join("behind.toml");
    write(&target, &[]).unwrap();
    std::os::unix::fs::symlink(&target, dir.path()).unwrap();
    let tokens = vec![token("ci", Rights::Role(Role::Viewer)).0];
    write(&dir.path(), &tokens).unwrap();
    assert!(fs::symlink_metadata(dir.path()).unwrap().is_symlink());
    assert_eq!(read(&target).unwrap(), tokens);
}

#[test]
fn file_writable_by_others_is_refused() {
    let dir = TokenDir::new();
    write(&dir.path(), &[]).unwrap();
    for (bits, refused) in [(0o600, false), (0o444, false), (0o620, true), (0o602, true), (0o666, true)] {
        set_mode(&dir.path(), bits);
        let result = read(&dir.path());
        assert_eq!(result.is_err(), refused, "{bits:o}");
        if let Err(error) = result {
            let expected = format!(
                "the token file {} can be written by others (mode {bits:03o}): run chmod go-w on it, and check its contents",
                dir.path().display()
            );
            assert_eq!(error.to_string(), expected);
        }
    }
}

#[test]
fn file_errors_name_their_place() {
    let hashed = format!("salt = \"{}\"\nsha256 = \"{}\"\n", "A".repeat(22), "A".repeat(43));
    let made = "created = \"2026-11-21T12:00:00Z\"\n";
    let entry = |fields: &str| format!("[[token]]\n{made}{fields}");
    let good = entry(&format!("name = \"a\"\nrole = \"viewer\"\n{hashed}"));
    for (text, expected) in [
        ("x".to_owned(), "line 1: "),
        ("\n[[tokens]]\n".to_owned(), "line 2: unknown field `tokens`"),
        (r#""a\nb" = 1"#.to_owned(), "line 1: unknown field `a b`"),
        (entry("name = \"a b\"\n"), "line 3: a name is 1 to 64 letters, digits or any of . _ @ -"),
        (entry("name = \"a\"\nrole = \"root\"\n"), "line 4: unknown variant `root`"),
        (entry(&format!("name = \"a\"\n{hashed}")), "token a: give either role or group"),
        (
            entry(&format!("name = \"a\"\nrole = \"admin\"\ngroup = \"w\"\n{hashed}")),
            "token a: give either role or group",
        ),
        (
            entry("name = \"a\"\nrole = \"admin\"\ncertificate = \"x\"\n"),
            "token a: a certificate is for a group, not for a role",
        ),
        (entry("name = \"a\"\ngroup = \"w\"\n"), "token a: give either salt and sha256 or certificate"),
        (
            entry("name = \"a\"\nrole = \"admin\"\nsalt = \"AA\"\nsha256 = \"AA\"\n"),
            "token a: salt or sha256 is damaged",
        ),
        (format!("{good}{good}"), "token a: the name is used twice"),
        (" ".repeat(1024 * 1024 + 1), "more than 1048576 bytes"),
    ] {
        let found = token_file::parse(&text).unwrap_err();
        assert!(found.starts_with(expected), "{found}");
    }
    assert_eq!(token_file::parse(&good).unwrap().len(), 1);
    assert_eq!(token_file::parse("").unwrap(), []);
    let many: String =
        (0..=token_file::TOKENS_MAX).map(|number| good.replace("\"a\"", &format!("\"a{number}\""))).collect();
    assert_eq!(token_file::parse(&many).unwrap_err(), "more than 1000 entries");
}

#[test]
fn unusable_file_keeps_last_tokens() {
    let dir = TokenDir::new();
    let watched = WatchedTokens::open(dir.path()).unwrap();
    assert_eq!((watched.tokens().len(), watched.problem().is_some()), (0, true), "no file yet");

    let (first, _) = token("a", Rights::Role(Role::Viewer));
    let (second, _) = token("b", Rights::Role(Role::Viewer));
    write(&dir.path(), std::slice::from_ref(&first)).unwrap();
    watched.reload();
    assert_eq!((watched.tokens().to_vec(), watched.problem()), (vec![first.clone()], None));

    let whole = fs::read_to_string(dir.path()).unwrap();
    fs::write(dir.path(), &whole[..whole.len() - 20]).unwrap();
    watched.reload();
    assert_eq!(*watched.tokens(), std::slice::from_ref(&first), "a half-written file locks nobody out");
    assert!(watched.problem().unwrap().contains("is not valid"));
    assert!(WatchedTokens::open(dir.path()).is_err(), "but it cannot be opened at start");

    write(&dir.path(), &[first.clone(), second]).unwrap();
    watched.reload();
    assert_eq!((watched.tokens().len(), watched.problem()), (2, None));

    set_mode(&dir.path(), 0o666);
    watched.reload();
    assert!(watched.problem().unwrap().contains("can be written by others"));
    assert_eq!(watched.tokens().len(), 2);

    fs::remove_file(dir.path()).unwrap();
    watched.reload();
    assert_eq!(
        (watched.tokens().len(), watched.problem().is_some()),
        (0, true),
        "without a file no token is valid"
    );

    write(&dir.path(), &[first]).unwrap();
    watched.reload();
    assert_eq!((watched.tokens().len(), watched.problem()), (1, None));
}

fn headers(values: &[&str]) -> HeaderMap {
    let value = |value: &&str| ("authorization".parse().unwrap(), HeaderValue::from_str(value).unwrap());
    values.iter().map(value).collect()
}

#[test]
fn bearer_tokens_are_read() {
    let cases: [(&[&str], Result<&str, Denied>); 7] = [
        (&["Bearer abc"], Ok("abc")),
        (&["bearer  abc "], Ok("abc")),
        (&[], Err(Denied::Missing)),
        (&["Basic YTpi"], Err(Denied::Missing)),
        (&["Bearer"], Err(Denied::Invalid)),
        (&["Digest abc"], Err(Denied::Invalid)),
        (&["Bearer abc", "Bearer abc"], Err(Denied::Invalid)),
    ];
    for (values, expected) in cases {
        assert_eq!(bearer(&headers(values)), expected.map(str::to_owned), "{values:?}");
    }
}

#[tokio::test]
async fn credentials_identify_the_caller() {
    let dir = TokenDir::new();
    let (mut old, old_secret) = token("old", Rights::Role(Role::Admin));
    old.expires = Some(now());
    let (ci, ci_secret) = token("ci", Rights::Role(Role::Operator));
    let (zincati, zincati_secret) = token("zincati", group("workers"));
    write(&dir.path(), &[old, ci, zincati]).unwrap();
    let authenticator = Authenticator::new(Some(WatchedTokens::open(dir.path()).unwrap()), None);
    let [old, ci, zincati] = [&old_secret, &ci_secret, &zincati_secret].map(Secret::reveal);
    let basic = |text: String| format!("Basic {}", STANDARD.encode(text));

    let caller = |actor: &str, rights: Rights| Ok(Caller { actor: actor.to_owned(), rights });
    let as_ci = caller("token ci", Rights::Role(Role::Operator));
    let as_zincati = caller("token zincati", group("workers"));
    let lock = Scheme::FleetLock;
    for (scheme, values, expected) in [
        (Scheme::Bearer, vec![], Err(Denied::Missing)),
        (Scheme::Bearer, vec![format!("Bearer {ci}")], as_ci.clone()),
        (Scheme::Bearer, vec![format!("bearer  {ci} ")], as_ci.clone()),
        (Scheme::Bearer, vec![format!("Bearer {ci}x")], Err(Denied::Invalid)),
        (Scheme::Bearer, vec![format!("Bearer {}", &ci[5..])], Err(Denied::Invalid)),
        (Scheme::Bearer, vec!["Bearer".to_owned()], Err(Denied::Invalid)),
        (Scheme::Bearer, vec!["Digest x".to_owned()], Err(Denied::Invalid)),
        (Scheme::Bearer, vec![format!("Bearer {old}")], Err(Denied::Expired)),
        (Scheme::Bearer, vec![format!("Bearer {ci}"), format!("Bearer {ci}")], Err(Denied::Invalid)),
        (Scheme::Bearer, vec![basic(format!("ci:{ci}"))], Err(Denied::Missing)),
        (lock, vec![], Err(Denied::Missing)),
        (lock, vec![basic(format!("ci:{ci}"))], as_ci.clone()),
        (lock, vec![basic(format!("zincati:{zincati}"))], as_zincati.clone()),
        (lock, vec![basic(format!("ci:{zincati}"))], Err(Denied::Invalid)),
        (lock, vec![basic(format!("zincati{zincati}"))], Err(Denied::Invalid)),
        (lock, vec!["Basic !".to_owned()], Err(Denied::Invalid)),
        (lock, vec![basic(format!("old:{old}"))], Err(Denied::Expired)),
        (lock, vec![format!("Bearer {zincati}")], as_zincati),
    ] {
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let headers = headers(&values);
        let shown = Presented { scheme, headers: &headers, certificate: None, peer: None };
        let found = authenticator.caller(shown, now()).await;
        assert_eq!(found, expected, "{scheme:?} {values:?}");
    }

    let open = Authenticator::default();
    let peer = Some("127.0.0.1".parse().unwrap());
    let admin = caller("api 127.0.0.1", Rights::Role(Role::Admin));
    let shown = Presented { scheme: Scheme::Bearer, headers: &headers(&[]), certificate: None, peer };
    assert_eq!(open.caller(shown, now()).await, admin);
    let page =
        HeaderMap::from_iter([(axum::http::header::ORIGIN, HeaderValue::from_static("https://example.com"))]);
    assert!(open.is_foreign_page(&page) && !open.is_foreign_page(&headers(&[])));
    assert!(!authenticator.is_foreign_page(&page), "a page has no token");
}

#[test]
fn rights_of_callers() {
    let caller = |rights| Caller { actor: "x".to_owned(), rights };
    let allowed = |rights: Rights| {
        let caller = caller(rights);
        let [own, other] = ["workers", "infra"].map(|name| GroupName::new(name).unwrap());
        (Role::ALL.map(|role| caller.may(role)), [caller.may_lock(&own), caller.may_lock(&other)])
    };
    assert_eq!(allowed(Rights::Role(Role::Viewer)), ([true, false, false], [false, false]));
    assert_eq!(allowed(Rights::Role(Role::Operator)), ([true, true, false], [false, false]));
    assert_eq!(allowed(Rights::Role(Role::Admin)), ([true, true, true], [true, true]));
    assert_eq!(allowed(group("workers")), ([false, false, false], [true, false]));
    let both = ["workers", "infra"].map(|name| GroupName::new(name).unwrap());
    assert_eq!(allowed(Rights::Groups(both.to_vec())), ([false, false, false], [true, true]));
    for role in Role::ALL {
        assert_eq!(role.as_str().parse(), Ok(role));
    }
}

#[tokio::test]
async fn certificates_identify_lock_clients() {
    let dir = TokenDir::new();
    let by_certificate = |name: &str, rights: Rights, certificate: &str| {
        let proof = Proof::Certificate(certificate.to_owned());
        Token::new(name.parse().unwrap(), rights, proof, now(), Some(std::time::Duration::from_mins(1)))
    };
    let tokens =
        [by_certificate("n1", group("workers"), "n1.example"), by_certificate("n2", group("infra"), "n2")];
    // The successor of the first, which outlives it.
    let [n1, n2] = tokens;
    let proof = Proof::Certificate("n1.example".to_owned());
    let n3 = Token::new(
        "n3".parse().unwrap(),
        group("workers"),
        proof,
        now(),
        Some(std::time::Duration::from_mins(5)),
    );
    let n4 = Token { name: "n4".parse().unwrap(), rights: group("db"), ..n2.clone() };
    write(&dir.path(), &[n1, n2, n3, n4]).unwrap();
    let authenticator = Authenticator::new(Some(WatchedTokens::open(dir.path()).unwrap()), None);

    let certificate = |common_name: &str, names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = rcgen::CertificateParams::new(names).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, common_name);
        let certificate = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        PeerCertificate::of(certificate.der()).unwrap()
    };
    let caller = |actor: &str, rights| Ok(Caller { actor: actor.to_owned(), rights });
    let [first, second, third, nobody] = [
        certificate("x", &["n0.example", "n1.example"]),
        certificate("n2", &[]),
        certificate("n2", &["n1.example"]),
        certificate("n3", &["n2.example"]),
    ];
    let groups =
        |names: &[&str]| Rights::Groups(names.iter().map(|name| GroupName::new(name).unwrap()).collect());
    let (lock, late) = (Scheme::FleetLock, now() + TimeDelta::minutes(1));
    for (scheme, shown, values, time, expected) in [
        (lock, Some(&first), vec![], now(), caller("token n1", group("workers"))),
        (lock, Some(&second), vec![], now(), caller("token n2, n4", groups(&["infra", "db"]))),
        (lock, Some(&third), vec![], now(), caller("token n1, n2, n4", groups(&["workers", "infra", "db"]))),
        (lock, Some(&third), vec![], late, caller("token n3", group("workers"))),
        (lock, Some(&nobody), vec![], now(), Err(Denied::Missing)),
        (lock, Some(&first), vec!["Basic bjE6"], now(), Err(Denied::Invalid)),
        (lock, Some(&first), vec![], late, caller("token n3", group("workers"))),
        (lock, Some(&first), vec![], late + TimeDelta::minutes(4), Err(Denied::Expired)),
        (lock, Some(&second), vec![], late, Err(Denied::Expired)),
        (lock, None, vec![], now(), Err(Denied::Missing)),
        (Scheme::Bearer, Some(&first), vec![], now(), Err(Denied::Missing)),
    ] {
        let headers = headers(&values);
        let shown = Presented { scheme, headers: &headers, certificate: shown, peer: None };
        assert_eq!(authenticator.caller(shown, time).await, expected, "{shown:?}");
    }
}
