//! Figures, what they are beside, aims.

use std::fmt::Write as _;

/// One figure.
pub(crate) struct Line {
    what: String,
    figure: f64,
    unit: &'static str,
    beside: Option<(String, f64)>,
    aim: Option<Aim>,
}

/// What a figure may be at most.
#[derive(Clone, Copy)]
enum Aim {
    /// So much.
    Most(f64),
    /// So many times what it is beside.
    Times(f64),
    /// So much more than what it is beside.
    More(f64),
}

impl Line {
    pub(crate) fn new(what: &str, figure: f64, unit: &'static str) -> Self {
        Self {
            what: what.to_owned(),
            figure,
            unit,
            beside: None,
            aim: None,
        }
    }

    /// Nanoseconds.
    pub(crate) fn ns(what: &str, figure: f64) -> Self {
        Self::new(what, figure, "ns")
    }

    /// Beside something in the same unit.
    pub(crate) fn beside(self, name: &str, figure: f64) -> Self {
        let beside = Some((name.to_owned(), figure));
        Self { beside, ..self }
    }

    /// At most so much.
    pub(crate) fn most(self, most: f64) -> Self {
        self.aim(Aim::Most(most))
    }

    /// At most so many times what it is beside.
    pub(crate) fn times(self, times: f64) -> Self {
        self.aim(Aim::Times(times))
    }

    /// At most so much more than what it is beside.
    pub(crate) fn more(self, more: f64) -> Self {
        self.aim(Aim::More(more))
    }

    fn aim(self, aim: Aim) -> Self {
        let aim = Some(aim);
        Self { aim, ..self }
    }

    /// Whether all of it was measured, and not filtered out.
    fn is_known(&self) -> bool {
        let beside = self.beside.as_ref().map_or(0.0, |(_, figure)| *figure);
        !(self.figure + beside).is_nan()
    }

    fn cells(&self) -> [String; 7] {
        let amount = |value: f64| format!("{value:.*} {}", usize::from(value < 1e3), self.unit);
        let more = |value: f64| format!("{}{}", if value < 0.0 { "" } else { "+" }, amount(value));
        let times = |value: f64| format!("{value:.2}");
        let (name, floor) = self.beside.clone().unwrap_or_default();
        let (ratio, difference) = (self.figure / floor, self.figure - floor);
        let beside = self.beside.as_ref();
        let (compared, aim, met) = match self.aim {
            Some(Aim::More(most)) => (more(difference), more(most), difference <= most),
            Some(Aim::Times(most)) => (times(ratio), times(most), ratio <= most),
            Some(Aim::Most(most)) => (
                beside.map_or_else(String::new, |_| times(ratio)),
                amount(most),
                self.figure <= most,
            ),
            None => (
                beside.map_or_else(String::new, |_| times(ratio)),
                String::new(),
                true,
            ),
        };
        let met = match (self.aim, met) {
            (None, _) => "",
            (_, true) => "yes",
            (_, false) => "NO",
        };
        [
            self.what.clone(),
            amount(self.figure),
            name,
            beside.map_or_else(String::new, |_| amount(floor)),
            compared,
            aim,
            met.to_owned(),
        ]
    }
}

/// The table, as Markdown.
pub(crate) fn render(lines: &[Line]) -> String {
    let mut rows = vec![["what", "figure", "beside", "", "by it", "aim", "met"].map(str::to_owned)];
    rows.extend(lines.iter().filter(|line| line.is_known()).map(Line::cells));
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
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
