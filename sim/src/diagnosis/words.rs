//! Printing of findings.

use core::fmt;

use verbs_api::site::Site;
use verbs_api::{CompChannel, Cq};

use super::class::Certainty;
use super::{Diagnosis, Finding, Why};

/// The names of devices, places and objects in printed findings.
pub trait Names {
    /// A device, by its number: `sim0`, ...
    fn device(&self, node: u32) -> String {
        format!("sim{node}")
    }

    /// A place: `client.rs:17`.
    fn place(&self, site: Site) -> String {
        site.to_string()
    }

    /// A CQ: `cq#0`.
    fn cq(&self, cq: Cq) -> String {
        cq.to_string()
    }

    /// A completion channel: `channel#0`.
    fn channel(&self, channel: CompChannel) -> String {
        channel.to_string()
    }
}

/// Names that are the same in each process: they contain no memory addresses.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainNames;

impl Names for PlainNames {}

/// The most names that a finding prints.
pub(super) const MOST: usize = 8;

impl Diagnosis {
    /// Prints the diagnosis with these names.
    pub fn with_names(&self, names: &dyn Names) -> String {
        let mut text = String::new();
        let mut helped = Vec::new();
        for finding in self.findings() {
            text += &format!("{}\n", finding.in_words(names));
            let class = finding.class();
            // One remedy for each class is enough.
            if !helped.contains(&class) {
                helped.push(class);
                text += &format!("help: {class}: {} ({})\n", class.remedy(), class.rule());
            }
        }
        text
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with_names(&PlainNames))
    }
}

impl Finding {
    /// The sentence of the finding: its line without device, class, count and place.
    pub fn sentence(&self, names: &dyn Names) -> String {
        self.problem.described().sentence(names)
    }

    /// The line of the finding, without a line break: the device, the class, the sentence, and the
    /// place.
    pub fn in_words(&self, names: &dyn Names) -> String {
        let (node, class) = (names.device(self.node), self.class());
        let level = match self.certainty {
            Certainty::Certain => "",
            Certainty::Hint => "hint: ",
        };
        let words = self.sentence(names);
        let more = match self.more {
            0 => String::new(),
            times => format!(", and {}", counted(times, "more time", "more times")),
        };
        let site = self.site.map(|site| format!(" ({})", names.place(site)));
        format!(
            "{node}: {class}: {level}{words}{more}{}",
            site.unwrap_or_default()
        )
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words(&PlainNames))
    }
}

impl Why {
    pub(super) fn in_words(&self, names: &dyn Names) -> String {
        let at = self.node.map(|node| format!("at {}, ", names.device(node)));
        let (at, place) = (at.unwrap_or_default(), place_named(self.place, names));
        let registered = self.registered.map(|site| ("and registered at", site));
        let registered = place_named(registered, names);
        format!(": {at}{}{place}{registered}", self.text())
    }
}

/// A place at the end of a sentence, with the words that introduce it.
pub(super) fn place_named(place: Option<(&'static str, Site)>, names: &dyn Names) -> String {
    let place = place.map(|(what, site)| format!(", {what} {}", names.place(site)));
    place.unwrap_or_default()
}

/// The number of waiting completions, as a phrase.
pub(super) fn waiting(unpolled: u32) -> String {
    counted(unpolled, "completion waits", "completions wait")
}

/// A number of things, as a phrase.
pub(crate) fn counted<N: fmt::Display + PartialEq + From<u8>>(
    count: N,
    one: &str,
    many: &str,
) -> String {
    let things = if count == N::from(1) { one } else { many };
    format!("{count} {things}")
}
