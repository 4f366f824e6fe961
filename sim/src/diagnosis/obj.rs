//! Objects that are not destroyed.

use verbs_api::site::Site;

use super::Class;
use super::problem::Describe;
use super::words::{MOST, Names, counted};

/// Objects that still exist.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NotDestroyed {
    /// Their names with their states, and where they were created. Users come before the objects
    /// they use.
    pub names: Vec<(String, Option<Site>)>,
    /// The number of open contexts of the device.
    pub contexts: u32,
    /// Whether they were destroyed with their context, which was closed in spite of them (DEV-03).
    pub closed: bool,
}

impl Describe for NotDestroyed {
    fn class(&self) -> Class {
        Class::NotDestroyed
    }

    fn sentence(&self, names: &dyn Names) -> String {
        let left = &self.names;
        let before = if self.closed {
            " before the context was closed"
        } else {
            ""
        };
        let mut parts = Vec::new();
        if !left.is_empty() {
            let place = |site| format!(" ({})", names.place(site));
            let shown = left
                .iter()
                .take(MOST)
                .map(|(name, site)| format!("{name}{}", site.map(place).unwrap_or_default()));
            let shown = shown.collect::<Vec<_>>().join(", ");
            // A long list of objects would hide the other findings.
            let more = left.len().saturating_sub(MOST);
            let more = (more > 0).then(|| format!(", and {more} more"));
            parts.push(format!(
                "not destroyed{before}: {shown}{}",
                more.unwrap_or_default()
            ));
        }
        if self.contexts > 0 {
            let contexts = counted(self.contexts.into(), "context", "contexts");
            parts.push(format!("{contexts} not closed"));
        }
        parts.join("; ")
    }
}
