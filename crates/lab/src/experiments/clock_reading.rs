//! `clock-reading`: what a reading of a bounded clock costs (000 section 3.3.1): beside the bare system clock, and beside asking a daemon.

use super::on_cluster::{mean_and_deviation, program};
use super::{
    Cell, Experiment, Ground, LabError, Measured, Picture, Point, Report, Scope, Section, Size, Stand, Table, Values,
    Verdict, values,
};
use crate::cluster::BoundFile;
use crate::plot::{Bars, Group, PALETTE};
use clocksource::{Clock, ClockSource as _};
use std::hint::black_box;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// The experiment.
pub(super) struct ClockReading;

/// Pieces of which the middle one is taken, and readings of each.
const PIECES: usize = 11;
const READINGS: usize = 100_000;
/// Of asking a daemon: each is two changes of process.
const QUESTIONS: usize = 2_000;
/// What the document names, nanoseconds: the system clock, TrueClock, ClockBound's daemon by datagram.
const DOCUMENT_NS: [f64; 3] = [60.0, 250.0, 50_000.0];
/// Names of the points.
const BARE: &str = "bare";
const STATIC: &str = "static";
const POLLED: &str = "polled";
const DAEMON: &str = "daemon";

/// The middle and the deviation of what one reading takes, nanoseconds.
fn time(scope: Scope, readings: usize, mut read: impl FnMut() -> Result<(), LabError>) -> Result<Values, LabError> {
    let readings = if scope.size == Size::Quick { readings / 100 } else { readings };
    let mut pieces = Vec::with_capacity(PIECES);
    for _ in 0..PIECES {
        let began = Instant::now();
        for _ in 0..readings {
            read()?;
        }
        pieces.push(began.elapsed().as_secs_f64() * 1e9 / readings as f64);
    }
    pieces.sort_by(f64::total_cmp);
    Ok(values([("ns", pieces[PIECES / 2]), ("deviation_ns", mean_and_deviation(&pieces).1)]))
}

fn failed(point: &str) -> impl Fn(&dyn core::fmt::Display) -> LabError {
    let point = point.to_owned();
    move |reason| LabError::Point { point: point.clone(), reason: reason.to_string() }
}

fn reading(scope: Scope, source: &str, point: &str) -> Result<Values, LabError> {
    let failed = failed(point);
    let spec = source.parse().map_err(|e: clocksource::ParseSpecError| failed(&e))?;
    let clock = Clock::open(&spec).map_err(|e| failed(&e))?;
    let poller = clock.needs_polling().then(|| clock.start_poller(|_| {}));
    let _poller = poller.transpose().map_err(|e| failed(&e))?;
    time(scope, READINGS, || {
        black_box(clock.read());
        Ok(())
    })
}

/// A question to a daemon and its answer, by datagrams of a Unix socket: as ClockBound's first version is read. The daemon answers at once.
fn daemon(scope: Scope) -> Result<Values, LabError> {
    let failed = failed(DAEMON);
    let (asks, answers) = UnixDatagram::pair().map_err(|e| failed(&e))?;
    let answering = move || {
        let mut question = [0; 64];
        // The other end is gone: nobody asks any more.
        while answers.recv(&mut question).is_ok_and(|bytes| bytes > 0) && answers.send(&[1; 24]).is_ok() {}
    };
    let thread = std::thread::Builder::new().name("daemon".into()).spawn(answering).map_err(|e| failed(&e))?;
    let mut answer = [0; 64];
    let taken = time(scope, QUESTIONS, || {
        asks.send(&[1; 4]).and_then(|_| asks.recv(&mut answer)).map_err(|e| failed(&e))?;
        Ok(())
    });
    let _ = asks.send(&[]);
    let _ = thread.join();
    taken
}

/// A reading of what a poller published: whichever source that is, it costs the same. Here it is a file of ClockBound's layout.
fn polled(scope: Scope, ground: &Ground) -> Result<Values, LabError> {
    let failed = failed(POLLED);
    let path = ground.dir.join(format!("timeball-lab-reading-{}", std::process::id()));
    let bound = Arc::new(|_| Duration::from_micros(450));
    let file = BoundFile::start(path.clone(), bound).map_err(|e| failed(&e))?;
    let taken = reading(scope, &format!("clockbound:{}", path.display()), POLLED);
    drop(file);
    // It was only ours.
    let _ = std::fs::remove_file(path);
    taken
}

