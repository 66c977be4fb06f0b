//! An APT archive: a directory in the system with a signed package list.

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use ring::digest::{SHA256, digest};
use tempfile::TempDir;

use super::Tree;

/// The path of the archive in the system.
const PATH: &str = "srv/archive";
/// The path of the key that the system trusts.
const KEY: &str = "etc/apt/archive.gpg";
const SOURCES: &str = "etc/apt/sources.list";

/// A package to build.
#[derive(Debug, Clone)]
pub struct Package {
    name: String,
    version: String,
    fields: String,
    scripts: Vec<(String, String)>,
    files: Vec<(String, Vec<u8>)>,
    configuration: Vec<String>,
}

impl Package {
    /// A package with a file `/usr/share/NAME/version` and a configuration file `/etc/NAME.conf`, both of which contain
    /// its version.
    pub fn new(name: &str, version: &str) -> Self {
        let files = [format!("usr/share/{name}/version"), format!("etc/{name}.conf")];
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            fields: String::new(),
            scripts: Vec::new(),
            configuration: vec![files[1].clone()],
            files: files.map(|file| (file, format!("{version}\n").into_bytes())).to_vec(),
        }
    }

    /// Adds a field to its description, such as `Depends: foo`.
    #[must_use]
    pub fn field(mut self, line: &str) -> Self {
        writeln!(self.fields, "{line}").unwrap();
        self
    }

    /// Adds a script that dpkg runs, such as `postinst`.
    #[must_use]
    pub fn script(mut self, name: &str, body: &str) -> Self {
        self.scripts.push((name.to_owned(), format!("#!/bin/sh\nset -e\n{body}\n")));
        self
    }

    /// Adds a file.
    #[must_use]
    pub fn file(mut self, name: &str, content: Vec<u8>) -> Self {
        self.files.push((name.to_owned(), content));
        self
    }

    /// Makes one of its files a configuration file.
    #[must_use]
    pub fn configuration(mut self, name: &str) -> Self {
        self.configuration.push(name.to_owned());
        self
    }

    fn control(&self) -> String {
        format!(
            "Package: {}\nVersion: {}\nArchitecture: all\nMaintainer: Nobody <nobody@example.com>\nInstalled-Size: 10\n\
             {}Description: made for a test\n",
            self.name, self.version, self.fields
        )
    }

    /// Builds it in `directory`, and returns its entry of the package list.
    fn build(&self, directory: &Path) -> String {
        let build = tempfile::tempdir().unwrap();
        let control = build.path().join("DEBIAN");
        fs::create_dir(&control).unwrap();
        fs::write(control.join("control"), self.control()).unwrap();
        let configuration: Vec<String> = self.configuration.iter().map(|name| format!("/{name}\n")).collect();
        fs::write(control.join("conffiles"), configuration.concat()).unwrap();
        for (name, body) in &self.scripts {
            fs::write(control.join(name), body).unwrap();
            fs::set_permissions(control.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        for (name, content) in &self.files {
            let path = build.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let file = format!("{}_{}_all.deb", self.name, self.version);
        let deb = directory.join(&file);
        dpkg_deb(build.path(), &deb);
        let content = fs::read(&deb).unwrap();
        let size = content.len();
        format!("{}Filename: ./{file}\nSize: {size}\nSHA256: {}\n\n", self.control(), sha256(&content))
    }
}

/// Builds the package `deb` from a directory with its files, and its description in `DEBIAN`.
pub fn dpkg_deb(directory: &Path, deb: &Path) {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    let made = Command::new("dpkg-deb")
        .args(["-Zgzip", "-z1", "--root-owner-group", "--build"])
        .args([directory, deb])
        .stdout(Stdio::null())
        .status();
    assert!(made.unwrap().success(), "{}", deb.display());
}

/// The archive of a system, with the key that signs it.
#[derive(Debug)]
pub struct Archive {
    directory: PathBuf,
    keys: TempDir,
    /// What its Release file says of it.
    release: String,
    /// How often it was published. APT recognises a new list by its time in seconds.
    published: u64,
}

impl Archive {
    /// An empty archive as the only source of the system.
    pub fn new(tree: &Tree) -> Self {
        let directory = tree.path(PATH);
        fs::create_dir_all(&directory).unwrap();
        let mut this = Self {
            directory,
            keys: new_keys(),
            release: "Suite: test\nCodename: test".to_owned(),
            published: 0,
        };
        fs::write(tree.path(KEY), gpg(this.keys.path(), &["--export"], &[])).unwrap();
        this.set_as_source(tree);
        this.publish(&[]);
        this
    }

    /// Makes it the only source of the system.
    pub fn set_as_source(&self, tree: &Tree) {
        Self::set_source(tree, &format!("copy:/{PATH}"));
    }

    /// Makes `url` the only source of the system, signed with the same key.
    pub fn set_source(tree: &Tree, url: &str) {
        tree.write(SOURCES, &format!("{}\n", source(url)));
    }

    /// The same for one whose signature is not checked.
    pub fn set_trusted_source(tree: &Tree, url: &str) {
        tree.write(SOURCES, &format!("deb [trusted=yes] {url} ./\n"));
    }

    /// The same as [`Self::set_source`] in deb822 form.
    pub fn set_deb822_source(tree: &Tree, url: &str) {
        tree.write(SOURCES, "");
        let fields = format!("Types: deb\nURIs: {url}\nSuites: ./\nSigned-By: /{KEY}\n");
        tree.write("etc/apt/sources.list.d/archive.sources", &fields);
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Adds a source that is signed with the same key.
    pub fn add_source(tree: &Tree, url: &str) {
        let sources = tree.read(SOURCES);
        tree.write(SOURCES, &format!("{sources}{}\n", source(url)));
    }

    /// Replaces the packages by these.
    pub fn publish(&mut self, packages: &[Package]) {
        let list: String = packages.iter().map(|package| package.build(&self.directory)).collect();
        let file = self.directory.join("Packages");
        fs::write(&file, &list).unwrap();
        let release = format!(
            "{}\nDate: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n {} {} Packages\n",
            self.release,
            sha256(list.as_bytes()),
            list.len()
        );
        let signed = gpg(self.keys.path(), &["--clearsign"], release.as_bytes());
        fs::write(self.directory.join("InRelease"), signed).unwrap();
        self.published += 1;
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + self.published);
        for name in ["Packages", "InRelease"] {
            let file = fs::File::options().append(true).open(self.directory.join(name)).unwrap();
            file.set_modified(time).unwrap();
        }
    }

    /// Replaces the fields of its Release file that say what it is, from the next publication on.
    pub fn set_release(&mut self, fields: &str) {
        fields.clone_into(&mut self.release);
    }

    /// Signs with a new key from now on, which the system does not trust.
    pub fn change_key(&mut self) {
        self.keys = new_keys();
    }

    /// Makes the system trust the current key.
    pub fn trust_key(&self, tree: &Tree) {
        fs::write(tree.path(KEY), gpg(self.keys.path(), &["--export"], &[])).unwrap();
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        end_agent(self.keys.path());
    }
}

fn source(url: &str) -> String {
    format!("deb [signed-by=/{KEY}] {url} ./")
}

fn new_keys() -> TempDir {
    let keys = tempfile::tempdir().unwrap();
    fs::set_permissions(keys.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let name = "Nobody <nobody@example.com>";
    gpg(keys.path(), &["--passphrase", "", "--quick-generate-key", name, "ed25519", "sign", "never"], &[]);
    keys
}

fn gpg(home: &Path, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let given = tempfile::NamedTempFile::new().unwrap();
    fs::write(given.path(), input).unwrap();
    let output = Command::new("gpg")
        .args(["--batch", "--quiet", "--homedir"])
        .arg(home)
        .args(arguments)
        .stdin(fs::File::open(given.path()).unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "gpg: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn end_agent(home: &Path) {
    let _ = Command::new("gpgconf").arg("--homedir").arg(home).args(["--kill", "gpg-agent"]).status();
}

fn sha256(content: &[u8]) -> String {
    let mut text = String::new();
    for byte in digest(&SHA256, content).as_ref() {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}
