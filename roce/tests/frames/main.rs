//! Frames: generated, captured and damaged.

mod arbitrary;
mod captured;
mod captures;
mod damage;
mod identification;
mod round_trip;
mod worked_examples;
mod writing;
