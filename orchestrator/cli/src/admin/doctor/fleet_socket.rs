//! The Unix socket for fleet's clients: its directory, its file, its group and mode.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use os_upgrade_platform::data_directory;
use os_upgrade_platform::local_socket::{self, MODE};
use os_upgrade_protocol::error::with_causes;
use os_upgrade_settings::{Settings, Text};

use super::check::Check;

const NAME: &str = "socket for fleet";

/// The socket, if one is configured.
pub(super) fn examine(settings: &Settings) -> Option<Check> {
    let path = settings.api.fleet_socket.as_deref()?;
    let group = settings.api.fleet_socket_group.as_ref().map(Text::as_str);
    Some(match local_socket::group_id(group) {
        Err(error) => {
            let advice = "create the group with `groupadd --system`, or correct [api] fleet-socket-group";
            Check::problem(NAME, with_causes(&error), advice)
        }
        // Without a name it is the group of the service, which may be another than that of whoever asks.
        Ok(id) => file(path, group.map(|_| id), data_directory::user(&settings.store.path)),
    })
}

/// The file at `path`, which is to belong to `group`; `process` is the orchestrator that runs.
fn file(path: &Path, group: Option<u32>, process: Option<u32>) -> Check {
    let shown = path.display();
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return missing(path, process),
        Err(error) => {
            let advice = "run doctor as the user of the orchestrator, or as root";
            return Check::warning(NAME, format!("{shown}: {error}"), advice);
        }
    };
    if !found.file_type().is_socket() {
        let advice = "move it away, or correct [api] fleet-socket";
        return Check::problem(NAME, format!("{shown} is not a socket"), advice);
    }
    let (mode, owner) = (found.mode() & 0o7777, found.gid());
    if mode != MODE || group.is_some_and(|group| group != owner) {
        let found = format!("{shown} has mode {mode:03o} and group {owner}");
        let advice =
            "restart the orchestrator, which sets mode 660 and the group of [api] fleet-socket-group";
        return Check::warning(NAME, found, advice);
    }
    Check::ok(NAME, format!("{shown} is open to its user and group {owner} (mode {mode:03o})"))
}

fn missing(path: &Path, process: Option<u32>) -> Check {
    let shown = path.display();
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    if directory.is_some_and(|directory| !directory.is_dir()) {
        // systemd removes it with the service.
        let found = format!("{shown} has no directory");
        let advice = "create it; the unit creates /run/os-upgrade at each start, and removes it when the service stops";
        return Check::warning(NAME, found, advice);
    }
    match process {
        None => Check::ok(NAME, format!("{shown} is made when the orchestrator starts")),
        Some(process) => {
            let found = format!("process {process} runs, and {shown} does not exist");
            Check::problem(NAME, found, "restart the orchestrator, which makes it at its start")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::admin::doctor::check::Verdict;

    #[test]
    fn socket_without_one_is_not_examined() {
        assert_eq!(examine(&Settings::default()), None);
    }

    #[test]
    fn unknown_group_is_a_problem() {
        let text = "[api]\nfleet-socket = \"s\"\nfleet-socket-group = \"no-such-group\"\n";
        let check = examine(&os_upgrade_settings::parse(None, text, []).unwrap()).unwrap();
        assert_eq!(
            (check.verdict, check.found.as_str()),
            (Verdict::Problem, "there is no group no-such-group")
        );
    }

    #[test]
    fn files_are_examined() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "").unwrap();
        let _socket = UnixListener::bind(at("open")).unwrap();
        let _other = UnixListener::bind(at("closed")).unwrap();
        let set_mode = |name, mode| fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        set_mode("open", 0o660);
        set_mode("closed", 0o777);
        let own = fs::metadata(at("open")).unwrap().gid();
        let open = format!("open is open to its user and group {own} (mode 660)");
        for (name, group, process, verdict, found) in [
            ("open", Some(own), Some(7), Verdict::Ok, open.clone()),
            ("open", None, Some(7), Verdict::Ok, open),
            ("open", Some(own + 1), Some(7), Verdict::Warning, format!("open has mode 660 and group {own}")),
            ("closed", Some(own), Some(7), Verdict::Warning, format!("closed has mode 777 and group {own}")),
            ("file", None, Some(7), Verdict::Problem, "file is not a socket".to_owned()),
            ("none", None, None, Verdict::Ok, "none is made when the orchestrator starts".to_owned()),
            ("none", None, Some(7), Verdict::Problem, "process 7 runs, and none does not exist".to_owned()),
            ("no/s", None, None, Verdict::Warning, "no/s has no directory".to_owned()),
        ] {
            let check = file(&at(name), group, process);
            let prefix = format!("{}/", directory.path().display());
            assert_eq!((check.verdict, check.found.replace(&prefix, "")), (verdict, found), "{name}");
            assert_eq!(check.advice.is_some(), verdict != Verdict::Ok, "{name}");
        }
    }
}
