//! Shared receive queues: receives that messages of several queue pairs take.
//!
//! | file | holds |
//! |---|---|
//! | `create` | sizes, limits, what a query tells; queue pairs with an SRQ; destruction |
//! | `post` | posting on the queue |
//! | `take` | which message takes which receive, and its completion |
//! | `end` | queue pairs of the SRQ that fail or go |
//! | `limit` | the event of the limit |
//! | `resize` | other sizes |
//! | `slots` | when the slot of a receive is free again |

mod create;
mod end;
mod limit;
mod post;
mod resize;
mod slots;
mod take;

use verbs_api::{
    Access, AsyncEvent, AsyncEventType, Context, Cq, CqInit, Element, ErrorKind, Mr, MrAttr, Pd,
    RecvWr, Srq, SrqAttr, SrqAttrMask, SrqInit, Wc,
};

use crate::failure::{check, check_eq};
use crate::{
    Claim, EndParts, Failure, OfRule, Pair, PairOptions, Result, Scenario, Setup, pattern,
};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    create::new_queue_has_at_least_what_was_asked_for,
    create::size_is_rounded_as_declared,
    create::query_tells_sizes_and_limit,
    create::limit_given_at_creation_is_ignored,
    create::sizes_above_the_limits_are_refused,
    create::sizes_of_the_receive_queue_are_ignored_with_one,
    create::uc_qp_has_none,
    create::query_of_a_qp_tells_of_it,
    create::is_busy_while_a_qp_uses_it,
    create::keeps_its_domain_busy,
    create::destruction_would_block_until_its_events_are_acknowledged,
    create::destruction_waits_for_the_acknowledgement_of_an_event,
    post::list_of_receives_stops_at_the_bad_one,
    post::full_queue_takes_no_more,
    post::gone_queue_takes_no_receive,
    post::memory_of_posted_receives_is_the_devices,
    post::receive_posted_on_a_qp_with_one_is_refused,
    take::messages_of_all_qps_take_receives_in_posting_order,
    take::messages_with_immediate_take_receives_in_posting_order,
    take::datagrams_take_receives_in_posting_order,
    take::receive_is_taken_when_its_message_begins,
    take::receives_are_taken_once_whatever_arrives,
    take::threads_that_send_beside_each_other_take_receives_once,
    take::memory_is_that_of_its_own_domain,
    take::empty_queue_is_a_receiver_that_is_not_ready,
    take::datagram_for_an_empty_queue_is_dropped,
    take::solicited_message_fires_as_from_a_queue_of_its_own,
    end::receives_stay_when_a_qp_is_destroyed,
    end::completions_come_out_after_their_queue_is_gone,
    end::receives_are_not_flushed_with_a_qp,
    end::qp_in_error_has_taken_its_last_receive,
    end::receive_under_way_is_flushed_before_the_last_is_told,
    end::reset_qp_gives_back_the_slot_it_had_taken,
    end::failed_queue_is_told_and_gives_no_receive,
    end::datagram_for_a_failed_queue_fails_its_qp,
    limit::limit_event_comes_once_when_fewer_than_it_are_left,
    limit::limit_is_zero_once_its_event_was_raised,
    limit::limit_can_be_set_again_and_lifted,
    limit::limit_above_what_is_there_is_told_now_or_with_the_next_receive,
    limit::limit_above_the_size_is_refused,
    limit::unread_event_goes_with_its_queue,
    resize::size_changes_or_is_refused_as_not_supported,
    resize::resize_keeps_receives_and_their_order,
    resize::resize_below_what_is_posted_is_refused,
    resize::bad_attribute_among_good_ones_changes_none,
    slots::slot_is_free_when_its_completion_is_polled,
    slots::slot_is_free_when_an_iteration_comes_to_its_completion,
    slots::slots_of_a_qp_that_goes_are_free_with_its_completions,
    slots::slots_of_a_qp_that_is_reset_are_free_with_its_completions,
    slots::slots_are_free_in_whatever_order_receives_complete,
    slots::slots_are_free_in_whatever_order_datagrams_complete,
    slots::slots_are_free_when_the_cq_is_destroyed,
    slots::slot_of_a_completion_lost_to_an_overrun,
    slots::slots_of_completions_that_are_overwritten,
];

