//! The thread of one direction: reads packets from one TUN, lets the model decide, writes them to the other.

use std::io::{Error, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use crate::clock;
use crate::log::{Row, Written, INTERVAL_NS};
use crate::model::{Counts, Direction};
use crate::tun::Tun;
use crate::values::Change;

/// Packets read before those that are due are looked at again, so that a flood cannot hold back delivery.
const BATCH: usize = 32;
/// Above every ordinary program, below what else may be real-time on a machine.
const PRIORITY: libc::c_int = 10;
/// Room for one packet; interfaces have at most 65535 bytes.
const LARGEST: usize = 65_536;

/// What the rest of the program says to a running direction.
pub struct Inbox {
    changes: Mutex<Vec<Change>>,
    stop: AtomicBool,
    wake: OwnedFd,
}

impl Inbox {
    pub fn new(wake: OwnedFd) -> Self {
        Inbox { changes: Mutex::new(Vec::new()), stop: AtomicBool::new(false), wake }
    }

    pub fn change(&self, change: Change) {
        self.changes.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(change);
        self.ring();
    }

    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.ring();
    }

    pub fn raw_fd(&self) -> RawFd {
        self.wake.as_raw_fd()
    }

    fn ring(&self) {
        // SAFETY: eight bytes from a live value to an eventfd. It can only fail when its counter is full: then it is
        // readable anyway, which is all that is wanted.
        unsafe { libc::write(self.wake.as_raw_fd(), (&1u64 as *const u64).cast(), 8) };
    }

    fn take(&self) -> Vec<Change> {
        let mut count = 0u64;
        // SAFETY: eight bytes from a non-blocking eventfd into a live value; an empty one is no error here.
        unsafe { libc::read(self.wake.as_raw_fd(), (&mut count as *mut u64).cast(), 8) };
        std::mem::take(&mut *self.changes.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}

pub struct Pump {
    pub name: &'static str,
    pub from: Arc<Tun>,
    pub to: Arc<Tun>,
    pub model: Direction,
    pub inbox: Arc<Inbox>,
    /// While traffic flows the thread rests this long between two rounds, so that one wake-up serves several packets:
    /// waking costs more than carrying. 0 wakes for each packet.
    pub grain_ns: u64,
    /// Where rows of the log go, and when the first is due.
    pub log: Option<(Sender<Row>, u64)>,
    /// What opportunities had offered when the last row ended, and when that was.
    pub offered: (Option<u64>, u64),
}

impl Pump {
    /// Run until stopped. An error is one line: the device is gone.
    pub fn run(mut self) -> Result<(), String> {
        be_prompt();
        let mut scratch = vec![0; LARGEST];
        let mut written = Written::default();
        let mut seen = Counts::default();
        let mut readable = false;
        let mut before = (0, 0);
        loop {
            let now = clock::monotonic_ns();
            self.rows(now, &mut seen, &mut written)?;
            self.model.advance(now);
            self.deliver(now, &mut written)?;
            let more = readable && self.read(&mut scratch)?;
            if more {
                continue;
            }
            let after = (self.model.counts().offered_packets, self.model.delivered_packets());
            let flowing = self.grain_ns > 0 && after != before;
            before = after;
            let (arrived, rung) = self.sleep(flowing.then(|| now.saturating_add(self.grain_ns)))?;
            readable = arrived || flowing;
            if rung {
                let now = clock::monotonic_ns();
                self.rows(now, &mut seen, &mut written)?;
                if self.inbox.stop.load(Ordering::Acquire) {
                    // The last row is shorter than the others, so that the log accounts for every packet.
                    return if self.log.is_some() { self.row(now, &mut seen, &mut written) } else { Ok(()) };
                }
                for change in self.inbox.take() {
                    self.model.change(now, change);
                }
            }
        }
    }

    /// Hand over each row that is complete by `now`; the model is advanced to each row's end and not beyond.
    fn rows(&mut self, now: u64, seen: &mut Counts, written: &mut Written) -> Result<(), String> {
        loop {
            let due_ns = match self.log {
                Some((_, due_ns)) if due_ns <= now => due_ns,
                _ => return Ok(()),
            };
            self.row(due_ns, seen, written)?;
            if let Some((_, next_ns)) = &mut self.log {
                *next_ns += INTERVAL_NS;
            }
        }
    }

    /// Hand over the row that ends at `end_ns`.
    fn row(&mut self, end_ns: u64, seen: &mut Counts, written: &mut Written) -> Result<(), String> {
        self.model.advance(end_ns);
        self.deliver(end_ns, written)?;
        let total = self.model.counts();
        let offered_bits = self.model.offered_bits();
        let capacity = match (offered_bits, self.offered) {
            (Some(bits), (Some(before), from_ns)) if end_ns > from_ns => {
                ((bits - before) as f64 * 1e9 / (end_ns - from_ns) as f64).round() as u64
            }
            _ => self.model.values().capacity(),
        };
        self.offered = (offered_bits, end_ns);
        let row = Row {
            direction: self.name,
            monotonic_ns: end_ns,
            queue_bytes: self.model.queue_bytes(),
            capacity,
            counts: total.since(seen),
            written: std::mem::take(written),
        };
        *seen = total;
        if self.log.as_ref().is_some_and(|(rows, _)| rows.send(row).is_err()) {
            // The writer has ended and said why: traffic goes on without a log.
            self.log = None;
        }
        Ok(())
    }

    fn deliver(&mut self, by_ns: u64, written: &mut Written) -> Result<(), String> {
        while let Some(packet) = self.model.take_due(by_ns) {
            let now = clock::monotonic_ns();
            match write(self.to.as_raw_fd(), &packet.bytes) {
                Ok(()) => {
                    let late_ns = now.saturating_sub(packet.due_ns);
                    written.packets += 1;
                    written.bytes += packet.bytes.len() as u64;
                    written.delay_ns += now.saturating_sub(packet.arrived_ns);
                    written.late_ns += late_ns;
                    written.late_max_ns = written.late_max_ns.max(late_ns);
                }
                // The receiving interface is down, or its stack has no room or refuses the packet.
                Err(e)
                    if matches!(
                        e.raw_os_error(),
                        Some(libc::EIO | libc::ENOBUFS | libc::ENOMEM | libc::EINVAL | libc::EAGAIN)
                    ) =>
                {
                    written.refused += 1;
                }
                Err(e) => return Err(format!("{}: the receiving device is gone: {e}", self.name)),
            }
        }
        Ok(())
    }

    /// Read what waits, at most a batch; true when there may be more.
    fn read(&mut self, scratch: &mut [u8]) -> Result<bool, String> {
        for _ in 0..BATCH {
            // SAFETY: `scratch` is live and its length is given.
            let size = unsafe { libc::read(self.from.as_raw_fd(), scratch.as_mut_ptr().cast(), scratch.len()) };
            match usize::try_from(size) {
                Ok(size) => self.model.offer(clock::monotonic_ns(), &scratch[..size]),
                Err(_) => {
                    let error = Error::last_os_error();
                    return match error.kind() {
                        ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(false),
                        _ => Err(format!("{}: the sending device is gone: {error}", self.name)),
                    };
                }
            }
        }
        Ok(true)
    }

    /// Sleep until something arrives, is due, or is said: (something arrived, something was said). With `rest_until` the
    /// sleep lasts until then, whatever arrives or is due.
    fn sleep(&self, rest_until: Option<u64>) -> Result<(bool, bool), String> {
        let log_ns = self.log.as_ref().map(|(_, due_ns)| *due_ns);
        let next_ns = rest_until.or_else(|| [self.model.next_event(), log_ns].into_iter().flatten().min());
        let timeout = next_ns.map(|next| clock::timespec(next.saturating_sub(clock::monotonic_ns())));
        let poll = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // poll() passes over negative descriptors.
        let from = if rest_until.is_some() { -1 } else { self.from.as_raw_fd() };
        let mut polled = [poll(from), poll(self.inbox.wake.as_raw_fd())];
        let pointer = timeout.as_ref().map_or(std::ptr::null(), |t| t as *const libc::timespec);
        // SAFETY: two live pollfds, a live timeout or none, no signal mask.
        let found = unsafe { libc::ppoll(polled.as_mut_ptr(), 2, pointer, std::ptr::null()) };
        if found < 0 {
            let error = Error::last_os_error();
            return match error.kind() {
                ErrorKind::Interrupted => Ok((false, false)),
                _ => Err(format!("{}: cannot wait: {error}", self.name)),
            };
        }
        Ok((polled[0].revents != 0, polled[1].revents != 0))
    }
}

fn write(fd: RawFd, bytes: &[u8]) -> Result<(), Error> {
    // SAFETY: `bytes` is live and its length is given.
    match unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) } {
        size if size >= 0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

/// Ask for prompt wake-ups. Without the permission the link still works, less punctually, which its log then shows.
fn be_prompt() {
    let parameter = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: plain system calls on the calling thread with live arguments; a refusal is harmless, as said above.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1000 as libc::c_ulong, 0, 0, 0);
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter);
    }
}
