//! Why a request about what hosts are to have is refused, and why a provider has not said it.

use std::fmt::{self, Formatter};

use os_upgrade_kernel::{ConfigurationWait, DesiredRefusal, ItemState, KeyState};
use os_upgrade_provider_rules::{ConfigurationProblem, CredentialsProblem, Failure, MemberProblem};

use crate::commands::strongbox_put_for;
use crate::describe::{Describe, describe};

impl Describe for DesiredRefusal {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownProvider { provider } => {
                write!(
                    f,
                    "there is no provider {provider}: `os-upgrade providers list` shows those that there are"
                )
            }
            Self::NotSelected { provider, host } => write!(
                f,
                "{host} gets nothing of {provider}: the provider's selector does not name it, or it takes no part, or no \
                 key of it is approved; `os-upgrade hosts show {host}` says which"
            ),
            Self::NothingDesired { host } => {
                write!(f, "{host} neither is to have any configuration nor says that it has")
            }
            Self::NotHooks { provider } => {
                write!(f, "the provider {provider} is not of kind hooks, and gets no token to call back")
            }
            Self::NoNewerEpoch { host } => write!(
                f,
                "{host} tells of the last epoch that there can be: remove its worker's state on the host, and start it again"
            ),
        }
    }
}

/// Why nothing can be sealed for a host whose key is in this state, and what to do; `None` of one that has none.
pub const fn without_key(state: Option<KeyState>) -> &'static str {
    match state {
        None => {
            "its worker takes no configuration: give it --config-root or a script `configure`, and start it again"
        }
        Some(KeyState::Waiting) => "its key waits for `os-upgrade hosts approve`",
        Some(KeyState::Changed) => {
            "it announces another key than the approved one: `os-upgrade hosts approve` approves that"
        }
        Some(KeyState::Pinned) => "its worker does not announce its key now",
    }
}

/// That what the host has is for another file than its provider names by now.
pub const OTHER_FILE: &str =
    "it is for the file that the provider named before, until the provider gives it again";

/// What becomes of a configuration in this state that no provider gives to its host any more.
pub const fn what_becomes(state: ItemState<'_>, is_kept: bool) -> &'static str {
    match state {
        ItemState::Withheld => {
            "no provider gives it any more; nothing becomes of it until `os-upgrade desired resume`"
        }
        ItemState::Nothing
        | ItemState::Applied
        | ItemState::Pending
        | ItemState::Revoking
        | ItemState::Failed { .. }
            if is_kept =>
        {
            "no provider gives it any more, and the host keeps it, as `on-removal` said; a provider of this name with `on-removal` \
             remove that does not select the host revokes it"
        }
        ItemState::Failed { .. } => "no provider gives it any more; the host tries again to revoke it",
        ItemState::Nothing | ItemState::Applied | ItemState::Pending | ItemState::Revoking => {
            "no provider gives it any more; the host revokes it once it reads its manifest"
        }
    }
}

impl Describe for ConfigurationWait {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key => f.write_str("no key of it is approved to which that could be sealed"),
            Self::Resumption => f.write_str("delivery waits for `os-upgrade desired resume`"),
            Self::Provider { failure: None } => f.write_str("the provider has not confirmed it of late"),
            Self::Provider { failure: Some(failure) } => {
                write!(f, "the provider has not confirmed it: {}", describe(failure))
            }
            Self::Host { error: None } => f.write_str("the host has not applied it yet"),
            Self::Host { error: Some(error) } => write!(f, "the host cannot apply it: {error}"),
        }
    }
}

