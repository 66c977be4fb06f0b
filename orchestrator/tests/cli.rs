//! The program as an operator meets it: exit codes, and what stands on standard error.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn os_upgrade(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_os-upgrade"));
    command.args(arguments).current_dir(directory).env_remove("RUST_LOG");
    command
}

fn ended(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).trim_end().to_owned())
}

#[test]
fn version_and_usage() {
    let dir = tempfile::tempdir().unwrap();
    let version = os_upgrade(dir.path(), &["--version"]).output().unwrap();
    assert_eq!(version.stdout, format!("os-upgrade {}\n", env!("CARGO_PKG_VERSION")).as_bytes());
    assert_eq!(version.status.code(), Some(0));
    for wrong in [&[][..], &["serv"], &["serve", "--confg", "x"], &["dev", "--hosts", "0"]] {
        let output = os_upgrade(dir.path(), wrong).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn an_unusable_configuration_is_exit_2_with_every_error() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("c.toml"), "[api]\nlistn = 1\n[nats]\nreplicas = 9\n").unwrap();
    let mut serve = os_upgrade(dir.path(), &["serve", "--config", "c.toml"]);
    let expected = "error: c.toml:2:1: unknown key \"listn\" in [api]; did you mean \"listen\"?\n\
                    error: c.toml:4:12: nats.replicas: expected an integer from 1 to 5, found 9\n\
                    error: OS_UPGRADE_SITE__TIMEZONE: site.timezone: expected an IANA time zone such as \
                    \"Europe/Stockholm\", found \"UTC+1\"; write a place, or Etc/GMT-1 \
                    for 1 h ahead of UTC: its sign is reversed";
    serve.env("OS_UPGRADE_SITE__TIMEZONE", "UTC+1");
    assert_eq!(ended(&serve.output().unwrap()), (Some(2), expected.to_owned()));

    let missing = os_upgrade(dir.path(), &["serve", "--config", "d.toml"]).output().unwrap();
    let expected = "error: cannot read d.toml: No such file or directory (os error 2)";
    assert_eq!(ended(&missing), (Some(2), expected.to_owned()));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing was made");
}

#[test]
fn nats_config_refuses_a_cluster_of_one() {
    let directory = tempfile::tempdir().unwrap();
    for (servers, wrong) in [
        (vec!["a", "b"], "a cluster of two stops when either server does: give one server, or three"),
        (vec!["a", "b", "a:4222"], "a:4222 is given twice: the servers of a cluster must differ"),
    ] {
        let servers = servers.into_iter().flat_map(|server| ["--server", server]);
        let arguments: Vec<_> = ["nats-config", "init", "--dir", "site"].into_iter().chain(servers).collect();
        let output = os_upgrade(directory.path(), &arguments).output().unwrap();
        assert_eq!(ended(&output), (Some(2), format!("error: {wrong}")));
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_taken_port_is_one_line_and_exit_2() {
    let dir = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let mut serve = os_upgrade(dir.path(), &["serve"]);
    serve.env("OS_UPGRADE_API__LISTEN", address.to_string()).env("RUST_LOG", "off");
    let expected = format!("error: cannot listen on {address}: Address already in use (os error 98)");
    assert_eq!(ended(&serve.output().unwrap()), (Some(2), expected));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing was made, no nats-server either");
}

#[test]
fn an_address_that_this_host_does_not_have_yet_is_exit_1() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("t.toml"), "").unwrap();
    fs::set_permissions(dir.path().join("t.toml"), fs::Permissions::from_mode(0o600)).unwrap();
    let mut serve = os_upgrade(dir.path(), &["serve"]);
    // Of a network for documentation.
    serve.env("OS_UPGRADE_API__LISTEN", "192.0.2.1:8646").env("OS_UPGRADE_API__TOKENS", "t.toml");
    let expected = "error: cannot listen on 192.0.2.1:8646: Cannot assign requested address (os error 99)";
    assert_eq!(ended(&serve.env("RUST_LOG", "off").output().unwrap()), (Some(1), expected.to_owned()));
}

#[test]
fn too_few_open_files_are_one_line_and_exit_2() {
    let dir = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_os-upgrade");
    let mut serve = Command::new("sh");
    serve.args(["-c", "ulimit -n 500 && exec \"$0\" serve", program]).current_dir(dir.path());
    serve.env("OS_UPGRADE_API__LISTEN", "127.0.0.1:0").env("OS_UPGRADE_API__CONNECTIONS", "300");
    let expected = "error: 300 `connections` of [api] need 1556 open files, but the limit is 500: raise it with \
                    LimitNOFILE= of the service, or set fewer connections";
    assert_eq!(ended(&serve.env("RUST_LOG", "off").output().unwrap()), (Some(2), expected.to_owned()));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing was made, no nats-server either");
}

#[test]
fn an_api_for_everybody_is_one_line_and_exit_2() {
    let dir = tempfile::tempdir().unwrap();
    let mut serve = os_upgrade(dir.path(), &["serve"]);
    serve.env("OS_UPGRADE_API__LISTEN", "0.0.0.0:1").env("RUST_LOG", "off");
    let expected = "error: the API would be open to everybody who reaches 0.0.0.0:1: make a token with `os-upgrade \
                    token create`, name its file in [api] tokens, or listen on loopback";
    assert_eq!(ended(&serve.output().unwrap()), (Some(2), expected.to_owned()));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing was made");
}

