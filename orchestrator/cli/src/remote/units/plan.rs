//! What would follow from a change of units. Nothing is changed.

use anyhow::Context as _;
use os_upgrade_api_types::routes::units::{PLAN, PlanUnit, UnitPlan};
use os_upgrade_api_types::word::UnitStep;
use os_upgrade_console::rows::units;
use os_upgrade_protocol::text::sanitized;
use os_upgrade_scheduler::{UnitName, UnitState};
use serde::Deserialize as _;

use super::change::{Submitted, contents_of_new};
use crate::Failure;
use crate::output::{Canvas, Output, View as _};
use crate::rest::Client;

/// Shows where each of `units` would run if it was submitted and started. Templates never run.
pub(super) async fn submit(client: &Client, units: Vec<Submitted>, output: Output) -> Result<(), Failure> {
    for Submitted { name, contents } in units {
        let desired = (!name.is_template()).then_some(UnitState::Launched);
        show(client, &name, &PlanUnit { contents: Some(contents), desired }, output).await?;
    }
    Ok(())
}

/// Shows what would follow if units were to be in `state`.
pub(super) async fn want(
    client: &Client,
    names: &[UnitName],
    state: UnitState,
    output: Output,
) -> Result<(), Failure> {
    for name in names {
        let contents = contents_of_new(client, name).await.map_err(Failure::unchanged)?;
        show(client, name, &PlanUnit { contents, desired: Some(state) }, output).await?;
    }
    Ok(())
}

async fn show(client: &Client, name: &UnitName, body: &PlanUnit, output: Output) -> Result<(), Failure> {
    let answer = client.call_with_body(PLAN.named([name.as_str()]), body).await?;
    let plan = UnitPlan::deserialize(&answer).context("unexpected response")?;
    output.show_one_of_many(&answer, |_| text(name, &plan, &output.canvas()))
}

/// What would follow, a line for each, and why no machine could have the unit if none would.
fn text(name: &UnitName, plan: &UnitPlan<'static>, canvas: &Canvas) -> String {
    let mut lines: Vec<String> = units::plan(plan).iter().map(|line| sanitized(line)).collect();
    if lines.is_empty() {
        lines.push(format!("{name}: nothing would change"));
    }
    let is_placed = plan
        .changes
        .iter()
        .any(|change| change.unit == name.as_str() && change.kind.is(|kind| kind == UnitStep::UnitPlaced));
    if !is_placed && !plan.not_on.is_empty() {
        lines.push(plan.not_on.text(canvas));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use os_upgrade_console::Zone;
    use serde_json::json;

    use super::*;

    #[test]
    fn plans_list_changes_in_order() {
        let canvas = Canvas { is_wide: false, columns: None, zone: Zone::Utc };
        let name = UnitName::new("a.service").unwrap();
        let shown = |plan: serde_json::Value| text(&name, &UnitPlan::deserialize(plan).unwrap(), &canvas);
        let misfit = json!({
            "host": "h02", "machine": "933fbdff1bdc4be0a7b64a9b58c3189d", "kind": "lost", "text": "the machine is lost",
        });
        let placed = json!({
            "changes": [
                { "kind": "unit-submitted", "unit": "a.service" },
                {
                    "kind": "unit-taken", "unit": "b.service", "hosts": ["h01"], "why": "replaced-by",
                    "text": "a.service replaces it",
                },
                { "kind": "unit-placed", "unit": "a.service", "hosts": ["h01"] },
            ],
            "not-on": [misfit],
        });
        let expected = "\
a.service would be submitted
b.service would be taken away from h01: a.service replaces it
a.service would run on h01";
        assert_eq!(shown(placed), expected);
        let nowhere = json!({ "changes": [{ "kind": "unit-wanted", "unit": "a.service", "desired": "launched" }], "not-on": [misfit] });
        let expected = "\
a.service is to be launched
NOT ON  MACHINE   WHY
h02     933fbdff  the machine is lost";
        assert_eq!(shown(nowhere), expected);
        assert_eq!(shown(json!({ "changes": [], "not-on": [] })), "a.service: nothing would change");
    }
}
