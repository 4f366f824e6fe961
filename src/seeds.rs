//! Seeds on the command line: `A..B`, or one.

use std::ops::Range;

/// Of `A..B`, from A to below B, or of one seed.
pub(crate) fn parse(text: &str) -> Result<Range<u64>, String> {
    let number = |text: &str| {
        let parsed = text.parse::<u64>();
        parsed
            .map_err(|_| format!("{text:?} is not a number; use one seed (7) or a range (0..2000)"))
    };
    let range = match text.split_once("..") {
        Some((from, to)) => number(from)?..number(to)?,
        None => {
            let one = number(text)?;
            one..one.saturating_add(1)
        }
    };
    if range.is_empty() {
        return Err(format!("{text} has no seed"));
    }
    Ok(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_range_or_one() {
        assert_eq!(parse("3..5"), Ok(3..5));
        assert_eq!(parse("7"), Ok(7..8));
        assert_eq!(parse("5..5"), Err("5..5 has no seed".to_string()));
        let error = "\"x\" is not a number; use one seed (7) or a range (0..2000)";
        assert_eq!(parse("1..x"), Err(error.to_string()));
    }
}
