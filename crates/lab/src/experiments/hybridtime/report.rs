//! What the numbers say: tables, figures and verdicts.

use super::{
    APART, CURVE_S, CURVE_US, ERRORS_US, MODES, NTP_US, PERCENTILES, ROWS, THREADS, TOGETHER, experiment_1,
    experiment_2, experiment_3, follows,
};
use crate::experiments::on_cluster::{company, mean_and_deviation, program};
use crate::experiments::{Cell, Measured, Picture, Report, Section, Stand, Table, Verdict, orders_of_magnitude};
use crate::plot::{Bars, Chart, Group, PALETTE, Series};
use std::time::Duration;

/// "Virtually no impact": not more by so much and by twice the standard error of the difference, where runs are repeated.
const NO_IMPACT: f64 = 0.15;
/// "Roughly 20 times" is at least half of that.
const TWENTY_TIMES: f64 = 10.0;

/// "A lot of the time": more than half of it.
const A_LOT: f64 = 0.5;
/// "99.9 % of the requests": nearly all.
const NEARLY_ALL: f64 = 0.99;

/// What 002 section 5.2 prints of NTP's greatest error: least, greatest, mean, standard deviation, ms; and what it says of others.
const NTP_MS: [(&str, [f64; 4]); 4] = [
    ("NTP, one data center", [11.5, 16.7, 14.73, 2.468]),
    ("NTP, two data centers", [12.3, 20.1, 16.36, 2.581]),
    ("NTP's time master", [6.0, 9.0, f64::NAN, f64::NAN]),
    ("TrueTime", [5.0, 7.0, f64::NAN, f64::NAN]),
];

struct Numbers<'m> {
    measured: &'m Measured,
    rounds: usize,
}

impl Numbers<'_> {
    /// Mean and deviation over the rounds.
    fn of(&self, point: impl Fn(usize) -> String, name: &str) -> (f64, f64) {
        let all: Vec<f64> = (1..=self.rounds).map(|round| self.measured.get(&point(round), name)).collect();
        mean_and_deviation(&all)
    }
    fn mean(&self, point: impl Fn(usize) -> String, name: &str) -> f64 {
        self.of(point, name).0
    }
    /// Of the writes of a mode that ran alone: the share that waited for their timestamps, as the nodes counted, and that wait as a share of what a write took.
    fn waited(&self, point: impl Fn(usize) -> String, mode: &str) -> [f64; 2] {
        let shares = (1..=self.rounds).map(|round| {
            let get = |name: &str| self.measured.get(&point(round), name);
            // The nodes count also what was under way when the measured time ended, so both are of one commit.
            let commits = get("txn_commits");
            let waited_ms = get("commit_wait_nanos") / commits / 1e6;
            [get("txn_commit_waits") / commits, waited_ms / get(&format!("{mode}_mean_ms"))]
        });
        let shares: Vec<[f64; 2]> = shares.collect();
        [0, 1].map(|at| mean_and_deviation(&shares.iter().map(|both| both[at]).collect::<Vec<_>>()).0)
    }
}

/// Whether `hybrid` takes no longer than `none`, both means of repeated runs with their deviations, as far as can be seen.
fn no_impact((none, none_sd): (f64, f64), (hybrid, hybrid_sd): (f64, f64), rounds: usize) -> bool {
    let error = ((none_sd.powi(2) + hybrid_sd.powi(2)) / rounds as f64).sqrt();
    // Of one run there is no error.
    hybrid - none <= (NO_IMPACT * none).max(2.0 * error)
}

fn color(mode: &str) -> crate::plot::Color {
    MODES.iter().position(|known| *known == mode).map_or(PALETTE[5], |at| [PALETTE[1], PALETTE[0], PALETTE[2]][at])
}