impl Experiment for ClockReading {
    fn name(&self) -> &'static str {
        "clock-reading"
    }

    fn about(&self) -> &'static str {
        "what a reading of a bounded clock costs (000 section 3.3.1)"
    }

    fn introduction(&self) -> &'static str {
        "Document 000 found that asking ClockBound's daemon for each timestamp slowed its database down, and made a library of it that asks once a second. The product's clock is such a library:\n\
         a thread asks the source four times a second, and a reading is a line through what it published."
    }

    fn points(&self, scope: Scope) -> Vec<Point> {
        let bare = move |_| {
            time(scope, READINGS, || {
                black_box(SystemTime::now());
                Ok(())
            })
        };
        vec![
            Point::new(BARE, bare),
            Point::new(STATIC, move |_| reading(scope, "static:450us", STATIC)),
            Point::here(POLLED, move |_, ground| polled(scope, ground)),
            Point::new(DAEMON, move |_| daemon(scope)),
        ]
    }

    fn report(&self, measured: &Measured, _scope: Scope) -> Report {
        report(measured)
    }
}

fn report(measured: &Measured) -> Report {
    let ns = |point: &str| measured.get(point, "ns");
    let ratio = ns(POLLED) / ns(BARE);
    let named = [
        (BARE, "the system clock, without a bound", DOCUMENT_NS[0]),
        (STATIC, "a bounded clock, `static:450us`", f64::NAN),
        (
            POLLED,
            "a bounded clock whose source is polled (ClockBound's layout; the document: TrueClock)",
            DOCUMENT_NS[1],
        ),
        (DAEMON, "a question to a daemon by a Unix datagram", DOCUMENT_NS[2]),
    ];
    let mut table = Table::new(["a reading", "ns", "sd", "times the system clock", "000: ns", "times"]);
    for (point, what, document) in named {
        table.row([
            what.into(),
            Cell::Number(ns(point), 1),
            Cell::Number(measured.get(point, "deviation_ns"), 1),
            Cell::Number(ns(point) / ns(BARE), 2),
            Cell::Number(document, 0),
            Cell::Number(document / DOCUMENT_NS[0], 2),
        ]);
    }
    let verdict = Verdict {
        item: "000 section 3.3.1",
        document: "system clock about 60 ns, TrueClock 250 ns, ClockBound's daemon by datagram about 50 µs".into(),
        ours: format!(
            "system clock {:.0} ns, a bounded clock {:.0} ({ratio:.2} times; the document's 4.2), a question to a daemon {:.1} µs",
            ns(BARE),
            ns(POLLED),
            ns(DAEMON) / 1e3
        ),
        stand: Stand::if_agrees(ratio < DOCUMENT_NS[1] / DOCUMENT_NS[0] && ns(DAEMON) > 20.0 * ns(POLLED)),
    };
    let groups = [(BARE, "system clock"), (STATIC, "static"), (POLLED, "polled")]
        .into_iter()
        .zip([DOCUMENT_NS[0], f64::NAN, DOCUMENT_NS[1]])
        .map(|((point, name), document)| Group {
            name: name.into(),
            values: vec![ns(point), document],
            atop: Vec::new(),
        });
    let bars = Bars {
        title: "000 section 3.3.1: a reading of the clock".into(),
        x_label: "clock".into(),
        y_label: "ns".into(),
        contenders: vec![("here".into(), PALETTE[0]), ("000".into(), PALETTE[1])],
        groups: groups.collect(),
        decimals: 1,
    };
    Report {
        verdicts: vec![verdict],
        settings: vec![
            program(),
            ("a reading".into(), format!("the middle of {PIECES} pieces of {READINGS} readings in one thread ({QUESTIONS} questions to the daemon), with the loop around it")),
            ("the daemon".into(), "a thread of this process that answers each datagram at once: the way there and back without any work of ClockBound's own".into()),
        ],
        sections: vec![Section {
            heading: "What a reading costs".into(),
            text: "The benchmark of the clock's crate has more sources, two threads, and ClockBound's own client beside them (docs/benchmarks/clock.md).".into(),
            picture: Some(("readings".into(), Picture::Bars(bars))),
            table: Some(("readings".into(), table)),
        }],
    }
}
