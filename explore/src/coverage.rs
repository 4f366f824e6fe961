//! What an exploration has met.

use core::fmt;

/// What an exploration has met: how often its faults fired, and how queue pairs fared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Coverage {
    /// The number of seeds tried.
    pub tried: u64,
    /// The number of seeds in which each rule of the plan has fired.
    pub fired: Vec<u64>,
    /// The number of seeds in which a queue pair failed: a completion had an error other than a
    /// flush.
    pub failed: u64,
    /// The number of seeds in which a queue pair became ready to send after one had failed, perhaps
    /// another one.
    pub reconnected: u64,
}

impl Coverage {
    /// What the faults have not reached, so that the exploration tests nothing of it. Empty without
    /// faults.
    pub fn hints(&self) -> Vec<String> {
        if self.tried == 0 || self.fired.is_empty() {
            return Vec::new();
        }
        let silent = (1..).zip(&self.fired).filter(|(_, seeds)| **seeds == 0);
        let silent = silent.map(|(rule, _)| format!("rule {rule} of the plan never fired"));
        let mut hints: Vec<_> = silent.collect();
        if self.failed == 0 {
            let harsh = "the plan `harsh` breaks connections";
            hints.push(format!("no queue pair failed in any seed: {harsh}"));
        } else if self.reconnected == 0 {
            hints.push("no queue pair was connected after one had failed".to_owned());
        }
        hints
    }
}

/// One sentence, and a line for each hint.
impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            tried,
            failed,
            reconnected,
            ..
        } = self;
        write!(
            f,
            "{tried} seeds: a queue pair failed in {failed}, and one was connected after that in {reconnected}"
        )?;
        self.hints()
            .iter()
            .try_for_each(|hint| write!(f, "\nhint: {hint}"))
    }
}