/// An SRQ of side B, and memory for its receives: a place for each number below [`PLACES`].
#[derive(Clone, Copy)]
struct Shared<'b> {
    setup: &'b Setup<'b>,
    context: Context,
    pd: Pd,
    mr: Mr,
    mem: MrAttr,
    srq: Srq,
}

/// Bytes of a place.
const ROOM: u32 = 1024;
const PLACES: u64 = 64;
/// Bytes that the GRH takes of a place, on UD.
const GRH: u64 = 40;

impl<'b> Shared<'b> {
    /// One of `max_wr` receives.
    fn new(setup: &'b Setup<'_>, max_wr: u32) -> Result<Self> {
        let context = setup.ctx_b();
        let pd = setup.alloc_pd(context)?;
        let mr = setup.alloc_mr(pd, (PLACES * u64::from(ROOM)) as usize, Access::ALL_RDMA)?;
        Ok(Self {
            setup,
            context,
            pd,
            mr,
            mem: setup.query_mr(mr)?,
            srq: setup.create_srq(pd, &SrqInit::new(max_wr))?,
        })
    }

    /// Posts receives of these numbers, each with a place of its own.
    fn post(&self, wr_ids: impl IntoIterator<Item = u64>) -> Result {
        for wr_id in wr_ids {
            let room = [self.mem.sge(wr_id * u64::from(ROOM), ROOM)];
            let wr = RecvWr::new(wr_id, &room);
            self.setup.post_srq_recv(self.srq, &[wr])?;
        }
        Ok(())
    }

