//! What a failed request says of a provider.

use std::error::Error;
use std::io;

use os_upgrade_protocol::text::one_line;
use os_upgrade_provider_rules::Failure;
use os_upgrade_tls::http_client::causes;

use crate::http_error::{find_cause, is_malformed};

/// The longest message of a library that is kept, in characters. A fact has it, for each host.
const MESSAGE_CHARS_MAX: usize = 300;

/// The failure of a request, or of reading its answer.
pub(super) fn while_asking(error: &reqwest::Error) -> Failure {
    // A connection that is not made in time is one of these too.
    if error.is_timeout() {
        Failure::TimedOut
    } else if is_tls(error) {
        Failure::TlsFailed { why: message(error) }
    } else if error.is_connect() {
        Failure::Unreachable { why: message(error) }
    } else if is_malformed(error) || is_malformed_body(error) {
        Failure::NotHttp { why: message(error) }
    } else {
        Failure::Cut
    }
}

/// The failure of setting a client up. A client certificate was checked before, so it is the authorities' fault: those of the provider, if
/// it has some, or the system's.
pub(super) fn not_built(error: &reqwest::Error, own: bool) -> Failure {
    let why = message(error);
    Failure::TlsFailed { why: if own { format!("`ca` holds no usable authority: {why}") } else { why } }
}

/// The causes on one line, without the URL. Names in a server's certificate are its choice.
fn message(error: &reqwest::Error) -> String {
    one_line(&causes(error), MESSAGE_CHARS_MAX)
}

/// Whether a body is not in chunks although it says so.
fn is_malformed_body(error: &reqwest::Error) -> bool {
    find_cause::<io::Error>(error)
        .is_some_and(|error| matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData))
}

/// Whether TLS has failed.
fn is_tls(error: &reqwest::Error) -> bool {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if error.is::<rustls::Error>() {
            return true;
        }
        // What an I/O error wraps is not its source but part of it.
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    false
}
