//! Figures, references, budgets.

use std::fmt::Write as _;

/// Nanoseconds by which a verb may be slower with more unrelated objects: only noise.
pub(crate) const NOTHING: f64 = 20.0;
/// Nanoseconds by which a verb may be slower if it looks something up among more objects: a miss of
/// the last-level cache.
pub(crate) const MISS: f64 = 100.0;

/// One figure.
#[derive(Clone)]
pub(crate) struct Line {
    what: String,
    figure: f64,
    pub(crate) unit: &'static str,
    reference: Option<(String, f64)>,
    budget: Option<Budget>,
    instructions: Option<f64>,
}

/// The upper limit of a figure.
#[derive(Clone, Copy)]
enum Budget {
    /// An absolute value.
    Most(f64),
    /// A difference to the reference.
    More(f64),
}

impl Line {
    pub(crate) fn new(what: &str, figure: f64, unit: &'static str) -> Self {
        Self {
            what: what.to_owned(),
            figure,
            unit,
            reference: None,
            budget: None,
            instructions: None,
        }
    }

    /// A figure in nanoseconds.
    pub(crate) fn ns(what: &str, figure: f64) -> Self {
        Self::new(what, figure, "ns")
    }

    /// The sum of two figures, under a name of its own.
    pub(crate) fn sum(what: &str, a: &Self, b: &Self) -> Self {
        Self::new(what, a.figure + b.figure, a.unit)
    }

    /// Adds instructions, if they are known.
    pub(crate) fn instructions(self, instructions: Option<f64>) -> Self {
        Self {
            instructions,
            ..self
        }
    }

    /// Adds a reference in the same unit, if its figure is known.
    pub(crate) fn against(self, other: &Self) -> Self {
        let reference = other.is_known().then(|| (other.what.clone(), other.figure));
        Self { reference, ..self }
    }

    /// Sets an absolute limit.
    pub(crate) fn most(self, most: f64) -> Self {
        let budget = Some(Budget::Most(most));
        Self { budget, ..self }
    }

    /// Sets a limit for the difference to the reference.
    pub(crate) fn more(self, more: f64) -> Self {
        let budget = Some(Budget::More(more));
        Self { budget, ..self }
    }

    /// Whether it was measured, and not filtered out.
    pub(crate) fn is_known(&self) -> bool {
        !self.figure.is_nan()
    }

    fn cells(&self) -> [String; 6] {
        let amount = |value: f64| format!("{value:.*} {}", usize::from(value < 1e3), self.unit);
        let more = |value: f64| format!("{value:+.1} {}", self.unit);
        let reference = self.reference.as_ref();
        let difference = reference.map(|(_, floor)| self.figure - floor);
        let ratio = reference.map(|(_, floor)| format!("{:.2}", self.figure / floor));
        let (ratio, budget, is_met) = match (self.budget, difference) {
            (Some(Budget::More(most)), Some(difference)) => {
                (Some(more(difference)), more(most), difference <= most)
            }
            (Some(Budget::Most(most)), _) => (ratio, amount(most), self.figure <= most),
            _ => (ratio, String::new(), true),
        };
        let compared = reference.map(|(name, floor)| format!("{name}: {}", amount(*floor)));
        let instructions = self.instructions.map(|count| format!("{count:.0}"));
        [
            self.what.clone(),
            amount(self.figure),
            compared.unwrap_or_default(),
            ratio.unwrap_or_default(),
            if is_met {
                budget
            } else {
                format!("{budget}, exceeded")
            },
            instructions.unwrap_or_default(),
        ]
    }
}

/// The table as Markdown.
pub(crate) fn render(lines: &[Line]) -> String {
    let head = [
        "what",
        "figure",
        "compared with",
        "ratio",
        "budget",
        "instructions",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(lines.iter().filter(|line| line.is_known()).map(Line::cells));
    let widths: [usize; 6] = std::array::from_fn(|column| {
        let widths = rows.iter().map(|row| row[column].len());
        widths.max().unwrap_or(0)
    });
    rows.insert(1, widths.map(|width| "-".repeat(width)));
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths);
        for (cell, width) in cells {
            write!(text, "| {cell:width$} ").expect("a string takes everything");
        }
        text.push_str("|\n");
    }
    text
}
