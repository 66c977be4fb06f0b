//! `os-upgrade units`: units of systemd on the hosts. They are read from their own resource, and changed with fleet's API v1-alpha.

mod change;
mod plan;
mod wait;

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand};
use os_upgrade_api_types::routes::units::{HISTORY, LIST, READ, Unit, UnitStatus, Units};
use os_upgrade_console::rows::histories::UnitDecision;
use os_upgrade_console::rows::units::{details, on_hosts};
use os_upgrade_protocol::text::sanitized;
use os_upgrade_scheduler::{UnitName, UnitState};
use serde::Deserialize;
use serde_json::{Value, json};

use super::completion;
use super::histories::{self, PageOptions};
use super::options::Remote;
use crate::Failure;
use crate::output::{self, Canvas, View, outln, table};

/// The width of the names of details.
const HEAD_COLUMNS: usize = 9;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the units, and where they run
    #[command(after_help = examples!["units list", "units list -o json"])]
    List(Remote),
    /// Submit unit files, without starting them
    ///
    /// The name of the file is that of the unit. The section [X-Fleet] says which machines suit it. A unit that is there already with other
    /// contents is refused: destroy it first.
    #[command(after_help = examples![
        "units submit ping.service pong.service --dry-run", "units submit ping.service pong.service", "units submit web@.service"
    ])]
    Submit(Submit),
    /// Show everything about a unit, and why each machine on which it is not cannot have it
    #[command(after_help = examples!["units show ping.service", "units show ping.service -o json"])]
    Show(One),
    /// Print the file of a unit, as it was submitted
    #[command(after_help = examples!["units cat ping.service"])]
    Cat(One),
    /// Show what systemd says of units on each host; of all without a NAME
    #[command(after_help = examples!["units status", "units status ping.service"])]
    Status(Selected),
    /// Place units on machines, where systemd loads them, without starting them
    #[command(after_help = examples!["units load ping.service"])]
    Load(Want),
    /// Place units on machines, and start them
    ///
    /// An instance of a template, such as web@1.service of web@.service, is submitted with it. With --wait the command ends once each unit is
    /// started, and with 1 if a unit is not after five minutes, or no machine can have it.
    #[command(after_help = examples![
        "units start ping.service pong.service --dry-run",
        "units start ping.service pong.service",
        "units start web@1.service web@2.service",
        "units start ping.service --wait",
    ])]
    Start(Want),
    /// Stop units, and leave them loaded on their machines
    #[command(after_help = examples!["units stop ping.service"])]
    Stop(Many),
    /// Stop units, and take them away from their machines
    #[command(after_help = examples!["units unload ping.service pong.service"])]
    Unload(Many),
    /// Stop units, and forget them and their files
    #[command(after_help = examples!["units destroy ping.service pong.service"])]
    Destroy(Many),
    /// Show who submitted, started, stopped and destroyed which unit, newest first
    #[command(after_help = examples!["units history", "units history --limit 10"])]
    History(PageOptions),
}

