//! The speed and the memory use of the simulator in inline mode, compared with floors measured in
//! the same run. The program ends with a table; see `docs/benchmarks.md`.
//!
//! | file | holds |
//! |---|---|
//! | `unrelated` | the cost of verbs with many unrelated objects |
//! | `callgrind` | instructions and cache misses, counted |
//! | `calls` | the verbs that are timed, and no-ops |
//! | `floor` | the least that a machine needs for the parts of a verb |
//! | `link` | connected queue pairs |
//! | `many` | many queue pairs |
//! | `memory` | bytes allocated, counted |
//! | `messages` | one message of each kind and size |
//! | `operations` | the operations that are timed |
//! | `owned` | messages of owning objects |
//! | `scale` | many nodes, queue pairs and completions |
//! | `stopwatch` | criterion and its measurements |
//! | `table` | figures, references, budgets |
//! | `threads` | two threads at the same time |
//! | `time` | processor time of a thread |

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
mod unrelated;

use stopwatch::Stopwatch;

fn main() {
    let mut watch = Stopwatch::new();
    let mut lines = messages::lines(&mut watch);
    lines.extend(many::lines(&mut watch));
    lines.extend(threads::lines(&mut watch));
    lines.extend(memory::lines());
    if watch.measures() {
        lines.extend(scale::lines());
        lines.extend(unrelated::lines(1.0));
        print!("{}", table::render(&lines));
        if !callgrind::is_there() {
            println!("no valgrind: instructions and misses are not counted");
        }
    } else {
        scale::try_out();
        unrelated::lines(0.001);
    }
    watch.finish();
}
