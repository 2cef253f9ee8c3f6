//! The main thread: starts both directions and the log, answers stdin, waits for the end.

use std::fs::File;
use std::io::{self, Error, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{mpsc, Arc};
use std::thread;

use crate::control;
use crate::log::{self, Row, INTERVAL_NS};
use crate::model::Direction;
use crate::pump::{Inbox, Pump};
use crate::tun::Tun;
use crate::{Failure, ENVIRONMENT, INTERRUPTED};

pub struct Link {
    pub a: Arc<Tun>,
    pub b: Arc<Tun>,
    pub down: Direction,
    pub up: Direction,
    pub grain_ns: u64,
    pub log: Option<File>,
    pub operator: String,
    pub epoch_ns: u64,
    pub start_ns: u64,
}

/// From now on SIGTERM, SIGINT and SIGHUP wait to be read from the file returned, in every thread started later.
pub fn hold_signals() -> Result<OwnedFd, String> {
    // SAFETY: the set is initialised by sigemptyset before it is used; the new descriptor is checked and owned once.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::sigaddset(&mut set, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        owned(libc::signalfd(-1, &set, libc::SFD_CLOEXEC)).map_err(|e| format!("cannot wait for signals: {e}"))
    }
}

fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: every caller passes a descriptor it was just given by the kernel.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn bell() -> Result<OwnedFd, Failure> {
    // SAFETY: plain system call; the result is checked by `owned`.
    owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })
        .map_err(|e| (ENVIRONMENT, format!("cannot make an event: {e}")))
}

/// Carry traffic until a signal or a failure; the value is the exit status.
pub fn run(link: Link, signals: &OwnedFd) -> Result<u8, Failure> {
    let Link { a, b, down, up, grain_ns, log, operator, epoch_ns, start_ns } = link;
    let failed = Arc::new(Inbox::new(bell()?));
    let (rows, written) = mpsc::channel::<Row>();
    let first_row_ns = first_row(epoch_ns, start_ns);
    let mut directions = Vec::new();
    for (name, from, to, model) in [("down", &b, &a, down), ("up", &a, &b, up)] {
        let inbox = Arc::new(Inbox::new(bell()?));
        let offered = (model.offered_bits(), start_ns);
        let pump = Pump {
            name,
            from: from.clone(),
            to: to.clone(),
            model,
            inbox: inbox.clone(),
            grain_ns,
            log: log.as_ref().map(|_| (rows.clone(), first_row_ns)),
            offered,
        };
        let failed = failed.clone();
        let thread = thread::Builder::new().name(name.into()).spawn(move || {
            let outcome = pump.run();
            failed.stop();
            outcome
        });
        directions.push((inbox, thread.map_err(|e| (ENVIRONMENT, format!("cannot start a thread: {e}")))?));
    }
    drop(rows); // so that the writer ends with the last direction
    let writer = log.map(|mut file| thread::spawn(move || write_log(&written, &mut file, &operator, epoch_ns)));
    let inboxes: Vec<&Inbox> = directions.iter().map(|(inbox, _)| inbox.as_ref()).collect();
    say("ready");
    let status = listen(signals, &failed, inboxes[0], inboxes[1]);
    for inbox in inboxes {
        inbox.stop();
    }
    let mut outcome = status.map_err(|e| (ENVIRONMENT, e));
    for (_, thread) in directions {
        let ended = thread.join().unwrap_or_else(|_| Err("a direction failed".into()));
        outcome = outcome.and_then(|status| ended.map(|()| status).map_err(|e| (ENVIRONMENT, e)));
    }
    if let Some(writer) = writer {
        let ended = writer.join().unwrap_or_else(|_| Err("the log failed".into()));
        outcome = outcome.and_then(|status| ended.map(|()| status).map_err(|e| (ENVIRONMENT, e)));
    }
    outcome
}

/// Rows end at whole tenths of a second since the epoch; the first one that is still to come.
fn first_row(epoch_ns: u64, start_ns: u64) -> u64 {
    let passed = start_ns.saturating_sub(epoch_ns) / INTERVAL_NS;
    epoch_ns.saturating_add((passed + 1) * INTERVAL_NS)
}