fn percentile_table(numbers: &Numbers<'_>, point: impl Fn(&str, usize) -> String) -> Table {
    let mut table = Table::new([
        "mode",
        "writes: mean ms",
        "sd",
        "p50",
        "p75",
        "p90",
        "p99",
        "p99.9",
        "operations/s",
        "sd",
        "in the fullest bin, %",
        "waited, % of the writes",
        "waited, % of their time",
    ]);
    for mode in MODES {
        let of = |name: &str| numbers.of(|round| point(mode, round), &format!("{mode}_{name}"));
        let [writes, time] = numbers.waited(|round| point(mode, round), mode);
        let [p50, p75, p90, p99, p999] = PERCENTILES.map(|(_, name)| Cell::Number(of(name).0, 2));
        table.row([
            mode.into(),
            Cell::Number(of("mean_ms").0, 2),
            Cell::Number(of("mean_ms").1, 2),
            p50,
            p75,
            p90,
            p99,
            p999,
            Cell::Number(of("per_second").0, 0),
            Cell::Number(of("per_second").1, 0),
            Cell::Number(of("one_bin_share").0 * 100.0, 0),
            Cell::Number(writes * 100.0, 1),
            Cell::Number(time * 100.0, 1),
        ]);
    }
    table
}

fn percentile_bars(numbers: &Numbers<'_>, title: &str, point: impl Fn(&str, usize) -> String) -> Picture {
    let group = |(quantile, name): (f64, &str)| Group {
        name: format!("{} %", quantile * 100.0),
        values: MODES.map(|mode| numbers.mean(|round| point(mode, round), &format!("{mode}_{name}"))).to_vec(),
        atop: Vec::new(),
    };
    let groups: Vec<Group> = PERCENTILES.map(group).to_vec();
    let greatest = groups.iter().flat_map(|group| &group.values).copied().fold(0.0, f64::max);
    Picture::Bars(Bars {
        title: title.into(),
        x_label: "percentile of writes".into(),
        y_label: "latency, ms".into(),
        contenders: MODES.map(|mode| (mode.to_owned(), color(mode))).to_vec(),
        groups,
        // Three numbers of four letters stand side by side, longer ones lie on each other.
        decimals: usize::from(greatest < 100.0),
    })
}

/// Latency each second, and the error: figures 2 and 4.
fn over_time(numbers: &Numbers<'_>, experiment: usize, title: &str) -> Picture {
    let piece = |mode: &str, name: &str| -> Vec<(f64, f64)> {
        let of = |n: u64| (n as f64, numbers.measured.get(&follows(experiment, mode), &format!("{name}_{n:02}_ms")));
        (0..CURVE_S).map(of).collect()
    };
    let mut series: Vec<Series> = MODES
        .iter()
        .map(|mode| Series {
            name: (*mode).into(),
            color: color(mode),
            dashed: false,
            marked: true,
            points: piece(mode, mode),
        })
        .collect();
    series.push(Series {
        name: "the clock's error".into(),
        color: PALETTE[5],
        dashed: true,
        marked: false,
        points: piece("strict", "error"),
    });
    Picture::Lines(Chart {
        title: title.into(),
        x_label: "time, s".into(),
        y_label: "mean latency of writes each second, and the error, ms".into(),
        y_log: true,
        series,
        ..Chart::default()
    })
}

/// Of the seconds with the least and the greatest error: the error, and strict's latency, ms.
fn followed(numbers: &Numbers<'_>, experiment: usize) -> [(f64, f64); 2] {
    let of = |n: u64, name: &str| numbers.measured.get(&follows(experiment, "strict"), &format!("{name}_{n:02}_ms"));
    let mut all: Vec<(f64, f64)> = (0..CURVE_S).map(|n| (of(n, "error"), of(n, "strict"))).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    [all[0], all[all.len() - 1]]
}

