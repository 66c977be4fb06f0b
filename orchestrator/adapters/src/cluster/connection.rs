//! The client of the cluster, made when it is needed first.

use tokio::sync::Mutex;

use super::failure::Failure;
use crate::kubernetes::client::{Access, Client};
use crate::kubernetes::error::Error;
use crate::kubernetes::request_rate::RequestRate;

/// The client, or how to make it.
#[derive(Debug)]
pub(super) struct Connection {
    access: Access,
    /// Clients that follow each other share it.
    rate: RequestRate,
    client: Mutex<Option<Client>>,
}

impl Connection {
    pub(super) fn new(access: Access, rate: RequestRate) -> Self {
        Self { access, rate, client: Mutex::default() }
    }

    /// The client. One that cannot be made is tried again the next time: its files may have been corrected.
    pub(super) async fn client(&self) -> Result<Client, Failure> {
        let mut client = self.client.lock().await;
        if let Some(client) = &*client {
            return Ok(client.clone());
        }
        let made = Client::new(&self.access).await?.with_rate(self.rate.clone());
        *client = Some(made.clone());
        Ok(made)
    }

    /// Takes note of a failure. Credentials that are not accepted are read again: their file may have been replaced.
    pub(super) async fn failed(&self, failure: &Failure) {
        if matches!(failure, Failure::Request(Error::Unauthorized)) {
            *self.client.lock().await = None;
        }
    }
}