#[derive(Debug, Args)]
pub(crate) struct Submit {
    /// The unit files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Only check them, and show where each unit would run if it was started
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct One {
    /// The unit
    #[arg(value_name = "NAME", value_parser = UnitName::new, add = completion::units())]
    name: UnitName,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct Selected {
    /// The units
    #[arg(value_name = "NAME", value_parser = UnitName::new, add = completion::units())]
    names: Vec<UnitName>,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct Many {
    /// The units
    #[arg(value_name = "NAME", required = true, value_parser = UnitName::new, add = completion::units())]
    names: Vec<UnitName>,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct Want {
    /// Only show what would follow
    #[arg(long)]
    dry_run: bool,
    /// Wait until each unit is in that state, and show how far it is
    #[arg(long, conflicts_with = "dry_run")]
    wait: bool,
    #[command(flatten)]
    units: Many,
}

/// Carries the command out.
pub(super) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::List(remote) => {
            let list = remote.client()?.call(&LIST).await?;
            remote.output.show::<Units<'_>>(&list)
        }
        Command::Submit(Submit { files, dry_run, remote }) => {
            let units = change::read_files(&files)?;
            let client = remote.client()?;
            if dry_run {
                plan::submit(&client, units, remote.output).await
            } else {
                change::submit(&client, units, remote.output).await
            }
        }
        Command::Show(One { name, remote }) => {
            let unit = remote.client()?.call(READ.named([name.as_str()])).await?;
            remote.output.show::<Unit<'_>>(&unit)
        }
        Command::Cat(One { name, remote }) => {
            let unit = remote.client()?.call(READ.named([name.as_str()])).await?;
            if !remote.output.is_for_people() {
                return remote.output.show::<Unit<'_>>(&unit);
            }
            let Unit { contents, .. } = Unit::deserialize(&unit).context("unexpected response")?;
            outln!("{}", printable(contents.strip_suffix('\n').unwrap_or(&contents)));
            Ok(())
        }
        Command::Status(Selected { names, remote }) => status(&names, &remote).await,
        Command::Load(options) => want(options, UnitState::Loaded, "loaded").await,
        Command::Start(options) => want(options, UnitState::Launched, "started").await,
        Command::Stop(Many { names, remote }) => {
            let client = remote.client()?;
            change::lower(&client, &names, UnitState::Loaded, ("stopped", "not started"), remote.output).await
        }
        Command::Unload(Many { names, remote }) => {
            let client = remote.client()?;
            let words = ("unloaded", "not loaded");
            change::lower(&client, &names, UnitState::Inactive, words, remote.output).await
        }
        Command::Destroy(Many { names, remote }) => {
            change::destroy(&remote.client()?, &names, remote.output).await
        }
        Command::History(options) => histories::show::<UnitDecision>(options, HISTORY.call()).await,
    }
}

/// A unit file as it is, but for a terminal: there only line breaks and tabs may move the cursor.
fn printable(contents: &str) -> String {
    if !io::stdout().is_terminal() {
        return contents.to_owned();
    }
    let line = |line: &str| line.split('\t').map(sanitized).collect::<Vec<_>>().join("\t");
    contents.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Loads or starts units, or shows what would follow.
async fn want(options: Want, state: UnitState, done: &'static str) -> Result<(), Failure> {
    let Want { dry_run, wait, units: Many { names, remote } } = options;
    let client = remote.client()?;
    if dry_run {
        return plan::want(&client, &names, state, remote.output).await;
    }
    change::raise(&client, &names, state, (done, remote.output)).await?;
    if wait { wait::until(&client, &names, state, remote.output).await } else { Ok(()) }
}

/// Shows what systemd says of `names`, or of all units if there are none.
async fn status(names: &[UnitName], remote: &Remote) -> Result<(), Failure> {
    let list = remote.client()?.call(&LIST).await?;
    let units: Vec<Value> = list["units"].as_array().cloned().unwrap_or_default();
    let is_named = |unit: &Value, name: &UnitName| unit["name"].as_str() == Some(name.as_str());
    if let Some(name) = names.iter().find(|name| !units.iter().any(|unit| is_named(unit, name))) {
        return Err(anyhow!("there is no unit {name}").into());
    }
    let meant = |unit: &Value| names.is_empty() || names.iter().any(|name| is_named(unit, name));
    let meant: Vec<Value> = units.into_iter().filter(meant).collect();
    remote.output.show::<Reported>(&json!({ "units": meant }))
}

impl View for Units<'static> {
    fn text(&self, canvas: &Canvas) -> String {
        self.units.text(canvas)
    }

    fn names(&self) -> Option<Vec<String>> {
        self.units.names()
    }

    fn none(&self) -> Option<String> {
        self.units.none()
    }
}

impl View for Unit<'static> {
    fn text(&self, canvas: &Canvas) -> String {
        let details = output::details(details(self, canvas.zone), HEAD_COLUMNS);
        if self.not_on.is_empty() { details } else { format!("{details}\n\n{}", self.not_on.text(canvas)) }
    }
}

/// Units, with what systemd says of them on each host.
#[derive(Debug, Deserialize)]
struct Reported {
    units: Vec<UnitStatus<'static>>,
}

impl View for Reported {
    fn text(&self, canvas: &Canvas) -> String {
        table(&on_hosts(&self.units), canvas).trim_end().to_owned()
    }

    fn names(&self) -> Option<Vec<String>> {
        self.units.names()
    }

