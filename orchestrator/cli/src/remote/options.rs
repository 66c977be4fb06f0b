//! The options of commands that call the API.

use clap::Args;

use crate::Failure;
use crate::output::Output;
use crate::rest::{Client, Server};

/// The options of every command that calls the API of an instance.
#[derive(Debug, Args)]
pub(crate) struct Remote {
    #[command(flatten)]
    pub(crate) server: Server,
    #[command(flatten)]
    pub(crate) output: Output,
}

impl Remote {
    /// A client of the instance.
    ///
    /// # Errors
    /// It is not clear which instance is meant, or the token or a certificate cannot be read.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        Client::new(&self.server)
    }
}
