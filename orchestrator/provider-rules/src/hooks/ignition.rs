//! Configurations of Ignition 3, as far as they are files with their contents inline. Whatever else a configuration asks for is refused
//! by name: a host that gets half of it is worse than one that gets none.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::mem;

use data_url::DataUrl;
use data_url::forgiving_base64::DecodeError;
use ignition_config::{Config, Error, Warning, v3_6};
use os_upgrade_protocol::limits::ITEM_BYTES_MAX;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use zeroize::Zeroizing;

use super::given::GivenFile;
use crate::content::ContentBytes;
use crate::failure::ConfigurationProblem;

/// The most files of a configuration.
pub const FILES_MAX: usize = 256;
/// The longest name of an unknown key that is told.
const KEY_BYTES_MAX: usize = 64;
const DATA: &str = "data:";
/// The longest configuration, in bytes: contents may be escaped byte for byte, and there are paths beside them.
const JSON_BYTES_MAX: usize = 3 * ITEM_BYTES_MAX + FILES_MAX * 4096;

/// The files of the configuration `json`, and their contents.
pub(super) fn read_ignition(json: &str) -> Result<(Vec<GivenFile>, ContentBytes), ConfigurationProblem> {
    check_size(json)?;
    let files = supported(parse(json)?)?;
    if files.is_empty() {
        return Err(ConfigurationProblem::NoFiles);
    }
    let source = |file: &v3_6::File| file.contents.as_ref()?.source.as_ref().map(String::len);
    // No content is longer than its URL. A vector that grows leaves copies of it behind.
    let length: usize = files.iter().filter_map(source).sum();
    let mut bytes: Zeroizing<Vec<u8>> = Zeroizing::new(Vec::with_capacity(length.min(ITEM_BYTES_MAX)));
    let mut paths = BTreeSet::new();
    let mut given = Vec::with_capacity(files.len());
    for (number, file) in (1..).zip(files) {
        let file = read_file(number, file, &mut bytes)?;
        if !paths.insert(file.path.clone()) {
            return Err(ConfigurationProblem::DuplicatePath { file: number });
        }
        given.push(file);
    }
    Ok((given, ContentBytes::new(mem::take::<Vec<u8>>(&mut bytes))))
}

/// Refuses what would take too much memory once it is parsed.
fn check_size(json: &str) -> Result<(), ConfigurationProblem> {
    #[derive(Deserialize)]
    struct Counted {
        storage: Option<Storage>,
    }
    #[derive(Deserialize)]
    struct Storage {
        files: Option<Vec<IgnoredAny>>,
    }
    if json.len() > JSON_BYTES_MAX {
        return Err(ConfigurationProblem::TooLarge { limit: ITEM_BYTES_MAX });
    }
    // What is wrong with another form is said when it is parsed.
    let counted: Option<Counted> = serde_json::from_str(json).ok();
    let files = counted.and_then(|counted| counted.storage?.files).map_or(0, |files| files.len());
    if files > FILES_MAX { Err(ConfigurationProblem::TooManyFiles { limit: FILES_MAX }) } else { Ok(()) }
}

/// Parses a configuration of any known version, as one of the last: each version has what the earlier ones have.
fn parse(json: &str) -> Result<v3_6::Config, ConfigurationProblem> {
    let (config, unknown) = Config::parse_str(json).map_err(|error| match error {
        Error::Serialization(error) => malformed(&error),
        Error::InvalidVersion(_) | Error::UnknownVersion(_) => ConfigurationProblem::IgnitionVersion,
        _ => ConfigurationProblem::Ignition { line: 1, column: 0 },
    })?;
    match config {
        Config::V3_0(_)
        | Config::V3_1(_)
        | Config::V3_2(_)
        | Config::V3_3(_)
        | Config::V3_4(_)
        | Config::V3_5(_)
        | Config::V3_6(_) => {}
        // The types of 3.6 would not have all of its keys.
        _ => return Err(ConfigurationProblem::IgnitionVersion),
    }
    if let Some(warning) = unknown.first() {
        return Err(ConfigurationProblem::Unsupported { key: unknown_key(warning) });
    }
    drop(config);
    serde_json::from_str(json).map_err(|error| malformed(&error))
}

fn malformed(error: &serde_json::Error) -> ConfigurationProblem {
    ConfigurationProblem::Ignition { line: error.line(), column: error.column() }
}

/// The name of a key that Ignition does not have, such as `storage.files.contnets`, if it looks like one.
fn unknown_key(warning: &Warning) -> Cow<'static, str> {
    let path = match warning {
        Warning::UnusedKey(path) => path.as_str(),
        _ => "",
    };
    let is_index = |segment: &str| segment.bytes().all(|byte| byte.is_ascii_digit());
    let segments: Vec<&str> =
        path.split('.').filter(|segment| *segment != "$" && !is_index(segment)).collect();
    let key = segments.join(".");
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if (1..=KEY_BYTES_MAX).contains(&key.len()) && key.bytes().all(is_name) {
        key.into()
    } else {
        "a key that is not Ignition's".into()
    }
}

