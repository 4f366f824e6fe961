//! Differences between a device and the simulator's profile of its driver that are known, and why.

use serde::Deserialize;

use super::compare::Difference;

/// A known difference. The files are in `explore/deviations`, one a driver.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Known {
    /// Texts of which the difference has one, such as `PostSend` or `state of qp`.
    pub of: Vec<String>,
    /// Text in the outcome on the device.
    pub device: String,
    /// Text in the outcome on the simulator.
    pub simulator: String,
    /// Text in each completion that the device lacks, if it differs by those alone.
    #[serde(default)]
    pub lacks: Option<String>,
    /// Why, in a sentence.
    pub reason: String,
    /// The source: kernel file and function, man page, or measurement.
    pub source: String,
}

impl Known {
    /// Whether this is the difference.
    pub fn explains(&self, difference: &Difference) -> bool {
        self.of.iter().any(|text| difference.of.contains(text))
            && difference.device.contains(&self.device)
            && difference.simulator.contains(&self.simulator)
            && self.lacks.as_ref().is_none_or(|text| {
                let mut lacks = difference.lacks.iter();
                lacks.len() > 0 && lacks.all(|completion| completion.contains(text))
            })
    }
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    deviation: Vec<Known>,
}

/// The known differences of a driver; none if the driver is not described.
pub fn known(driver: &str) -> Vec<Known> {
    let file = FILES.iter().find(|(of, _)| *of == driver);
    file.map_or_else(Vec::new, |(name, text)| {
        let file: File = toml::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        file.deviation
    })
}

const FILES: &[(&str, &str)] = &[("rxe", include_str!("../../deviations/rxe.toml"))];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_difference_says_why() {
        for (driver, _) in FILES {
            for known in known(driver) {
                let texts = known.of.iter().chain([&known.reason, &known.source]);
                for text in texts {
                    assert!(!text.is_empty(), "{driver}: {known:?}");
                }
                assert!(!known.of.is_empty(), "{driver}: {known:?}");
            }
        }
    }
}
