//! Units, machines, and what systemd says of units, as this instance knows them.

use axum::extract::Query;
use axum::http::Uri;
use axum::response::Response;
use os_upgrade_api_types::fleet::error::FleetError;
use os_upgrade_api_types::fleet::list::{ListQuery, Page};
use os_upgrade_api_types::fleet::machine::MachineBody;
use os_upgrade_api_types::fleet::shown::{ShownMachine, ShownUnit, Systemd};
use os_upgrade_api_types::fleet::v1_alpha::{Data, PageBody};
use os_upgrade_api_types::fleet::version::Version;
use os_upgrade_api_types::fleet::{v1, v1_alpha};
use os_upgrade_protocol::{HostName, UnitReport};
use os_upgrade_scheduler::{MachineId, UnitName};
use os_upgrade_site::published_state::PublishedState;

use super::path::unit_name;
use crate::context::Api;
use crate::http::error::Problem;
use crate::http::reply;

/// A page of the machines whose agents are heard.
pub(super) async fn machines(api: &Api, version: Version, uri: &Uri) -> Result<Response, Problem> {
    let query = query(uri)?;
    let published = api.published()?;
    let write = move || {
        let machines = published.state.units.machines.values();
        let mut machines: Vec<_> = machines.filter(|machine| machine.lost_since.is_none()).collect();
        machines.sort_by_key(|machine| machine.id);
        let page = Page::new(machines.into_iter(), query.page).map(|machine| {
            let (primary_ip, metadata) = (&machine.address, &machine.metadata);
            MachineBody::new(ShownMachine { id: &machine.id, primary_ip, metadata })
        });
        match version {
            Version::V1Alpha => serde_json::to_vec(&Data::<PageBody<_>>::from(page)),
            Version::V1 => serde_json::to_vec(&v1::MachinePage::from(page)),
        }
    };
    page(api, write).await
}

/// A page of the units.
pub(super) async fn units(api: &Api, version: Version, uri: &Uri) -> Result<Response, Problem> {
    let query = query(uri)?;
    let published = api.published()?;
    let write = move || {
        let names = published.state.units.existing().map(|(name, _)| name);
        let Page { items, next } = Page::new(names, query.page);
        let units = items.into_iter().filter_map(|name| shown(&published, name));
        let page = Page { items: units.collect(), next };
        match version {
            Version::V1Alpha => {
                let page = page.map(|unit| v1_alpha::UnitBody::new(&unit));
                serde_json::to_vec(&Data::<PageBody<_>>::from(page))
            }
            Version::V1 => {
                let page = page.map(|unit| v1::UnitBody::new(&unit));
                serde_json::to_vec(&v1::UnitPage::from(page))
            }
        }
    };
    page(api, write).await
}

/// One unit.
pub(super) fn unit(api: &Api, version: Version, uri: &Uri) -> Result<Response, Problem> {
    let published = api.published()?;
    let name = UnitName::new(&unit_name(uri)).map_err(|_| FleetError::UnknownUnit)?;
    let unit = shown(&published, &name).ok_or(FleetError::UnknownUnit)?;
    match version {
        Version::V1Alpha => reply::json(&Data::new(v1_alpha::UnitBody::new(&unit))),
        Version::V1 => reply::json(&v1::UnitBody::new(&unit)),
    }
}

/// A page of what systemd says of units on machines, those included that are destroyed and still there.
pub(super) async fn states(api: &Api, uri: &Uri) -> Result<Response, Problem> {
    let query = query(uri)?;
    let published = api.published()?;
    let write = move || {
        let names = published.state.units.units.keys();
        let reports = names.flat_map(|name| reports(&published, name));
        let reports = reports.filter(|report| query.matches(report.name.as_str(), report.machine.as_str()));
        let page = Page::new(reports, query.page);
        let page = page.map(|report| v1::StateBody::new(report.name, &report.systemd(&published)));
        serde_json::to_vec(&v1::StatePage::from(page))
    };
    page(api, write).await
}

/// What systemd says of one unit.
pub(super) fn state(api: &Api, uri: &Uri) -> Result<Response, Problem> {
    let published = api.published()?;
    let name = UnitName::new(&unit_name(uri)).map_err(|_| FleetError::UnknownState)?;
    let report = reports(&published, &name).into_iter().next().ok_or(FleetError::UnknownState)?;
    reply::json(&v1::StateBody::new(report.name, &report.systemd(&published)))
}

fn query(uri: &Uri) -> Result<ListQuery, Problem> {
    let parameters = Query::<Vec<(String, String)>>::try_from_uri(uri);
    let Query(parameters) = parameters.map_err(|error| Problem::bad_request(error.body_text()))?;
    ListQuery::read(&parameters).map_err(|error| FleetError::from(error).into())
}

/// A page that `write` produces. A small site has large ones, too: 100 units of 64 KiB each.
async fn page(
    api: &Api,
    write: impl FnOnce() -> serde_json::Result<Vec<u8>> + Send + 'static,
) -> Result<Response, Problem> {
    let written = api.apart(write).await?;
    written.map(reply::json_bytes).map_err(|error| Problem::internal(error.to_string()))
}

/// The unit `name`, unless it is destroyed.
fn shown<'a>(published: &'a PublishedState, name: &'a UnitName) -> Option<ShownUnit<'a>> {
    let PublishedState { state, view, .. } = published;
    let unit = state.units.unit(name)?;
    let report = reports(published, name).into_iter().next();
    Some(ShownUnit {
        name,
        file: &unit.file,
        desired: unit.desired,
        current: state.current_state(view, name),
        target: state.target(name).map(|machine| &machine.id),
        systemd: report.map(|report| report.systemd(published)),
    })
}

/// What a host reports of a unit.
struct Report<'a> {
    name: &'a UnitName,
    host: &'a HostName,
    machine: &'a MachineId,
    /// Whether it is only there until it has stopped.
    is_leaving: bool,
    words: &'a UnitReport,
}

/// What machines that are not lost report of the unit `name`, those first on which it belongs.
fn reports<'a>(published: &'a PublishedState, name: &'a UnitName) -> Vec<Report<'a>> {
    let PublishedState { state, view, .. } = published;
    let Some(unit) = state.units.units.get(name) else { return Vec::new() };
    let reports = state.unit_report(view, name).into_iter().filter_map(|(host, words)| {
        // Clients look up the machine of each report in the list of machines.
        state.units.machines.get(host).filter(|machine| machine.lost_since.is_none())?;
        let standing = unit.on.get(host)?;
        let is_leaving = standing.leaving.is_some();
        Some(Report { name, host, machine: &standing.machine, is_leaving, words })
    });
    let mut reports: Vec<Report<'_>> = reports.collect();
    reports.sort_by_key(|report| report.is_leaving);
    reports
}

impl<'a> Report<'a> {
    fn systemd(&self, published: &'a PublishedState) -> Systemd<'a> {
        let UnitReport { load, active, sub, state: _ } = self.words;
        let PublishedState { state, view, .. } = published;
        // Of another item it is not known which options are loaded there.
        let in_force = state.unit_in_force(view, self.host, self.name);
        let unit = in_force.and_then(|_| state.units.units.get(self.name));
        let hash = unit.map(|unit| unit.file.options_hash());
        Systemd { load, active, sub, machine: self.machine, hash }
    }
}