fn write_log(rows: &mpsc::Receiver<Row>, file: &mut File, operator: &str, epoch_ns: u64) -> Result<(), String> {
    log::write(rows, file, operator, epoch_ns).map_err(|e| {
        // Said at once, since the traffic goes on; it is said again by the exit status.
        eprintln!("tandem-link: the log cannot be written: {e}; carrying traffic without it");
        format!("the log is incomplete: {e}")
    })
}

fn say(line: &str) {
    // A reader that has gone away does not matter to the traffic.
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Answer stdin until a signal comes (Ok: exit status) or a direction ends by itself.
fn listen(signals: &OwnedFd, failed: &Inbox, down: &Inbox, up: &Inbox) -> Result<u8, String> {
    let mut input = Some(Vec::new());
    loop {
        let poll = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // poll() passes over negative descriptors: after its end stdin is no longer asked.
        let stdin = if input.is_some() { libc::STDIN_FILENO } else { -1 };
        let mut polled = [poll(signals.as_raw_fd()), poll(failed.raw_fd()), poll(stdin)];
        // SAFETY: three live pollfds.
        if unsafe { libc::poll(polled.as_mut_ptr(), 3, -1) } < 0 {
            match Error::last_os_error() {
                e if e.kind() == io::ErrorKind::Interrupted => continue,
                e => return Err(format!("cannot wait: {e}")),
            }
        }
        if polled[0].revents != 0 {
            return Ok(if read_signal(signals)? == libc::SIGINT as u32 { INTERRUPTED } else { 0 });
        }
        if polled[1].revents != 0 {
            return Ok(ENVIRONMENT); // the direction's own message follows when it is joined
        }
        if polled[2].revents != 0 && !read_commands(&mut input, down, up) {
            input = None;
        }
    }
}

fn read_signal(signals: &OwnedFd) -> Result<u32, String> {
    // SAFETY: signalfd_siginfo is plain old data, and its size is given to read.
    unsafe {
        let mut signal: libc::signalfd_siginfo = std::mem::zeroed();
        let size = std::mem::size_of_val(&signal);
        if libc::read(signals.as_raw_fd(), (&mut signal as *mut libc::signalfd_siginfo).cast(), size) != size as isize {
            return Err(format!("cannot read a signal: {}", Error::last_os_error()));
        }
        Ok(signal.ssi_signo)
    }
}

/// Read what is there and answer whole lines; false at the end of the input.
fn read_commands(input: &mut Option<Vec<u8>>, down: &Inbox, up: &Inbox) -> bool {
    /// Far longer than any command: a line that long is noise and is answered as such.
    const LONGEST: usize = 4096;
    let Some(pending) = input else { return false };
    let mut chunk = [0u8; 1024];
    // SAFETY: a live buffer and its length.
    let size = unsafe { libc::read(libc::STDIN_FILENO, chunk.as_mut_ptr().cast(), chunk.len()) };
    let Ok(size @ 1..) = usize::try_from(size) else { return false };
    pending.extend_from_slice(&chunk[..size]);
    while let Some(end) =
        pending.iter().position(|&byte| byte == b'\n').or((pending.len() > LONGEST).then_some(LONGEST))
    {
        let line: Vec<u8> = pending.drain(..=end).collect();
        match control::parse(String::from_utf8_lossy(&line).trim()) {
            Ok((scope, change)) => {
                for inbox in [scope.down.then_some(down), scope.up.then_some(up)].into_iter().flatten() {
                    inbox.change(change);
                }
                say("ok");
            }
            Err(message) => say(&format!("error: {message}")),
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_end_at_whole_tenths_since_the_epoch() {
        assert_eq!(first_row(1_000, 1_000), 1_000 + INTERVAL_NS);
        assert_eq!(first_row(1_000, 1_000 + INTERVAL_NS - 1), 1_000 + INTERVAL_NS);
        assert_eq!(first_row(1_000, 1_000 + INTERVAL_NS), 1_000 + 2 * INTERVAL_NS);
        assert_eq!(first_row(5 * INTERVAL_NS, 0), 6 * INTERVAL_NS);
    }
}
