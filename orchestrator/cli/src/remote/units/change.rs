//! Changes of units, with fleet's API v1-alpha: their files, and the states that they are to be in.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use os_upgrade_api_types::fleet::contents;
use os_upgrade_api_types::fleet::v1_alpha::{Data, PartialUnit};
use os_upgrade_api_types::route::{Call, Method};
use os_upgrade_api_types::routes::units::{READ, Unit};
use os_upgrade_console::describe;
use os_upgrade_kernel::UnitRefusal;
use os_upgrade_scheduler::{UNIT_BYTES_MAX, UnitFile, UnitName, UnitState};
use reqwest::StatusCode;

use crate::Failure;
use crate::failure::Refused;
use crate::output::Output;
use crate::rest::Client;
use crate::text_file;

/// A unit, as a file has it.
#[derive(Debug)]
pub(super) struct Submitted {
    pub(super) name: UnitName,
    pub(super) contents: String,
}

/// The units in `files`.
///
/// # Errors
/// One cannot be read, or is no unit file, or its name is no unit's.
pub(super) fn read_files(files: &[PathBuf]) -> Result<Vec<Submitted>, Failure> {
    let read = |file: &PathBuf| read_file(file).with_context(|| format!("cannot use {}", file.display()));
    files.iter().map(read).collect::<anyhow::Result<_>>().map_err(|error| Failure::unusable(&error))
}

