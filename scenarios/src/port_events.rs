//! Asynchronous events, and those of the port that are not the scenario's: on a real port links,
//! addresses and subnet managers change when they like.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use verbs_api::{AsyncEvent, Capabilities, Context, Element, Wait};

use crate::claim::Claim;
use crate::failure::Result;
use crate::setup::{Setup, is_nothing, nothing};

/// What events of a port were passed over, each kind once.
#[derive(Debug, Default)]
pub(crate) struct PortEvents(Mutex<Vec<String>>);

impl Setup<'_> {
    /// Takes the next asynchronous event of a context and does not acknowledge it.
    pub fn take_async_event(&self, context: Context) -> Result<AsyncEvent> {
        Ok(self.next_async_event(context, self.wait())?)
    }

    /// Takes the next asynchronous event of a context and acknowledges it.
    pub fn async_event(&self, context: Context) -> Result<AsyncEvent> {
        let event = self.take_async_event(context)?;
        self.ack_async_event(context, &event)?;
        Ok(event)
    }

    /// Takes and acknowledges all asynchronous events of a context, present or still to come.
    pub fn async_events(&self, context: Context) -> Result<Vec<AsyncEvent>> {
        let wait = self.quiet()?;
        let mut got = Vec::new();
        loop {
            match self.next_async_event(context, wait) {
                Ok(event) => {
                    self.ack_async_event(context, &event)?;
                    got.push(event);
                }
                Err(error) if is_nothing(&error) => return Ok(got),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// No asynchronous event is there, and none comes.
    pub fn no_async_event(&self, context: Context, rule: impl Into<Claim>) -> Result {
        let wait = self.quiet()?;
        let result = self.next_async_event(context, wait);
        let result = result.map(|event| {
            let _ = self.ack_async_event(context, &event);
            event.to_string()
        });
        nothing(result, format!("no asynchronous event on {context}"), rule)
    }

    /// The next asynchronous event within `wait`. Events of a port of a real device are
    /// acknowledged and passed over, since no scenario can cause them: for that a lab is needed.
    pub(crate) fn next_async_event(
        &self,
        context: Context,
        wait: Wait,
    ) -> verbs_api::Result<AsyncEvent> {
        let start = Instant::now();
        loop {
            let left = match wait {
                Wait::For(time) => Wait::For(time.saturating_sub(start.elapsed())),
                Wait::Poll | Wait::Forever => wait,
            };
            let event = self.get_async_event(context, left)?;
            let has_lab = self
                .asked
                .is_none_or(|asked| asked.has.contains(Capabilities::LAB));
            if has_lab || !matches!(event.element, Element::Port(_)) {
                return Ok(event);
            }
            self.ack_async_event(context, &event)?;
            self.port_events.note(&event);
        }
    }

    /// The events of ports that were passed over, each kind once.
    pub fn passed_over(&self) -> Vec<String> {
        let PortEvents(noted) = &self.port_events;
        noted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl PortEvents {
    fn note(&self, event: &AsyncEvent) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = event.to_string();
        if !noted.contains(&text) {
            noted.push(text);
        }
    }
}
