//! `/v1/state/os-upgrade/hosts/{hostname}/drain-preview`: what the drain of a host's Kubernetes node would do.

use std::borrow::Cow;

use axum::extract::State;
use axum::response::Response;
use os_upgrade_api_types::query::NoParameters;
use os_upgrade_api_types::routes::drains::{PREVIEW, PodName, Preview};
use os_upgrade_protocol::HostName;
use os_upgrade_site::drain_previews::{self as previews, DrainPreview, NoPreview};

use crate::bodies;
use crate::context::Api;
use crate::http::error::Problem;
use crate::http::extract::{Name, Params};
use crate::http::reply;
use crate::resources::hosts;
use crate::routes::Routes;

pub(crate) fn routes() -> Routes {
    Routes::default().route(&PREVIEW, preview)
}

async fn preview(
    State(api): State<Api>,
    Name(name): Name,
    Params(NoParameters {}): Params<NoParameters>,
) -> Result<Response, Problem> {
    let published = api.published()?;
    let host = HostName::new(&name).ok().filter(|host| hosts::is_known(&published, host));
    let host = host.ok_or_else(|| Problem::not_found(format!("there is no host {name:?}")))?;
    if !published.state.settings.has_node(&host) {
        return Err(Problem::not_found(format!("{host} is not a node of a Kubernetes cluster")));
    }
    let preview = api.options.drains.of(&host).await.map_err(|why| match why {
        NoPreview::NoNode(why) => Problem::not_found(why),
        NoPreview::Unavailable(why) => Problem::unavailable(why),
    })?;
    reply::json(&shown(&preview))
}

fn shown(preview: &DrainPreview) -> Preview<'_> {
    let DrainPreview { evicted, deleted, awaited, blocked, own } = preview;
    Preview {
        evicted: names(evicted),
        deleted: names(deleted),
        awaited: names(awaited),
        blocked: blocked.iter().map(bodies::waiting_pod).collect(),
        own: names(own),
    }
}

fn names(pods: &[previews::PodName]) -> Vec<PodName<'_>> {
    pods.iter().map(name).collect()
}

fn name(pod: &previews::PodName) -> PodName<'_> {
    let previews::PodName { namespace, name, owner, is_bare, has_empty_dir } = pod;
    PodName {
        namespace: namespace.into(),
        name: name.into(),
        owner: owner.as_deref().map(Cow::from),
        bare: *is_bare,
        empty_dir: *has_empty_dir,
    }
}
