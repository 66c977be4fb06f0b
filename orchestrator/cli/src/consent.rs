//! Whether the operator agrees to a change, in advance or when asked.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use anyhow::{Context as _, anyhow};
use clap::Args;

use crate::Failure;

/// How the operator agrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    /// In advance.
    Given,
    /// When asked.
    Asked,
}

/// The option with which the operator agrees in advance.
#[derive(Debug, Args)]
pub(crate) struct Yes {
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

impl Yes {
    /// Whether the operator agrees in advance.
    pub(crate) const fn is_given(&self) -> bool {
        self.yes
    }

    /// How the operator agrees.
    pub(crate) const fn consent(&self) -> Consent {
        if self.yes { Consent::Given } else { Consent::Asked }
    }
}

impl Consent {
    /// Makes sure that somebody can be asked, if need be.
    ///
    /// # Errors
    /// There is no terminal.
    pub(crate) fn require_terminal(self) -> Result<(), Failure> {
        match self {
            Self::Given => Ok(()),
            Self::Asked if io::stdin().is_terminal() => Ok(()),
            Self::Asked => Err(Failure::Usage("without a terminal, confirm with --yes".to_owned())),
        }
    }

    /// Asks on the terminal, unless the operator has agreed in advance. Only `y` and `yes` are a yes.
    ///
    /// # Errors
    /// The operator does not agree, or nobody can be asked.
    pub(crate) fn confirm(self, question: &str) -> Result<(), Failure> {
        self.confirm_with(&format!("{question} [y/N] "), |answer| matches!(answer, "y" | "Y" | "yes"))
    }

    /// As [`Self::confirm`], where `agrees` says which answers are a yes.
    ///
    /// # Errors
    /// The operator does not agree, or nobody can be asked.
    pub(crate) fn confirm_with(
        self,
        question: &str,
        agrees: impl FnOnce(&str) -> bool,
    ) -> Result<(), Failure> {
        if self == Self::Given {
            return Ok(());
        }
        self.require_terminal()?;
        let answer = ask(question).map_err(Failure::unchanged)?;
        if agrees(answer.trim()) { Ok(()) } else { Err(Failure::unchanged(anyhow!("nothing was done"))) }
    }
}

fn ask(question: &str) -> anyhow::Result<String> {
    let mut stderr = io::stderr();
    write!(stderr, "{question}").and_then(|()| stderr.flush()).context("cannot ask")?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).context("cannot read the answer")?;
    Ok(answer)
}
