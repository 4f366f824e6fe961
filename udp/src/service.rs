//! Services of a machine: what a process answers to who knows a name.
//!
//! A name is one of an abstract socket (unix(7)): no two processes have it, and it is free when its process ends,
//! however it ends. A thread answers, as long as the service is there.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::net::Shutdown;

/// A name, and what is answered to everyone who asks by it. Dropping it lets go of the name.
#[derive(Debug)]
pub struct Service {
    listener: Arc<UnixListener>,
}

/// No longer than this somebody waits for an answer. The thread that gives it does nothing else.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes of an answer.
const MOST: u64 = 256;

impl Service {
    /// Takes a name, and answers this from then on: 256 bytes at most.
    ///
    /// # Errors
    /// `AddrInUse` if another has it; whatever forbids sockets or threads.
    pub fn start(name: &str, answer: Vec<u8>) -> io::Result<Self> {
        let address = SocketAddr::from_abstract_name(name)?;
        let listener = Arc::new(UnixListener::bind_addr(&address)?);
        let answering = listener.clone();
        thread::Builder::new()
            .name("verbs-udp service".to_owned())
            .stack_size(64 << 10)
            .spawn(move || {
                while let Ok((mut asking, _)) = answering.accept() {
                    // Who has gone meanwhile needs no answer.
                    let _ = asking.write_all(&answer);
                }
            })?;
        Ok(Self { listener })
    }

    /// What the process that has a name answers; `None` if there is none, or it does not answer within a second.
    pub fn ask(name: &str) -> Option<Vec<u8>> {
        let address = SocketAddr::from_abstract_name(name).ok()?;
        let stream = UnixStream::connect_addr(&address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let mut answer = Vec::new();
        stream.take(MOST).read_to_end(&mut answer).ok()?;
        Some(answer)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // The thread sees it, and ends.
        let _ = rustix::net::shutdown(&*self.listener, Shutdown::Both);
    }
}

impl AsFd for Service {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_of_one_service_at_a_time_which_answers() {
        let name = format!("verbs-udp test {}", std::process::id());
        assert_eq!(Service::ask(&name), None);
        let service = Service::start(&name, b"here".to_vec()).unwrap();
        let taken = Service::start(&name, Vec::new()).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        for _ in 0..3 {
            assert_eq!(Service::ask(&name).as_deref(), Some(&b"here"[..]));
        }
        drop(service);
        assert_eq!(Service::ask(&name), None);
        // Its thread may still have the socket for a moment.
        while let Err(error) = Service::start(&name, Vec::new()) {
            assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        }
    }
}
