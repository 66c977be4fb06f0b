//! The configuration of the site that `os-upgrade dev` runs: `dev` leaves it in its data directory, where `doctor` finds it.

use std::io;
use std::path::{Path, PathBuf};

use os_upgrade_platform::{data_directory, plain_file};
use os_upgrade_settings::{NatsMode, Settings};
use serde_json::{Map, Value, json};

use crate::contexts::replace;

/// The data directory of `os-upgrade dev`, below the current directory, unless another is chosen.
pub const DATA_DIRECTORY: &str = "data/dev";

/// The file with the configuration of the site in this data directory.
pub fn file(data_directory: &Path) -> PathBuf {
    data_directory.join("os-upgrade.toml")
}

/// Writes those of the `settings` that `dev` has chosen into their data directory, readable by this user only.
///
/// # Errors
/// They cannot be written.
pub fn write(settings: &Settings) -> io::Result<()> {
    let absolute = |path: &Path| std::path::absolute(path).map(|path| path.display().to_string());
    let mut nats = Map::new();
    if let NatsMode::External { urls, .. } = settings.nats.mode() {
        nats.insert("url".to_owned(), Value::from(urls.servers().join(",")));
    }
    let access = settings.nats.access();
    let files = [
        ("credentials", access.credentials),
        ("ca", access.ca),
        ("certificate", access.certificate),
        ("key", access.key),
    ];
    for (key, file) in files {
        if let Some(file) = file {
            nats.insert(key.to_owned(), Value::from(absolute(&file)?));
        }
    }
    let document = json!({
        "site": { "auto-approve": settings.site.auto_approve },
        "store": { "path": absolute(&settings.store.path)? },
        "api": { "listen": settings.api.listen },
        "nats": nats,
    });
    replace(&file(&settings.store.path), &toml::to_string(&document).map_err(io::Error::other)?)
}

/// The configuration of the site that runs in [`DATA_DIRECTORY`]; `None` if none runs there, or if others can write the
/// file.
pub(crate) fn running() -> Option<PathBuf> {
    let directory = Path::new(DATA_DIRECTORY);
    data_directory::user(directory)?;
    let path = file(directory);
    let (_, metadata) = plain_file::open(&path).ok()?;
    plain_file::check_writers(&metadata, plain_file::examiner()).ok()?;
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choices_of_dev_are_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let environment = [
            ("OS_UPGRADE_STORE__PATH", directory.path().to_str().unwrap()),
            ("OS_UPGRADE_SITE__AUTO_APPROVE", "true"),
            ("OS_UPGRADE_API__LISTEN", "127.0.0.1:1"),
            ("OS_UPGRADE_NATS__URL", "nats://me:secret@h:1,nats://h:2"),
            ("OS_UPGRADE_NATS__CREDENTIALS", "/my \"own\".creds"),
        ];
        let environment = environment.map(|(name, value)| (name.into(), value.into()));
        let settings = os_upgrade_settings::load(None, environment).unwrap();
        write(&settings).unwrap();
        let path = file(directory.path());
        assert_eq!(os_upgrade_settings::load(Some(&path), []).unwrap(), settings);
        let managed = Settings { nats: Settings::default().nats, ..settings };
        write(&managed).unwrap();
        assert_eq!(os_upgrade_settings::load(Some(&path), []).unwrap(), managed);
    }
}
