//! Completions as a stream, for the combinators of other crates (feature `stream`).

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};

use futures_core::Stream;

use super::{CompChannel, Completion, Completions, Cq};
use crate::error::Result;
use crate::site::{Site, Standing};

/// The completions of a CQ or a channel, one after the other: [`Cq::stream`],
/// [`CompChannel::stream`]. It ends after the first error.
///
/// Completions that were not taken when it is dropped come again with the next poll.
#[must_use = "a stream does nothing unless it is polled"]
pub struct CompletionStream {
    batch: Option<Completions>,
    waiting: Option<Waiting>,
    /// Waits for the next batch; `None` after an error.
    next: Option<Box<dyn Fn() -> Waiting + Send + Sync>>,
    /// Where the program made it.
    site: Site,
}

type Waiting = Pin<Box<dyn Future<Output = Result<Completions>> + Send>>;

impl Cq {
    /// The completions of the CQ as a stream, without an end: [`next`](Self::next) for combinators.
    ///
    /// # Errors
    /// An item is an error of `next`. The stream then ends.
    #[track_caller]
    pub fn stream(&self) -> CompletionStream {
        let cq = self.clone();
        CompletionStream::new(move || {
            let cq = cq.clone();
            Box::pin(async move { cq.next().await })
        })
    }
}

impl CompChannel {
    /// The completions of all CQs on the channel as a stream, without an end: [`next`](Self::next)
    /// for combinators.
    ///
    /// # Errors
    /// An item is an error of `next`. The stream then ends.
    #[track_caller]
    pub fn stream(&self) -> CompletionStream {
        let channel = self.clone();
        CompletionStream::new(move || {
            let channel = channel.clone();
            Box::pin(async move { channel.next().await })
        })
    }
}

impl CompletionStream {
    #[track_caller]
    fn new(next: impl Fn() -> Waiting + Send + Sync + 'static) -> Self {
        Self {
            batch: None,
            waiting: None,
            next: Some(Box::new(next)),
            site: Site::here(),
        }
    }
}

impl Stream for CompletionStream {
    type Item = Result<Completion>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let _standing = Standing::at(this.site);
        loop {
            if let Some(completion) = this.batch.as_mut().and_then(Iterator::next) {
                return Poll::Ready(Some(Ok(completion)));
            }
            let Some(next) = &this.next else {
                return Poll::Ready(None);
            };
            let waiting = this.waiting.get_or_insert_with(next);
            let Poll::Ready(got) = waiting.as_mut().poll(context) else {
                return Poll::Pending;
            };
            this.waiting = None;
            match got {
                Ok(batch) => this.batch = Some(batch),
                Err(error) => {
                    this.next = None;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }
}

impl fmt::Debug for CompletionStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompletionStream").finish_non_exhaustive()
    }
}
