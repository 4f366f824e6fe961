//! The file of what is left out of a diagnosis.

use std::fs;

use verbs_sim::Suppressions;

use crate::setting::Given;

/// Reads the suppressions of a file.
///
/// # Errors
/// It cannot be read, or a line names no class: which one.
pub(crate) fn given(given: Option<Given<String>>) -> Result<Suppressions, String> {
    let Some(given) = given else {
        return Ok(Suppressions::default());
    };
    let path = &given.value;
    read(path).map_err(|problem| given.refuse(path, problem))
}

fn read(path: &str) -> Result<Suppressions, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    Suppressions::parse(&text).map_err(|(line, unknown)| {
        format!("{path}:{line}: {unknown}; `verbsim classes` lists them")
    })
}