fn experiment_one(numbers: &Numbers<'_>) -> (Verdict, Vec<Section>) {
    let at = |mode: &str, error: u64, name: &str| {
        numbers.mean(|round| experiment_1(error, mode, round), &format!("{mode}_{name}"))
    };
    let mut table = Table::new([
        "stated error, ms",
        "none: mean ms of writes",
        "hybrid",
        "strict",
        "sd",
        "strict less hybrid",
        "of twice the error",
        "p99.9 none",
        "hybrid",
        "strict",
        "strict: waited, % of the writes",
        "waited, % of their time",
    ]);
    for error in ERRORS_US {
        let ms = error as f64 / 1e3;
        let [none, hybrid, strict] = MODES.map(|mode| at(mode, error, "mean_ms"));
        let [writes, time] = numbers.waited(|round| experiment_1(error, "strict", round), "strict");
        table.row([
            Cell::Number(ms, 2),
            Cell::Number(none, 2),
            Cell::Number(hybrid, 2),
            Cell::Number(strict, 2),
            Cell::Number(numbers.of(|round| experiment_1(error, "strict", round), "strict_mean_ms").1, 2),
            Cell::Number(strict - hybrid, 2),
            Cell::Number((strict - hybrid) / (2.0 * ms), 2),
            Cell::Number(at("none", error, "p999_ms"), 1),
            Cell::Number(at("hybrid", error, "p999_ms"), 1),
            Cell::Number(at("strict", error, "p999_ms"), 1),
            Cell::Number(writes * 100.0, 1),
            Cell::Number(time * 100.0, 1),
        ]);
    }
    let ntp = NTP_US[0];
    let [none, hybrid, strict] = MODES.map(|mode| at(mode, ntp, "mean_ms"));
    let [least, greatest] = followed(numbers, 1);
    let of = |mode: &str| numbers.of(|round| experiment_1(ntp, mode, round), &format!("{mode}_mean_ms"));
    let unhurt = no_impact(of("none"), of("hybrid"), numbers.rounds);
    let verdict = Verdict {
        item: "002 experiment 1 (figures 2, 3)",
        document: "HybridTime has virtually no impact; commit-wait is about two orders of magnitude slower and follows the error closely".into(),
        ours: format!(
            "with an error of {:.2} ms: none {none:.2} ms, hybrid {hybrid:.2}, strict {strict:.2} ({:.0} times); strict goes from {:.1} to {:.1} ms as the error goes from {:.1} to {:.1}",
            ntp as f64 / 1e3,
            strict / hybrid,
            least.1,
            greatest.1,
            least.0,
            greatest.0
        ),
        stand: Stand::if_agrees(
            unhurt && orders_of_magnitude(strict / hybrid) == 2.0 && greatest.1 > least.1,
        ),
    };
    let by_error = |name: &str, color, dashed, points: Vec<(f64, f64)>| Series {
        name: name.into(),
        color,
        dashed,
        marked: !dashed,
        points,
    };
    let mut lines: Vec<Series> = MODES
        .iter()
        .map(|mode| {
            let points = ERRORS_US.iter().map(|us| (*us as f64 / 1e3, at(mode, *us, "mean_ms"))).collect();
            by_error(mode, color(mode), false, points)
        })
        .collect();
    let twice = ERRORS_US.iter().map(|us| (*us as f64 / 1e3, *us as f64 / 500.0)).collect();
    lines.push(by_error("twice the error", PALETTE[5], true, twice));
    let curve = Picture::Lines(Chart {
        title: "experiment 1: mean latency of writes by the clock's error".into(),
        x_label: "stated error, ms".into(),
        y_label: "mean latency of writes, ms".into(),
        series: lines,
        ..Chart::default()
    });
    let sections = vec![
        Section {
            heading: "Experiment 1: without replication and sync".into(),
            text: "One node whose data lie in memory, where a sync costs nothing (the product has no setting that leaves syncs out); one mode at a time. A commit of `strict` has a\n\
                   timestamp above `latest`, and waits until `earliest` has passed it: twice the error, less what the commit takes."
                .into(),
            picture: Some(("errors".into(), curve)),
            table: Some(("experiment-1".into(), table)),
        },
        Section {
            heading: "Figure 2: latency follows the error".into(),
            text: format!(
                "The node's clock reads its bound from a file that the lab writes, in the layout of ClockBound: a saw of {CURVE_S} seconds between the least and the greatest error that the document's NTP\n\
                 had in one data center. The error is the node's own word (`clock_bound_nanos`)."
            ),
            picture: Some((
                "figure-2".into(),
                over_time(numbers, 1, "figure 2: latency of writes and the clock's error over time, without replication and sync"),
            )),
            table: None,
        },
        Section {
            heading: "Figure 3: percentiles".into(),
            text: format!("With an error of {:.2} ms.", ntp as f64 / 1e3),
            picture: Some((
                "figure-3".into(),
                percentile_bars(numbers, "figure 3: percentiles of writes, without replication and sync", |mode, round| {
                    experiment_1(ntp, mode, round)
                }),
            )),
            table: Some(("figure-3".into(), percentile_table(numbers, |mode, round| experiment_1(ntp, mode, round)))),
        },
        beside_each_other(numbers),
    ];
    (verdict, sections)
}

