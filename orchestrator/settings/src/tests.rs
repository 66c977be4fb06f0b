//! The complete messages for bad configurations, and the shipped file compared with the table of keys.

use std::net::SocketAddr;
use std::time::Duration;

use os_upgrade_kernel::OnFailure;

use super::*;

mod kubernetes;
mod reboot_commands;

fn load_text(text: &str, environment: &[(&str, &str)]) -> Result<Settings, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.toml");
    fs::write(&path, text).unwrap();
    let environment = environment.iter().map(|(name, value)| (name.into(), value.into()));
    let prefix = format!("{}/", dir.path().display());
    load(Some(&path), environment).map_err(|error| error.to_string().replace(&prefix, ""))
}

#[test]
fn shipped_file_equals_the_defaults() {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/os-upgrade.toml");
    let text = fs::read_to_string(&shipped).unwrap_or_default();
    assert_eq!(text, default_file(), "run `os-upgrade default-config > config/os-upgrade.toml`");
    assert_eq!(load(Some(&shipped), []), Ok(Settings::default()));
    assert_eq!(load(None, []), Ok(Settings::default()));
}

#[test]
fn examples_of_keys_without_default_are_valid() {
    // Together they would contradict each other, so each is tried alone.
    for key in SECTIONS.iter().flat_map(|section| section.keys) {
        let Initial::Unset(example) = key.initial else {
            continue;
        };
        let variables = [(key.variable(), example)];
        let variables = variables.iter().map(|(name, value)| (name.as_str(), *value)).collect::<Vec<_>>();
        let problems = load_text("", &variables).err().unwrap_or_default();
        assert!(!problems.contains("expected"), "{problems}");
    }
}

#[test]
fn the_defaults() {
    let settings = Settings::default();
    assert_eq!(settings.site.name.as_str(), "site");
    assert_eq!(settings.site.timezone, chrono_tz::UTC);
    assert_eq!(settings.api.listen, "127.0.0.1:8646".parse::<SocketAddr>().unwrap());
    assert_eq!(settings.nats.mode(), NatsMode::Managed);
    assert_eq!(settings.nats.replicas.get(), 1);
    assert_eq!(settings.store.nats(), Path::new("data/nats"));
    assert_eq!(settings.fleet_lock.url, None);
    assert_eq!(settings.fleet_lock.on_failure, OnFailure::Hold);
    assert_eq!(settings.fleet_lock.retry_interval.get(), Duration::from_secs(10));
    assert_eq!(settings.fleet_lock.groups.slots(&settings.fleet_lock.default_group), Some(1));
}

#[test]
fn reboots_without_slots_are_told() {
    for (text, warning) in [
        ("", None),
        ("[reboot]\nmax-concurrent-reboots = 2", Some(Warning::RebootsWithoutSlots { reboots: 2, slots: 1 })),
        ("[reboot]\nmax-concurrent-reboots = 2\n[fleet-lock]\ngroups = {default = 1, edge = 1}", None),
        ("[reboot]\nmax-concurrent-reboots = 2\n[fleet-lock]\nurl = \"http://lock.example\"", None),
    ] {
        assert_eq!(load_text(text, &[]).unwrap().warnings(), Vec::from_iter(warning), "{text}");
    }
}

#[test]
fn environment_overrides_the_file() {
    let text = r#"
        [site]
        name = "Lund"
        timezone = "Europe/Stockholm"
        [nats]
        url = "nats://a:4222, tls://u:secret@b:4222"
        replicas = 0x3
        credentials = "/c"
        [fleet-lock]
        default-group = "workers"
        on-failure = "release"
        retry-interval = "1m 30s"
        groups = { workers = { slots = 2, failed = 1 }, "a.b" = 0 }
    "#;
    let environment = [
        ("OS_UPGRADE_SITE__NAME", "Malmö"),
        ("OS_UPGRADE_API__LISTEN", "[::1]:80"),
        ("OS_UPGRADE_NATS__REPLICAS", "5"),
        ("OS_UPGRADE_STORE__PATH", ""),
        ("OS_UPGRADE_HOST", "h01"),
        ("OS_UPGRADE_RUN", "r"),
        ("OS_UPGRADE_NATS_SERVER", "/bin/nats-server"),
        ("HOME", "/root"),
    ];
    let settings = load_text(text, &environment).unwrap();
    assert_eq!(settings.site.name.as_str(), "Malmö");
    assert_eq!(settings.site.timezone, chrono_tz::Europe::Stockholm);
    assert_eq!(settings.api.listen.to_string(), "[::1]:80");
    let NatsMode::External { urls } = settings.nats.mode() else { panic!() };
    assert_eq!(urls.servers(), ["nats://a:4222", "tls://u:secret@b:4222"]);
    assert_eq!(format!("{urls:?} {urls}"), "nats://a:4222,tls://***@b:4222 nats://a:4222,tls://***@b:4222");
    assert_eq!(settings.nats.credentials.as_deref(), Some(Path::new("/c")));
    assert_eq!(settings.nats.replicas.get(), 5);
    assert_eq!(settings.store.path, Path::new("data"));
    assert_eq!(settings.fleet_lock.retry_interval.get(), Duration::from_secs(90));
    let groups: Vec<_> =
        settings.fleet_lock.groups.iter().map(|(group, slots)| (group.as_str(), slots)).collect();
    assert_eq!(groups, [("a.b", 0), ("workers", 2)]);
    let failed: Vec<_> =
        settings.fleet_lock.groups.failed().map(|(group, failed)| (group.as_str(), failed)).collect();
    assert_eq!(failed, [("workers", 1)]);

    let settings = load_text(text, &[("OS_UPGRADE_FLEET_LOCK__GROUPS", "workers=3")]).unwrap();
    assert_eq!(settings.fleet_lock.groups.iter().count(), 1);
}

