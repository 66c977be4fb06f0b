//! Commands that people copy: names in them are quoted for a shell, as any client of the bus can announce a name.

use std::borrow::Cow;

/// A name, quoted for a shell if necessary: any client of the bus can announce a name that operators then copy.
pub fn quoted(name: &str) -> Cow<'_, str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if name.bytes().all(plain) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("'{}'", name.replace('\'', r"'\''")))
}

/// Like [`quoted`], with a `--` before a name that looks like an option.
pub fn shell_word(name: &str) -> Cow<'_, str> {
    if name.starts_with('-') { Cow::Owned(format!("-- {}", quoted(name))) } else { quoted(name) }
}

/// The command that stores the secret `name`.
pub(crate) fn strongbox_put(name: &str) -> String {
    format!("os-upgrade strongbox put {}", shell_word(name))
}

/// The command that stores the secret `name` for a provider whose URL has this `origin`.
pub(crate) fn strongbox_put_for(origin: &str, name: &str) -> String {
    format!("os-upgrade strongbox put --origin={} {}", quoted(origin), shell_word(name))
}

/// The command that releases the slot of `id` in `group`, without its reason.
pub fn lock_release(group: &str, id: &str) -> String {
    format!("os-upgrade lock release --group={} --id={}", quoted(group), quoted(id))
}

/// The same with its reason, which is to be filled in.
pub fn lock_release_with_reason(group: &str, id: &str) -> String {
    format!("{} --reason=TEXT", lock_release(group, id))
}

/// The command that has the node of `host` uncordoned, to be copied. The name comes last, as it may look like an option.
pub fn hosts_uncordon(host: &str) -> String {
    format!("os-upgrade hosts uncordon --reason=TEXT {}", shell_word(host))
}
