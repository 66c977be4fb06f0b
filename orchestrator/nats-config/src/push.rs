//! Sends accounts to running servers. The server that receives them passes them on to the others of its cluster.

use std::path::Path;
use std::time::Duration;

use async_nats::ServerAddr;
use os_upgrade_credentials::Access;
use serde::Deserialize;

/// The subject on which servers accept accounts from users of the system account.
const UPDATE: &str = "$SYS.REQ.CLAIMS.UPDATE";
/// How long connecting, and each answer, may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// The code of a server's answer when it accepts an account.
const ACCEPTED: u16 = 200;

/// Why servers did not accept the accounts.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The URL is invalid.
    #[error("{url} is not a URL of a nats-server")]
    Url {
        /// The URL.
        url: String,
        source: std::io::Error,
    },
    /// Credentials or certificates cannot be used.
    #[error(transparent)]
    Access(#[from] os_upgrade_credentials::Error),
    /// The connection failed.
    #[error("cannot connect to NATS at {url}")]
    Connect {
        /// The URL.
        url: String,
        source: async_nats::ConnectError,
    },
    /// A request got no answer.
    #[error("NATS did not answer when it was sent an account")]
    Request(#[from] async_nats::RequestError),
    /// A server refused an account.
    #[error("NATS refuses an account: {why}")]
    Refused {
        /// The reason, as the server reports it.
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
        check_answer(&answer.payload).map_err(|why| PushError::Refused { why })?;
    }
    Ok(())
}

fn check_answer(answer: &[u8]) -> Result<(), String> {
    let answer: Answer = serde_json::from_slice(answer).map_err(|error| format!("its answer is {error}"))?;
    match answer {
        Answer { data: Some(Data { code: ACCEPTED, .. }), error: None } => Ok(()),
        Answer { error: Some(problem), .. } => Err(problem.description),
        Answer { data: Some(data), .. } => Err(format!("{} {}", data.code, data.message)),
        Answer { data: None, error: None } => Err("it reports neither success nor an error".to_owned()),
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
            ("{}", Err("it reports neither success nor an error")),
        ] {
            assert_eq!(check_answer(answer.as_bytes()), expected.map_err(str::to_owned), "{answer}");
        }
        assert!(check_answer(b"x").is_err());
    }
}
