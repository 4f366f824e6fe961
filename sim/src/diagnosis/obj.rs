//! Objects that are not destroyed.

use verbs_api::site::Site;

use super::Class;
use super::problem::problems;
use super::words::{counted, listed};

problems! {
    /// Objects that still exist.
    NotDestroyed {
        /// Their names with their states, and where they were created. Users come before the
        /// objects they use.
        names: Vec<(String, Option<Site>)>,
        /// The number of open contexts of the device.
        contexts: u32,
        /// Whether they were destroyed with their context, which was closed in spite of them
        /// (DEV-03).
        closed: bool,
    }
    is Class::NotDestroyed,
    |places| {
        let mut parts = Vec::new();
        if !names.is_empty() {
            let before = if *closed { " before the context was closed" } else { "" };
            parts.push(format!("not destroyed{before}: {}", listed(names, places)));
        }
        if *contexts > 0 {
            parts.push(counted(*contexts, "context", "contexts") + " not closed");
        }
        parts.join("; ")
    };
}
