//! Providers of configuration, their hosts, and hosts whose configuration is withheld.

use os_upgrade_api_types::routes::providers::{Provider, ProviderHost, WithheldHost};

use crate::row::{Column, Row};

impl Row for Provider<'static> {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("NAME", |provider, _| provider.name.to_string()),
        Column::new("KIND", |provider, _| provider.kind.to_string()),
        Column::new("REQUIRED", |provider, _| if provider.required { "yes" } else { "" }.to_owned()),
        Column::new("APPLIED", |provider, _| format!("{} of {}", provider.applied, provider.hosts)),
        Column::new("FAILING", |provider, _| provider.failing.map_or("?".to_owned(), |it| it.to_string())),
        Column::wide("EVENTS", |provider, _| {
            provider.hooks.as_ref().map(|hooks| hooks.events.join(" ")).unwrap_or_default()
        }),
        Column::wide("BATCH", |provider, _| {
            provider.hooks.as_ref().map(|hooks| hooks.batch_size.to_string()).unwrap_or_default()
        }),
        Column::wide("PENDING", |provider, _| {
            provider.hooks.as_ref().map(|hooks| hooks.pending.to_string()).unwrap_or_default()
        }),
        Column::wide("TOKENS", |provider, _| {
            provider.hooks.as_ref().map(|hooks| hooks.tokens.to_string()).unwrap_or_default()
        }),
        Column::wide("URL", |provider, _| provider.url.to_string()),
        Column::text("LAST FAILURE", |provider, _| {
            let failed = provider.failing_host.as_ref().zip(provider.failure.as_ref());
            failed.map(|(host, failure)| format!("{host}: {failure}")).unwrap_or_default()
        }),
    ];
    const NONE: &'static str =
        "no provider of configuration is configured; os-upgrade config edit, and add config-providers";

    fn name(&self) -> Option<String> {
        Some(self.name.to_string())
    }
}

impl Row for ProviderHost<'static> {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("HOST", |on, _| on.host.to_string()),
        Column::new("STATE", |on, _| on.progress.state.to_string()),
        Column::whole("SINCE", |on, zone| zone.stamp_or(on.progress.since, "")),
        Column::whole("CONFIRMED", |on, zone| zone.stamp_or(on.progress.confirmed_at, "")),
        Column::new("PENDING", |on, _| on.pending_events.join(" ")),
        Column::wide("POLLED EVERY", |on, _| on.poll_interval.as_deref().unwrap_or_default().to_owned()),
        Column::text("DETAIL", |on, _| on.progress.detail.clone().unwrap_or_default()),
    ];
    const NONE: &'static str = "the provider selects no host that takes part";

    fn name(&self) -> Option<String> {
        Some(self.host.to_string())
    }
}

impl Row for WithheldHost<'static> {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("HOST", |on, _| on.host.to_string()),
        Column::new("WHY", |on, _| {
            if on.ahead { "ahead of the site" } else { "the site was restored" }.to_owned()
        }),
        Column::new("GAINS", |on, _| on.gains.join(" ")),
        Column::new("LOSES", |on, _| on.loses.join(" ")),
    ];
    const NONE: &'static str = "no host's configuration is withheld";

    fn name(&self) -> Option<String> {
        Some(self.host.to_string())
    }
}
