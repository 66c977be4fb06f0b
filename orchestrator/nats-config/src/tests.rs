//! What is generated, and what a second run keeps.

use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn layout(servers: &[&str]) -> Layout {
    Layout {
        servers: servers.iter().map(|server| server.parse().unwrap()).collect(),
        listen: Ipv4Addr::UNSPECIFIED.into(),
        etc: PathBuf::from("/etc/nats"),
        data: PathBuf::from("/var/lib/nats"),
    }
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

#[test]
fn secrets_are_private_and_never_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let site = directory.path().join("nats");
    let config = NatsConfig::new(&site);
    let host = HostName::new("h1.example").unwrap();
    let now = Utc::now();
    assert!(matches!(config.add_host(&host, now), Err(Error::NotInitialized { .. })));
    config.init(&layout(&["b1", "b2", "b3"]), now).unwrap();
    config.add_host(&host, now).unwrap();
    let is_secret = |path: &Path| {
        path.extension()
            .is_some_and(|extension| ["nk", "creds", "key"].iter().any(|secret| extension == *secret))
    };
    let secrets = || -> Vec<(PathBuf, String)> {
        let files = files_below(&site).into_iter().filter(|path| is_secret(path));
        files.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
    };
    let before = secrets();
    assert_eq!(before.len(), 3 + 1 + 2 + 1 + 3 + 1, "{before:?}");
    for (path, _) in &before {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
    }
    config.init(&layout(&["b1", "b2", "b3"]), now).unwrap();
    assert!(matches!(config.add_host(&host, now), Err(Error::Exists { .. })));
    assert_eq!(secrets(), before);
}

#[test]
fn new_credentials_survive_the_revocation() {
    let directory = tempfile::tempdir().unwrap();
    let config = NatsConfig::new(directory.path());
    let host = HostName::new("h01").unwrap();
    let now = Utc::now();
    config.init(&layout(&["b1"]), now).unwrap();
    let unknown = config.revoke_host(&host, now).unwrap_err();
    assert!(matches!(unknown, Error::UnknownHost { .. }), "{unknown}");
    assert!(unknown.to_string().ends_with("`os-upgrade nats-config host h01` creates one"), "{unknown}");
    config.add_host(&host, now).unwrap();
    assert_eq!(claims::revoked(&config.account_of(&host).unwrap()), None);
    config.revoke_host(&host, now).unwrap();
    assert_eq!(claims::revoked(&config.account_of(&host).unwrap()), Some(now.timestamp()));
    let path = config.add_host(&host, now).unwrap();
    // The revocation is kept, or the old credentials would be valid again.
    assert_eq!(claims::revoked(&config.account_of(&host).unwrap()), Some(now.timestamp()));
    let credentials = CredentialsFile::read(&path).unwrap();
    assert_eq!(credentials.user().as_deref(), Some("h01"));
    let issued = claims::read(credentials.jwt()).unwrap()["iat"].as_i64().unwrap();
    assert_eq!(issued, now.timestamp() + 1);
    assert_eq!(config.accounts().unwrap().len(), 2);
}

#[test]
fn hosts_get_new_rights_and_stay_revoked() {
    let directory = tempfile::tempdir().unwrap();
    let config = NatsConfig::new(directory.path());
    let [h1, h2] = ["h.1", "h2"].map(|name| HostName::new(name).unwrap());
    let made = Utc::now();
    config.init(&layout(&["b1"]), made).unwrap();
    config.add_host(&h1, made).unwrap();
    config.add_host(&h2, made).unwrap();
    config.revoke_host(&h2, made).unwrap();
    let rights = |host: &HostName| {
        let claims = claims::read(&config.account_of(host).unwrap()).unwrap();
        (claims["sub"].clone(), claims["nats"]["imports"].clone())
    };
    let before = [rights(&h1), rights(&h2)];
    // As an earlier version made it.
    let key = files::read_key(&config.host_key(&h1)).unwrap();
    let older = claims::user(&key, h1.as_str(), &key, made).unwrap();
    write_public(&config.host_account(&h1), &older).unwrap();
    assert_ne!(rights(&h1), before[0]);
    config.init(&layout(&["b1"]), Utc::now()).unwrap();
    assert_eq!([rights(&h1), rights(&h2)], before);
    assert_eq!(claims::revoked(&config.account_of(&h2).unwrap()), Some(made.timestamp()));
}

#[test]
fn servers_advertise_their_certificate_names() {
    let directory = tempfile::tempdir().unwrap();
    let config = NatsConfig::new(directory.path());
    let layout = layout(&["b1", "b2:5:6", "b3"]);
    config.init(&layout, Utc::now()).unwrap();
    let text =
        |server: &Server| std::fs::read_to_string(config.server(server).join("nats-server.conf")).unwrap();
    for (server, [client, cluster]) in
        layout.servers.iter().zip([["b1:4222", "b1:6222"], ["b2:5", "b2:6"], ["b3:4222", "b3:6222"]])
    {
        let text = text(server);
        assert!(text.contains(&format!("client_advertise: \"{client}\"\n")), "{text}");
        assert!(text.contains(&format!(" advertise: \"{cluster}\"\n")), "{text}");
    }
}
