//! How an operator releases the slot of a host that will not give it back.

use os_upgrade_kernel::reason::quoted;

/// The command that releases the slot of `id` in `group`, to be copied.
pub(super) fn command(group: &str, id: &str) -> String {
    format!("os-upgrade lock release --group={} --id={} --reason=TEXT", quoted(group), quoted(id))
}
