//! Code within judged functions whose mutants are not judged. Whole functions, types and modules
//! are marked in the source instead, with `mutants::skip`.

/// Whether a mutant, known by its file and text, is of such code.
pub(crate) fn is_unjudged(file: &str, text: &str) -> bool {
    let rows = UNJUDGED.iter().filter(|(place, _)| file.starts_with(place));
    rows.flat_map(|(_, parts)| *parts)
        .any(|part| text.contains(part))
}

/// Files, by what their paths begin with, and parts of the texts of mutants in them.
const UNJUDGED: &[(&str, &[&str])] = &[
    // Only the diagnosis and the trace read it: where the program made a call, which events it has
    // read, the number of a work request.
    (
        "",
        &[
            "site",
            "usage",
            "was_left",
            "read_at",
            "since: ",
            "label: ",
            "waits.",
            "note_refus",
            "note_other_",
            "note_short",
            "call: verb",
            "note_seen",
            "note_armed",
            "note_endless",
            "note_post",
            "has_read",
            "reads_end",
            "cleared",
            "note_outliving",
            "reset_at",
            "has_seen_failure",
            "is_observed()",
            "let Err(error) = &",
            "shown.set(handle, false)",
            "compare(fabric",
            "modified.is_ok()",
            "posts_in_error",
            "was_reset",
            "is_affected",
        ],
    ),
    // Only an option makes the simulator notice unmapped memory.
    (
        "",
        &[
            "check_memory",
            "checks_m",
            "note_placed",
            "self.placed",
            "unmapped",
            "self.checks(",
            "sum::",
        ],
    ),
    // The next poll takes the lock although the CQ is empty.
    ("", &["without self.show(index);", "cqs.polled("]),
    // The cached paths of the fast path are valid for an epoch.
    ("", &["self.direct."]),
];