impl Describe for Failure {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostNotInUrl => f.write_str(
                "the name of the host would be a segment . or .. of the URL: write more than {host} in that segment, such as {host}.conf",
            ),
            Self::Credentials { problem, secret } => {
                let malformed = "is neither a bearer token nor user:password";
                describe_secret(f, "credentials", secret.as_deref(), *problem, malformed)
            }
            Self::ClientCertificate { problem, secret } => {
                let malformed = "is no certificate with its one private key, both in PEM, and the key not encrypted";
                describe_secret(f, "client-certificate", secret.as_deref(), *problem, malformed)
            }
            Self::Unreachable { why } => {
                write!(f, "no connection: {why}; see that the provider runs, and is at its `url`")
            }
            Self::TlsFailed { why } => {
                write!(f, "TLS failed: {why}; check the provider's `ca` and `client-certificate`")
            }
            Self::TimedOut => f.write_str("it did not answer in time: raise `timeout` if it needs longer"),
            Self::Cut => {
                f.write_str("the connection was lost before the answer was complete: its own log may say why")
            }
            Self::NotHttp { why } => {
                write!(f, "the answer is not HTTP: {why}; check the scheme and the port of `url`")
            }
            Self::Refused { status } => {
                write!(f, "it refuses the request with status {status}: check `url` and `credentials`")
            }
            Self::Throttled => f.write_str(
                "it wants to be asked less often (status 429): raise `poll-interval`, or `batch-size` of kind hooks",
            ),
            Self::Unavailable { status } => {
                write!(f, "it is out of order: status {status}; its own log may say why")
            }
            Self::Redirected { status } => {
                write!(f, "it redirects with status {status}, which is not followed: give the final URL")
            }
            Self::UnexpectedStatus { status } => write!(
                f,
                "status {status} has no meaning here: a provider answers 200 or 304, and 404 if it is a file server that has nothing"
            ),
            Self::TooLarge { limit } => {
                write!(
                    f,
                    "the answer has more than {limit} bytes: give less, or about fewer hosts with `batch-size`"
                )
            }
            Self::Html => f.write_str(
                "the answer is a page of HTML, such as that of a portal: check `url`, and whether it wants `credentials`",
            ),
            Self::Encoded => f.write_str(
                "the answer is compressed although that was not asked for: let it answer without Content-Encoding",
            ),
            Self::NotAnArray { line, column } => write!(
                f,
                "the answer is no JSON array of what devices are to have: see its line {line}, column {column}; a provider with \
                 nothing new answers 304, or an array without `configuration`"
            ),
            Self::NotAnswered => f.write_str(
                "the answer says nothing about this host: the provider must answer each call with its `event_uuid` or `device_name`",
            ),
            Self::BadMember { why } => {
                write!(f, "what the answer says about this host cannot be used: {}", describe(why))
            }
            Self::BadConfiguration { why } => {
                write!(f, "the `configuration` for this host cannot be used: {}", describe(why))
            }
            Self::NotSealed => {
                f.write_str("it could not be sealed to the host's key: the log of the leader says why")
            }
            Self::NotStored => f.write_str("it could not be stored in os-upgrade:desired; it is tried again"),
        }
    }
}

impl Describe for MemberProblem {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => {
                "it must be an object with each key once, and with texts for its events, names and UUIDs"
            }
            Self::Doubled => "the provider answers the same call twice",
            Self::NamesDiffer => "its spellings of `config_name` have different values",
            Self::OtherName => "its `config_name` is that of another provider",
            Self::OtherDevice => "its `device_name` is not that of the call with this `event_uuid`",
            Self::OtherEvent => "its `event` is not that of the call",
            Self::PollInterval => {
                "its `poll_interval` must be a whole number of seconds, or a duration such as \"30m\""
            }
        })
    }
}