/// What a mode costs where the others run, too.
fn beside_each_other(numbers: &Numbers<'_>) -> Section {
    let ntp = NTP_US[0];
    let mut table = Table::new(["mode", "one node: alone, mean ms", "together", "three nodes: alone", "together"]);
    for mode in MODES {
        let name = format!("{mode}_mean_ms");
        let one = |who: &str| Cell::Number(numbers.mean(|round| experiment_1(ntp, who, round), &name), 2);
        let three = |who: &str| Cell::Number(numbers.mean(|round| experiment_2(who, round), &name), 2);
        table.row([mode.into(), one(mode), one(TOGETHER), three(mode), three(TOGETHER)]);
    }
    Section {
        heading: "The modes at the same time".into(),
        text: "The document's three clients ran at the same time and did not disturb each other: there a write of commit-wait takes the present for its timestamp and then waits. Here `strict` stamps a write\n\
               at `latest`, ahead of true time, and a range's log is in the order of its timestamps: whoever writes to the range after it is stamped above it, and waits as well, whatever its own mode is. So\n\
               `strict` writers make the other writers of their ranges as slow as they are. (Strict *reads* tax nobody.)"
            .into(),
        table: Some(("together".into(), table)),
        ..Section::default()
    }
}

fn experiment_two(numbers: &Numbers<'_>) -> (Verdict, [Section; 2]) {
    let mean = |mode: &str| numbers.mean(|round| experiment_2(mode, round), &format!("{mode}_mean_ms"));
    let [none, hybrid, wait] = MODES.map(mean);
    let of = |mode: &str| numbers.of(|round| experiment_2(mode, round), &format!("{mode}_mean_ms"));
    let unhurt = no_impact(of("none"), of("hybrid"), numbers.rounds);
    let [writes, time] = numbers.waited(|round| experiment_2("strict", round), "strict");
    let verdict = Verdict {
        item: "002 experiment 2 (figure 4)",
        document: "HybridTime about one order of magnitude below commit-wait; 99.9 % of commit-wait's requests spend 86 % of their time waiting".into(),
        ours: format!(
            "none {none:.2} ms, hybrid {hybrid:.2}, strict {wait:.2} ({:.1} times); {:.1} % of strict's writes waited beyond their replication and sync, for {:.0} % of the time that they took",
            wait / hybrid,
            writes * 100.0,
            time * 100.0
        ),
        stand: Stand::if_agrees(
            unhurt && orders_of_magnitude(wait / hybrid) == 1.0 && writes > NEARLY_ALL && time > A_LOT,
        ),
    };
    let section = Section {
        heading: "Experiment 2: with replication and sync".into(),
        text: format!(
            "Three nodes, replication 3, data on disk, an error of {:.2} ms; one mode at a time, at one node. Twice the error are {:.2} ms, and a write of `strict` took {wait:.2} ms, where one of `hybrid`\n\
             took {hybrid:.2}: replication and sync are hidden in the wait, as the document has it. *Waited* is what the nodes count: writes that were replicated and had to wait for their timestamps all the same, and for how long.",
            NTP_US[0] as f64 / 1e3,
            NTP_US[0] as f64 / 500.0
        ),
        picture: Some((
            "experiment-2".into(),
            percentile_bars(numbers, "experiment 2: percentiles of writes, with replication and sync", experiment_2),
        )),
        table: Some(("experiment-2".into(), percentile_table(numbers, experiment_2))),
    };
    let [least, greatest] = followed(numbers, 2);
    let over_time = Section {
        heading: "Figure 4: latency follows the error, with replication and sync".into(),
        text: format!(
            "As figure 2, on the three nodes. `strict` goes from {:.1} to {:.1} ms as the error goes from {:.1} to {:.1} (the mean of what the three nodes say).",
            least.1, greatest.1, least.0, greatest.0
        ),
        picture: Some((
            "figure-4".into(),
            over_time(
                numbers,
                2,
                "figure 4: latency of writes and the clock's error over time, with replication and sync",
            ),
        )),
        table: None,
    };
    (verdict, [section, over_time])
}