/// The files of a configuration that has nothing else.
fn supported(config: v3_6::Config) -> Result<Vec<v3_6::File>, ConfigurationProblem> {
    let v3_6::Config { ignition, kernel_arguments, passwd, storage, systemd } = config;
    let v3_6::Ignition { config, proxy, security, timeouts, version: _ } = ignition;
    let v3_6::Storage { directories, disks, files, filesystems, links, luks, raid } =
        storage.unwrap_or_default();
    refuse("ignition.config", config.as_ref())?;
    refuse("ignition.proxy", proxy.as_ref())?;
    refuse("ignition.security", security.as_ref())?;
    refuse("ignition.timeouts", timeouts.as_ref())?;
    refuse("kernelArguments", kernel_arguments.as_ref())?;
    refuse("passwd", passwd.as_ref())?;
    refuse("storage.directories", directories.as_ref())?;
    refuse("storage.disks", disks.as_ref())?;
    refuse("storage.filesystems", filesystems.as_ref())?;
    refuse("storage.links", links.as_ref())?;
    refuse("storage.luks", luks.as_ref())?;
    refuse("storage.raid", raid.as_ref())?;
    refuse("systemd", systemd.as_ref())?;
    Ok(files.unwrap_or_default())
}

/// Reads the file with that number, and adds its content to `bytes`. A host replaces files whatever `overwrite` says.
fn read_file(
    number: usize,
    file: v3_6::File,
    bytes: &mut Vec<u8>,
) -> Result<GivenFile, ConfigurationProblem> {
    let v3_6::File { append, contents, group, mode, overwrite: _, path, user } = file;
    let v3_6::Resource { compression, http_headers, source, verification } = contents.unwrap_or_default();
    let v3_6::NodeUser { id: user_id, name: user } = user.unwrap_or_default();
    let v3_6::NodeGroup { id: group_id, name: group } = group.unwrap_or_default();
    refuse("storage.files.append", append.as_ref())?;
    refuse("storage.files.contents.compression", compression.as_ref())?;
    refuse("storage.files.contents.httpHeaders", http_headers.as_ref())?;
    refuse("storage.files.contents.verification", verification.as_ref())?;
    refuse("storage.files.user.id", user_id.as_ref())?;
    refuse("storage.files.group.id", group_id.as_ref())?;
    let before = bytes.len();
    let source = Zeroizing::new(source.unwrap_or_default());
    append_source(number, &source, bytes)?;
    let named = |name: &String| !name.is_empty();
    let (user, group) = (user.filter(named), group.filter(named));
    GivenFile::new(number, path, mode, user, group, bytes.len() - before)
}

/// Refuses the part `key` if it says something.
fn refuse<T: Serialize>(key: &'static str, part: Option<&T>) -> Result<(), ConfigurationProblem> {
    let is_silent = |part: &T| serde_json::to_value(part).is_ok_and(|value| says_nothing(&value));
    if part.is_none_or(is_silent) {
        Ok(())
    } else {
        Err(ConfigurationProblem::Unsupported { key: Cow::Borrowed(key) })
    }
}

/// Whether there is nothing but empty parts. Programs in Go write them for what is not set, such as `"passwd": {}`.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.iter().all(says_nothing),
        Value::Object(values) => values.values().all(says_nothing),
    }
}

/// Adds what the URL `source` holds to `bytes`; an empty one stands for an empty file.
fn append_source(file: usize, source: &str, bytes: &mut Vec<u8>) -> Result<(), ConfigurationProblem> {
    if source.is_empty() {
        return Ok(());
    }
    if !source.get(..DATA.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(DATA)) {
        return Err(ConfigurationProblem::Source { file });
    }
    let malformed = ConfigurationProblem::DataUrl { file };
    // A parser of URLs drops them without a word.
    if source.contains(char::is_control) || source.ends_with(' ') {
        return Err(malformed);
    }
    let Ok(url) = DataUrl::process(source) else { return Err(malformed) };
    let decoded = url.decode(|chunk| {
        if bytes.len() + chunk.len() > ITEM_BYTES_MAX {
            return Err(ConfigurationProblem::TooLarge { limit: ITEM_BYTES_MAX });
        }
        bytes.extend_from_slice(chunk);
        Ok(())
    });
    match decoded {
        Ok(None) => Ok(()),
        // What follows a `#` would be lost.
        Ok(Some(_)) | Err(DecodeError::InvalidBase64(_)) => Err(malformed),
        Err(DecodeError::WriteError(problem)) => Err(problem),
    }
}

#[cfg(test)]
mod tests;