#[test]
fn a_token_file_that_cannot_be_used_is_one_line_and_exit_2() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.toml");
    let start = || {
        let mut serve = os_upgrade(dir.path(), &["serve"]);
        serve.env("OS_UPGRADE_API__TOKENS", "t.toml").env("RUST_LOG", "off");
        ended(&serve.output().unwrap())
    };
    fs::write(&file, "[[token]]\nname = 7\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let (code, said) = start();
    assert!(
        code == Some(2) && said.starts_with("error: the token file t.toml is not valid: line 2: "),
        "{said}"
    );
    fs::set_permissions(&file, fs::Permissions::from_mode(0o660)).unwrap();
    let expected = "error: the token file t.toml can be written by others (mode 660): run chmod go-w on it, and check \
                 its contents";
    assert_eq!(start(), (Some(2), expected.to_owned()));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing was made");
}

#[test]
fn unusable_files_exit_2_with_one_line() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("key"), "no key").unwrap();
    fs::set_permissions(dir.path().join("key"), fs::Permissions::from_mode(0o644)).unwrap();
    for (settings, expected) in [
        (
            &[("STRONGBOX__KEY_FILE", "key")][..],
            "error: key, the `key-file` of [strongbox], can be read or written by others (mode 644): chmod 0400 it",
        ),
        (
            &[("API_TLS__CERT", "c.pem"), ("API_TLS__KEY", "k.pem")],
            "error: cannot serve HTTPS: cannot read c.pem, the `cert` of [api.tls]: No such file or directory",
        ),
        (
            &[
                ("FLEET_LOCK__URL", "https://h"),
                ("FLEET_LOCK__CERTIFICATE", "c.pem"),
                ("FLEET_LOCK__KEY", "k.pem"),
            ],
            "error: cannot use the lock server: cannot read c.pem, the `certificate` of [fleet-lock]: No such file",
        ),
    ] {
        let mut serve = os_upgrade(dir.path(), &["serve"]);
        let settings = settings.iter().map(|(key, value)| (format!("OS_UPGRADE_{key}"), value));
        let (code, said) = ended(&serve.env("RUST_LOG", "off").envs(settings).output().unwrap());
        assert!(
            code == Some(2) && said.starts_with(expected) && said.lines().count() == 1,
            "{code:?} {said}"
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing was made");
    }
}

#[test]
fn which_token_file_must_be_said() {
    let dir = tempfile::tempdir().unwrap();
    let create =
        os_upgrade(dir.path(), &["token", "create", "--role", "viewer", "--name", "a"]).output().unwrap();
    let expected = "error: which token file? Give --file, or a --config with [api] tokens";
    assert_eq!(ended(&create), (Some(2), expected.to_owned()));
    for wrong in
        [&["--name", "a"][..], &["--name", "a b", "--role", "viewer"], &["--name", "a", "--role", "root"]]
    {
        let arguments = [&["token", "create", "--file", "t.toml"], wrong].concat();
        assert_eq!(os_upgrade(dir.path(), &arguments).output().unwrap().status.code(), Some(2), "{wrong:?}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_nats_server_that_is_too_old_is_one_line_and_exit_1() {
    let dir = tempfile::tempdir().unwrap();
    let old = dir.path().join("nats-server");
    // Written by a shell, so that it is not open for writing here when it is started.
    let write = "printf '#!/bin/sh\necho nats-server: v2.9.10\n' >\"$0\"; chmod +x \"$0\"";
    assert!(Command::new("sh").args(["-c", write]).arg(&old).status().unwrap().success());
    let mut serve = os_upgrade(dir.path(), &["serve"]);
    let expected = format!(
        "error: no nats-server 2.11 or newer: {}: version 2.9 is too old; install one on PATH, or set \
         OS_UPGRADE_NATS_SERVER to its path",
        old.display()
    );
    serve.env("OS_UPGRADE_NATS_SERVER", &old);
    assert_eq!(ended(&serve.output().unwrap()), (Some(1), expected));
}

#[test]
fn a_signal_ends_it_in_order_with_its_nats_server() {
    let dir = tempfile::tempdir().unwrap();
    let mut serve = os_upgrade(dir.path(), &["serve"]);
    serve.env("OS_UPGRADE_API__LISTEN", "127.0.0.1:0").env("RUST_LOG", "info");
    let mut serve = serve.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(serve.stderr.take().unwrap()).lines().map_while(Result::ok);
    let up = lines.find(|line| line.contains("nats-server is up")).unwrap();
    let port = fs::read_to_string(dir.path().join("data/nats/port")).unwrap();
    // Its password is not for the log.
    assert!(up.contains(&format!("nats://***@127.0.0.1:{port}")), "{up}");
    kill(Pid::from_raw(serve.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
    assert_eq!(serve.wait().unwrap().code(), Some(0));
    assert!(TcpListener::bind(format!("127.0.0.1:{port}")).is_ok(), "the nats-server is gone");
}
