//! Colour, where it is wanted.

use std::env;
use std::io::{self, IsTerminal};

use comfy_table::{Attribute, Cell, Color};

/// Colours text or leaves it alone.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    color: bool,
    terminal: bool,
}

/// What a text is to look like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Plain,
    Bold,
    Dim,
    Green,
    Red,
    Yellow,
}

impl Style {
    /// For the standard output: colour on a terminal, unless `NO_COLOR` is set.
    pub(crate) fn of_stdout() -> Self {
        let terminal = io::stdout().is_terminal();
        let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            color: terminal && !refused,
            terminal,
        }
    }

    /// For a file.
    pub(crate) const fn plain() -> Self {
        Self {
            color: false,
            terminal: false,
        }
    }

    /// Lines are wrapped to the width of a terminal.
    pub(crate) const fn wraps(self) -> bool {
        self.terminal
    }

    pub(crate) fn paint(self, look: Look, text: &str) -> String {
        let code = match look {
            Look::Plain => return text.to_string(),
            Look::Bold => 1,
            Look::Dim => 2,
            Look::Red => 31,
            Look::Green => 32,
            Look::Yellow => 33,
        };
        if self.color {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_string()
        }
    }

    pub(crate) fn cell(self, look: Look, text: impl ToString) -> Cell {
        let cell = Cell::new(text.to_string());
        if !self.color {
            return cell;
        }
        match look {
            Look::Plain => cell,
            Look::Bold => cell.add_attribute(Attribute::Bold),
            Look::Dim => cell.add_attribute(Attribute::Dim),
            Look::Green => cell.fg(Color::DarkGreen),
            Look::Red => cell.fg(Color::DarkRed),
            Look::Yellow => cell.fg(Color::DarkYellow),
        }
    }
}