fn read_file(file: &Path) -> anyhow::Result<Submitted> {
    let name = file.file_name().and_then(|name| name.to_str()).context("it has no name in UTF-8")?;
    let name = UnitName::new(name)?;
    let mut bytes = Vec::new();
    // One byte more than there may be shows that there are too many.
    File::open(file)?.take(UNIT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    let contents = text_file::text(bytes).map_err(|why| anyhow!(why))?;
    UnitFile::parse(&contents)?;
    Ok(Submitted { name, contents })
}

/// Submits units, without starting them. One that is there already, as it is in its file, stays as it is.
pub(super) async fn submit(client: &Client, units: Vec<Submitted>, output: Output) -> Result<(), Failure> {
    let mut done: Vec<&str> = Vec::new();
    for Submitted { name, contents } in &units {
        let existing = find(client, name).await.map_err(|error| before_change(error, &done))?;
        match existing {
            Some(unit) if unit.contents == *contents => output.aside(&format!("{name} is there already")),
            Some(_) => {
                let refusal = UnitRefusal::OtherContents { unit: name.clone() };
                return Err(before_change(anyhow!("{}", describe(&refusal)), &done));
            }
            None => {
                let put = put(client, name, UnitState::Inactive, Some(contents)).await;
                put.map_err(|error| at_change(error, &done))?;
            }
        }
        done.push(name.as_str());
    }
    output.done("submitted", &done)
}

/// Loads or starts units, and says with `word` that this is done. One that is not there is submitted, if it is an instance of a template.
pub(super) async fn raise(
    client: &Client,
    names: &[UnitName],
    state: UnitState,
    (word, output): (&str, Output),
) -> Result<(), Failure> {
    let mut done: Vec<&str> = Vec::new();
    for name in names {
        let contents = contents_of_new(client, name).await.map_err(|error| before_change(error, &done))?;
        let put = put(client, name, state, contents.as_deref()).await;
        put.map_err(|error| at_change(error, &done))?;
        done.push(name.as_str());
    }
    output.done(word, &done)
}

/// Stops or unloads units, and says with `word` that this is done, or with `not_word` that it was so already.
///
/// # Errors
/// One is not there.
pub(super) async fn lower(
    client: &Client,
    names: &[UnitName],
    state: UnitState,
    (word, not_word): (&str, &str),
    output: Output,
) -> Result<(), Failure> {
    let mut done: Vec<&str> = Vec::new();
    for name in names {
        let unit = find(client, name).await;
        let unit = unit.and_then(|unit| unit.with_context(|| format!("there is no unit {name}")));
        let unit = unit.map_err(|error| before_change(error, &done))?;
        if unit.status.desired.is(|desired| desired <= state) {
            output.aside(&format!("{name} is {not_word}"));
            continue;
        }
        let put = put(client, name, state, None).await;
        put.map_err(|error| at_change(error, &done))?;
        done.push(name.as_str());
    }
    output.done(word, &done)
}

/// Destroys units.
pub(super) async fn destroy(client: &Client, names: &[UnitName], output: Output) -> Result<(), Failure> {
    let mut done: Vec<&str> = Vec::new();
    for name in names {
        let destroyed = client.call(call_of(Method::Delete, name)).await;
        let destroyed = destroyed.with_context(|| name.to_string());
        destroyed.map_err(|error| at_change(error, &done))?;
        done.push(name.as_str());
    }
    output.done("destroyed", &done)
}

/// The contents with which the unit is submitted if it is not there: those of the template of which it is an instance.
///
/// # Errors
/// There is neither, or that cannot be read.
pub(super) async fn contents_of_new(client: &Client, name: &UnitName) -> anyhow::Result<Option<String>> {
    if find(client, name).await?.is_some() {
        return Ok(None);
    }
    let template = match name.template() {
        Some(template) => find(client, &template).await?,
        None => None,
    };
    let template = template.with_context(|| format!("there is no unit {name}: submit its file first"))?;
    Ok(Some(template.contents.into_owned()))
}

/// The unit, if it is there.
async fn find(client: &Client, name: &UnitName) -> anyhow::Result<Option<Unit<'static>>> {
    match client.read::<Unit<'_>>(READ.named([name.as_str()])).await {
        Ok(unit) => Ok(Some(unit)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_missing(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(|refused: &Refused| refused.status == StatusCode::NOT_FOUND)
}

async fn put(client: &Client, name: &UnitName, state: UnitState, text: Option<&str>) -> anyhow::Result<()> {
    let body = Data::new(PartialUnit::new(Some(state), text.map(contents::encode)));
    let put = client.call_with_body(call_of(Method::Put, name), &body).await;
    // Fleet's sentences do not name the unit.
    put.with_context(|| name.to_string())?;
    Ok(())
}

fn call_of<B>(method: Method, name: &UnitName) -> Call<B> {
    Call::at(method, ["v1-alpha", "units", name.as_str()].map(str::to_owned).into())
}

/// Why nothing further was changed than `done`.
fn before_change(error: anyhow::Error, done: &[&str]) -> Failure {
    if done.is_empty() { Failure::unchanged(error) } else { at_change(error, done) }
}

/// Why a change failed. Earlier ones are made all the same.
fn at_change(error: anyhow::Error, done: &[&str]) -> Failure {
    if done.is_empty() {
        return error.into();
    }
    Failure::Unknown(error.context(format!("only {} was changed", done.join(", "))))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::output::Format;

    const TEXT: &str = "[Service]\nExecStart=/bin/true\n";

    /// A client, and what it asks.
    async fn client() -> (Client, TcpListener) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        (Client::without_token(&url.parse().unwrap()).unwrap(), listener)
    }

    /// Answers as many requests with these statuses and bodies. Returns the method of each.
    async fn serve(listener: &TcpListener, answers: &[(&str, Value)]) -> Vec<String> {
        let mut methods = Vec::new();
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
                stream.read_buf(&mut request).await.unwrap();
            }
            let request = String::from_utf8(request).unwrap();
            methods.push(request.split(' ').next().unwrap().to_owned());
            let body = body.to_string();
            let head =
                format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
            stream.write_all((head + &body).as_bytes()).await.unwrap();
            stream.read_to_end(&mut Vec::new()).await.ok();
        }
        methods
    }

    /// The unit `a.service`, which is to be in this state.
    fn unit(desired: &str) -> (&'static str, Value) {
        let unit = json!({
            "name": "a.service", "desired": desired, "current": "inactive", "on": [], "actor": "anna",
            "since": "2026-11-21T01:00:00Z", "contents": TEXT, "hash": "d9de01", "not-on": [],
        });
        ("200 OK", unit)
    }

    fn output() -> Output {
        Output::new(Format::Table, true, true)
    }

    #[tokio::test]
    async fn only_units_that_are_there_are_stopped() {
        let missing = || ("404 Not Found", json!({ "errors": [{ "error-message": "there is no unit" }] }));
        let done = || ("200 OK", Value::Null);
        for (name, state, answers, methods, error) in [
            // Even if there is a template of which it could be an instance.
            (
                "web@7.service",
                UnitState::Loaded,
                vec![missing()],
                vec!["GET"],
                Some("there is no unit web@7.service"),
            ),
            ("a.service", UnitState::Loaded, vec![unit("inactive")], vec!["GET"], None),
            ("a.service", UnitState::Loaded, vec![unit("loaded")], vec!["GET"], None),
            ("a.service", UnitState::Loaded, vec![unit("launched"), done()], vec!["GET", "PUT"], None),
            ("a.service", UnitState::Inactive, vec![unit("inactive")], vec!["GET"], None),
            ("a.service", UnitState::Inactive, vec![unit("loaded"), done()], vec!["GET", "PUT"], None),
        ] {
            let (client, listener) = client().await;
            let names = [UnitName::new(name).unwrap()];
            let lowered = lower(&client, &names, state, ("stopped", "not started"), output());
            let (lowered, asked) = tokio::join!(lowered, serve(&listener, &answers));
            let found = match lowered {
                Ok(()) => None,
                Err(Failure::Unchanged(error)) => Some(error.to_string()),
                Err(other) => panic!("{other:?}"),
            };
            assert_eq!(asked, methods, "{name}");
            assert_eq!(found.as_deref(), error);
        }
    }

    #[tokio::test]
    async fn refusals_name_the_unit() {
        let name = || UnitName::new("a.service").unwrap();
        let (client, listener) = client().await;
        let refused = ("409 Conflict", json!({ "error": { "code": 409, "message": "it is refused" } }));
        let answers = [unit("inactive"), refused];
        let names = [name()];
        let started = raise(&client, &names, UnitState::Launched, ("started", output()));
        let (started, asked) = tokio::join!(started, serve(&listener, &answers));
        assert_eq!(asked, ["GET", "PUT"]);
        let Err(Failure::Runtime(error)) = started else { panic!("{started:?}") };
        assert_eq!(format!("{error:#}"), "a.service: it is refused");
        assert!(error.downcast_ref::<Refused>().is_some_and(|refused| refused.of_change));

        let other = Submitted { name: name(), contents: "[Service]\n".to_owned() };
        let answers = [unit("inactive")];
        let (submitted, _) = tokio::join!(submit(&client, vec![other], output()), serve(&listener, &answers));
        let Err(Failure::Unchanged(error)) = submitted else { panic!("{submitted:?}") };
        let expected = "the unit a.service has other contents: destroy it first, or give it another name";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn files_are_units_of_their_name() {
        let directory = tempfile::tempdir().unwrap();
        let read = |name: &str, contents: &[u8]| {
            let path = directory.path().join(name);
            fs::write(&path, contents).unwrap();
            let read = read_file(&path).map(|unit| (unit.name.to_string(), unit.contents));
            read.map_err(|error| format!("{error:#}"))
        };
        let text = "[Service]\nExecStart=/bin/true\n";
        let expected = ("web@1.service".to_owned(), text.to_owned());
        assert_eq!(read("web@1.service", text.as_bytes()), Ok(expected));
        assert_eq!(read("a.service", b"\xff"), Err("it is not text in UTF-8".to_owned()));
        assert!(read("a.txt", text.as_bytes()).is_err());
        assert!(read("a.service", b"[Service\n").is_err());
        assert!(read("a.service", &vec![b'\n'; UNIT_BYTES_MAX]).is_ok());
        assert!(read("a.service", &vec![b'\n'; UNIT_BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn units_are_called_by_their_names() {
        let call: Call = call_of(Method::Delete, &UnitName::new("a@x:1.service").unwrap());
        assert_eq!(
            (call.method(), call.segments().join("/")),
            (Method::Delete, "v1-alpha/units/a@x:1.service".to_owned())
        );
    }
}