#[test]
fn all_problems_are_reported_with_positions() {
    let text = r#"name = "x"
[site]
timezone = "Europe/Stokholm"
[api]
listn = "127.0.0.1:1"
listen = 8646
[nast]
url = "nats://x"
[store]
listen = 1
[nats]
replicas = 7
url = "http://user:secret@h"
[fleet-lock]
on-failure = "explode"
retry-interval = "10"
[fleet-lock.groups]
default = -1
bad_name = 1
a = {slots = 1, failed = 1000000000}
b = {failed = 1}
c = {slots = 1, fail = 1}
"#;
    let environment = [
        ("OS_UPGRADE_API__LISTEN", "nowhere"),
        ("OS_UPGRADE_API__LISTNE", "127.0.0.1:1"),
        ("OS_UPGRADE_FOO__SOMETHING", "x"),
        ("OS_UPGRADE_STORE__COMPLETELY_ELSE", "x"),
        ("OS_UPGRADE_NATS__MANAGED", "yes"),
    ];
    let expected = r#"c.toml:1:1: unknown key "name" outside any section; did you mean "name" in [site]?
c.toml:3:12: site.timezone: expected an IANA time zone such as "Europe/Stockholm", found "Europe/Stokholm"; did you mean "Europe/Stockholm"?
c.toml:5:1: unknown key "listn" in [api]; did you mean "listen"?
c.toml:7:2: unknown section [nast]; did you mean [nats]?
c.toml:10:1: unknown key "listen" in [store]; did you mean "listen" in [api]?
c.toml:12:12: nats.replicas: expected an integer from 1 to 5, found 7
c.toml:13:7: nats.url: expected nats:// or tls:// addresses such as "nats://127.0.0.1:4222", separated by commas, found "http://***@h"
c.toml:15:14: fleet-lock.on-failure: expected "hold" or "release", found "explode"
c.toml:16:18: fleet-lock.retry-interval: expected a duration from 100ms to 1day, such as "10s" or "1m 30s", found "10"
c.toml:18:11: fleet-lock.groups.default: expected an integer from 0 to 10000, found -1
c.toml:19:1: fleet-lock.groups: expected a group, found "bad_name": a group must match ^[a-zA-Z0-9.-]+$
c.toml:20:26: fleet-lock.groups.a.failed: expected an integer from 0 to 10000, found 1000000000
c.toml:21:5: fleet-lock.groups.b: slots is missing, such as {slots = 1, failed = 1}
c.toml:22:17: unknown key "fail" in fleet-lock.groups.c; it has slots and failed
OS_UPGRADE_API__LISTEN: api.listen: expected an IP address and port such as "127.0.0.1:8646", found "nowhere"
OS_UPGRADE_API__LISTNE: no such key; did you mean OS_UPGRADE_API__LISTEN?
OS_UPGRADE_FOO__SOMETHING: unknown section [foo]; there are [site], [api], [api.tls], [api.oidc], [nats], [strongbox], [store], [history], [fleet-lock], [reboot], [kubernetes]
OS_UPGRADE_NATS__MANAGED: nats.managed: expected true or false, found "yes"
OS_UPGRADE_STORE__COMPLETELY_ELSE: unknown key "completely-else" in [store]; its keys are path"#;
    assert_eq!(load_text(text, &environment).unwrap_err(), expected);
}

