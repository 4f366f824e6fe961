//! Names of a machine: a process answers clients that know a name.
//!
//! A name is that of an abstract socket (unix(7)). No two processes have the same one, and it
//! becomes free when its process ends in any way. A thread answers while the service exists.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::descriptor::Guarded;

/// A name, and the answer to every client that asks by it. Dropping it releases the name.
#[derive(Debug)]
pub(crate) struct Service {
    address: SocketAddr,
    listener: Option<Arc<Guarded<UnixListener>>>,
    is_open: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// The process of the thread. A child after `fork` does not have it.
    process: u32,
}

/// The reply to a client that asks by a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// No process has the name.
    Absent,
    /// A process has the name, and does not answer: it may be stopped.
    Silent,
    /// The answer, which is empty until the service is opened.
    Answer(String),
}

/// The time that a client waits for an answer. The thread that answers does nothing else.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes of an answer, at most.
const MOST: u64 = 256;

impl Service {
    /// Takes a name. The answer, of at most 256 bytes, is empty until the service is opened.
    ///
    /// # Errors
    /// `AddrInUse` if another process has the name, and any error of the system in making sockets
    /// or threads.
    pub(crate) fn start(name: &str, answer: String) -> io::Result<Self> {
        let address = SocketAddr::from_abstract_name(name)?;
        let listener = UnixListener::bind_addr(&address)?;
        let listener = Arc::new(Guarded::raise(listener)?);
        let is_open = Arc::new(AtomicBool::new(false));
        let is_over = Arc::new(AtomicBool::new(false));
        let (answering, open, end) = (listener.clone(), is_open.clone(), is_over.clone());
        let thread = thread::Builder::new()
            .name("verbs-sim service".to_owned())
            .spawn(move || {
                while let Some(Ok((mut asking, _))) = answering.own().map(UnixListener::accept) {
                    if end.load(Ordering::SeqCst) {
                        break;
                    }
                    if open.load(Ordering::SeqCst) {
                        // A client that has closed its end needs no answer.
                        let _ = asking.write_all(answer.as_bytes());
                    }
                }
            })?;
        Ok(Self {
            address,
            listener: Some(listener),
            is_open,
            is_over,
            thread: Some(thread),
            process: process::id(),
        })
    }

    /// Gives the answer from now on.
    pub(crate) fn open(&self) {
        self.is_open.store(true, Ordering::SeqCst);
    }

    /// Asks the process that has a name. A process that does not answer within a second is silent.
    pub(crate) fn ask(name: &str) -> Reply {
        let address = SocketAddr::from_abstract_name(name);
        let stream = address.and_then(|address| UnixStream::connect_addr(&address));
        let Ok(stream) = stream else {
            return Reply::Absent;
        };
        let mut answer = String::new();
        let read = stream
            .set_read_timeout(Some(PATIENCE))
            .and_then(|()| stream.take(MOST).read_to_string(&mut answer));
        match read {
            Ok(_) => Reply::Answer(answer),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Reply::Silent,
            Err(_) => Reply::Absent,
        }
    }

    /// Whether this is its name.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.address.as_abstract_name() == Some(name.as_bytes())
    }

    /// Its descriptor, unless the program has closed it.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.listener.as_ref()?.own()?.as_fd())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // The thread belongs to the parent, which still needs its name.
        if self.process != process::id() {
            return;
        }
        self.is_over.store(true, Ordering::SeqCst);
        let is_woken = UnixStream::connect_addr(&self.address).is_ok();
        self.listener = None;
        // The name becomes free when the thread ends.
        if let Some(thread) = self.thread.take().filter(|_| is_woken) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_of_one_service_at_a_time_which_answers() {
        let name = format!("verbs-sim test {}", process::id());
        assert_eq!(Service::ask(&name), Reply::Absent);
        for answer in ["here", "here again"] {
            let service = Service::start(&name, answer.into()).unwrap();
            let taken = Service::start(&name, String::new()).unwrap_err();
            assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
            assert_eq!(
                Service::ask(&name),
                Reply::Answer(String::new()),
                "not open"
            );
            service.open();
            for _ in 0..3 {
                assert_eq!(Service::ask(&name), Reply::Answer(answer.into()));
            }
            drop(service);
            assert_eq!(Service::ask(&name), Reply::Absent);
        }
    }

    #[test]
    fn a_process_that_has_a_name_and_says_nothing_is_silent() {
        let name = format!("verbs-sim silent {}", process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let silent = UnixListener::bind_addr(&address).unwrap();
        assert_eq!(Service::ask(&name), Reply::Silent);
        drop(silent);
        assert_eq!(Service::ask(&name), Reply::Absent);
    }
}