    /// A connected pair whose side B takes receives from it, with CQs of its own.
    fn pair(&self, options: PairOptions) -> Result<Pair<'b>> {
        self.pair_on(self.cq()?, self.cq()?, options)
    }

    fn cq(&self) -> Result<Cq> {
        Ok(self.setup.create_cq(self.context, &CqInit::new(64))?)
    }

    /// What an end is made of that takes receives from it.
    fn parts(&self, send_cq: Cq, recv_cq: Cq) -> EndParts {
        EndParts {
            pd: self.pd,
            mr: self.mr,
            send_cq,
            recv_cq,
            srq: Some(self.srq),
        }
    }

    /// A connected pair whose side B takes receives from it, on these CQs of side B.
    fn pair_on(&self, send_cq: Cq, recv_cq: Cq, options: PairOptions) -> Result<Pair<'b>> {
        let a = self.setup.end(self.setup.ctx_a(), options)?;
        let b = self.setup.end_of(self.parts(send_cq, recv_cq), options)?;
        self.setup.connect(a, b, options)
    }

    /// The number of receives it has room for: as a query reports, or else as it was created.
    fn max_wr(&self) -> Result<u32> {
        let made = self.setup.srq_init(self.srq)?.attr;
        Ok(self.reported()?.unwrap_or(made).max_wr)
    }

    /// What a query tells, on devices that have it.
    fn reported(&self) -> Result<Option<SrqAttr>> {
        match self.setup.query_srq(self.srq) {
            Err(error) if error.kind() == ErrorKind::NotSupported => Ok(None),
            reported => Ok(Some(reported?)),
        }
    }

    /// A query tells this limit, if there is one.
    fn tells_limit(&self, limit: u32, rule: &'static str) -> Result {
        match self.reported()? {
            Some(reported) => {
                check_eq!(
                    rule,
                    reported.srq_limit,
                    limit,
                    "the limit that a query tells"
                );
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn set_limit(&self, srq_limit: u32) -> verbs_api::Result<()> {
        let attr = SrqAttr {
            srq_limit,
            ..SrqAttr::default()
        };
        self.setup.modify_srq(self.srq, &attr, SrqAttrMask::LIMIT)
    }

    fn resize(&self, max_wr: u32) -> verbs_api::Result<()> {
        let attr = SrqAttr {
            max_wr,
            ..SrqAttr::default()
        };
        self.setup.modify_srq(self.srq, &attr, SrqAttrMask::MAX_WR)
    }

    fn destroy(&self) -> verbs_api::Result<()> {
        self.setup.destroy_srq(self.srq, self.setup.wait())
    }

    /// A message of `tag` goes over a pair: the completion of its receive, which must be this one,
    /// of this pair, and have the data.
    fn takes(&self, pair: &Pair<'_>, tag: u8, wr_id: u64, rule: impl Into<Claim>) -> Result<Wc> {
        let rule = rule.into();
        let a = pair.a;
        a.fill(tag, 64)?;
        a.send(tag.into(), 64)?;
        let wc = self.taken(pair, tag, wr_id, rule)?;
        let sent = self.setup.successes(a.send_cq, 1).rule(rule)?[0];
        check_eq!(rule, sent.wr_id, u64::from(tag), "the send");
        Ok(wc)
    }

    /// The next receive completion of a pair is of this receive, which has the 64 bytes of `tag`.
    fn taken(&self, pair: &Pair<'_>, tag: u8, wr_id: u64, rule: impl Into<Claim>) -> Result<Wc> {
        let rule = rule.into();
        let wc = self.setup.successes(pair.b.recv_cq, 1).rule(rule)?[0];
        check_eq!(rule, wc.wr_id, wr_id, "the receive that was taken");
        let grh = match pair.b.qp_type {
            verbs_api::QpType::Ud => GRH,
            _ => 0,
        };
        self.has_data(wr_id, grh, tag, rule)?;
        Ok(wc)
    }

    fn has_data(&self, wr_id: u64, behind: u64, tag: u8, rule: impl Into<Claim>) -> Result {
        let mut seen = [0; 64];
        let at = wr_id * u64::from(ROOM) + behind;
        self.setup.read_mr(self.mr, at as usize, &mut seen)?;
        let landed = seen[..] == pattern(tag, 64)[..];
        check!(
            rule,
            landed,
            format!("the data of message {tag}"),
            "{seen:02x?}"
        );
        Ok(())
    }

    /// The events of the SRQ that are there or still come.
    fn events(&self) -> Result<Vec<AsyncEventType>> {
        let all = self.setup.async_events(self.context)?;
        let own = |event: &&AsyncEvent| event.element == Element::Srq(self.srq);
        Ok(all
            .iter()
            .filter(own)
            .map(|event| event.event_type)
            .collect())
    }

    /// The next event of the context is this one, of the SRQ. It is not acknowledged.
    fn take_event(&self, event_type: AsyncEventType, rule: impl Into<Claim>) -> Result<AsyncEvent> {
        let rule = rule.into();
        let event = self.setup.take_async_event(self.context).rule(rule)?;
        let expected = AsyncEvent::new(event_type, Element::Srq(self.srq));
        check_eq!(rule, event, expected, "the event");
        Ok(event)
    }

    /// The same, and it is acknowledged.
    fn event(&self, event_type: AsyncEventType, rule: impl Into<Claim>) -> Result {
        let event = self.take_event(event_type, rule)?;
        Ok(self.setup.ack_async_event(self.context, &event)?)
    }

    /// Posts receives to the last place until it is full: how many there was room for.
    fn room(&self) -> Result<u64> {
        let last = [self.mem.sge((PLACES - 1) * u64::from(ROOM), 8)];
        let mut posted = 0;
        while self
            .setup
            .post_srq_recv(self.srq, &[RecvWr::new(0, &last)])
            .is_ok()
        {
            posted += 1;
            if posted > PLACES {
                return Err(Failure::assertion("a queue that is full", "more room"));
            }
        }
        Ok(posted)
    }
}
