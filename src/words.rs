//! Words for people: plurals, and what a misspelt name may mean.

/// `1 seed`, `2 seeds`.
pub(crate) fn count(number: u64, singular: &str) -> String {
    match number {
        1 => format!("1 {singular}"),
        _ => format!("{number} {singular}s"),
    }
}

/// `: did you mean ...?`, if a name is close to the one that was given; otherwise what shows them
/// all.
pub(crate) fn meant<'a>(
    given: &str,
    names: impl IntoIterator<Item = &'a str>,
    otherwise: &str,
) -> String {
    let given = given.to_lowercase();
    // The part behind the group, too: people remember that of a scenario.
    let best = |likeness: fn(&str, &str) -> f64, name: &str| {
        let name = name.to_lowercase();
        let short = name.rsplit('.').next().unwrap_or(&name);
        likeness(&given, &name).max(likeness(&given, short))
    };
    // If several are equally far, the one with the same letters.
    let close = names
        .into_iter()
        .filter(|name| best(strsim::normalized_damerau_levenshtein, name) > CLOSE)
        .map(|name| (best(strsim::jaro_winkler, name), name))
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    match close {
        Some((_, name)) => format!("; did you mean {name}?"),
        None => format!("; {otherwise}"),
    }
}

/// Of 1: a letter in four may be wrong.
const CLOSE: f64 = 0.7;

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
