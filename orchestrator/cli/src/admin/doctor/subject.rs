//! What `doctor` checks, this machine or an instance, and why: decided here alone.

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

use crate::Failure;
use crate::rest::{Server, UrlOrigin};

/// What is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Subject {
    /// This machine.
    Machine(Reason),
    /// The instance that this names; anything but the default.
    Instance(UrlOrigin),
}

/// Why this machine is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reason {
    /// The configuration of `--config`.
    Config(PathBuf),
    /// The configuration of a running `os-upgrade dev`.
    Dev(PathBuf),
    /// Variables set keys of the configuration.
    Variables,
    /// Nothing names an instance.
    NoInstance,
    /// Which instance is named cannot be worked out, such as for contexts that cannot be read.
    Unclear(String),
}

impl Subject {
    /// What the options, settings of this machine, and only then variables and contexts name.
    pub(super) fn choose(
        config: Option<PathBuf>,
        server: &Server,
        dev: impl FnOnce() -> Option<PathBuf>,
        has_variable: bool,
        origin: Result<&UrlOrigin, &Failure>,
    ) -> Self {
        if let Some(named) = server.named() {
            return Self::Instance(named);
        }
        let own = config.map(Reason::Config).or_else(|| dev().map(Reason::Dev));
        if let Some(own) = own.or_else(|| has_variable.then_some(Reason::Variables)) {
            return Self::Machine(own);
        }
        match origin {
            Ok(UrlOrigin::Default) => Self::Machine(Reason::NoInstance),
            Ok(origin) => Self::Instance(origin.clone()),
            Err(Failure::Usage(why)) => Self::Machine(Reason::Unclear(why.clone())),
            Err(failure) => Self::Machine(Reason::Unclear(format!("{failure:?}"))),
        }
    }

    /// Whether programs must hear of it too: something is wrong.
    pub(super) const fn is_unclear(&self) -> bool {
        matches!(self, Self::Machine(Reason::Unclear(_)))
    }
}

impl Reason {
    /// The file with the settings of this machine.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::Config(file) | Self::Dev(file) => Some(file),
            Self::Variables | Self::NoInstance | Self::Unclear(_) => None,
        }
    }
}

impl Display for Subject {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine(reason) => write!(f, "checking this machine: {reason}"),
            Self::Instance(UrlOrigin::Option | UrlOrigin::Default) => {
                f.write_str("checking the instance of --url")
            }
            Self::Instance(UrlOrigin::Variable) => {
                f.write_str("checking the instance of OS_UPGRADE_URL; --config checks this machine")
            }
            Self::Instance(UrlOrigin::Context(name)) => {
                write!(f, "checking the instance of context {}; --config checks this machine", name.as_str())
            }
        }
    }
}

impl Display for Reason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(file) => write!(f, "--config names {}", file.display()),
            Self::Dev(file) => write!(f, "`os-upgrade dev` runs here, with {}", file.display()),
            Self::Variables => f.write_str("variables OS_UPGRADE_<SECTION>__<KEY> are set"),
            Self::NoInstance => f.write_str("nothing names an instance"),
            Self::Unclear(why) => write!(f, "which instance is meant is unclear: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contexts::ContextName;

    fn context() -> UrlOrigin {
        UrlOrigin::Context("a".parse::<ContextName>().unwrap())
    }

    #[test]
    fn settings_of_this_machine_precede_variable_and_context() {
        let (none, at) = (Server::default(), Server::at("http://h/"));
        let in_context = Server::new(None, Some("a".parse().unwrap()), None);
        let (file, dev) = (|| Some(PathBuf::from("c.toml")), || Some(PathBuf::from("dev.toml")));
        let machine = Subject::Machine;
        for origin in [UrlOrigin::Variable, context(), UrlOrigin::Default] {
            let choose = |config, server, dev: Option<PathBuf>, has_variable| {
                Subject::choose(config, server, || dev, has_variable, Ok(&origin))
            };
            assert_eq!(choose(file(), &none, dev(), true), machine(Reason::Config("c.toml".into())));
            assert_eq!(choose(None, &none, dev(), true), machine(Reason::Dev("dev.toml".into())));
            assert_eq!(choose(None, &none, None, true), machine(Reason::Variables));
            let is_default = origin == UrlOrigin::Default;
            let unset =
                if is_default { machine(Reason::NoInstance) } else { Subject::Instance(origin.clone()) };
            assert_eq!(choose(None, &none, None, false), unset);
            assert_eq!(choose(None, &at, dev(), true), Subject::Instance(UrlOrigin::Option));
            assert_eq!(choose(None, &in_context, dev(), true), Subject::Instance(context()));
        }
    }

    #[test]
    fn unreadable_contexts_leave_this_machine() {
        let unreadable = Failure::Usage("cannot read contexts.toml".to_owned());
        let subject = Subject::choose(None, &Server::default(), || None, false, Err(&unreadable));
        let told = "checking this machine: which instance is meant is unclear: cannot read contexts.toml";
        assert!(subject.is_unclear() && subject.to_string() == told, "{subject}");
    }
}