    fn none(&self) -> Option<String> {
        let is_none = self.units.iter().all(|unit| unit.on.is_empty());
        is_none.then(|| "no machine has any of them".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_api_types::body::Page;
    use os_upgrade_console::Zone;

    use super::*;

    const CANVAS: Canvas = Canvas { is_wide: false, columns: None, zone: Zone::Utc };
    const MACHINE: &str = "933fbdff1bdc4be0a7b64a9b58c3189d";

    fn unit(name: &str, on: &Value) -> Value {
        json!({
            "name": name, "desired": "launched", "current": "inactive", "on": on, "actor": "anna",
            "since": "2026-11-21T01:00:00Z",
        })
    }

    fn on(host: &str, more: &Value) -> Value {
        let mut on = json!({ "host": host, "machine": MACHINE });
        on.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        on
    }

    /// A site with a unit that runs, one that leaves, and one that no machine has.
    fn site() -> Value {
        let running = json!({ "state": "launched", "load": "loaded", "active": "active", "sub": "running" });
        let leaving = json!({ "leaving": true });
        let mut nowhere = unit("c.service", &json!([]));
        nowhere["unplaced"] = json!(true);
        let [a, b] = [on("h01", &running), on("h02", &leaving)];
        json!({ "units": [unit("a.service", &json!([a])), unit("b.service", &json!([b])), nowhere] })
    }

    #[test]
    fn units_in_a_table() {
        let expected = "\
UNIT       DESIRED   CURRENT   SYSTEMD         ON
a.service  launched  inactive  active/running  h01
b.service  launched  inactive                  h02 (leaving)
c.service  launched  inactive                  nowhere";
        assert_eq!(Units::deserialize(site()).unwrap().text(&CANVAS), expected);
    }

    #[test]
    fn what_systemd_says_is_shown_by_host() {
        let expected = "\
UNIT       HOST  MACHINE   LOAD    ACTIVE  SUB
a.service  h01   933fbdff  loaded  active  running
b.service  h02   933fbdff                           leaving";
        assert_eq!(Reported::deserialize(site()).unwrap().text(&CANVAS), expected);
        let nowhere = json!({ "units": [unit("c.service", &json!([]))] });
        assert!(Reported::deserialize(nowhere).unwrap().none().is_some());
    }

    #[test]
    fn the_history_says_what_was_done_with_which_unit() {
        let item = |actor: &str, fact: Value| {
            let (time, kind) = ("2026-11-21T01:00:00.000Z", fact["type"].clone());
            json!({ "sequence": 7, "place": 0, "time": time, "actor": actor, "type": kind, "fact": fact })
        };
        let wanted =
            json!({ "type": "unit-wanted", "name": "a.service", "state": "launched", "actor": "anna" });
        let submitted = json!({
            "type": "unit-submitted", "name": "a.service", "contents": "", "desired": "inactive", "actor": "eve",
        });
        let page = json!({ "items": [item("anna", wanted), item("eve", submitted)] });
        let expected = "\
TIME                  WHO   ACTION     UNIT
2026-11-21T01:00:00Z  anna  wanted     a.service launched
2026-11-21T01:00:00Z  eve   submitted  a.service";
        assert_eq!(Page::<UnitDecision>::deserialize(page).unwrap().text(&CANVAS), expected);
    }

    #[test]
    fn a_unit_says_why_machines_cannot_have_it() {
        let mut shown = unit("c.service", &json!([]));
        shown["unplaced"] = json!(true);
        shown["contents"] = json!("[Service]\n");
        shown["hash"] = json!("d9de01");
        let misfit =
            json!({ "host": "h01", "machine": MACHINE, "kind": "lost", "text": "the machine is lost" });
        shown["not-on"] = json!([misfit]);
        shown["ignored"] = json!([{ "line": 3, "name": "MachineIdd" }]);
        let expected = "\
unit:     c.service
desired:  launched since 2026-11-21T01:00:00Z, by anna
current:  inactive
on:       nowhere
hash:     d9de01
ignored:  MachineIdd in line 3: [X-Fleet] has no such option

NOT ON  MACHINE   WHY
h01     933fbdff  the machine is lost";
        assert_eq!(Unit::deserialize(shown).unwrap().text(&CANVAS), expected);
    }
}
