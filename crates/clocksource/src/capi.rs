//! The C interface: `include/timeball_clock.h` says what each function does; this file only crosses the border.
//!
//! Built by `cargo rustc -p timeball-clocksource --features c-abi --crate-type cdylib` (or `staticlib`). A test compares the two.
//!
//! **Invariants.** 1. No pointer that C gave is kept, except the clock's own. 2. A null pointer is an error, not a fault. 3. Nothing here
//! panics: a panic would abort the caller's process.

use crate::{Clock, ClockSource, Poller, Spec};
use clock::{Reading, Status};
use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;

/// A clock with its polling thread.
#[derive(Debug)]
pub struct TimeballClock {
    clock: Arc<Clock>,
    _poller: Option<Poller>,
}

/// `timeball_reading` of the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TimeballReading {
    earliest_ns: u64,
    latest_ns: u64,
    as_of_ns: u64,
    void_after_ns: u64,
    now_ns: u64,
    max_drift_ppb: u32,
    status: c_int,
}

const INVALID: c_int = -1;
const UNTRUSTED: c_int = -2;

const fn status_number(status: Status) -> c_int {
    match status {
        Status::Unknown => 0,
        Status::Synchronized => 1,
        Status::FreeRunning => 2,
        Status::Disrupted => 3,
    }
}

/// Copies text into a C buffer, cut to fit and ended with a zero byte; says how long the whole text is.
///
/// # Safety
/// `buffer` is null or valid for `len` bytes.
unsafe fn copy_text(text: &str, buffer: *mut c_char, len: usize) -> usize {
    if !buffer.is_null() && len > 0 {
        let mut n = text.len().min(len - 1);
        while !text.is_char_boundary(n) {
            n -= 1;
        }
        // SAFETY: n + 1 <= len bytes are written, which the caller vouches for.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast::<u8>(), n);
            *buffer.add(n) = 0;
        }
    }
    text.len()
}

fn open(source: &str) -> Result<TimeballClock, String> {
    let spec: Spec = source.parse().map_err(|e| format!("{e}"))?;
    let clock = Clock::open(&spec).map_err(|e| e.to_string())?;
    let poller = clock.needs_polling().then(|| clock.start_poller(|_| {})).transpose().map_err(|e| e.to_string())?;
    Ok(TimeballClock { clock, _poller: poller })
}

/// See the header.
///
/// # Safety
/// `source` is null or a string that ends with a zero byte; `error` is null or valid for `error_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn timeball_clock_open(
    source: *const c_char,
    error: *mut c_char,
    error_len: usize,
) -> *mut TimeballClock {
    // SAFETY: the caller vouches for the string.
    let text = if source.is_null() { Some("auto") } else { unsafe { CStr::from_ptr(source) }.to_str().ok() };
    match text.ok_or_else(|| "the source is not UTF-8".to_string()).and_then(open) {
        Ok(clock) => Box::into_raw(Box::new(clock)),
        Err(e) => {
            // SAFETY: the caller vouches for the buffer.
            unsafe { copy_text(&e, error, error_len) };
            std::ptr::null_mut()
        }
    }
}

/// See the header.
///
/// # Safety
/// `clock` is null or came from [`timeball_clock_open`] and was not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn timeball_clock_close(clock: *mut TimeballClock) {
    if !clock.is_null() {
        // SAFETY: it is a box of ours, given back once.
        drop(unsafe { Box::from_raw(clock) });
    }
}

/// See the header.
///
/// # Safety
/// `clock` is null or an open clock; `reading` is null or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn timeball_clock_read(clock: *const TimeballClock, reading: *mut TimeballReading) -> c_int {
    // SAFETY: the caller vouches for both.
    let (Some(clock), Some(out)) = (unsafe { clock.as_ref() }, unsafe { reading.as_mut() }) else { return INVALID };
    let r: Reading = clock.clock.read();
    *out = TimeballReading {
        earliest_ns: r.interval.earliest_ns,
        latest_ns: r.interval.latest_ns,
        as_of_ns: r.as_of_ns,
        void_after_ns: r.void_after_ns,
        now_ns: r.now_ns,
        max_drift_ppb: r.max_drift_ppb,
        status: status_number(r.status),
    };
    if r.trusted().is_some() { 0 } else { UNTRUSTED }
}

/// See the header.
///
/// # Safety
/// `clock` is null or an open clock; the others are null or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn timeball_clock_now(
    clock: *const TimeballClock,
    earliest_ns: *mut u64,
    latest_ns: *mut u64,
) -> c_int {
    // SAFETY: the caller vouches for all three.
    let pointers = unsafe { (clock.as_ref(), earliest_ns.as_mut(), latest_ns.as_mut()) };
    let (Some(clock), Some(earliest), Some(latest)) = pointers else { return INVALID };
    match clock.clock.now() {
        Ok(i) => {
            (*earliest, *latest) = (i.earliest_ns, i.latest_ns);
            0
        }
        Err(_) => UNTRUSTED,
    }
}

/// See the header.
///
/// # Safety
/// `clock` is null or an open clock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn timeball_clock_after(clock: *const TimeballClock, unix_ns: u64) -> c_int {
    // SAFETY: the caller vouches for it.
    match unsafe { clock.as_ref() }.map(|c| c.clock.now()) {
        Some(Ok(now)) => c_int::from(now.earliest_ns > unix_ns),
        Some(Err(_)) => UNTRUSTED,
        None => INVALID,
    }
}

/// See the header.
///
/// # Safety
/// `clock` is null or an open clock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn timeball_clock_before(clock: *const TimeballClock, unix_ns: u64) -> c_int {
    // SAFETY: the caller vouches for it.
    match unsafe { clock.as_ref() }.map(|c| c.clock.now()) {
        Some(Ok(now)) => c_int::from(now.latest_ns < unix_ns),
        Some(Err(_)) => UNTRUSTED,
        None => INVALID,
    }
}

/// See the header.
///
/// # Safety
/// `clock` is null or an open clock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn timeball_clock_wait_until_after(clock: *const TimeballClock, unix_ns: u64) -> c_int {
    // SAFETY: the caller vouches for it.
    match unsafe { clock.as_ref() }.map(|c| c.clock.wait_until_after_ns(unix_ns)) {
        Some(Ok(())) => 0,
        Some(Err(_)) => UNTRUSTED,
        None => INVALID,
    }
}

/// See the header.
///
/// # Safety
/// `clock` is null or an open clock; `buffer` is null or valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn timeball_clock_describe(
    clock: *const TimeballClock,
    buffer: *mut c_char,
    len: usize,
) -> usize {
    // SAFETY: the caller vouches for both.
    unsafe {
        let Some(clock) = clock.as_ref() else { return 0 };
        let report = clock.clock.report();
        copy_text(&format!("{}: {}", report.source, report.detail), buffer, len)
    }
}