#[test]
fn single_problems() {
    for (text, expected) in [
        (
            "[api]\nlisten = 8646",
            "c.toml:2:10: api.listen: expected an IP address and port such as \"127.0.0.1:8646\", found 8646",
        ),
        (
            "[site]\nname = \"\"",
            "c.toml:2:8: site.name: expected a name, found \"\": a name must not be empty",
        ),
        ("[site]\nname = [1]", "c.toml:2:8: site.name: expected a name, found a value of type array"),
        ("site = 1", "c.toml:1:1: site is a section: write [site]"),
        ("[store]\npath = \"\"", "c.toml:2:8: store.path: expected a path, found \"\""),
        ("[nats]\nmanaged = \"true\"", "c.toml:2:11: nats.managed: expected true or false, found \"true\""),
        ("[nats]\nmanaged = false", "c.toml:2:11: nats.managed: false needs nats.url"),
        (
            "[nats]\nurl = \"nats://h\"\nmanaged = true",
            "c.toml:3:11: nats.managed: true contradicts nats.url (2:7); set only one of them",
        ),
        (
            "[nats]\nurl = \"nats://h\"\nmanaged-port = 1",
            "c.toml:3:16: nats.managed-port: has no effect with nats.url (2:7)",
        ),
        (
            "[nats]\nreplicas = 3\ncredentials = \"c\"",
            "c.toml:2:12: nats.replicas: there is only one managed server; more than 1 replica needs nats.url\n\
             c.toml:3:15: nats.credentials: needs nats.url, as a managed server has no accounts",
        ),
        ("[nats]\nca = \"c\"", "c.toml:2:6: nats.ca: needs nats.url, as a managed server has no TLS"),
        (
            "[nats]\nurl = \"tls://h\"\ncertificate = \"c\"",
            "c.toml:3:15: nats.certificate: needs nats.key, its private key",
        ),
        (
            "[nats]\nurl = \"nats://\"",
            "c.toml:2:7: nats.url: expected nats:// or tls:// addresses such as \"nats://127.0.0.1:4222\", separated by commas, found \"nats://\"",
        ),
        (
            "[fleet-lock]\nurl = \"ftp://h\"",
            "c.toml:2:7: fleet-lock.url: expected an http:// or https:// URL, found \"ftp://h\"",
        ),
        (
            "[fleet-lock]\nca = \"a\"\nkey = \"k\"",
            "c.toml:2:6: fleet-lock.ca: needs a fleet-lock.url that begins with https://\n\
             c.toml:3:7: fleet-lock.key: needs a fleet-lock.url that begins with https://\n\
             c.toml:3:7: fleet-lock.key: needs fleet-lock.certificate, to which it belongs",
        ),
        (
            "[fleet-lock]\nurl = \"http://u:secret@h\"\nca = \"a\"",
            "c.toml:3:6: fleet-lock.ca: needs a fleet-lock.url that begins with https://",
        ),
        (
            "[fleet-lock]\nurl = \"https://h\"\ncertificate = \"c\"",
            "c.toml:3:15: fleet-lock.certificate: needs fleet-lock.key, its private key",
        ),
        (
            "[fleet-lock]\nurl = \"ftp://u:secret@h\"\nca = \"a\"",
            "c.toml:2:7: fleet-lock.url: expected an http:// or https:// URL, found \"ftp://***@h\"",
        ),
        (
            "[fleet-lock]\ngroups = 3",
            "c.toml:2:10: fleet-lock.groups: expected groups with their slots, such as default = 1 (in a variable: default=1,workers=2), found 3",
        ),
        (
            "[fleet-lock.groups]\nworkers = 1",
            "c.toml:1:1: fleet-lock.default-group: \"default\" is not in [fleet-lock.groups], which has workers",
        ),
        (
            "[fleet-lock]\ndefault-group = \"g\"",
            "c.toml:2:17: fleet-lock.default-group: \"g\" is not in [fleet-lock.groups], which has default",
        ),
        (
            "[reboot]\nqueue-required = true",
            "c.toml:2:18: reboot.queue-required: needs reboot.in-windows = true, so that no host reboots outside of a window",
        ),
        (
            "[reboot]\nreboot-command = \"ipmitool power cycle\"",
            "c.toml:2:18: reboot.reboot-command: needs reboot.command-timeout, so that a command that hangs ends",
        ),
        (
            "[reboot]\nboot-check-command = \"has-booted\"",
            "c.toml:2:22: reboot.boot-check-command: needs reboot.reboot-command; a worker says itself that its host has booted",
        ),
        (
            "[reboot]\ncommand-timeout = \"1m\"\nreboot-command = \"sh -c 'reboot\"",
            "c.toml:3:18: reboot.reboot-command: expected a program and its arguments, quoted as in a shell, found \"sh -c 'reboot\"; a quote is not closed",
        ),
        (
            "[reboot]\ncommand-timeout = \"1m\"\nreboot-command = \" \"",
            "c.toml:3:18: reboot.reboot-command: expected a program and its arguments, quoted as in a shell, found \" \"",
        ),
        ("[api]\nlisten = \"127.0.0.1:1\"\nlisten = \"127.0.0.1:2\"", "c.toml:3:1: duplicate key"),
        (
            "[api]\nlisten =\n[stor]\n",
            "c.toml:2:9: string values must be quoted, expected literal string\nc.toml:3:2: unknown section [stor]; did you mean [store]?",
        ),
    ] {
        assert_eq!(load_text(text, &[]).unwrap_err(), expected, "{text}");
    }
}

