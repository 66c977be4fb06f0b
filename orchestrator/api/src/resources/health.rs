//! `/healthz` and `/readyz`, for supervisors and load balancers.

use std::borrow::Cow;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use chrono::Utc;
use os_upgrade_api_types::query::NoParameters;
use os_upgrade_api_types::routes::health::{HEALTHY, Health, READY, Ready, ZoneData};
use os_upgrade_shell::instance::Leadership;
use os_upgrade_site::instances::Role;
use os_upgrade_site::published_state::Readiness;
use serde_json::json;

use crate::context::Api;
use crate::http::error::{Problem, Routine};
use crate::http::extract::Params;
use crate::http::reply;
use crate::routes::Routes;

pub(crate) fn routes() -> Routes {
    Routes::default().route(&HEALTHY, healthy).route(&READY, ready)
}

async fn healthy(Params(NoParameters {}): Params<NoParameters>) -> Result<Response, Problem> {
    reply::json(&Health { healthy: true })
}

async fn ready(
    State(api): State<Api>,
    Params(NoParameters {}): Params<NoParameters>,
) -> Result<Response, (Extension<Routine>, Problem)> {
    let published = api.site.published();
    if let Some(sealed) = published.view.sealed.clone() {
        return Err((Extension(Routine), sealed.into()));
    }
    match &published.readiness {
        Readiness::Ready => {
            let (role, leader) = match &published.leadership {
                Leadership::Here(me) => (Some(Role::Leader.as_str()), Some(me.instance.as_str())),
                Leadership::At(leader) => (Some(Role::Follower.as_str()), Some(leader.instance.as_str())),
                Leadership::Unknown => (None, None),
            };
            let zones = &published.view.zones;
            let ready = Ready {
                ready: true,
                role: role.map(Cow::from),
                leader: leader.map(Cow::from),
                history_behind: Some(api.history_behind()).filter(|behind| *behind > 0),
                changed_setting: published.changed_setting.as_deref().map(Cow::from),
                sealed: api.options.strongbox.sealed(&published.state.strongbox).is_some(),
                zone_data: ZoneData {
                    version: zones.version().map(Cow::from),
                    source: zones.source().as_str().into(),
                    old: zones.old(Utc::now()).map(|old| old.to_string()),
                },
            };
            reply::json(&ready).map_err(|problem| (Extension(Routine), problem))
        }
        Readiness::NotReady(why) => Err((Extension(Routine), Problem::unavailable(why.clone()))),
        Readiness::Halted { kind, why } => {
            let problem = Problem::unavailable(why.clone()).with_info(json!({ "kind": kind }));
            Err((Extension(Routine), problem))
        }
    }
}
