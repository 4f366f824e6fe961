//! How fast the simulator is in inline mode, and how much memory it takes, beside floors measured
//! in the same run. Ends with a table; see `docs/benchmarks.md`.
//!
//! | file | holds |
//! |---|---|
//! | `beside` | what verbs take beside many objects that are not theirs |
//! | `callgrind` | instructions and cache misses, counted |
//! | `calls` | the verbs that are timed, and those of nobody |
//! | `floor` | what a machine needs for the least that a verb must do |
//! | `link` | connected queue pairs |
//! | `many` | many queue pairs |
//! | `memory` | bytes allocated, counted |
//! | `messages` | one message of each kind and size |
//! | `operations` | what is timed |
//! | `owned` | messages of owning objects |
//! | `scale` | many nodes, queue pairs and completions |
//! | `stopwatch` | criterion, and what it measured |
//! | `table` | figures, what they are beside, aims |
//! | `threads` | two threads at the same time |
//! | `time` | processor time of a thread |

mod beside;
mod callgrind;
mod calls;
mod floor;
mod link;
mod many;
mod memory;
mod messages;
mod operations;
mod owned;
mod scale;
mod stopwatch;
mod table;
mod threads;
mod time;

use stopwatch::Stopwatch;

fn main() {
    let mut watch = Stopwatch::new();
    let mut lines = messages::lines(&mut watch);
    lines.extend(many::lines(&mut watch));
    lines.extend(threads::lines(&mut watch));
    lines.extend(memory::lines());
    if watch.measures() {
        lines.extend(scale::lines());
        lines.extend(beside::lines(1.0));
        print!("{}", table::render(&lines));
        if !callgrind::is_there() {
            println!("no valgrind: instructions and misses are not counted");
        }
    } else {
        scale::try_out();
        beside::lines(0.001);
    }
    watch.finish();
}
