//! Messages of communication management: generated, captured and damaged.

mod arbitrary;
#[path = "../frames/captured.rs"]
mod captured;
mod captures;
mod damage;
mod ip_cm;
mod layout;
mod round_trip;
