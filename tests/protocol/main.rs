//! The transports, under loss and against the clock.
//!
//! Everything is in virtual time: counts of packets and times are exact.

mod atomic;
#[path = "../common/mod.rs"]
mod common;
mod completion;
mod effects;
mod late_ack;
mod link;
mod loss;
mod moderation;
mod order;
mod outage;
mod path_mtu;
mod reads;
mod sequence;
mod shape;
mod timers;
mod uc;
mod ud;
mod window;
