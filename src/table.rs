//! Tables without lines.

use comfy_table::{Cell, ContentArrangement, Table, presets};

use crate::style::Style;

/// Columns of a page.
const PAGE: u16 = 100;

/// A table that is written line by line.
pub(crate) struct Plain {
    table: Table,
}

impl Plain {
    pub(crate) fn new(style: Style) -> Self {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        if style.wraps() {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            // Terminals of CI, `expect` and serial lines may have a width of zero: it is unknown.
            if table.width() == Some(0) {
                table.set_width(PAGE);
            }
        } else {
            table.force_no_tty();
        }
        Self { table }
    }

    /// As wide as the terminal; as wide as a page if there is no terminal.
    pub(crate) fn narrow(style: Style) -> Self {
        let mut plain = Self::new(style);
        if !style.wraps() {
            plain
                .table
                .set_content_arrangement(ContentArrangement::Dynamic);
            plain.table.set_width(PAGE);
        }
        plain
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.table.add_row(cells.into_iter().collect::<Vec<_>>());
    }

    /// The lines, with `indent` blanks before the first column and one blank between columns.
    pub(crate) fn text_at(mut self, indent: u16) -> String {
        for (place, column) in self.table.column_iter_mut().enumerate() {
            column.set_padding((if place == 0 { indent } else { 0 }, 1));
        }
        self.text()
    }

    /// The lines, without blanks at their ends.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for line in self.table.lines() {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}
