//! Which instance is called, and with what: by options, variables, a context, or the default.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use os_upgrade_platform::plain_file;
use os_upgrade_settings::HttpUrl;

use crate::Failure;
use crate::address::{DEFAULT_URL, http_url};
use crate::arguments::GLOBAL;
use crate::contexts::{self, Context, ContextError, ContextName, Contexts};

/// The variable with the URL to call.
pub(crate) const URL_VARIABLE: &str = "OS_UPGRADE_URL";
/// The variable with the token to send. There is no option for the token itself, because everybody on the machine can
/// read command lines.
pub(super) const TOKEN_VARIABLE: &str = "OS_UPGRADE_TOKEN";
/// The variable with the file of the certificate authorities to trust.
const CA_VARIABLE: &str = "OS_UPGRADE_CA";

/// The instance to call, and how.
///
/// An option comes before a variable, a variable before the context, and the context before the default. A context is
/// used if it is named, or if it is the current one and neither option nor variable has a URL: its token goes to its
/// own URL only.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = GLOBAL)]
pub(crate) struct Server {
    /// The API of an instance; else `OS_UPGRADE_URL`, the current context, or `http://127.0.0.1:8646`
    #[arg(long, value_name = "URL", value_parser = http_url, conflicts_with = "context")]
    url: Option<HttpUrl>,
    /// A file with the token to send; else the token in `OS_UPGRADE_TOKEN`, or the file of the context that is used
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A PEM file with certificate authorities to trust instead of the system's; else `OS_UPGRADE_CA`, or the file of the
    /// context that is used
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// The context to use, of those that `os-upgrade context` manages; it comes before `OS_UPGRADE_URL`
    #[arg(long, value_name = "NAME")]
    context: Option<ContextName>,
}

/// Where a token comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TokenSource {
    /// The variable; absent if it is not set.
    Variable(Option<String>),
    /// A file.
    File(PathBuf),
}

/// What names the instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UrlOrigin {
    /// `--url`.
    Option,
    /// The variable.
    Variable,
    /// The context of this name, be it the current one or that of `--context`.
    Context(ContextName),
    /// Nothing: it is the default.
    Default,
}

/// A PEM file with the certificate authorities to trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Authorities {
    pub(crate) file: PathBuf,
    /// What names the file.
    pub(crate) origin: CaOrigin,
}

/// What names a file of certificate authorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CaOrigin {
    /// `--ca`.
    Option,
    /// The variable.
    Variable,
    /// The context.
    Context,
}

impl CaOrigin {
    /// What the file is, for error messages.
    pub(crate) const fn role(self) -> &'static str {
        match self {
            Self::Option => "file of --ca",
            Self::Variable => "file of OS_UPGRADE_CA",
            Self::Context => "context's file of authorities",
        }
    }
}

/// The instance to call: what follows from options, variables and contexts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The instances to try, in this order; one at least.
    pub(crate) urls: Vec<HttpUrl>,
    /// What names them.
    pub(crate) origin: UrlOrigin,
    pub(crate) ca: Option<Authorities>,
    token: TokenSource,
}

impl Server {
    /// The instance of these options, with the token that variables and contexts have.
    pub(crate) fn new(url: Option<HttpUrl>, context: Option<ContextName>, ca: Option<PathBuf>) -> Self {
        Self { url, context, ca, token_file: None }
    }

    /// What names an instance on the command line.
    pub(crate) fn named(&self) -> Option<UrlOrigin> {
        let context = || self.context.clone().map(UrlOrigin::Context);
        self.url.as_ref().map(|_| UrlOrigin::Option).or_else(context)
    }

    /// The instance at `url`, without anything else.
    #[cfg(test)]
    pub(crate) fn at(url: &str) -> Self {
        Self { url: Some(url.parse().unwrap()), ..Self::default() }
    }

    /// The instance to call, in this process's environment.
    ///
    /// # Errors
    /// A variable has no URL, or the context does not exist or cannot be read.
    pub(crate) fn target(&self) -> Result<Target, Failure> {
        self.resolve(|name| std::env::var(name).ok(), own_contexts)
    }

