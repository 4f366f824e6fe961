//! `verbsim compare`: random programs on a device, and on the simulator with the profile of its
//! driver.

use std::fmt::Write;
use std::num::NonZero;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use verbs_api::Capabilities;
use verbs_api::profile::Profile;
use verbs_explore::program::{
    self, Conditions, Difference, Known, Pace, Program, compare, known, run, shrink,
};
use verbs_scenarios::{Backend, Place};
use verbs_sim::{Sim, SimConfig};
use verbsim::backend::{DevicePlace, Hardware, OfHardware, only};

use crate::output::{Stop, print};
use crate::progress::Progress;
use crate::seeds;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    at: DevicePlace,
    /// Seeds of the programs: one (7), or a range from A to below B (0..100)
    #[arg(long, value_name = "A..B", default_value = "0..100", value_parser = seeds::parse)]
    seeds: Range<u64>,
    /// Number of programs at the same time; they spend most of their time waiting
    #[arg(long, value_name = "N", default_value = "16")]
    jobs: NonZero<usize>,
    /// Seconds to look for a shorter program, for each program that differs; 0 shows none
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    shrink: u64,
}

pub(crate) fn execute(args: &Args) -> Result<(), Stop> {
    let options = OfHardware {
        at: args.at.clone(),
        may_crash_kernel: false,
        deviations: Vec::new(),
        in_process: true,
        jobs: NonZero::<usize>::MIN,
        worker: false,
    };
    let both = Both::new(&Hardware::chosen(&options).map_err(Stop::Usage)?, args)?;
    let known = known(&both.driver);
    let programs = args.seeds.end - args.seeds.start;
    let progress = Progress::new(programs, "programs", "{pos}/{len} {per_sec}");
    let start = Instant::now();
    let different = both.differences(&|| progress.advance());
    drop(progress);
    let mut shown = vec![0; known.len()];
    let mut unknown = 0;
    let mut crowded = 0;
    for (seed, difference) in different {
        if let Some(at) = known.iter().position(|known| known.explains(&difference)) {
            shown[at] += 1;
        } else if let Some(text) = both.report(seed, &known) {
            unknown += 1;
            print(&text)?;
        } else {
            crowded += 1;
        }
    }
    let speed = programs as f64 / start.elapsed().as_secs_f64();
    let as_known: u64 = shown.iter().sum();
    let mut text = format!(
        "{} and the simulator, profile {}: {programs} programs, {unknown} differ, {as_known} differ \
         as is known, {crowded} only when run with others; {speed:.0} programs/s\n",
        both.devices.join(" and "),
        both.driver,
    );
    for (known, count) in known.iter().zip(&shown) {
        let count = match count {
            0 => "not seen".to_string(),
            count => format!("{count} times"),
        };
        writeln!(text, "  {count}: {}", known.reason).expect("a string");
    }
    print(&text)?;
    if unknown == 0 {
        Ok(())
    } else {
        Err(Stop::NotGood)
    }
}

/// The devices, and the configuration of the simulator.
struct Both<'a> {
    devices: Vec<String>,
    driver: String,
    place: Place,
    config: SimConfig,
    args: &'a Args,
}

impl<'a> Both<'a> {
    fn new(hardware: &Hardware, args: &'a Args) -> Result<Self, Stop> {
        let driver = hardware.driver().to_string();
        let Ok(profile) = Profile::named(&driver) else {
            return Err(Stop::usage(format!(
                "the simulator has no profile of driver {driver}"
            )));
        };
        let mut devices = hardware.devices().to_vec();
        devices.dedup();
        let device = only(&devices);
        let needs = Capabilities::MODIFY_CONNECT;
        let has = device
            .open_device(&devices[0])
            .and_then(|context| {
                let has = device.capabilities(context)?;
                device.close_device(context)?;
                Ok(has)
            })
            .map_err(|error| Stop::Usage(error.to_string()))?;
        if !has.contains(needs) {
            return Err(Stop::usage(format!(
                "{}: programs connect queue pairs by their attributes, and it cannot",
                devices[0]
            )));
        }
        let config = SimConfig::new()
            .nodes(devices.len() as u32)
            .profile(profile);
        Ok(Self {
            devices,
            driver,
            place: hardware.place(),
            config,
            args,
        })
    }

    fn compare(&self, program: &Program) -> Result<(), Difference> {
        let conditions = Conditions {
            port_num: self.place.port_num,
            sgid_index: self.place.sgid_index,
            ..Conditions::default()
        };
        let simulator = Sim::new(self.config.clone());
        compare(
            program,
            only(&self.devices).as_ref(),
            &simulator,
            &conditions,
        )
    }

    /// Runs all programs, several at the same time. Returns those that differ, by seed.
    fn differences(&self, ran: &(dyn Fn() + Sync)) -> Vec<(u64, Difference)> {
        let seeds = Mutex::new(self.args.seeds.clone());
        let next = || seeds.lock().expect("no thread panics").next();
        let work = || {
            let mut all = Vec::new();
            while let Some(seed) = next() {
                let difference = self.compare(&Program::of_seed(seed, Pace::Settled)).err();
                all.extend(difference.map(|difference| (seed, difference)));
                ran();
            }
            all
        };
        let mut all = thread::scope(|scope| {
            let threads: Vec<_> = (0..self.args.jobs.get())
                .map(|_| scope.spawn(work))
                .collect();
            let all = threads.into_iter().map(|thread| thread.join());
            all.flat_map(|all| all.unwrap_or_else(|panic| resume_unwind(panic)))
                .collect::<Vec<_>>()
        });
        all.sort_by_key(|(seed, _)| *seed);
        all
    }

    /// The shortest program found that shows an unknown difference, run alone; `None` if it shows
    /// none when run alone.
    fn report(&self, seed: u64, known: &[Known]) -> Option<String> {
        let program = Program::of_seed(seed, Pace::Settled);
        let differs = |program: &Program| {
            let difference = self.compare(program).err()?;
            let is_known = known.iter().any(|known| known.explains(&difference));
            (!is_known).then_some(difference)
        };
        let first = differs(&program)?;
        let replay = format!(
            "verbsim compare --device {} --seeds {seed}",
            self.devices[0]
        );
        if self.args.shrink == 0 {
            return Some(format!("seed {seed}: {first}\n  replay     {replay}\n"));
        }
        let end = Instant::now() + Duration::from_secs(self.args.shrink);
        let program = shrink(program, SHRINKS, |program| {
            Instant::now() < end && differs(program).is_some()
        });
        let what = differs(&program).map_or_else(
            || "it comes and goes".to_string(),
            |difference| difference.to_string(),
        );
        let outcome = run(&program, &Sim::new(self.config.clone()));
        let (nodes, driver) = (self.devices.len(), &self.driver);
        let simulation = format!(
            "Sim::new(SimConfig::new().nodes({nodes}).profile(Profile::named(\"{driver}\").unwrap()))"
        );
        let name = format!("program_{seed}");
        let code = program::print(&program, &outcome, &name, &simulation, nodes as u8);
        Some(format!(
            "seed {seed}: {what}\n  replay     {replay}\n\n{code}\n"
        ))
    }
}

/// How many shorter programs are tried. A program that waits without result takes seconds, and then
/// the time ends first.
const SHRINKS: usize = 300;