#[test]
fn parts_of_sections() {
    let text = "[api]\nlisten = \"127.0.0.1:1\"\n[api.tls]\ncert = \"c\"\nkey = \"k\"";
    let tls = load_text(text, &[("OS_UPGRADE_API_TLS__CLIENT_CA", "ca")]).unwrap().api_tls;
    let paths = [tls.cert, tls.key, tls.client_ca].map(Option::unwrap);
    assert_eq!(paths, ["c", "k", "ca"].map(std::path::PathBuf::from));
    let in_line = load_text("[api]\ntls = { cert = \"c\", key = \"k\" }\n", &[]).unwrap();
    assert_eq!(in_line.api_tls.key.as_deref(), Some(Path::new("k")));
    for (text, expected) in [
        ("[api.tsl]\ncert = \"c\"", "c.toml:1:6: unknown section [api.tsl]; did you mean [api.tls]?"),
        ("[api]\ntls = 3", "c.toml:2:1: api.tls is a section: write [api.tls]"),
        ("[\"api.tls\"]\ncert = \"c\"", "c.toml:1:2: unknown section [\"api.tls\"]; did you mean [api.tls]?"),
        ("[api.tls]\ncret = \"c\"", "c.toml:2:1: unknown key \"cret\" in [api.tls]; did you mean \"cert\"?"),
        ("[api.tls]\ncert = \"c\"", "c.toml:2:8: api.tls.cert: needs api.tls.key, its private key"),
        (
            "[api.tls]\nkey = \"c\"\nclient-ca = \"a\"",
            "c.toml:2:7: api.tls.key: needs api.tls.cert, to which it belongs\n\
             c.toml:3:13: api.tls.client-ca: needs api.tls.cert, as only TLS has client certificates",
        ),
    ] {
        assert_eq!(load_text(text, &[]).unwrap_err(), expected, "{text}");
    }
    let has = |name: &str, value: &str| has_variable([(name.into(), value.into())]);
    assert!(has("OS_UPGRADE_SITE__NAME", "x") && has("OS_UPGRADE_SITE__NMAE", "x"));
    assert!(!has("OS_UPGRADE_SITE__NAME", "") && !has("OS_UPGRADE_URL", "http://h"));
    let unknown = load_text("", &[("OS_UPGRADE_API_TLS__SOMETHING_COMPLETELY_DIFFERENT", "x")]).unwrap_err();
    assert!(unknown.ends_with(
        "unknown key \"something-completely-different\" in [api.tls]; its keys are cert, key, client-ca"
    ));
}

#[test]
fn variables_are_named_as_the_origin() {
    let both = load_text("[nats]\nmanaged = true", &[("OS_UPGRADE_NATS__URL", "nats://h")]);
    assert_eq!(
        both.unwrap_err(),
        "c.toml:2:11: nats.managed: true contradicts nats.url (OS_UPGRADE_NATS__URL); set only one of them"
    );
    let groups = load_text("", &[("OS_UPGRADE_FLEET_LOCK__GROUPS", "default=1,b=many")]);
    assert_eq!(
        groups.unwrap_err(),
        "OS_UPGRADE_FLEET_LOCK__GROUPS: fleet-lock.groups: expected groups with their slots, such as default = 1 \
         (in a variable: default=1,workers=2), found \"default=1,b=many\": b needs an integer from 0 to 10000"
    );
}

