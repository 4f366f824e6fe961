//! Criterion, and what it measured.

use std::collections::BTreeMap;
use std::time::Duration;

use criterion::Criterion;

use crate::callgrind;
use crate::link::Link;
use crate::time;

/// Samples of each benchmark: many short ones, so that some are disturbed by nothing else that runs
/// on the machine.
const SAMPLES: usize = 300;
/// Time for all of them, and before them to warm up.
const MEASURING: Duration = Duration::from_millis(1_200);
const WARMING_UP: Duration = Duration::from_millis(300);

/// Times operations, and keeps a figure of each.
pub(crate) struct Stopwatch {
    /// None where one benchmark is counted.
    criterion: Option<Criterion>,
    figures: BTreeMap<String, f64>,
    measures: bool,
    counted: Option<String>,
}

impl Stopwatch {
    /// With the arguments of the command line.
    pub(crate) fn new() -> Self {
        let criterion = || {
            Criterion::default()
                .sample_size(SAMPLES)
                .nresamples(2_000)
                .measurement_time(MEASURING)
                .warm_up_time(WARMING_UP)
                .configure_from_args()
        };
        let counted = callgrind::wanted();
        // As criterion decides it: without this argument it runs each benchmark once.
        let measures = std::env::args().any(|arg| arg == "--bench");
        Self {
            criterion: counted.is_none().then(criterion),
            figures: BTreeMap::new(),
            measures: measures || counted.is_some(),
            counted,
        }
    }

    /// Whether something is measured, and not only run once.
    pub(crate) fn measures(&self) -> bool {
        self.measures
    }

    /// Times an operation on a link.
    pub(crate) fn operation<'f>(&mut self, name: &str, link: Link<'f>, run: fn(&Link<'f>)) {
        self.time(name, || run(&link));
        let nobody = link.of_nobody();
        self.count(&of_caller(name), || run(&nobody));
    }

    /// Times an operation.
    pub(crate) fn time(&mut self, name: &str, mut run: impl FnMut()) {
        self.count(name, &mut run);
        self.span(name, |rounds| {
            let start = time::of_thread();
            for _ in 0..rounds {
                run();
            }
            time::of_thread() - start
        });
    }

    /// Runs an operation if it is to be counted.
    fn count(&self, name: &str, run: impl FnMut()) {
        if self.counted.as_deref() == Some(name) {
            callgrind::run(run);
        }
    }

    /// Times what says itself how long so many rounds of it took.
    pub(crate) fn span(&mut self, name: &str, mut run: impl FnMut(u64) -> Duration) {
        let Some(criterion) = &mut self.criterion else {
            return;
        };
        let mut seen = Vec::new();
        criterion.bench_function(name, |bencher| {
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

    /// Instructions of one operation on a link, without those of the caller. Not a number without
    /// valgrind, or if the operation was not measured.
    pub(crate) fn instructions(&self, name: &str) -> f64 {
        let net = || {
            self.figures.get(name)?;
            Some(callgrind::instructions(name)? - callgrind::instructions(&of_caller(name))?)
        };
        net().unwrap_or(f64::NAN)
    }

    /// Criterion's own summary.
    pub(crate) fn finish(self) {
        self.criterion.expect("all have run").final_summary();
    }
}

fn of_caller(name: &str) -> String {
    format!("{name}, the caller")
}
