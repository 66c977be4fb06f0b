//! Header fields of our own, and the preference that several routes know.

use utoipa::IntoParams;

/// The id of the run that a trigger has started.
pub const RUN: &str = "Os-Upgrade-Run";

/// What would follow from a configuration, as a sentence in ASCII: one field for each warning, at most 16 of at most 400
/// bytes. Other characters are written as `\u{...}`.
pub const WARNING: &str = "Os-Upgrade-Warning";

/// In fleet's dialects, whose errors have no `error-info`: the `outcome` of a change that was not done, `unchanged` or `unknown`.
pub const OUTCOME: &str = "Os-Upgrade-Outcome";

/// The value of `Prefer` with which the answer to a change has its result as its body.
pub const REPRESENTATION: &str = "return=representation";

/// What the client prefers (RFC 7240).
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
pub struct Preferences {
    /// `return=representation`: the answer has the result as its body. Other preferences are ignored.
    #[param(rename = "Prefer", example = "return=representation")]
    pub prefer: Option<String>,
}