    /// The instance to call. Contexts are read only if they matter.
    fn resolve(
        &self,
        variable: impl Fn(&str) -> Option<String>,
        contexts: impl FnOnce() -> Result<Contexts, ContextError>,
    ) -> Result<Target, Failure> {
        let variable =
            |name| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let (urls, origin, context) = match (&self.url, &self.context, variable(URL_VARIABLE)) {
            (Some(url), _, _) => (vec![url.clone()], UrlOrigin::Option, None),
            (None, Some(name), _) => {
                let all = contexts().map_err(|error| unusable_context(&error))?;
                of_context(name, all.named(name).map_err(|error| unusable_context(&error))?)
            }
            (None, None, Some(url)) => {
                let wrong = |why| Failure::Usage(format!("{URL_VARIABLE}: {why}"));
                (vec![http_url(&url).map_err(wrong)?], UrlOrigin::Variable, None)
            }
            (None, None, None) => {
                let all = contexts().map_err(|error| unusable_context(&error))?;
                match all.current().map_err(|error| unusable_context(&error))? {
                    Some((name, context)) => of_context(name, context),
                    None => (vec![http_url(DEFAULT_URL).map_err(Failure::Usage)?], UrlOrigin::Default, None),
                }
            }
        };
        let (context_ca, context_token) =
            context.map_or((None, None), |context| (context.ca, context.token_file));
        let ca = match (&self.ca, variable(CA_VARIABLE), context_ca) {
            (Some(file), _, _) => Some((file.clone(), CaOrigin::Option)),
            (None, Some(file), _) => Some((PathBuf::from(file), CaOrigin::Variable)),
            (None, None, Some(file)) => Some((file, CaOrigin::Context)),
            (None, None, None) => None,
        };
        let ca = ca.map(|(file, origin)| Authorities { file, origin });
        let token = match (&self.token_file, variable(TOKEN_VARIABLE), context_token) {
            (Some(file), _, _) => TokenSource::File(file.clone()),
            (None, Some(token), _) => TokenSource::Variable(Some(token)),
            (None, None, Some(file)) => TokenSource::File(file),
            (None, None, None) => TokenSource::Variable(None),
        };
        Ok(Target { urls, origin, ca, token })
    }
}

/// The contexts of this process's user; none without a configuration directory.
fn own_contexts() -> Result<Contexts, ContextError> {
    match contexts::path(|name| std::env::var(name).ok()) {
        Ok(path) => contexts::read(&path),
        Err(ContextError::NoDirectory) => Ok(Contexts::default()),
        Err(error) => Err(error),
    }
}

fn unusable_context(error: &ContextError) -> Failure {
    Failure::Usage(os_upgrade_protocol::error::with_causes(error))
}

fn of_context(name: &ContextName, context: &Context) -> (Vec<HttpUrl>, UrlOrigin, Option<Context>) {
    (context.urls.clone(), UrlOrigin::Context(name.clone()), Some(context.clone()))
}

impl Target {
    /// The instance at `url`, which needs no token, and no other certificate authorities than the system's.
    pub(super) fn without_token(url: HttpUrl) -> Self {
        Self { urls: vec![url], origin: UrlOrigin::Option, ca: None, token: TokenSource::Variable(None) }
    }

    /// The token to send, if there is one.
    pub(super) fn token(&self) -> anyhow::Result<Option<String>> {
        match &self.token {
            TokenSource::Variable(token) => Ok(token.clone()),
            TokenSource::File(path) => read_token(path).map(Some),
        }
    }
}

/// Checks that nobody else can write the file at `path`, which is the `role`, unless it is a pipe: with certificate authorities of
/// somebody else, that person could answer for the instance, and read the token. What cannot be looked at is left to whoever reads it.
pub(crate) fn check_writers(role: &str, path: &Path) -> anyhow::Result<()> {
    path.metadata().map_or(Ok(()), |metadata| check_writers_of(role, path, &metadata))
}

fn check_writers_of(role: &str, path: &Path, metadata: &Metadata) -> anyhow::Result<()> {
    if !metadata.is_file() {
        return Ok(());
    }
    plain_file::check_writers(metadata, plain_file::examiner())
        .map_err(|why| anyhow!("the {role} {} {why}", path.display()))
}

