//! `os-upgrade machines`: the hosts that run units.

use clap::Subcommand;
use os_upgrade_api_types::routes::units::{MACHINES, Machines};

use super::options::Remote;
use crate::Failure;
use crate::output::{Canvas, View};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the hosts that run units, and whether they get any
    ///
    /// A host that runs units is a machine once it is approved with the machine id that it announces. A closed one keeps its units and gets no
    /// further one; the units of a lost one go elsewhere.
    #[command(after_help = examples!["machines list", "machines list -o json"])]
    List(Remote),
}

/// Carries the command out.
pub(super) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::List(remote) => {
            let list = remote.client()?.call(&MACHINES).await?;
            remote.output.show::<Machines<'_>>(&list)
        }
    }
}

impl View for Machines<'static> {
    fn text(&self, canvas: &Canvas) -> String {
        self.machines.text(canvas)
    }

    fn names(&self) -> Option<Vec<String>> {
        self.machines.names()
    }

    fn none(&self) -> Option<String> {
        self.machines.none()
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_console::Zone;
    use serde::Deserialize as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn machines_in_a_table() {
        let (id, other) = ("933fbdff1bdc4be0a7b64a9b58c3189d", "0f0e0d0c0b0a09080706050403020100");
        let list = json!({ "machines": [
            { "host": "h01", "id": id, "state": "open", "metadata": { "rack": "r1" }, "units": 3 },
            { "host": "h02", "state": "waiting", "text": "nobody has approved it", "announced": { "id": other }, "units": 0 },
            { "host": "h03", "id": other, "state": "lost", "silent-for": "2m", "text": "the machine is lost", "units": 0 },
        ]});
        let expected = "\
HOST  MACHINE   STATE    UNITS  SILENT  METADATA  WHY
h01   933fbdff  open     3              rack=r1
h02   0f0e0d0c  waiting  0                        nobody has approved it
h03   0f0e0d0c  lost     0      2m                the machine is lost";
        let canvas = Canvas { is_wide: false, columns: None, zone: Zone::Utc };
        assert_eq!(Machines::deserialize(list).unwrap().text(&canvas), expected);
        let none = Machines::deserialize(json!({ "machines": [] })).unwrap();
        assert!(none.none().unwrap().starts_with("no host runs units"));
    }
}
