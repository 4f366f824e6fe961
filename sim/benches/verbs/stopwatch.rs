//! Criterion, and what it measured.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use criterion::Criterion;

/// Samples of each benchmark: many short ones, so that some are disturbed by nothing else that runs
/// on the machine.
const SAMPLES: usize = 300;
/// Time for all of them, and before them to warm up.
const MEASURING: Duration = Duration::from_millis(1_200);
const WARMING_UP: Duration = Duration::from_millis(300);

/// Times operations, and keeps a figure of each.
pub(crate) struct Stopwatch {
    criterion: Criterion,
    figures: BTreeMap<String, f64>,
    measures: bool,
}

impl Stopwatch {
    /// With the arguments of the command line.
    pub(crate) fn new() -> Self {
        Self {
            criterion: Criterion::default()
                .sample_size(SAMPLES)
                .nresamples(1_000)
                .measurement_time(MEASURING)
                .warm_up_time(WARMING_UP)
                .configure_from_args(),
            figures: BTreeMap::new(),
            // As criterion decides it: without this argument it runs each benchmark once.
            measures: std::env::args().any(|arg| arg == "--bench"),
        }
    }

    /// Whether times are measured, and not only run once.
    pub(crate) fn measures(&self) -> bool {
        self.measures
    }

    /// Times an operation.
    pub(crate) fn time(&mut self, name: &str, mut run: impl FnMut()) {
        self.span(name, |rounds| {
            let start = Instant::now();
            for _ in 0..rounds {
                run();
            }
            start.elapsed()
        });
    }

    /// Times what says itself how long so many rounds of it took.
    pub(crate) fn span(&mut self, name: &str, mut run: impl FnMut(u64) -> Duration) {
        let mut seen = Vec::new();
        self.criterion.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| {
                let took = run(rounds);
                seen.push(took.as_nanos() as f64 / rounds as f64);
                took
            });
        });
        // The first rounds were for warming up.
        let mut samples = seen.split_off(seen.len().saturating_sub(SAMPLES));
        if !samples.is_empty() {
            samples.sort_by(f64::total_cmp);
            self.figures
                .insert(name.to_owned(), samples[samples.len() / 20]);
        }
    }

    /// Nanoseconds of one operation: in one sample of twenty it took less, as what else runs on the
    /// machine only ever makes it slower. Not a number if it was not measured.
    pub(crate) fn figure(&self, name: &str) -> f64 {
        self.figures.get(name).copied().unwrap_or(f64::NAN)
    }

    /// Criterion's own summary.
    pub(crate) fn finish(&mut self) {
        self.criterion.final_summary();
    }
}
