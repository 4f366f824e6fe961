//! How a program tests itself on the simulator: a call that fails, a packet that is lost, a
//! completion queue that overruns, each made to happen on purpose.
//!
//! ```sh
//! cargo test --example testing
//! ```
//!
//! The program under test is [`publish`]. The tests are below it, as they would be in a file of the
//! program's own. They need no device, no privileges and no time: the clock is virtual, and what
//! happens is the same in every run.

use std::sync::Arc;

use verbs_api::lab::Lab;
use verbs_api::owned::{Context, Mr, Qp, RecvWr, SendWr};
use verbs_api::{
    Access, AsyncEventType, ErrorKind, QpType, RcParams, Result, Verbs, Wait, WcStatus,
};
use verbs_sim::{Sim, SimConfig};

/// The outcome of publishing.
#[derive(Debug, Default, PartialEq)]
struct Report {
    /// Messages that arrived.
    delivered: u64,
    /// Posts that were tried again, since the queue was full.
    posted_again: u64,
    /// Why no more could be sent.
    failed: Option<WcStatus>,
    /// Completions were lost, so it is unknown what arrived.
    overrun: bool,
}

/// Sends a message `times` times. A full queue is not a failure: completions make room.
fn publish(qp: &Qp, message: &Mr, times: u64) -> Result<Report> {
    let mut report = Report::default();
    let (mut posted, mut completed) = (0, 0);
    while completed < times && report.failed.is_none() {
        if posted < times {
            match qp.post_send(SendWr::send(posted, &[message.sge(..)])) {
                Ok(()) => {
                    posted += 1;
                    continue;
                }
                Err(refused) if refused.error.kind() == ErrorKind::NoMemory => {
                    report.posted_again += 1;
                }
                Err(refused) => return Err(refused.error),
            }
        }
        if has_overrun(qp.send_cq().context()) {
            report.overrun = true;
            return Ok(report);
        }
        for wc in qp.send_cq().poll()? {
            completed += 1;
            match wc.status {
                WcStatus::Success => report.delivered += 1,
                status => report.failed = report.failed.or(Some(status)),
            }
        }
    }
    Ok(report)
}

fn has_overrun(context: &Context) -> bool {
    let event = context.get_async_event(Wait::Poll);
    event.is_ok_and(|event| event.is_some_and(|event| event.event_type() == AsyncEventType::CqErr))
}

fn main() {
    let feed = Feed::new(16);
    println!("{:?}, {} received", feed.publish(), feed.received());
    println!("its tests: cargo test --example testing");
}

/// Two nodes: the publisher, and a subscriber that has receives for all messages.
struct Feed {
    verbs: Arc<dyn Verbs>,
    publisher: Qp,
    subscriber: Qp,
    message: Mr,
}

const MESSAGES: u64 = 10;

impl Feed {
    /// With room for `cqe` completions at the publisher.
    fn new(cqe: u32) -> Self {
        let verbs: Arc<dyn Verbs> = Arc::new(Sim::new(SimConfig::new()));
        let side = |device| -> Result<(Qp, Mr)> {
            let pd = Context::open(verbs.clone(), device)?.alloc_pd()?;
            let cq = pd.context().cq(cqe).create()?;
            let qp = pd.qp(QpType::Rc, &cq, &cq).create()?;
            Ok((qp, pd.alloc_mr(64, Access::LOCAL_WRITE)?))
        };
        let (publisher, message) = side("sim0").unwrap();
        let (subscriber, inbox) = side("sim1").unwrap();
        let params = RcParams::default();
        publisher.connect_rc(&subscriber, &params).unwrap();
        for wr_id in 0..MESSAGES {
            let list = [inbox.sge(..)];
            subscriber.post_recv(RecvWr::new(wr_id, &list)).unwrap();
        }
        Self {
            verbs,
            publisher,
            subscriber,
            message,
        }
    }

    fn lab(&self) -> &dyn Lab {
        self.verbs.lab().expect("the simulator has test controls")
    }

    fn publish(&self) -> Report {
        publish(&self.publisher, &self.message, MESSAGES).unwrap()
    }

    /// How many messages the subscriber has got.
    fn received(&self) -> usize {
        self.lab().settle().unwrap();
        self.subscriber.recv_cq().poll().unwrap().len()
    }
}

#[cfg(test)]
mod tests {
    use verbs_api::Verb;
    use verbs_api::lab::{Fault, FaultId, PacketFilter, PacketOpcode};

    use super::*;

    /// Ends a fault; how often it has fired.
    fn fired(feed: &Feed, fault: Result<FaultId>) -> u64 {
        feed.lab().remove(fault.unwrap()).unwrap()
    }

    #[test]
    fn everything_is_delivered() {
        let feed = Feed::new(16);
        let report = feed.publish();
        assert_eq!(report.delivered, MESSAGES);
        assert_eq!(feed.received(), MESSAGES as usize);
    }

    #[test]
    fn third_post_that_fails_is_tried_again() {
        let feed = Feed::new(16);
        let fault = feed
            .lab()
            .inject(Fault::fail(Verb::PostSend, ErrorKind::NoMemory).nth(3));
        let report = feed.publish();
        assert_eq!(report.posted_again, 1);
        assert_eq!(report.delivered, MESSAGES);
        assert_eq!(feed.received(), MESSAGES as usize);
        assert_eq!(fired(&feed, fault), 1);
    }

    #[test]
    fn lost_packet_is_none_of_the_programs_business() {
        let feed = Feed::new(16);
        let packets = PacketFilter::EVERY.opcode(PacketOpcode::RcSendOnly);
        let fault = feed.lab().inject(Fault::drop(packets).nth(2));
        let report = feed.publish();
        assert_eq!(report.delivered, MESSAGES);
        assert_eq!(feed.received(), MESSAGES as usize);
        assert_eq!(fired(&feed, fault), 1);
    }

    #[test]
    fn peer_that_never_answers_is_reported() {
        let feed = Feed::new(16);
        let fault = feed.lab().inject(Fault::drop(PacketFilter::EVERY));
        let report = feed.publish();
        assert_eq!(report.failed, Some(WcStatus::RetryExcErr));
        assert_eq!(report.delivered, 0);
        assert!(fired(&feed, fault) >= 8, "the first try and 7 more");
    }

    #[test]
    fn overrun_of_the_completion_queue_is_noticed() {
        let feed = Feed::new(4);
        let report = feed.publish();
        assert!(report.overrun, "{report:?}");
    }
}
