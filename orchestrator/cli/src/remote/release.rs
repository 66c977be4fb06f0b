//! What a host keeps that was given up.

use os_upgrade_api_types::routes::hosts::{self as routes, Host};
use os_upgrade_console::rows::hosts;

use crate::output::Output;
use crate::rest::Client;

/// Says what `host`, which was given up, keeps, and how an operator ends that.
pub(super) async fn note_kept(client: &Client, host: &str, output: Output) {
    // It is only for a note, so that a host that cannot be read has none.
    let kept: Option<Host<'_>> = client.read(routes::READ.named([host])).await.ok();
    if let Some(note) = kept.and_then(|host| hosts::kept(&host)) {
        output.note(&note);
    }
}
