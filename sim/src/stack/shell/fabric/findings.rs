//! What all nodes together know of what programs did wrong.

use verbs_api::site::Site;
use verbs_api::{Error, WcStatus};

use super::{Fabric, Seat};
use crate::class::Class;
use crate::device::reason;
use crate::diagnosis::{Diagnosis, Finding, Noted, Problem, Why};

/// Without a place that is this crate's: through `dyn Verbs` Rust knows no other.
pub(super) fn finding(node: u32, noted: Noted) -> Finding {
    let is_own = |site: &Site| match site {
        Site::Source(location) => location.file().starts_with(own_files()),
        _ => false,
    };
    let mut finding = Finding::new(node, noted);
    finding.site = finding.site.filter(|site| !is_own(site));
    match &mut finding.problem {
        Problem::Failed { why: Some(why), .. } => {
            why.place = why.place.filter(|(_, site)| !is_own(site));
        }
        Problem::NotDestroyed { names, .. } => {
            for (_, made_at) in names {
                *made_at = made_at.filter(|site| !is_own(site));
            }
        }
        _ => {}
    }
    finding
}

/// What the names of the files begin with by which programs call verbs.
fn own_files() -> &'static str {
    file!()
        .strip_suffix("fabric/findings.rs")
        .unwrap_or(file!())
}

impl Fabric {
    /// What programs did wrong or left undone: causes first, then what came of them.
    pub(in crate::stack::shell) fn diagnose(&self) -> Diagnosis {
        let mut diagnosis = Diagnosis::default();
        let causes = |seat: &Seat| seat.node.causes();
        let failed = |seat: &Seat| self.failures(seat);
        let signs = |seat: &Seat| seat.node.signs();
        let left = |seat: &Seat| seat.node.leftovers();
        diagnosis.mistakes.extend(self.of_nodes(causes));
        diagnosis.mistakes.extend(self.of_nodes(failed));
        diagnosis.mistakes.extend(self.of_nodes(signs));
        diagnosis.mistakes.extend(self.waits());
        self.drop_consequences(&mut diagnosis.mistakes);
        diagnosis.leftovers.extend(self.of_nodes(left));
        diagnosis
    }

    /// A call was refused.
    #[cold]
    pub(in crate::stack::shell) fn note_refusal(&mut self, node: u32, error: &Error) {
        if let Some(class) = Class::of_refusal(error) {
            let (error, site) = (error.clone(), self.site);
            let history = &mut self.node_mut(node).device.base.history;
            history.note(Problem::Refused { class, error }, site);
        }
    }

    /// A layer was misused.
    pub(in crate::stack::shell) fn note_misuse(&mut self, class: Class, text: String) {
        let site = self.site;
        let history = &mut self.node_mut(0).device.base.history;
        history.note(Problem::Misused { class, text }, site);
    }

    fn of_nodes(&self, found: impl Fn(&Seat) -> Vec<Noted>) -> Vec<Finding> {
        let of_node = |(number, seat): (u32, &Seat)| {
            let findings = found(seat).into_iter();
            findings.map(move |noted| finding(number, noted))
        };
        (0..).zip(&self.seats).flat_map(of_node).collect()
    }

    fn failures(&self, seat: &Seat) -> Vec<Noted> {
        let node = &seat.node;
        let failures = node.failures().iter();
        failures
            .map(|failure| node.failure(failure, |peer| self.node(peer)))
            .collect()
    }

    /// Leaves out what another finding explains: packets of a queue pair that failed, work that failed since its peer's
    /// CQ has overrun, and what nobody polls since the thread waits.
    fn drop_consequences(&self, mistakes: &mut Vec<Finding>) {
        let failed: Vec<_> = mistakes
            .iter()
            .filter_map(|finding| match finding.problem {
                Problem::Failed { qp_num, .. } => Some((finding.node, qp_num)),
                _ => None,
            })
            .collect();
        let differ: Vec<_> = mistakes
            .iter()
            .filter_map(|finding| match finding.problem {
                Problem::EndsDiffer { qp_num, .. } => Some((finding.node, qp_num)),
                _ => None,
            })
            .collect();
        let waits: Vec<_> = mistakes
            .iter()
            .filter_map(|finding| match finding.problem {
                Problem::Waits { .. } => Some(finding.node),
                _ => None,
            })
            .collect();
        mistakes.retain(|finding| match &finding.problem {
            Problem::NeverPolled { .. } | Problem::Unpolled { .. } => {
                !waits.contains(&finding.node)
            }
            Problem::Dropped {
                from: (node, from),
                qp_num,
                why,
                ..
            } => {
                let of_sender = node.is_some_and(|node| failed.contains(&(node, *from)));
                let is_cut = *why == reason::PATH_MTU && differ.contains(&(finding.node, *qp_num));
                !of_sender && !is_cut && !failed.contains(&(finding.node, *qp_num))
            }
            Problem::Failed {
                status: WcStatus::RemOpErr,
                why: Some(Why { text, .. }),
                ..
            } => !text.ends_with(reason::OVERRUN),
            _ => true,
        });
    }
}
