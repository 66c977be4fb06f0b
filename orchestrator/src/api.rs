//! stub
use crate::{site::SiteHandle, store::History};
use tokio_util::sync::CancellationToken;
/// stub
pub async fn serve(
    _: tokio::net::TcpListener,
    _: SiteHandle,
    _: History,
    s: CancellationToken,
) -> std::io::Result<()> {
    s.cancelled().await;
    Ok(())
}
