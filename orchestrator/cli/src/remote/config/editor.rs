//! `config edit`: the configuration in an editor, again and again until the API takes it.

use std::process::Stdio;

use anyhow::{Context as _, bail};
use os_upgrade_protocol::text::sanitized;
use os_upgrade_shell::not_done::NotDone;
use tempfile::NamedTempFile;

use super::difference::yaml;
use super::proposal::{self, Change, Read};
use crate::Failure;
use crate::consent::Consent;
use crate::failure::Refused;
use crate::output::{Output, errln};
use crate::rest::Client;

/// How often a refused configuration is opened again.
const ATTEMPTS_MAX: u32 = 100;

/// What begins a comment about a refusal. Such lines are taken out before the next one is put in.
const REFUSED: &str = "# refused: ";

/// Opens the configuration in the operator's editor, and makes the change.
pub(super) async fn edit(client: &Client, consent: Consent, output: Output) -> Result<(), Failure> {
    // Not only after the work in the editor.
    consent.require_terminal()?;
    let editor = ["VISUAL", "EDITOR"].into_iter().find_map(std::env::var_os);
    let editor = editor.filter(|editor| !editor.is_empty());
    let editor = editor.ok_or_else(|| Failure::Usage("no editor: set VISUAL or EDITOR".to_owned()))?;
    let current = Read::of(client).await?;
    let original = yaml(&current.configuration);
    let file = tempfile::Builder::new().prefix("os-upgrade-").suffix(".yaml").tempfile();
    let file = file.context("cannot make a file to edit").map_err(Failure::unchanged)?;
    let mut shown = original.clone();
    let mut refusal = None;
    for _ in 0..ATTEMPTS_MAX {
        let edited = open(&editor, &file, &shown).await.map_err(Failure::unchanged)?;
        let text = without_refusals(&edited);
        if text == without_refusals(&shown) || text.trim() == original.trim() {
            let refused = refusal.map(|refusal| format!(": {refusal}")).unwrap_or_default();
            let why = NotDone::unchanged(format!("the file was left as it was{refused}"));
            return Err(Failure::unchanged(why));
        }
        let change = Change::of_text(text.clone().into_bytes());
        match proposal::preview(client, &current, &change).await {
            Ok(preview) => {
                let consent = Some(consent);
                let made = proposal::carry_out(client, &current, &change, &preview, consent, output).await;
                return made.map_err(|failure| keep(file, failure));
            }
            Err(error) if error.is::<Refused>() => {
                let why = format!("{error:#}");
                shown = with_refusal(&text, &why);
                refusal = Some(why);
            }
            Err(error) => return Err(keep(file, Failure::unchanged(error))),
        }
    }
    let why = NotDone::unchanged("the configuration was refused too often");
    Err(keep(file, Failure::unchanged(why)))
}

/// Keeps what was written, and says where.
fn keep(file: NamedTempFile, failure: Failure) -> Failure {
    if let Ok((_, path)) = file.keep() {
        errln!("your configuration is in {}", path.display());
    }
    failure
}

/// Lets the operator edit `text`, and returns the result.
async fn open(editor: &std::ffi::OsStr, file: &NamedTempFile, text: &str) -> anyhow::Result<String> {
    // By its path: the last editor may have moved another file there.
    std::fs::write(file.path(), text).context("cannot write the file to edit")?;
    // As other programs do: the variable may have arguments.
    let mut command = tokio::process::Command::new("sh");
    command.arg("-c").arg(r#"eval "$OS_UPGRADE_EDITOR \"\$1\"""#).arg("sh").arg(file.path());
    command.env("OS_UPGRADE_EDITOR", editor).stdin(Stdio::inherit());
    let status = command.status().await.context("cannot start the editor")?;
    if !status.success() {
        bail!("the editor has failed ({status})");
    }
    // An editor may write another file and move it there.
    std::fs::read_to_string(file.path()).context("cannot read what was edited")
}

fn with_refusal(text: &str, why: &str) -> String {
    let lines = why.lines().map(|line| format!("{REFUSED}{}\n", sanitized(line)));
    lines.chain([text.to_owned()]).collect()
}

fn without_refusals(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| !line.starts_with(REFUSED)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_comments_that_are_taken_out_again() {
        let text = "rollout:\n  max-concurrent: 0\n";
        let shown = with_refusal(text, "rollout: must\nbe 1");
        assert_eq!(shown, format!("# refused: rollout: must\n# refused: be 1\n{text}"));
        assert_eq!(without_refusals(&shown), text);
    }
}
