//! Checks of good and bad files.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use os_upgrade_auth::{Proof, Rights, Token};
use os_upgrade_settings as settings;
use os_upgrade_site::strongbox::key::Key;
use os_upgrade_test_site::authority::Authority;
use tempfile::TempDir;

use super::*;
use crate::admin::doctor::check::Verdict;

const DAY: Duration = Duration::from_hours(24);

fn now() -> DateTime<Utc> {
    "2026-12-25T12:00:00Z".parse().unwrap()
}

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let authority = Authority::new("one");
        let (cert, key) = authority.certify("localhost");
        auth::write(&place.path("tokens.toml"), &[token("ci", None)]).unwrap();
        for (name, content) in [
            ("api.pem", &cert),
            ("api.key", &key),
            ("lock.key", &key),
            ("ca.pem", &authority.pem),
            ("keys.json", &r#"{"keys":[]}"#.to_owned()),
            ("strongbox.key", &Key::random().unwrap().reveal()),
        ] {
            place.write(name, content);
        }
        place
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
        self.set_mode(name, 0o600);
    }

    fn set_mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Name, verdict and finding of every check.
    fn checks(&self) -> Vec<(String, Verdict, String)> {
        let file = |name: &str| self.path(name).display().to_string();
        let text = format!(
            "[api]\ntokens = {:?}\n[api.tls]\ncert = {:?}\nkey = {:?}\nclient-ca = {:?}\n[strongbox]\nkey-file = {:?}\n\
             [api.oidc]\nissuer = \"i\"\naudience = \"a\"\njwks = {:?}\n[fleet-lock]\nurl = \"https://h\"\ncertificate = {:?}\nkey = {:?}\n",
            file("tokens.toml"),
            file("api.pem"),
            file("api.key"),
            file("ca.pem"),
            file("strongbox.key"),
            file("keys.json"),
            file("api.pem"),
            file("lock.key"),
        );
        let settings = settings::parse(None, &text, []).unwrap();
        let directory = format!("{}/", self.0.path().display());
        let checks = examine(&settings, Some(&State::default()), now()).into_iter();
        checks
            .map(|check| {
                assert_eq!(check.advice.is_some(), check.verdict != Verdict::Ok, "{check:?}");
                (check.name, check.verdict, check.found.replace(&directory, ""))
            })
            .collect()
    }

    /// The only check that is not ok.
    fn wrong(&self) -> (String, Verdict, String) {
        let mut wrong = self.checks();
        wrong.retain(|(_, verdict, _)| *verdict != Verdict::Ok);
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        wrong.remove(0)
    }
}

fn token(name: &str, lifetime: Option<Duration>) -> Token {
    let proof = Proof::Certificate("x".to_owned());
    let made = now() - DAY;
    let group = Rights::Group("workers".parse().unwrap());
    Token::new(name.parse().unwrap(), group, proof, made, lifetime)
}

#[test]
fn good_files_are_ok() {
    let ok = |check: &str, found: &str| (check.to_owned(), Verdict::Ok, found.to_owned());
    assert_eq!(
        Place::new().checks(),
        [
            ok("token file", "tokens: 1 valid, 0 expired, 0 expiring within 14 days"),
            ok("identity provider's keys", "keys.json holds 0"),
            ok("certificate", "valid until 4096-01-01T00:00:00Z"),
            ok("certificate's key", "api.key is private (mode 600)"),
            ok("clients' authorities", "valid until 4096-01-01T00:00:00Z"),
            ok("key for the lock server", "lock.key is private (mode 600)"),
            ok("strongbox's key", "strongbox.key can be used"),
        ]
    );
}

/// The certificate cannot be served with them either.
#[test]
fn authorities_that_others_may_write_are_found() {
    let place = Place::new();
    place.set_mode("ca.pem", 0o664);
    let mut wrong = place.checks();
    wrong.retain(|(_, verdict, found)| *verdict == Verdict::Problem && found.contains("(mode 664)"));
    let names: Vec<&str> = wrong.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["certificate", "clients' authorities"]);
}

