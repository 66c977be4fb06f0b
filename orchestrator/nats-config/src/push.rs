//! Telling running servers of accounts. The server that is asked tells the others of its cluster.

use std::path::Path;
use std::time::Duration;

use async_nats::ServerAddr;
use os_upgrade_credentials::Access;
use serde::Deserialize;

/// Where servers take accounts from who is in the system account.
const UPDATE: &str = "$SYS.REQ.CLAIMS.UPDATE";
/// How long connecting, and each answer, may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// What a server answers when it has taken an account.
const TAKEN: u16 = 200;

/// Servers have not been told.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The URL is none.
    #[error("{url} is no URL of a nats-server")]
    Url {
        /// What was given.
        url: String,
        /// Why it is none.
        source: std::io::Error,
    },
    /// Credentials or certificates cannot be used.
    #[error(transparent)]
    Access(#[from] os_upgrade_credentials::Error),
    /// There is no connection.
    #[error("cannot connect to NATS at {url}")]
    Connect {
        /// Where.
        url: String,
        /// Why not.
        source: async_nats::ConnectError,
    },
    /// There is no answer.
    #[error("no answer of NATS about an account")]
    Request(#[from] async_nats::RequestError),
    /// The account is not taken.
    #[error("NATS does not take an account: {why}")]
    Refused {
        /// Why not.
        why: String,
    },
}

#[derive(Debug, Deserialize)]
struct Answer {
    data: Option<Data>,
    error: Option<Problem>,
}

#[derive(Debug, Deserialize)]
struct Data {
    code: u16,
    #[serde(default)]
    message: String,
}

#[derive(Debug, Deserialize)]
struct Problem {
    #[serde(default)]
    description: String,
}

pub(super) async fn push(
    url: &str,
    credentials: &Path,
    ca: &Path,
    accounts: &[String],
) -> Result<(), PushError> {
    let mut addresses = Vec::new();
    for part in url.split(',') {
        let address = part.trim().parse::<ServerAddr>();
        addresses.push(address.map_err(|source| PushError::Url { url: url.to_owned(), source })?);
    }
    let access =
        Access { credentials: Some(credentials.to_owned()), ca: Some(ca.to_owned()), ..Access::default() };
    let options = access.options(&addresses)?.connection_timeout(ANSWER_WITHIN);
    let options = options.request_timeout(Some(ANSWER_WITHIN));
    let connected = options.connect(addresses).await;
    let client = connected.map_err(|source| PushError::Connect { url: url.to_owned(), source })?;
    for account in accounts {
        let answer = client.request(UPDATE, account.clone().into()).await?;
        taken(&answer.payload).map_err(|why| PushError::Refused { why })?;
    }
    Ok(())
}

fn taken(answer: &[u8]) -> Result<(), String> {
    let answer: Answer = serde_json::from_slice(answer).map_err(|error| format!("its answer is {error}"))?;
    match answer {
        Answer { data: Some(Data { code: TAKEN, .. }), error: None } => Ok(()),
        Answer { error: Some(problem), .. } => Err(problem.description),
        Answer { data: Some(data), .. } => Err(format!("{} {}", data.code, data.message)),
        Answer { data: None, error: None } => Err("it does not say whether".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        for (answer, expected) in [
            (r#"{"server":{},"data":{"account":"A","code":200,"message":"jwt updated"}}"#, Ok(())),
            (
                r#"{"error":{"account":"A","code":500,"description":"jwt update failed"}}"#,
                Err("jwt update failed"),
            ),
            (r#"{"data":{"code":500,"message":"no"}}"#, Err("500 no")),
            ("{}", Err("it does not say whether")),
        ] {
            assert_eq!(taken(answer.as_bytes()), expected.map_err(str::to_owned), "{answer}");
        }
        assert!(taken(b"x").is_err());
    }
}