fn experiment_three(numbers: &Numbers<'_>) -> (Verdict, Section) {
    let of = |mode: &str, name: &str| numbers.mean(|round| experiment_3(mode, round), &format!("{mode}_{name}"));
    let alone = |mode: &str| numbers.mean(|round| experiment_2(mode, round), &format!("{mode}_per_second"));
    let ratio = of("hybrid", "per_second") / of("strict", "per_second");
    let near = alone("hybrid") / alone("strict");
    let steadier = of("hybrid", "one_bin_share") / of("strict", "one_bin_share");
    let verdict = Verdict {
        item: "002 experiment 3 (figure 5)",
        document: "HybridTime lower and steadier (25 % of requests in one bin); a client has about 20 times the throughput of commit-wait's".into(),
        ours: format!(
            "writes: hybrid {:.1} ms, strict {:.1}; in the fullest bin {:.0} and {:.0} %; throughput {ratio:.1} times, in one data center {near:.1} times",
            of("hybrid", "mean_ms"),
            of("strict", "mean_ms"),
            of("hybrid", "one_bin_share") * 100.0,
            of("strict", "one_bin_share") * 100.0
        ),
        stand: Stand::if_agrees(ratio > TWENTY_TIMES && steadier > 1.0),
    };
    let section = Section {
        heading: "Experiment 3: over two data centers".into(),
        text: format!(
            "Relays put the third node {} ms away (one way; the document does not print how far its two zones are apart), and each mode has a client of {THREADS} threads in each data center; the modes run one\n\
             after the other. Ranges are led by nodes of both, so a write goes to another data center from either, and a majority of a range that is led by the third node crosses it, too. Such a way is\n\
             longer than twice an error of {:.2} ms, and hides the wait; that is why commit-wait costs less here than the document has it.\n\n\
             Each mode has a cluster of its own, whose leaders are put at the nodes in turn, in the order of the ranges' keys, that of the catalog among them; they are asked afterwards whether they have stayed, and a run\n\
             in which one has not is none. The writes of a run fall into groups of no, one, two, three and four crossings there and back, so a median says which group is the larger one. What a mode costs by itself, at one\n\
             range, is what `timeball lab consistency` measures.",
            APART.as_millis(),
            NTP_US[1] as f64 / 1e3
        ),
        picture: Some((
            "figure-5".into(),
            percentile_bars(numbers, "experiment 3: percentiles of writes, two data centers", experiment_3),
        )),
        table: Some(("experiment-3".into(), percentile_table(numbers, experiment_3))),
    };
    (verdict, section)
}

/// The document's table of errors, and what of it the nodes are told.
fn ntp_section() -> Section {
    let mut table =
        Table::new(["greatest error, ms", "least", "greatest", "mean", "sd", "stated by the nodes here, ms"]);
    let ms = |us: u64| us as f64 / 1e3;
    let stated = [
        format!(
            "{} (experiments 1 and 2); {} to {} (figures 2 and 4)",
            ms(NTP_US[0]),
            ms(CURVE_US[0]),
            ms(CURVE_US[1])
        ),
        format!("{} (experiment 3)", ms(NTP_US[1])),
        String::new(),
        format!("{} (experiment 1)", ms(ERRORS_US[2])),
    ];
    for ((whose, [least, greatest, mean, deviation]), stated) in NTP_MS.into_iter().zip(stated) {
        table.row([
            whose.into(),
            Cell::Number(least, 1),
            Cell::Number(greatest, 1),
            Cell::Number(mean, 2),
            Cell::Number(deviation, 3),
            stated.into(),
        ]);
    }
    Section {
        heading: "Section 5.2: NTP's greatest error".into(),
        text: "As the document prints it: NTP 4.2.6, asked every 8 s at most; of its time master and of TrueTime it gives ranges only. This machine has one clock and no such network.".into(),
        table: Some(("ntp".into(), table)),
        ..Section::default()
    }
}

