//! Criterion and its measurements.

use std::time::Duration;

use criterion::Criterion;

use crate::callgrind;
use crate::table::Line;
use crate::time;

/// The samples of each benchmark: many short ones, so that some are not disturbed by other programs
/// on the machine.
const SAMPLES: usize = 300;
/// The time for all samples, and the time to warm up before.
const MEASURING: Duration = Duration::from_millis(1_200);
const WARMING_UP: Duration = Duration::from_millis(300);

/// Times operations, and has their instructions counted.
pub(crate) struct Stopwatch {
    /// None if one benchmark is counted.
    criterion: Option<Criterion>,
    measures: bool,
    counted: Option<String>,
}

impl Stopwatch {
    /// A stopwatch with the arguments of the command line.
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
        // Criterion decides the same way: without this argument it runs each benchmark once.
        let measures = std::env::args().any(|arg| arg == "--bench");
        Self {
            criterion: counted.is_none().then(criterion),
            measures: measures || counted.is_some(),
            counted,
        }
    }

    /// Whether it measures, and does not only run each benchmark once.
    pub(crate) fn measures(&self) -> bool {
        self.measures
    }

    /// Times an operation on the first of two objects, and counts its instructions. On the second
    /// object verbs do nothing, so those instructions are the caller's and are subtracted.
    pub(crate) fn operation<T>(&mut self, name: &str, on: &[T; 2], run: impl FnMut(&T)) -> Line {
        self.list(name, 1, on, run)
    }

    /// Times an operation with several messages. The figures are those of one message.
    pub(crate) fn list<T>(
        &mut self,
        name: &str,
        messages: u32,
        on: &[T; 2],
        mut run: impl FnMut(&T),
    ) -> Line {
        let [simulated, of_nobody] = on;
        let caller = format!("{name}, the caller");
        let figure = self.span(name, messages, || run(simulated));
        self.count(&caller, messages, || run(of_nobody));
        let net = || Some(callgrind::instructions(name)? - callgrind::instructions(&caller)?);
        let is_counted = self.measures && !figure.is_nan();
        Line::ns(name, figure).instructions(is_counted.then(net).flatten())
    }

    /// Times an operation.
    pub(crate) fn time(&mut self, name: &str, run: impl FnMut()) -> Line {
        Line::ns(name, self.span(name, 1, run))
    }

    /// The last-level cache misses of an operation that was timed.
    pub(crate) fn misses(&self, name: &str, timed: &Line) -> Line {
        let is_counted = self.measures && timed.is_known();
        let misses = is_counted.then(|| callgrind::misses(name)).flatten();
        Line::new(name, misses.unwrap_or(f64::NAN), "misses")
    }

    /// Runs an operation if it is the one that is counted.
    fn count(&self, name: &str, messages: u32, run: impl FnMut()) {
        if self.counted.as_deref() == Some(name) {
            callgrind::run(messages, run);
        }
    }

    /// Nanoseconds of one message. Not a number if it was not measured.
    fn span(&mut self, name: &str, messages: u32, mut run: impl FnMut()) -> f64 {
        self.count(name, messages, &mut run);
        let Some(criterion) = &mut self.criterion else {
            return f64::NAN;
        };
        let mut samples = Vec::new();
        criterion.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| {
                let lists = rounds.div_ceil(messages.into());
                let start = time::of_thread();
                for _ in 0..lists {
                    run();
                }
                let took = (time::of_thread() - start).as_nanos() as f64;
                let each = took / (lists * u64::from(messages)) as f64;
                samples.push(each);
                Duration::from_nanos((each * rounds as f64) as u64)
            });
        });
        // The first rounds warm up.
        low(samples.split_off(samples.len().saturating_sub(SAMPLES)))
    }

    /// Prints Criterion's own summary.
    pub(crate) fn finish(self) {
        self.criterion.expect("all have run").final_summary();
    }
}

/// The value below which one sample of twenty is. Other programs on the machine only make samples
/// slower.
pub(crate) fn low(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 20).copied().unwrap_or(f64::NAN)
}