/// Reads a token from a file, or from a pipe such as a shell's `<(command)`. Whoever can write the file could put in a token of
/// another person, who would then be said to have done what is requested.
fn read_token(path: &Path) -> anyhow::Result<String> {
    let unreadable = || format!("cannot read the token file {}", path.display());
    let mut file = File::open(path).with_context(unreadable)?;
    check_writers_of("token file", path, &file.metadata().with_context(unreadable)?)?;
    let mut text = String::new();
    file.read_to_string(&mut text).with_context(unreadable)?;
    let token = text.trim();
    if token.is_empty() || token.contains(char::is_whitespace) {
        bail!("the token file {} holds no token", path.display());
    }
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ContextName {
        text.parse().unwrap()
    }

    /// Two contexts; `current` is the current one.
    fn contexts(current: Option<&str>) -> Contexts {
        let context = |at: &str| Context {
            urls: vec![format!("https://{at}/").parse().unwrap()],
            ca: Some(format!("/{at}.pem").into()),
            token_file: Some(format!("/{at}.token").into()),
        };
        Contexts {
            current: current.map(name),
            contexts: [(name("a"), context("a")), (name("b"), context("b"))].into(),
        }
    }

    fn resolve(server: &Server, variables: &[(&str, &str)], current: Option<&str>) -> Result<Target, String> {
        let variable =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        server.resolve(variable, || Ok(contexts(current))).map_err(|failure| format!("{failure:?}"))
    }

    fn target(url: &str, ca: Option<(CaOrigin, &str)>, token: TokenSource) -> Target {
        let origin = match url {
            DEFAULT_URL => UrlOrigin::Default,
            "http://option/" => UrlOrigin::Option,
            "http://variable/" => UrlOrigin::Variable,
            "https://a/" => UrlOrigin::Context(name("a")),
            "https://b/" => UrlOrigin::Context(name("b")),
            other => panic!("{other}"),
        };
        let ca = ca.map(|(origin, file)| Authorities { file: file.into(), origin });
        Target { urls: vec![url.parse().unwrap()], origin, ca, token }
    }

    #[test]
    fn options_precede_variables_contexts_and_the_default() {
        let none = Server::default();
        let url = Server::at("http://option/");
        let files = Server { token_file: Some("/t".into()), ca: Some("/c".into()), ..Server::default() };
        let named = Server { context: Some(name("b")), ..Server::default() };
        let variables = [
            ("OS_UPGRADE_URL", "http://variable/"),
            ("OS_UPGRADE_TOKEN", " secret\n"),
            ("OS_UPGRADE_CA", "/v"),
        ];
        let no_token = || TokenSource::Variable(None);
        let variable = || TokenSource::Variable(Some("secret".to_owned()));
        let file = |path: &str| TokenSource::File(path.into());
        for (server, variables, current, expected) in [
            (&none, &variables[..0], None, target(DEFAULT_URL, None, no_token())),
            (
                &none,
                &[],
                Some("a"),
                target("https://a/", Some((CaOrigin::Context, "/a.pem")), file("/a.token")),
            ),
            (
                &named,
                &[],
                Some("a"),
                target("https://b/", Some((CaOrigin::Context, "/b.pem")), file("/b.token")),
            ),
            (
                &named,
                &variables[..1],
                Some("a"),
                target("https://b/", Some((CaOrigin::Context, "/b.pem")), file("/b.token")),
            ),
            (&named, &variables, None, target("https://b/", Some((CaOrigin::Variable, "/v")), variable())),
            (&files, &[], Some("a"), target("https://a/", Some((CaOrigin::Option, "/c")), file("/t"))),
            (
                &files,
                &variables,
                Some("a"),
                target("http://variable/", Some((CaOrigin::Option, "/c")), file("/t")),
            ),
            // The token of a context is sent to its own URL only.
            (&url, &[], Some("a"), target("http://option/", None, no_token())),
            (&none, &variables[..1], Some("a"), target("http://variable/", None, no_token())),
            (
                &none,
                &[("OS_UPGRADE_URL", "")],
                Some("a"),
                target("https://a/", Some((CaOrigin::Context, "/a.pem")), file("/a.token")),
            ),
        ] {
            assert_eq!(
                resolve(server, variables, current),
                Ok(expected),
                "{server:?} {variables:?} {current:?}"
            );
        }
    }

    #[test]
    fn a_wrong_instance_is_never_the_default() {
        let unknown = Server { context: Some(name("c")), ..Server::default() };
        for (server, variables, current, expected) in [
            (&unknown, &[][..], None, "there is no context c"),
            (&Server::default(), &[], Some("c"), "there is no context c"),
            (&Server::default(), &[("OS_UPGRADE_URL", "nonsense")], None, "OS_UPGRADE_URL: an http:// or"),
        ] {
            let refused = resolve(server, variables, current).unwrap_err();
            assert!(refused.contains(expected), "{refused}");
        }
    }

    #[test]
    fn token_file_that_others_may_write_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        std::fs::write(&path, "osup_secret\n").unwrap();
        for (mode, is_safe) in [(0o600, true), (0o644, true), (0o620, false), (0o602, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let read = read_token(&path).map_err(|error| error.to_string());
            let expected = if is_safe {
                Ok("osup_secret".to_owned())
            } else {
                Err(format!(
                    "the token file {} can be written by others (mode {mode:o}): run chmod go-w on it, and check its contents",
                    path.display()
                ))
            };
            assert_eq!(read, expected);
            let checked = check_writers("file of --ca", &path).map_err(|error| error.to_string());
            let expected = expected.map(|_| ());
            assert_eq!(checked, expected.map_err(|why| why.replace("token file", "file of --ca")));
        }
    }
}
