//! Names of a machine: a process answers clients that know a name.
//!
//! A name is that of an abstract socket (unix(7)). No two processes have the same one, and it
//! becomes free when its process ends in any way. A thread answers while the service exists.

use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, send, socket_with,
};
use rustix::process::Uid;

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

/// The time that a client waits for a whole answer. The thread that answers does nothing else.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes of an answer, at most.
const MOST: usize = 256;

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
                while let Some(Ok((asking, _))) = answering.own().map(UnixListener::accept) {
                    if end.load(Ordering::SeqCst) {
                        break;
                    }
                    if open.load(Ordering::SeqCst) {
                        // A client that has closed its end needs no answer.
                        let _ = send(&asking, answer.as_bytes(), SendFlags::NOSIGNAL);
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

    /// Asks the process that has a name. A process whose user is not trusted counts as absent, and
    /// one that has not answered in full after a second as silent.
    pub(crate) fn ask(name: &str, trusts: impl Fn(Uid) -> bool) -> Reply {
        match answer_of(name, trusts) {
            Ok(Some(answer)) => Reply::Answer(answer),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Reply::Silent
            }
            Ok(None) | Err(_) => Reply::Absent,
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

/// The whole answer of the process that has a name. `None` if it is not to be believed.
fn answer_of(name: &str, trusts: impl Fn(Uid) -> bool) -> io::Result<Option<String>> {
    let end = Instant::now() + PATIENCE;
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // If the process accepts no client, this waits as long as a send.
    within(end, |left| {
        set_socket_timeout(&socket, Timeout::Send, Some(left))?;
        Ok(connect(&socket, &address)?)
    })?;
    if !trusts(socket_peercred(&socket)?.uid) {
        return Ok(None);
    }
    let mut stream = UnixStream::from(socket);
    let mut answer = Vec::new();
    while answer.len() < MOST {
        let mut piece = [0; MOST];
        let length = within(end, |left| {
            stream.set_read_timeout(Some(left))?;
            stream.read(&mut piece)
        })?;
        if length == 0 {
            return Ok(String::from_utf8(answer).ok());
        }
        answer.extend_from_slice(&piece[..length]);
    }
    Ok(None)
}

/// The result of a call that gets the time until `end`, again after a signal has interrupted it.
fn within<R>(end: Instant, mut call: impl FnMut(Duration) -> io::Result<R>) -> io::Result<R> {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        // A socket without a time waits forever.
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        match call(left) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use rustix::net::{bind, listen};
    use rustix::process::geteuid;
    use rustix::thread::set_thread_res_uid;

    use super::*;

    fn ask(name: &str) -> Reply {
        Service::ask(name, |user| user == geteuid())
    }

    fn name(test: &str) -> String {
        format!("verbs-sim test {test} {}", process::id())
    }

    #[test]
    fn a_name_is_of_one_service_at_a_time_which_answers() {
        let name = name("one");
        assert_eq!(ask(&name), Reply::Absent);
        for answer in ["here", "here again"] {
            let service = Service::start(&name, answer.into()).unwrap();
            let taken = Service::start(&name, String::new()).unwrap_err();
            assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
            assert_eq!(ask(&name), Reply::Answer(String::new()), "not open");
            service.open();
            for _ in 0..3 {
                assert_eq!(ask(&name), Reply::Answer(answer.into()));
            }
            drop(service);
            assert_eq!(ask(&name), Reply::Absent);
        }
    }

    /// A process that has taken a name could otherwise hold its clients for minutes.
    #[test]
    fn an_answer_that_never_ends_is_given_up() {
        const PAUSE: Duration = Duration::from_millis(10);
        let name = name("endless");
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        let squatter = thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            client.set_read_timeout(Some(PAUSE)).unwrap();
            // A byte at each pause, until the client closes its end.
            while client.write_all(b"1").is_ok() && !matches!(client.read(&mut [0]), Ok(0)) {}
        });
        assert_eq!(ask(&name), Reply::Silent);
        squatter.join().unwrap();
    }

    #[test]
    fn a_process_that_accepts_no_client_is_given_up() {
        let name = name("full");
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
        let socket = || {
            socket_with(
                AddressFamily::UNIX,
                SocketType::STREAM,
                SocketFlags::empty(),
                None,
            )
        };
        let listener = socket().unwrap();
        bind(&listener, &address).unwrap();
        listen(&listener, 0).unwrap();
        // It has room for one.
        let first = socket().unwrap();
        connect(&first, &address).unwrap();
        assert_eq!(ask(&name), Reply::Silent);
    }

    #[test]
    fn the_answer_of_an_untrusted_user_is_not_read() {
        let name = name("foreign");
        let other = Uid::from_raw(65534);
        let of_other = {
            let name = name.clone();
            // The user of a thread. The socket keeps it.
            thread::spawn(move || {
                set_thread_res_uid(None, other, None)?;
                Service::start(&name, "here".into())
            })
        };
        let service = match of_other.join().unwrap() {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                eprintln!("skipped: only root can be another user");
                return;
            }
            service => service.unwrap(),
        };
        service.open();
        assert_eq!(ask(&name), Reply::Absent);
        let answer = Service::ask(&name, |user| user == other);
        assert_eq!(answer, Reply::Answer("here".into()));
    }
}
