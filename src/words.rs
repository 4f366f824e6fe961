//! Words for people: plurals, and what a misspelt name may mean.

/// `1 seed`, `2 seeds`.
pub(crate) fn count(number: u64, singular: &str) -> String {
    match number {
        1 => format!("1 {singular}"),
        _ => format!("{number} {singular}s"),
    }
}

/// `: did you mean ...?`, if a name is close to the one that was given; otherwise what shows them all.
pub(crate) fn meant<'a>(
    given: &str,
    names: impl IntoIterator<Item = &'a str>,
    otherwise: &str,
) -> String {
    let given = given.to_lowercase();
    let likeness = |name: &str| {
        let name = name.to_lowercase();
        // The part behind the group, too: people remember that of a scenario.
        let short = name.rsplit('.').next().unwrap_or(&name);
        strsim::jaro_winkler(&given, &name).max(strsim::jaro_winkler(&given, short))
    };
    let scored = names.into_iter().map(|name| (likeness(name), name));
    let closest = scored.max_by(|(a, _), (b, _)| a.total_cmp(b));
    match closest {
        Some((score, name)) if score > CLOSE => format!("; did you mean {name}?"),
        _ => format!("; {otherwise}"),
    }
}

/// Of 1: as clap has it.
const CLOSE: f64 = 0.8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_no_plural() {
        assert_eq!(
            [0, 1, 2].map(|n| count(n, "seed")),
            ["0 seeds", "1 seed", "2 seeds"]
        );
    }

    #[test]
    fn a_misspelt_name_finds_the_one_that_is_meant() {
        let names = [
            "cq_arm.request_is_one_shot",
            "uc.there_are_no_reads",
            "CQ-ARM-17",
        ];
        for (given, said) in [
            ("cq-arm-71", "; did you mean CQ-ARM-17?"),
            (
                "request_is_one_sot",
                "; did you mean cq_arm.request_is_one_shot?",
            ),
            ("xyz", "; `verbsim list` shows all"),
        ] {
            assert_eq!(meant(given, names, "`verbsim list` shows all"), said);
        }
    }
}