#[test]
fn each_fault_is_found() {
    type Fault = fn(&Place);
    let faults: [(Fault, &str, Verdict, &str); 16] = [
        (
            |place| fs::remove_file(place.path("tokens.toml")).unwrap(),
            "token file",
            Verdict::Problem,
            "there is no token file tokens.toml; `os-upgrade token create` makes one",
        ),
        (|place| place.write("tokens.toml", "x"), "token file", Verdict::Problem, "is not valid: line 1"),
        (|place| place.set_mode("tokens.toml", 0o666), "token file", Verdict::Problem, "mode 666"),
        (
            |place| {
                let tokens = [token("a", None), token("b", Some(DAY)), token("c", Some(15 * DAY))];
                auth::write(&place.path("tokens.toml"), &tokens).unwrap();
            },
            "token file",
            Verdict::Warning,
            "tokens: 2 valid, 1 expired, 1 expiring within 14 days",
        ),
        (
            |place| auth::write(&place.path("tokens.toml"), &[token("b", Some(DAY))]).unwrap(),
            "token file",
            Verdict::Warning,
            "tokens: 0 valid",
        ),
        (
            |place| place.set_mode("keys.json", 0o606),
            "identity provider's keys",
            Verdict::Problem,
            "mode 606",
        ),
        (
            |place| fs::remove_file(place.path("keys.json")).unwrap(),
            "identity provider's keys",
            Verdict::Problem,
            "keys.json, the `jwks` of [api.oidc], cannot be read: No such file",
        ),
        (
            |place| place.write("keys.json", "x"),
            "identity provider's keys",
            Verdict::Problem,
            "keys.json, the `jwks` of [api.oidc], is not a JSON Web Key Set",
        ),
        (|place| place.set_mode("api.key", 0o644), "certificate's key", Verdict::Warning, "(mode 644)"),
        (
            |place| place.set_mode("lock.key", 0o604),
            "key for the lock server",
            Verdict::Warning,
            "(mode 604)",
        ),
        (
            |place| {
                let (cert, key) = Authority::new("two").certify_until("localhost", 2020);
                place.write("api.pem", &cert);
                place.write("api.key", &key);
            },
            "certificate",
            Verdict::Problem,
            "has expired at 2020-01-01T00:00:00Z",
        ),
        (
            |place| {
                let (cert, key) = Authority::new("two").certify_until("localhost", 2027);
                place.write("api.pem", &cert);
                place.write("api.key", &key);
            },
            "certificate",
            Verdict::Warning,
            "expires at 2027-01-01T00:00:00Z",
        ),
        (
            |place| {
                let ends = Authority::new("two").certify_until("soon", 2027).0;
                place.write("ca.pem", &format!("{}{ends}", Authority::new("three").pem));
            },
            "clients' authorities",
            Verdict::Warning,
            "one expires at 2027-01-01T00:00:00Z",
        ),
        (
            |place| place.write("ca.pem", &Authority::new("two").certify_until("old", 2020).0),
            "clients' authorities",
            Verdict::Warning,
            "one expired at 2020-01-01T00:00:00Z",
        ),
        (|place| place.set_mode("strongbox.key", 0o644), "strongbox's key", Verdict::Problem, "mode 644"),
        (|place| place.write("strongbox.key", "x"), "strongbox's key", Verdict::Problem, "it is not a key"),
    ];
    for (fault, check, verdict, found) in faults {
        let place = Place::new();
        fault(&place);
        let wrong = place.wrong();
        assert_eq!((wrong.0.as_str(), wrong.1), (check, verdict), "{wrong:?}");
        assert!(wrong.2.contains(found), "{wrong:?}");
    }
}

#[test]
fn wrong_strongbox_key_is_a_problem() {
    let place = Place::new();
    let mut state = State::default();
    let other = Key::random().unwrap();
    let secret = os_upgrade_kernel::SecretName::new("lock-server").unwrap();
    let facts = [
        os_upgrade_kernel::Fact::Secret(os_upgrade_kernel::fact::SecretFact::KeySet { check: other.check() }),
        os_upgrade_kernel::Fact::Secret(os_upgrade_kernel::fact::SecretFact::Stored {
            origin: None,
            sealed: other.seal(&secret, None, "user:password").unwrap(),
            name: secret,
            actor: "eve".to_owned(),
        }),
    ];
    for fact in facts {
        state.apply(now(), &fact).unwrap();
    }
    let text = format!("[strongbox]\nkey-file = {:?}\n", place.path("strongbox.key").display().to_string());
    let settings = settings::parse(None, &text, []).unwrap();
    let found = strongbox(&settings, Some(&state)).unwrap();
    assert_eq!(found.verdict, Verdict::Problem);
    assert!(found.found.contains("another key"), "{found:?}");
    fs::write(place.path("strongbox.key"), other.reveal().as_str()).unwrap();
    assert_eq!(strongbox(&settings, Some(&state)).unwrap().verdict, Verdict::Ok);
}
