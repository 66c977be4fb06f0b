//! `docker/` on a container engine: its images with the programs of this build, the site of its compose file, whose hosts
//! are upgraded while its parts fail, and Debian hosts with systemd that join this site.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use harness::docker::{Fault, ORCHESTRATORS, PACKAGES, REBOOTS, Site};
use harness::rest::Run;
use harness::wait::eventually;
use reqwest::Method;

const DEMO_HOSTS: [&str; 3] = ["h01", "h02", "h03"];
const DEBIAN_HOSTS: [&str; 3] = ["d01", "d02", "d03"];
/// Replaces the upgrade script by one that creates `begun` and waits for `go`.
const HOLD: &str = r#"rm -f begun go
mv scripts/upgrade scripts/released
cat >scripts/upgrade <<'EOF'
#!/bin/sh
touch "$(dirname "$0")/../begun"
until [ -e "$(dirname "$0")/../go" ]; do sleep 0.1; done
exec "$(dirname "$0")/released"
EOF
chmod 0755 scripts/upgrade"#;

/// Runs `setup`, which must succeed.
fn set_up(site: &Site) {
    let output = site.set_up();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Each of these hosts was upgraded, by one command, and never two at the same time.
fn assert_upgraded_one_by_one(run: &Run, hosts: [&str; 3]) {
    assert_eq!(run.result(), Some("completed"), "{:?}", run.0);
    assert_eq!(run.statuses(), hosts.map(|host| (host, "upgraded")).into());
    let all = run.events();
    let place = |event: String| all.iter().position(|other| *other == event).unwrap();
    for host in hosts {
        let events = run.events_of(host);
        assert_eq!(
            events.iter().filter(|event| *event == "command-sent upgrade").count(),
            1,
            "{host}: {events:?}"
        );
    }
    for pair in hosts.windows(2) {
        let (released, granted) = (format!("{} slot-released", pair[0]), format!("{} slot-granted", pair[1]));
        assert!(place(released) < place(granted), "{all:?}");
    }
}

#[test]
fn setup_recovers_from_full_disk() {
    let site = Site::new();
    site.make_orchestrator();
    // Only the owner of the clone can read this file.
    std::os::unix::fs::chown(site.path("setup"), Some(4711), Some(4711)).unwrap();
    fs::set_permissions(site.path("setup"), fs::Permissions::from_mode(0o700)).unwrap();
    // The token is written to a full disk.
    let token = site.path("site/operator/token");
    fs::create_dir(token.parent().unwrap()).unwrap();
    symlink("/dev/full", &token).unwrap();
    let output = site.set_up();
    let stderr = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(
        !output.status.success() && stderr.contains("the secret of operator could not be printed"),
        "{stderr}"
    );

    fs::remove_file(&token).unwrap();
    set_up(&site);
    assert!(fs::read_to_string(&token).unwrap().len() > 1);
    assert!(site.path("site/hosts/h4.example.com/nats.creds").is_file());
}

#[tokio::test]
async fn site_upgrades_its_hosts_whatever_part_fails() {
    let site = Site::new();
    site.make_orchestrator();
    site.make_nats().await;
    site.make_demo_host();
    set_up(&site);
    // Two of three nats-servers admit the hosts, but elect no leader before they have seen the third.
    site.start_alone(&[&["nats1", "nats2", "accounts"], &DEMO_HOSTS[..]].concat());
    site.healthy(&DEMO_HOSTS).await;
    site.start_alone(&[&["nats3"], &ORCHESTRATORS[..]].concat());
    site.healthy(&[&["nats1", "nats2", "nats3"], &ORCHESTRATORS[..]].concat()).await;
    let rest = site.rest(ORCHESTRATORS[0]);
    rest.configure("os-upgrade-demo").await;
    rest.await_scheduled(&DEMO_HOSTS).await;
    for host in DEMO_HOSTS {
        site.exec(host, &["sh", "-c", HOLD]);
    }

    let id = rest.start_run().await;
    fail_in_upgrade(&site, Fault::Killed, "nats1", "h01").await;
    fail_in_upgrade(&site, Fault::Paused, "nats2", "h02").await;
    let leader = fail_in_upgrade(&site, Fault::CutOff, "nats3", "h03").await;
    let run = site.rest(leader).await_end(&id).await;
    assert_upgraded_one_by_one(&run, DEMO_HOSTS);
    for host in DEMO_HOSTS {
        assert_eq!(site.exec(host, &["cat", "current/version"]).trim(), "1.1.0", "{host}");
    }
    assert_eq!(
        DEMO_HOSTS.map(|host| site.restarts(host)),
        [2, 1, 1],
        "h01 was killed, and all have rebooted"
    );
}

/// Makes a nats-server, the leader and an upgrading host fail at once until an orchestrator leads, and lets the upgrade
/// continue. Returns the leader.
async fn fail_in_upgrade(site: &Site, fault: Fault, server: &str, host: &str) -> &'static str {
    site.succeeds(host, &["test", "-e", "begun"]).await;
    let failing = site.leader_among(&ORCHESTRATORS).await;
    let parts = [server, failing, host];
    for part in parts {
        site.fault(part, fault);
    }
    // A killed leader is restarted, and may be the first to lead again.
    let among = ORCHESTRATORS.into_iter().filter(|name| fault == Fault::Killed || *name != failing);
    let leader = site.leader_among(&among.collect::<Vec<_>>()).await;
    for part in parts {
        site.heal(part, fault);
    }
    // A killed host is restarted with its original script.
    if fault != Fault::Killed {
        site.exec(host, &["touch", "go"]);
    }
    site.succeeds(server, &["wget", "-q", "-O", "/dev/null", "http://127.0.0.1:8222/healthz"]).await;
    for name in ORCHESTRATORS {
        site.ready(name).await;
    }
    leader
}

