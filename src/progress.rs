//! How far a command is: a bar on a terminal, and a line now and then in a log.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::note;

/// From one line in a log to the next. Shorter runs have none.
const BETWEEN: Duration = Duration::from_secs(30);

/// Shows on the standard error how far a command is.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Where no terminal shows the bar.
    log: Option<Mutex<Log>>,
}

impl Progress {
    /// Of `total` of `what`, such as `seeds of program/spec`. `template` is how indicatif draws the
    /// bar.
    pub(crate) fn new(total: u64, what: impl Into<String>, template: &str) -> Self {
        let bar = ProgressBar::new(total);
        bar.set_style(ProgressStyle::with_template(template).expect("the template is good"));
        let log = bar.is_hidden().then(|| {
            let what = what.into();
            Mutex::new(Log::new(Instant::now(), total, what))
        });
        Self { bar, log }
    }

    /// What the bar says is under way.
    pub(crate) fn message(&self, text: impl Into<String>) {
        self.bar.set_message(text.into());
    }

    /// Counts one more that is done. Any thread may call this.
    pub(crate) fn advance(&self) {
        self.bar.inc(1);
        if let Some(log) = &self.log {
            let mut log = log.lock().expect("nothing panics with it");
            if let Some(line) = log.line(Instant::now(), self.bar.position()) {
                note(line);
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Decides when a log gets a line.
struct Log {
    total: u64,
    what: String,
    next: Instant,
}

impl Log {
    fn new(now: Instant, total: u64, what: String) -> Self {
        let next = now + BETWEEN;
        Self { total, what, next }
    }

    /// The line, if one is due.
    fn line(&mut self, now: Instant, done: u64) -> Option<String> {
        if now < self.next {
            return None;
        }
        self.next = now + BETWEEN;
        let Self { total, what, .. } = self;
        Some(format!("verbsim: {done} of {total} {what}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_gets_a_line_every_thirty_seconds_and_none_before() {
        let start = Instant::now();
        let mut log = Log::new(start, 90, "scenarios".to_owned());
        let seen = (1..=90).map(|second| log.line(start + Duration::from_secs(second), second));
        let seen: Vec<_> = seen.flatten().collect();
        let expected = [30, 60, 90].map(|done| format!("verbsim: {done} of 90 scenarios"));
        assert_eq!(seen, expected);
        // Nothing was done for a long time: one line, not one for each period that has passed.
        let later = start + Duration::from_secs(3600);
        assert!(log.line(later, 90).is_some());
        assert_eq!(log.line(later, 90), None);
    }
}