/// A name must not look like another problem, or change the terminal.
#[test]
fn control_characters_in_names_are_escaped() {
    let text = "[site]\n\"n\\nc.toml:9:9: x\\u001b[2J\" = 3\n";
    let expected = "c.toml:2:1: unknown key \"n\\nc.toml:9:9: x\\u{1b}[2J\" in [site]; its keys are name, timezone, auto-approve";
    assert_eq!(load_text(text, &[]), Err(expected.to_owned()));
    let problem = load_text("", &[("OS_UPGRADE_SITE__\tNAM", "x")]).unwrap_err();
    assert!(problem.starts_with("OS_UPGRADE_SITE__\\tNAM: no such key"), "{problem}");
}

#[test]
fn unreadable_file_is_an_error() {
    let missing = load(Some(Path::new("/nowhere/c.toml")), []).unwrap_err();
    assert_eq!(missing.to_string(), "cannot read /nowhere/c.toml: No such file or directory (os error 2)");
}

#[test]
fn oidc_keys_are_set_together() {
    let whole = "[api.oidc]\nissuer = \"i\"\naudience = \"a\"\njwks = \"k.json\"\n";
    assert_eq!(load_text(whole, &[]).unwrap().api_oidc.jwks, Some(Jwks::File("k.json".into())));
    for (text, expected) in [
        (
            "[api.oidc]\nissuer = \"i\"\n",
            "c.toml:2:10: api.oidc.issuer: needs api.oidc.audience and api.oidc.jwks",
        ),
        (
            "[api.oidc]\nissuer = \"i\"\njwks = \"k\"\n",
            "c.toml:2:10: api.oidc.issuer: needs api.oidc.audience",
        ),
    ] {
        assert_eq!(load_text(text, &[]).unwrap_err(), expected);
    }
    for (jwks, good) in [
        ("https://h/keys", true),
        ("http://127.0.0.1:1/keys", true),
        ("http://[::1]:1/keys", true),
        ("http://h/keys", false),
        ("https://user:secret@h/keys", false),
        ("ftp://h/keys", false),
        ("", false),
    ] {
        let text = whole.replace("k.json", jwks);
        assert_eq!(load_text(&text, &[]).is_ok(), good, "{jwks}");
    }
}

#[test]
fn public_urls_are_plain() {
    let of = |url: &str| load_text(&format!("[api]\npublic-url = \"{url}\""), &[]);
    for url in ["https://upgrade.example.com", "http://10.0.0.1:8646/", "https://h/base"] {
        let public_url = of(url).unwrap().api.public_url.unwrap();
        assert_eq!(public_url.url().as_str().trim_end_matches('/'), url.trim_end_matches('/'));
    }
    for (url, expected) in [
        ("https://h/?a", "must have neither user and password nor a query (?) or a fragment (#)"),
        ("https://h/#a", "must have neither user and password nor a query (?) or a fragment (#)"),
        ("https://u:p@h/", "must have neither user and password nor a query (?) or a fragment (#)"),
    ] {
        assert_eq!(of(url).unwrap_err(), format!("c.toml:2:14: api.public-url: {expected}"), "{url}");
    }
    assert!(of("ftp://h/").unwrap_err().contains("api.public-url: expected an http:// or https:// URL"));
}

#[test]
fn fleet_sockets_have_short_paths_and_a_role() {
    let of = |keys: &str| load_text(&format!("[api]\n{keys}"), &[]);
    let settings = of("").unwrap().api;
    assert_eq!((settings.fleet_socket, settings.fleet_socket_group), (None, None));
    assert_eq!(settings.fleet_socket_role, FleetSocketRole::Viewer);
    let path = format!("/{}", "s".repeat(106));
    let settings = of(&format!("fleet-socket = \"{path}\"\nfleet-socket-role = \"admin\"")).unwrap().api;
    assert_eq!(settings.fleet_socket, Some(path.clone().into()));
    assert_eq!(settings.fleet_socket_role, FleetSocketRole::Admin);
    for (keys, expected) in [
        (
            format!("fleet-socket = \"{path}s\""),
            "c.toml:2:16: api.fleet-socket: has 108 bytes; the path of a Unix socket has at most 107",
        ),
        (
            "fleet-socket-group = \"fleet\"".to_owned(),
            "c.toml:2:22: api.fleet-socket-group: needs api.fleet-socket, as there is no socket otherwise",
        ),
        (
            "fleet-socket = \"s\"\nfleet-socket-role = \"operator\"".to_owned(),
            "c.toml:3:21: api.fleet-socket-role: expected \"viewer\" or \"admin\", found \"operator\"",
        ),
    ] {
        assert_eq!(of(&keys).unwrap_err(), expected, "{keys}");
    }
}