#[tokio::test]
async fn debian_hosts_upgrade_and_reboot_one_by_one() {
    let site = Site::new();
    site.make_orchestrator();
    site.make_nats().await;
    site.make_debian_host();
    set_up(&site);
    site.start(&[&ORCHESTRATORS[..], &["nats1", "nats2", "nats3"], &DEBIAN_HOSTS].concat());
    let rest = site.rest(ORCHESTRATORS[0]);
    rest.configure("os-upgrade-debian").await;
    rest.await_scheduled(&DEBIAN_HOSTS).await;
    let boots = DEBIAN_HOSTS.map(|host| site.exec(host, &["cat", "/run/boot-id"]));
    assert_eq!(versions(&site, "d01"), vec!["1.0"; PACKAGES.len() + 1].join("\n"));

    let run = rest.await_end(&rest.start_run().await).await;
    assert_upgraded_one_by_one(&run, DEBIAN_HOSTS);
    for (host, boot) in DEBIAN_HOSTS.into_iter().zip(boots) {
        assert!(run.events_of(host).contains(&"command-sent reboot".to_owned()), "{:?}", run.events_of(host));
        assert_eq!(site.restarts(host), 1, "{host}");
        assert_ne!(site.exec(host, &["cat", "/run/boot-id"]), boot, "{host}");
        assert_eq!(versions(&site, host), vec!["2.0"; PACKAGES.len() + 1].join("\n"), "{host}");
        assert_eq!(site.exec(host, &["systemctl", "is-system-running"]).trim(), "running", "{host}");
        assert_eq!(
            site.exec(host, &["stat", "--format=%a", "/etc/os-upgrade-worker/worker.env"]).trim(),
            "600"
        );
    }
    assert_reboots_in_ordinary_life(&site, DEBIAN_HOSTS[0]).await;
}

/// A unit has failed for long, a user is logged in, and a backup runs that must not be cut off.
const ORDINARY_LIFE: &str = r"set -eu
printf '[Service]\nType=oneshot\nExecStart=/bin/false\n[Install]\nWantedBy=multi-user.target\n' \
    >/etc/systemd/system/vendor-agent.service
systemctl enable --quiet vendor-agent
systemctl start vendor-agent 2>/dev/null || systemctl is-failed --quiet vendor-agent
systemd-run --quiet --property=PAMName=sshd --property=User=nobody --setenv=XDG_SESSION_CLASS=user \
    --setenv=XDG_SESSION_TYPE=tty sleep 600
systemd-run --quiet systemd-inhibit --what=shutdown --who=backup --why='nightly dump' --mode=block \
    sh -c 'until [ -e /run/dumped ]; do sleep 0.1; done'
until loginctl list-sessions --no-legend | grep -q nobody; do sleep 0.1; done
until systemd-inhibit --list --no-legend | grep -q backup; do sleep 0.1; done";

/// A requested reboot goes ahead despite the user and the unit, but not before the backup ends.
async fn assert_reboots_in_ordinary_life(site: &Site, host: &str) {
    let rest = site.rest(ORCHESTRATORS[0]);
    site.exec(host, &["sh", "-c", ORDINARY_LIFE]);
    let boot = site.exec(host, &["cat", "/run/boot-id"]);

    let wanted = format!(r#"{{"nodes":["{host}"],"reason":"firmware"}}"#);
    let (status, answer) = rest.call(Method::POST, "/v1/state/reboot-queue/add", &wanted).await;
    assert_eq!(status, 201, "{answer}");
    eventually("the reboot to wait", async || {
        let log = site.exec(host, &["journalctl", "--unit=os-upgrade-worker", "--output=cat"]);
        log.contains("the reboot is inhibited by backup (process ").then_some(())
    })
    .await;
    assert_eq!(site.exec(host, &["cat", "/run/boot-id"]), boot);
    site.exec(host, &["touch", "/run/dumped"]);
    let entries = async || {
        let (_, entries) = rest.get("/v1/state/reboot-queue").await;
        entries.as_array().is_some_and(Vec::is_empty).then_some(())
    };
    eventually("the reboot to be over", entries).await;
    assert_ne!(site.exec(host, &["cat", "/run/boot-id"]), boot);
    let failed = site.exec(host, &["systemctl", "--failed", "--plain", "--no-legend"]);
    assert!(failed.starts_with("vendor-agent.service "), "{failed}");
}

/// The installed versions of the archive's packages, a line each.
fn versions(site: &Site, host: &str) -> String {
    let query = ["dpkg-query", "--show", "--showformat=${Version}\\n", REBOOTS];
    site.exec(host, &[&query, &PACKAGES[..]].concat()).trim().to_owned()
}
