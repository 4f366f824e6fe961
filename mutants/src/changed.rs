//! Which lines of the sources have changed since a commit.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

use crate::Result;

/// By source, the lines that are new or other than in the commit.
#[derive(Debug)]
pub(crate) struct Changed(BTreeMap<String, Vec<Range<usize>>>);

impl Changed {
    /// # Errors
    /// If git does not know the commit.
    pub(crate) fn since(root: &Path, commit: &str) -> Result<Self> {
        let diff = Command::new("git")
            .current_dir(root)
            .args([
                "diff",
                "--unified=0",
                "--no-color",
                "--no-ext-diff",
                commit,
                "--",
                "*.rs",
            ])
            .output()?;
        if !diff.status.success() {
            return Err(String::from_utf8_lossy(&diff.stderr).trim().into());
        }
        Ok(Self::of_diff(&String::from_utf8_lossy(&diff.stdout)))
    }

    pub(crate) fn has(&self, source: &str, line: usize) -> bool {
        let mut ranges = self.0.get(source).into_iter().flatten();
        ranges.any(|range| range.contains(&line))
    }

    fn of_diff(diff: &str) -> Self {
        let (mut all, mut source) = (BTreeMap::<_, Vec<_>>::new(), "");
        for line in diff.lines() {
            if let Some(path) = line.strip_prefix("+++ b/") {
                source = path;
            } else if let Some(range) = line.strip_prefix("@@ ").and_then(new_lines) {
                all.entry(source.to_owned()).or_default().push(range);
            }
        }
        Self(all)
    }
}

/// The lines after the `+` in the head of a hunk, `-1,2 +3,4 @@`.
fn new_lines(head: &str) -> Option<Range<usize>> {
    let (new, _) = head.split_once('+')?.1.split_once(' ')?;
    let (start, count) = new.split_once(',').unwrap_or((new, "1"));
    let (start, count): (usize, usize) = (start.parse().ok()?, count.parse().ok()?);
    Some(start..start + count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_new_have_changed_and_those_around_them_have_not() {
        let diff = "--- a/x.rs\n+++ b/x.rs\n@@ -3,0 +4,2 @@ fn f() {\n+a\n+b\n@@ -9 +12 @@\n-c\n+d\n@@ -20,2 +22,0 @@\n-e\n";
        let changed = Changed::of_diff(diff);
        let lines: Vec<usize> = (1..30).filter(|line| changed.has("x.rs", *line)).collect();
        assert_eq!(lines, [4, 5, 12]);
        assert!(!changed.has("y.rs", 4));
    }
}