impl Describe for ConfigurationProblem {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { limit } => write!(f, "it has more than {limit} bytes: give less"),
            Self::NotUnicode => f.write_str("it has escapes such as \\ud800 that are no characters"),
            Self::File => f.write_str(
                "it has the keys of a file, so `content` must be a text, `contentEncoding` \"plain\" or \"base64\", and `mode` a \
                 number",
            ),
            Self::Base64 => f.write_str("its `content` is not base64, as its `contentEncoding` says"),
            Self::NoPath => f.write_str("it has a mode, a user or a group, which only files have: give a `path`"),
            Self::Path { file } => {
                write!(f, "the path of file {file} must be absolute, without `.`, `..` and empty segments")
            }
            Self::Mode { file } => write!(
                f,
                "the mode of file {file} must be from 0 to 511, which is 0777 in octal: setuid, setgid and sticky are not taken"
            ),
            Self::Owner { file } => write!(f, "the user or the group of file {file} is no name"),
            Self::Ignition { line, column } => write!(
                f,
                "it is not what its version of Ignition prescribes: see its line {line}, column {column}"
            ),
            Self::IgnitionVersion => f.write_str("its version of Ignition is not known: use one from 3.0.0 to 3.6.0"),
            Self::Unsupported { key } => {
                write!(f, "it uses {key} of Ignition: only files with their contents inline are taken")
            }
            Self::Source { file } => {
                write!(f, "the contents of file {file} must be in a data: URL, as nothing is fetched for hosts")
            }
            Self::DataUrl { file } => write!(f, "the data: URL of file {file} is malformed"),
            Self::NoFiles => f.write_str("it has no file: to revoke a configuration, give null"),
            Self::TooManyFiles { limit } => write!(f, "it has more than {limit} files"),
            Self::DuplicatePath { file } => write!(f, "file {file} has the path of an earlier one"),
        }
    }
}

/// Why the secret that `key` of a provider names could not be used, and what to do. `name` is absent in what earlier builds have stored.
/// `malformed` completes the sentence about one of another form.
fn describe_secret(
    f: &mut Formatter<'_>,
    key: &str,
    name: Option<&str>,
    problem: CredentialsProblem,
    malformed: &str,
) -> fmt::Result {
    let put = strongbox_put_for("URL", name.unwrap_or("NAME"));
    write!(f, "the secret {}of `{key}` ", name.map(|name| format!("{name} ")).unwrap_or_default())?;
    match problem {
        CredentialsProblem::Missing => {
            write!(f, "is not stored: `{put}` stores it, with the origin of the provider's `url`")
        }
        CredentialsProblem::Sealed => f.write_str(
            "cannot be opened: `os-upgrade strongbox unseal` gives the instance that asks the key of the strongbox, as does [strongbox] \
             key-file",
        ),
        CredentialsProblem::Damaged => write!(f, "cannot be opened: `{put}` stores it again"),
        CredentialsProblem::OtherOrigin => {
            write!(f, "is not for the provider's origin: `{put}` stores it with the origin of its `url`")
        }
        CredentialsProblem::Malformed => write!(f, "{malformed}: `{put}` stores another"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_secrets_are_named_with_what_to_do() {
        let put = "`os-upgrade strongbox put --origin=URL files`";
        for (problem, expected) in [
            (CredentialsProblem::Missing, "is not stored: "),
            (CredentialsProblem::Damaged, "cannot be opened: "),
            (CredentialsProblem::OtherOrigin, "is not for the provider's origin: "),
            (CredentialsProblem::Malformed, "is neither a bearer token nor user:password: "),
        ] {
            let said =
                describe(&Failure::Credentials { problem, secret: Some("files".to_owned()) }).to_string();
            assert!(
                said.starts_with(&format!("the secret files of `credentials` {expected}{put}")),
                "{said}"
            );
        }
        let sealed = CredentialsProblem::Sealed;
        let said = describe(&Failure::ClientCertificate { problem: sealed, secret: Some("tls".to_owned()) })
            .to_string();
        let expected =
            "the secret tls of `client-certificate` cannot be opened: `os-upgrade strongbox unseal` gives ";
        assert!(said.starts_with(expected), "{said}");
        let said = describe(&Failure::Credentials { problem: CredentialsProblem::Missing, secret: None })
            .to_string();
        let expected =
            "the secret of `credentials` is not stored: `os-upgrade strongbox put --origin=URL NAME`";
        assert!(said.starts_with(expected), "{said}");
    }
}
