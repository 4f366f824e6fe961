//! Figures, floors, ratios, aims.

use std::fmt::Write as _;

/// One comparison.
pub(crate) struct Line {
    what: String,
    figure: f64,
    unit: &'static str,
    floor_name: String,
    floor: f64,
    aim: Option<f64>,
}

impl Line {
    /// A time beside another, both in nanoseconds.
    pub(crate) fn new(what: &str, figure: f64, floor_name: &str, floor: f64) -> Self {
        Self {
            what: what.to_owned(),
            figure,
            unit: "ns",
            floor_name: floor_name.to_owned(),
            floor,
            aim: None,
        }
    }

    /// A number of bytes beside what may be.
    pub(crate) fn bytes(what: &str, figure: f64, budget: f64) -> Self {
        Self {
            unit: "B",
            ..Self::new(what, figure, "budget", budget)
        }
    }

    /// The ratio may be this at most.
    pub(crate) fn aim(self, most: f64) -> Self {
        let aim = Some(most);
        Self { aim, ..self }
    }
}

/// The table, as Markdown.
pub(crate) fn render(lines: &[Line]) -> String {
    let mut rows = vec![["what", "figure", "floor", "", "ratio", "aim", "met"].map(str::to_owned)];
    for line in lines {
        let ratio = line.figure / line.floor;
        let amount = |value: f64| format!("{value:.1} {}", line.unit);
        let met = match line.aim {
            None => "",
            Some(_) if ratio.is_nan() => "not measured",
            Some(aim) if ratio <= aim => "yes",
            Some(_) => "NO",
        };
        rows.push([
            line.what.clone(),
            amount(line.figure),
            line.floor_name.clone(),
            amount(line.floor),
            format!("{ratio:.2}"),
            line.aim.map_or_else(String::new, |aim| format!("{aim:.2}")),
            met.to_owned(),
        ]);
    }
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
