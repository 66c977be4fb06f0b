//! When files are reloaded, and the warnings about certificates that expire.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use os_upgrade_test_site::authority::Authority;
use tempfile::TempDir;

use super::*;

struct Site {
    directory: TempDir,
    authority: Authority,
    settings: ApiTls,
}

impl Site {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| Some(directory.path().join(name));
        let settings = ApiTls { cert: path("api.pem"), key: path("api.key"), client_ca: path("ca.pem") };
        let site = Self { directory, authority: Authority::new("one"), settings };
        site.write("ca.pem", &site.authority.pem);
        site.write_pair(&site.authority.certify("localhost"));
        site
    }

    fn write(&self, name: &str, content: &str) {
        let path = self.directory.path().join(name);
        // The file is replaced, not rewritten.
        let new = path.with_extension("new");
        fs::write(&new, content).unwrap();
        fs::rename(new, path).unwrap();
    }

    fn write_pair(&self, (cert, key): &(String, String)) {
        self.write("api.pem", cert);
        self.write("api.key", key);
    }

    fn tls(&self) -> Tls {
        Tls::from_settings(&self.settings).unwrap().unwrap()
    }

    fn refused(&self) -> String {
        let error = with_causes(&Tls::from_settings(&self.settings).unwrap_err());
        error.replace(&format!("{}/", self.directory.path().display()), "")
    }
}

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

#[test]
fn changes_are_loaded_once_stable() {
    let site = Site::new();
    let now = at("2026-11-21T12:00:00Z");
    let tls = site.tls();
    let mut follower = Follower::new(tls.clone());
    let first = Arc::clone(&tls.current.load());
    let mut reloads = || {
        let before = tls.current.load_full();
        follower.check(now);
        !Arc::ptr_eq(&before, &tls.current.load_full())
    };
    assert!(!reloads() && !reloads());
    // Nothing is loaded between certificate and key.
    let next = site.authority.certify("localhost");
    site.write("api.pem", &next.0);
    assert!(!reloads());
    site.write("api.key", &next.1);
    assert_eq!([reloads(), reloads(), reloads()], [false, true, false]);
    // Neither a bad pair nor a missing file replaces the current configuration; later good files do.
    site.write("api.key", &site.authority.certify("localhost").1);
    assert_eq!([reloads(), reloads(), reloads()], [false; 3]);
    fs::remove_file(site.directory.path().join("api.pem")).unwrap();
    assert_eq!([reloads(), reloads()], [false; 2]);
    site.write_pair(&site.authority.certify_until("localhost", 2025));
    assert_eq!([reloads(), reloads()], [false; 2], "it has expired");
    site.write("ca.pem", "no PEM");
    site.write_pair(&site.authority.certify("localhost"));
    assert_eq!([reloads(), reloads()], [false; 2]);
    site.write("ca.pem", &Authority::new("other").pem);
    assert_eq!([reloads(), reloads(), reloads()], [false, true, false]);
    assert!(!Arc::ptr_eq(&first, &tls.current.load()));
}

#[test]
fn expiring_certificates_are_warned_about() {
    let site = Site::new();
    site.write_pair(&site.authority.certify_until("localhost", 2027));
    let tls = site.tls();
    assert_eq!(tls.not_after(), at("2027-01-01T00:00:00Z"));
    assert_eq!(tls.expiry_warning(at("2026-12-17T23:59:59Z")), None);
    assert_eq!(
        tls.expiry_warning(at("2026-12-18T00:00:00Z")).unwrap(),
        "the API's certificate expires at 2027-01-01T00:00:00Z"
    );
    assert_eq!(
        tls.expiry_warning(at("2027-01-01T00:00:00Z")).unwrap(),
        "the API's certificate has expired at 2027-01-01T00:00:00Z: clients refuse it"
    );
}

#[test]
fn unusable_files_are_named() {
    let site = Site::new();
    let (cert, key) = site.authority.certify("localhost");
    site.write("api.key", &cert);
    assert_eq!(
        site.refused(),
        "api.key, the `key` of [api.tls], holds no private key in PEM; one that is encrypted cannot be used"
    );
    site.write("api.key", &site.authority.certify("localhost").1);
    assert!(
        site.refused().starts_with("api.key, the `key` of [api.tls], does not go with the certificate: ")
    );
    site.write_pair(&(cert, key));
    site.write("ca.pem", "");
    assert_eq!(site.refused(), "ca.pem, the `client-ca` of [api.tls], holds no certificate in PEM");
    site.write("ca.pem", &site.authority.pem);
    let authorities = site.directory.path().join("ca.pem");
    fs::set_permissions(&authorities, fs::Permissions::from_mode(0o664)).unwrap();
    assert_eq!(
        site.refused(),
        "ca.pem, the `client-ca` of [api.tls], can be written by others (mode 664): run chmod go-w on it, and check its \
         contents"
    );
    fs::remove_file(authorities).unwrap();
    let missing = "cannot read ca.pem, the `client-ca` of [api.tls]: No such file or directory (os error 2)";
    assert_eq!(site.refused(), missing);
    assert!(Tls::from_settings(&os_upgrade_settings::Settings::default().api_tls).unwrap().is_none());
}
