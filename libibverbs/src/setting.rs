//! Settings: a variable, or a key of a file, with its place for those who have to be told what is wrong.

use std::collections::BTreeMap;
use std::fmt::Display;

/// Where settings come from.
pub(crate) struct Sources<'a, V> {
    /// For messages.
    pub(crate) file_name: &'a str,
    pub(crate) variable: V,
}

/// What a setting was given, and where.
pub(crate) struct Given<T> {
    pub(crate) place: String,
    pub(crate) value: T,
}

impl<V: Fn(&str) -> Option<String>> Sources<'_, V> {
    /// A setting by the name of its option: what its variable says, or the file.
    pub(crate) fn setting<T>(
        &self,
        option: &str,
        in_file: Option<T>,
        parse: fn(&str) -> Result<T, &'static str>,
    ) -> Result<Option<Given<T>>, String> {
        if let Some(text) = (self.variable)(&variable_of(option)) {
            let place = place_of_variable(option);
            return match parse(text.trim()) {
                Ok(value) => Ok(Some(Given { place, value })),
                Err(problem) => Err(format!("{place} is {text}: {problem}")),
            };
        }
        let place = format!("{} in {}", option.replace('-', "_"), self.file_name);
        Ok(in_file.map(|value| Given { place, value }))
    }
}

impl<T> Given<T> {
    /// Why a value cannot be.
    pub(crate) fn refuse(&self, value: impl Display, problem: impl Display) -> String {
        format!("{} is {value}: {problem}", self.place)
    }
}

impl Given<u64> {
    /// Its value, if that is between two others.
    pub(crate) fn within(&self, least: u64, most: u64) -> Result<u64, String> {
        if (least..=most).contains(&self.value) {
            return Ok(self.value);
        }
        Err(self.refuse(self.value, format!("allowed are {least} to {most}")))
    }
}

fn variable_of(option: &str) -> String {
    format!("VERBSIM_{}", option.to_uppercase().replace('-', "_"))
}

/// The variable of an option, which `verbsim exec` sets.
pub(crate) fn place_of_variable(option: &str) -> String {
    format!("{} (--{option})", variable_of(option))
}

pub(crate) fn text(text: &str) -> Result<String, &'static str> {
    Ok(text.to_owned())
}

pub(crate) fn number(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "it is to be a number")
}

pub(crate) fn list(text: &str) -> Result<Vec<String>, &'static str> {
    Ok(text.split(',').map(|part| part.trim().to_owned()).collect())
}

/// `max_qp=16,max_cqe=255`
pub(crate) fn pairs(text: &str) -> Result<BTreeMap<String, u64>, &'static str> {
    let problem = "it is written NAME=NUMBER,...";
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').ok_or(problem)?;
        let value = value.trim().parse().map_err(|_| problem)?;
        Ok((name.trim().to_owned(), value))
    };
    text.split(',').map(pair).collect()
}
