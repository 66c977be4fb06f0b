//! States of units.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// The state that a unit is in, or is wished to be in; each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum UnitState {
    /// It is known, and on no machine.
    Inactive,
    /// It is on a machine, where systemd has loaded it.
    Loaded,
    /// It is started there.
    Launched,
}

/// A text is not the state of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the state of a unit is inactive, loaded or launched")]
pub struct UnitStateError;

impl UnitState {
    /// The word for this state in fleet's API.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for UnitState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for UnitState {
    type Err = UnitStateError;

    fn from_str(text: &str) -> Result<Self, UnitStateError> {
        let states = [Self::Inactive, Self::Loaded, Self::Launched];
        states.into_iter().find(|state| state.as_str() == text).ok_or(UnitStateError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_lower_case_words_in_order() {
        let words = ["inactive", "loaded", "launched"];
        let states = words.map(|word| word.parse::<UnitState>().unwrap());
        assert!(states.is_sorted());
        for (word, state) in words.into_iter().zip(states) {
            assert_eq!(serde_json::to_string(&state).unwrap(), format!("\"{state}\""));
            assert_eq!(state.to_string(), word);
        }
        for text in ["", "Loaded", "loaded ", "active"] {
            assert_eq!(text.parse::<UnitState>(), Err(UnitStateError), "{text:?}");
        }
    }
}
