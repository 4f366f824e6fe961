//! Making a list that fails shorter.

/// The shortest failing list that this search finds by leaving out parts: first halves, then
/// smaller and smaller ones, until no single element can be left out (delta debugging). `list`
/// itself is assumed to fail. At most `attempts` lists are tried.
///
/// ```
/// use verbs_explore::shrink;
///
/// let both = |list: &[u32]| list.contains(&3) && list.contains(&8);
/// assert_eq!(shrink((0..10).collect(), 1000, both), [3, 8]);
/// ```
pub fn shrink<T: Clone>(
    list: Vec<T>,
    mut attempts: usize,
    mut fails: impl FnMut(&[T]) -> bool,
) -> Vec<T> {
    let mut shortest = list;
    let mut part = shortest.len().div_ceil(2);
    while part > 0 {
        let (mut start, before) = (0, shortest.len());
        while start < shortest.len() {
            if attempts == 0 {
                return shortest;
            }
            attempts -= 1;
            let end = (start + part).min(shortest.len());
            let without = [&shortest[..start], &shortest[end..]].concat();
            if fails(&without) {
                shortest = without;
            } else {
                start = end;
            }
        }
        if part > 1 {
            part = part.div_ceil(2);
        } else if shortest.len() == before {
            break;
        }
    }
    shortest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_fails_and_nothing_of_it_can_be_left_out() {
        // Fails with two neighbours of different parity in it, whose sum is at least 20.
        let fails = |list: &[u32]| {
            list.windows(2)
                .any(|w| w[0] + w[1] >= 20 && (w[0] ^ w[1]) & 1 == 1)
        };
        let found = shrink((0..100).collect(), usize::MAX, fails);
        assert!(fails(&found));
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn a_list_that_fails_empty_becomes_empty() {
        assert_eq!(shrink(vec![1, 2, 3], 100, |_| true), []);
    }

    #[test]
    fn no_more_lists_are_tried_than_allowed() {
        let mut tried = 0;
        let found = shrink((0..64).collect::<Vec<_>>(), 5, |_| {
            tried += 1;
            false
        });
        assert_eq!((tried, found.len()), (5, 64));
    }
}
