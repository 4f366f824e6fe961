//! Figures, references, aims.

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
    aim: Option<Aim>,
    instructions: Option<f64>,
    most_instructions: Option<f64>,
}

/// The upper limit of a figure.
#[derive(Clone, Copy)]
enum Aim {
    /// An absolute value.
    Most(f64),
    /// A ratio to the reference.
    Times(f64),
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
            aim: None,
            instructions: None,
            most_instructions: None,
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
        let aim = Some(Aim::Most(most));
        Self { aim, ..self }
    }

    /// Sets a limit for the ratio to the reference.
    pub(crate) fn times(self, times: f64) -> Self {
        let aim = Some(Aim::Times(times));
        Self { aim, ..self }
    }

    /// Sets a limit for the difference to the reference.
    pub(crate) fn more(self, more: f64) -> Self {
        let aim = Some(Aim::More(more));
        Self { aim, ..self }
    }

    /// Sets a limit for the instructions.
    pub(crate) fn most_instructions(self, most: f64) -> Self {
        let most_instructions = Some(most);
        Self {
            most_instructions,
            ..self
        }
    }

    /// Whether it was measured, and not filtered out.
    pub(crate) fn is_known(&self) -> bool {
        !self.figure.is_nan()
    }

    fn cells(&self) -> [String; 10] {
        let amount = |value: f64| format!("{value:.*} {}", usize::from(value < 1e3), self.unit);
        let more = |value: f64| format!("{value:+.1} {}", self.unit);
        let times = |value: f64| format!("{value:.2}");
        let count =
            |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.0}"));
        let (name, floor) = self.reference.clone().unwrap_or_default();
        let [reference, ratio] = match self.reference {
            Some(_) => [amount(floor), times(self.figure / floor)],
            None => [const { String::new() }; 2],
        };
        let (by_it, aim, is_met) = match (self.aim, &self.reference) {
            (Some(Aim::Most(most)), _) => (ratio, amount(most), Some(self.figure <= most)),
            (Some(Aim::Times(most)), Some(_)) => {
                (ratio, times(most), Some(self.figure <= most * floor))
            }
            (Some(Aim::More(most)), Some(_)) => {
                let difference = self.figure - floor;
                (more(difference), more(most), Some(difference <= most))
            }
            _ => (ratio, String::new(), None),
        };
        let is_short = self.instructions.zip(self.most_instructions);
        [
            self.what.clone(),
            amount(self.figure),
            name,
            reference,
            by_it,
            aim,
            met(is_met),
            count(self.instructions),
            count(self.instructions.and(self.most_instructions)),
            met(is_short.map(|(count, most)| count <= most)),
        ]
    }
}

fn met(is_met: Option<bool>) -> String {
    match is_met {
        None => "",
        Some(true) => "yes",
        Some(false) => "NO",
    }
    .to_owned()
}

/// The table as Markdown.
pub(crate) fn render(lines: &[Line]) -> String {
    let head = [
        "what",
        "figure",
        "beside",
        "",
        "by it",
        "aim",
        "met",
        "instructions",
        "aim",
        "met",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(lines.iter().filter(|line| line.is_known()).map(Line::cells));
    let widths: [usize; 10] = std::array::from_fn(|column| {
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