pub(super) fn report(measured: &Measured, rounds: usize, duration: Duration) -> Report {
    let numbers = Numbers { measured, rounds };
    let (one, mut sections) = experiment_one(&numbers);
    let (two, section_two) = experiment_two(&numbers);
    let (three, section_three) = experiment_three(&numbers);
    let ntp = Verdict {
        item: "002 section 5.2",
        document: "greatest error by NTP: 11.5 to 16.7 ms, mean 14.73 ± 2.468 in one data center; 12.3 to 20.1, mean 16.36 ± 2.581 in two".into(),
        ours: "one machine with one clock: no NTP over a network is here. These numbers are what the nodes are told to state".into(),
        stand: Stand::NotHere,
    };
    sections.extend(section_two);
    sections.push(section_three);
    sections.push(ntp_section());
    sections.push(Section {
        heading: "What cannot be shown, and slips of the document".into(),
        text: "Ten machines a data center, their disks and NTP, and Kudu itself, which grew from this prototype.\n\n\
               The document's algorithm 2 has two slips. Line 10 begins anew at logical 0 also where the physical clock has not moved (≥ for >): two events of one tick get one timestamp. Line 28\n\
               forgets the node's own logical part where both physical parts are equal; the text above it takes the greater of the two."
            .into(),
        ..Section::default()
    });
    let failures: f64 = MODES.iter().flat_map(|mode| measured.all(&format!("{mode}_failures"))).sum();
    let settings = vec![
        ("none, hybrid, strict".to_owned(), "`timeball.consistency` of each session. The document's commit-wait waits for the error of the node's clock after it has stamped a write; `strict` stamps above `latest` and waits until that is past".to_owned()),
        program(),
        (
            "the load".to_owned(),
            format!(
                "60 % inserts, 20 % updates, 20 % reads of single rows of 1 kB by primary key, {THREADS} threads a client, closed loop, {ROWS} rows at the start; {} s after 1 s that is not measured, {rounds} round{}. The document names no times, rows or key distribution. {failures:.0} operations failed",
                duration.as_secs(),
                if rounds == 1 { "" } else { "s" }
            ),
        ),
        ("verdicts".to_owned(), format!("no impact: `hybrid` takes no more than {:.0} % longer than `none`, or than twice the standard error of the rounds' difference; about an order of magnitude: the nearest one of the ratio", NO_IMPACT * 100.0)),
        ("clocks".to_owned(), "all nodes read this machine's clock and state an error (`--clock static:..`); their clocks agree".to_owned()),
        company(measured),
    ];
    Report { verdicts: vec![one, two, three, ntp], settings, sections }
}

#[cfg(test)]
mod tests {
    use super::{Measured, Numbers, experiment_2, no_impact, orders_of_magnitude};
    use crate::experiments::values;

    #[test]
    fn waits_are_of_commits_and_of_what_a_write_took() {
        let mut measured = Measured::default();
        for (round, waits) in [(1, 200.0), (2, 100.0)] {
            let all = [
                ("txn_commits", 200.0),
                ("txn_commit_waits", waits),
                ("commit_wait_nanos", waits * 24e6),
                // Eight of the commits came after the measured time.
                ("strict_writes", 192.0),
                ("strict_mean_ms", 30.0),
            ];
            measured.0.insert(experiment_2("strict", round), values(all));
        }
        let [writes, time] =
            Numbers { measured: &measured, rounds: 2 }.waited(|round| experiment_2("strict", round), "strict");
        assert!((writes - 0.75).abs() < 1e-9 && (time - 0.6).abs() < 1e-9, "{writes} {time}");
    }

    #[test]
    fn no_impact_is_none_that_can_be_seen() {
        let one = f64::NAN;
        assert!(no_impact((0.41, one), (0.45, one), 1) && !no_impact((0.41, one), (0.50, one), 1));
        assert!(no_impact((0.41, 0.06), (0.50, 0.06), 3), "0.09 more, 0.05 the standard error");
        assert!(!no_impact((0.41, 0.01), (0.50, 0.01), 3) && no_impact((6.0, 0.2), (5.5, 0.1), 3));
        assert!(!no_impact((one, one), (0.4, one), 1) && !no_impact((0.4, one), (one, one), 1));
    }

    #[test]
    fn about_an_order_of_magnitude_is_the_nearest_one() {
        assert_eq!(
            [1.3, 3.0, 3.3, 5.3, 20.0, 66.0, 300.0].map(orders_of_magnitude),
            [0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 2.0]
        );
    }
}
