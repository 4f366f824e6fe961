//! How a diagnosis is written.

use core::str::FromStr;

use crate::setting::Given;

/// How a diagnosis is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiagnoseFormat {
    /// For people.
    #[default]
    Text,
    /// For programs: an object a line.
    Json,
}

impl FromStr for DiagnoseFormat {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, &'static str> {
        match name {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("allowed are text, json"),
        }
    }
}

impl DiagnoseFormat {
    /// The one that is set.
    pub(crate) fn given(given: Option<Given<String>>) -> Result<Self, String> {
        let Some(given) = given else {
            return Ok(Self::default());
        };
        let named = given.value.parse();
        named.map_err(|why: &str| given.refuse(&given.value, why))
    }
}
