//! How a diagnosis is written.

use core::str::FromStr;

use crate::setting::Given;

/// The format of a diagnosis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiagnoseFormat {
    /// For people.
    #[default]
    Text,
    /// For programs: one JSON object per line.
    Json,
    /// JUnit XML.
    Junit,
    /// Annotations of GitHub Actions.
    Github,
    /// SARIF 2.1.0.
    Sarif,
}

impl DiagnoseFormat {
    /// Whether the diagnosis is one document about all processes. `verbsim exec` writes it when the
    /// program has ended; the processes write [`Json`](Self::Json) for it.
    pub fn is_document(self) -> bool {
        matches!(self, Self::Junit | Self::Github | Self::Sarif)
    }

    /// The one that is set.
    pub(crate) fn given(given: Option<Given<String>>) -> Result<Self, String> {
        let Some(given) = given else {
            return Ok(Self::default());
        };
        let named = given.value.parse();
        named.map_err(|why: &str| given.refuse(&given.value, why))
    }
}

impl FromStr for DiagnoseFormat {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, &'static str> {
        match name {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            "junit" => Ok(Self::Junit),
            "github" => Ok(Self::Github),
            "sarif" => Ok(Self::Sarif),
            _ => Err("allowed are text, json, junit, github, sarif"),
        }
    }
}
