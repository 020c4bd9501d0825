//! What the numbers say: tables, figures and verdicts.

use super::{CA, FIVE, PROTOCOLS, Protocol, QUANTILES, THREE, VA, name};
use crate::experiments::clock_rsm_model::formulas::{Group, SITES, mean};
use crate::experiments::{Cell, Measured, Picture, Report, Section, Stand, Table, Verdict};
use crate::plot::{Bars, Chart, Color, Group as BarGroup, PALETTE, Series};

/// Colours of [`PROTOCOLS`], as `clock-rsm-model` has them.
const COLORS: [Color; 4] = [PALETTE[5], PALETTE[1], PALETTE[2], PALETTE[0]];
/// Between these quantiles lies what is called a distribution's range: single commands at its ends are left out.
const RANGE: (u32, u32) = (1, 99);
/// What the document prints of Mencius-bcast at JP, milliseconds, and how near an end of ours is the same.
const MENCIUS_AT_JP_MS: (f64, f64) = (134.0, 230.0);
const NEAR: f64 = 0.1;
/// Up to so much of its mean a latency's range is called predictable.
const PREDICTABLE: f64 = 0.12;
/// Two latencies are similar within so much of the second.
const SIMILAR: f64 = 0.15;
/// The site at which figures 3.5, 3.6 and 3.8 look.
const AT_JP: usize = 3;
const AT_CA: usize = 0;
const AT_SG: usize = 4;

/// Numbers of one figure: the sites, the leader, and whether one site at a time has clients.
#[derive(Clone, Copy)]
struct Figure<'a> {
    measured: &'a Measured,
    sites: &'static [usize],
    leader: usize,
    alone: bool,
}

impl Figure<'_> {
    fn get(&self, protocol: Protocol, at: usize, number: &str) -> f64 {
        let point = name(protocol, self.sites, self.leader, self.alone.then_some(at));
        self.measured.get(&point, &format!("{} {number}", SITES[self.sites[at]]))
    }
    fn mean_ms(&self, protocol: Protocol, at: usize) -> f64 {
        self.get(protocol, at, "mean_ms")
    }
    fn quantile_ms(&self, protocol: Protocol, at: usize, n: u32) -> f64 {
        self.get(protocol, at, &format!("q{n:03}_ms"))
    }
    fn range_ms(&self, protocol: Protocol, at: usize) -> (f64, f64) {
        (self.quantile_ms(protocol, at, RANGE.0), self.quantile_ms(protocol, at, RANGE.1))
    }
    fn spread_ms(&self, protocol: Protocol, at: usize) -> f64 {
        let (low, high) = self.range_ms(protocol, at);
        high - low
    }
    fn is_predictable(&self, protocol: Protocol, at: usize) -> bool {
        self.spread_ms(protocol, at) <= PREDICTABLE * self.mean_ms(protocol, at)
    }
    fn means_ms(&self, protocol: Protocol) -> Vec<f64> {
        (0..self.sites.len()).map(|at| self.mean_ms(protocol, at)).collect()
    }
    /// How much the 95th percentile is above the mean, over the sites.
    fn tail_ms(&self, protocol: Protocol) -> f64 {
        let above = |at| self.quantile_ms(protocol, at, 95) - self.mean_ms(protocol, at);
        mean(&(0..self.sites.len()).map(above).collect::<Vec<_>>())
    }
}

fn highest(all: &[f64]) -> f64 {
    all.iter().copied().fold(f64::NAN, f64::max)
}

fn bars(figure: Figure<'_>, title: String) -> Picture {
    let groups = (0..figure.sites.len()).map(|at| {
        let mark = if at == figure.leader { " (leader)" } else { "" };
        BarGroup {
            name: format!("{}{mark}", SITES[figure.sites[at]]),
            values: PROTOCOLS.map(|protocol| figure.mean_ms(protocol, at)).to_vec(),
            atop: PROTOCOLS.map(|protocol| figure.quantile_ms(protocol, at, 95)).to_vec(),
        }
    });
    Picture::Bars(Bars {
        title,
        x_label: "site at which a command is proposed; bars: mean, lines atop: 95th percentile".into(),
        y_label: "commit latency, ms".into(),
        contenders: PROTOCOLS.iter().zip(COLORS).map(|(p, color)| (p.word().to_owned(), color)).collect(),
        groups: groups.collect(),
        decimals: 0,
    })
}

fn distribution(figure: Figure<'_>, at: usize, title: String) -> Picture {
    let series = PROTOCOLS.iter().zip(COLORS).map(|(protocol, color)| Series {
        name: protocol.word().into(),
        color,
        dashed: false,
        marked: false,
        points: (0..=QUANTILES).map(|n| (figure.quantile_ms(*protocol, at, n), f64::from(n))).collect(),
    });
    Picture::Lines(Chart {
        title,
        x_label: "commit latency, ms".into(),
        y_label: "commands, %".into(),
        series: series.collect(),
        ..Chart::default()
    })
}

fn table(figures: &[(&'static str, Figure<'_>)]) -> Table {
    let mut table = Table::new([
        "figure",
        "sites",
        "leader",
        "load",
        "site",
        "protocol",
        "mean, ms",
        "by the formula, ms",
        "p1, ms",
        "p50, ms",
        "p95, ms",
        "p99, ms",
        "commands",
    ]);
    for (number, figure) in figures {
        let group = Group::at(figure.sites);
        for at in 0..figure.sites.len() {
            for protocol in PROTOCOLS {
                let ms = |n| Cell::Number(figure.quantile_ms(protocol, at, n), 1);
                table.row([
                    (*number).into(),
                    Cell::Number(figure.sites.len() as f64, 0),
                    if protocol.has_leader() { SITES[figure.sites[figure.leader]].into() } else { Cell::Empty },
                    if figure.alone { "imbalanced" } else { "balanced" }.into(),
                    SITES[figure.sites[at]].into(),
                    protocol.word().into(),
                    Cell::Number(figure.mean_ms(protocol, at), 1),
                    formula(&group, protocol, figure, at),
                    ms(1),
                    ms(50),
                    ms(95),
                    ms(99),
                    Cell::Number(figure.get(protocol, at, "commands"), 0),
                ]);
            }
        }
    }
    table
}

fn formula(group: &Group, protocol: Protocol, figure: &Figure<'_>, at: usize) -> Cell {
    let ms = match (protocol, figure.alone) {
        (Protocol::Paxos, _) => group.paxos_ms(figure.leader, at),
        (Protocol::PaxosBcast, _) => group.paxos_bcast_ms(figure.leader, at),
        (Protocol::Mencius, true) => group.mencius_imbalanced_ms(at),
        (Protocol::Mencius, false) => {
            let (least, most) = group.mencius_balanced_ms(at);
            return format!("{least:.1} to {most:.1}").into();
        }
        (Protocol::ClockRsm, true) => group.clock_rsm_imbalanced_ms(at),
        (Protocol::ClockRsm, false) => group.clock_rsm_balanced_ms(at),
    };
    Cell::Number(ms, 1)
}

/// Figures 3.1 and 3.2: Clock-RSM below both Paxos everywhere but at the leader, below Mencius everywhere, whose 95th percentile is far above its mean.
fn five_verdict(figure: Figure<'_>, item: &'static str) -> Verdict {
    let [paxos, bcast, mencius, rsm] = PROTOCOLS.map(|protocol| figure.means_ms(protocol));
    let least = |at: usize| paxos[at].min(bcast[at]);
    let lower = (0..FIVE.len()).all(|at| at == figure.leader || rsm[at] < least(at));
    let below = highest(&rsm) < highest(&bcast).min(highest(&paxos)) && mean(&rsm) < mean(&bcast).min(mean(&paxos));
    let mencius_above = (0..FIVE.len()).all(|at| rsm[at] < mencius[at]);
    let (tail, rsm_tail) = (figure.tail_ms(Protocol::Mencius), figure.tail_ms(Protocol::ClockRsm));
    let not_lower: Vec<&str> = (0..FIVE.len()).filter(|at| rsm[*at] >= least(*at)).map(|at| SITES[at]).collect();
    Verdict {
        item,
        document: "Clock-RSM is lower at all sites but the leader and lower than Mencius-bcast everywhere, whose 95th percentile is much higher than its mean; its highest latency and its mean are the lowest".into(),
        ours: format!(
            "simulated: not lower than Paxos-bcast at {}; highest {:.0} against {:.0} ms, mean {:.0} against {:.0} (Paxos-bcast) and {:.0} (Mencius-bcast); 95th percentiles {tail:.0} ms above the mean for Mencius-bcast, {rsm_tail:.0} for Clock-RSM",
            not_lower.join(", "),
            highest(&rsm),
            highest(&bcast),
            mean(&rsm),
            mean(&bcast),
            mean(&mencius),
        ),
        stand: Stand::if_agrees(lower && below && mencius_above && tail > 3.0 * rsm_tail),
    }
}

fn three_verdict(figure: Figure<'_>, item: &'static str) -> Verdict {
    let [_, bcast, _, rsm] = PROTOCOLS.map(|protocol| figure.means_ms(protocol));
    let similar = |at: usize| (rsm[at] - bcast[at]).abs() <= SIMILAR * bcast[at];
    let at_ca = figure.leader == CA;
    let agrees = similar(0) && similar(1) && if at_ca { bcast[2] > 1.3 * rsm[2] } else { similar(2) };
    let triple = |all: &[f64]| all.iter().map(|ms| format!("{ms:.0}")).collect::<Vec<_>>().join(", ");
    let document = match at_ca {
        true => "leader CA: similar at CA and VA; at IR Paxos-bcast is much higher",
        false => "leader VA: similar at all sites",
    };
    Verdict {
        item,
        document: document.into(),
        ours: format!("simulated at CA, VA, IR: Clock-RSM {} ms, Paxos-bcast {} ms", triple(&rsm), triple(&bcast)),
        stand: Stand::if_agrees(agrees),
    }
}

/// The four ranges, as verdicts write them.
fn ranges(figure: Figure<'_>, at: usize) -> String {
    let of = |protocol: Protocol| {
        let (low, high) = figure.range_ms(protocol, at);
        format!("{} {low:.0} to {high:.0}", protocol.word())
    };
    PROTOCOLS.map(of).join(", ")
}

/// Figures 3.5 and 3.6: both Paxos are predictable, Mencius varies most; Clock-RSM varies some at JP, and less at CA.
fn distribution_verdicts(at_jp: Figure<'_>, at_ca: Figure<'_>) -> [Verdict; 3] {
    let shape = |figure: Figure<'_>, at: usize| {
        let [_, _, mencius, rsm] = PROTOCOLS.map(|protocol| figure.spread_ms(protocol, at));
        let both = [Protocol::Paxos, Protocol::PaxosBcast];
        both.iter().all(|paxos| figure.is_predictable(*paxos, at)) && mencius > 2.0 * rsm
    };
    let [paxos, bcast, _, rsm] = PROTOCOLS.map(|protocol| at_jp.spread_ms(protocol, AT_JP));
    let less = at_ca.is_predictable(Protocol::ClockRsm, AT_CA) && at_ca.spread_ms(Protocol::ClockRsm, AT_CA) < rsm;
    let (low, high) =
        (at_jp.quantile_ms(Protocol::Mencius, AT_JP, 0), at_jp.quantile_ms(Protocol::Mencius, AT_JP, QUANTILES));
    let near = |ours: f64, printed: f64| (ours / printed - 1.0).abs() <= NEAR;
    [
        Verdict {
            item: "004 figure 3.5",
            document: "Paxos and Paxos-bcast are very predictable, Mencius-bcast varies, Clock-RSM has some variance"
                .into(),
            ours: format!("simulated, 98 % of the commands: {} ms", ranges(at_jp, AT_JP)),
            stand: Stand::if_agrees(shape(at_jp, AT_JP) && rsm > paxos.max(bcast)),
        },
        Verdict {
            item: "004 figure 3.5",
            document: format!("Mencius-bcast at JP varies from {} to {} ms", MENCIUS_AT_JP_MS.0, MENCIUS_AT_JP_MS.1),
            ours: format!("simulated: all commands lie between {low:.0} and {high:.0} ms"),
            stand: Stand::if_agrees(near(low, MENCIUS_AT_JP_MS.0) && near(high, MENCIUS_AT_JP_MS.1)),
        },
        Verdict {
            item: "004 figure 3.6",
            document: "as figure 3.5, but Clock-RSM's latency almost does not vary".into(),
            ours: format!("simulated, 98 % of the commands: {} ms", ranges(at_ca, AT_CA)),
            stand: Stand::if_agrees(shape(at_ca, AT_CA) && less),
        },
    ]
}

fn imbalanced_verdicts(alone: Figure<'_>, balanced: Figure<'_>) -> [Verdict; 2] {
    let means = |figure: Figure<'_>, protocol: Protocol| mean(&figure.means_ms(protocol));
    let change = |protocol: Protocol| means(alone, protocol) / means(balanced, protocol) - 1.0;
    let [paxos, bcast, mencius, rsm] = PROTOCOLS.map(change);
    let tail = alone.tail_ms(Protocol::Mencius);
    let same = [paxos, bcast, rsm].iter().all(|change| change.abs() < 0.1);
    let percent = |change: f64| match (change * 100.0).round() {
        0.0 => "as it was".to_owned(),
        percent => format!("{percent:+} %"),
    };
    let at_sg = |protocol: Protocol| alone.mean_ms(protocol, AT_SG);
    let predictable = PROTOCOLS.iter().all(|protocol| alone.is_predictable(*protocol, AT_SG));
    [
        Verdict {
            item: "004 figure 3.7",
            document: "imbalanced: Paxos, Paxos-bcast and Clock-RSM stay as they were; Mencius-bcast's mean becomes much higher, its 95th percentile is close to it".into(),
            ours: format!(
                "simulated, mean of the sites against balanced load: Paxos {}, Paxos-bcast {}, Clock-RSM {}, Mencius-bcast {}; its 95th percentile is {tail:.0} ms above its mean (balanced: {:.0})",
                percent(paxos),
                percent(bcast),
                percent(rsm),
                percent(mencius),
                balanced.tail_ms(Protocol::Mencius)
            ),
            stand: Stand::if_agrees(same && mencius > 0.2 && tail < 0.05 * means(alone, Protocol::Mencius)),
        },
        Verdict {
            item: "004 figure 3.8",
            document: "all four are predictable under imbalanced load; Mencius-bcast's latency is much higher".into(),
            ours: format!("simulated, 98 % of the commands at SG: {} ms", ranges(alone, AT_SG)),
            stand: Stand::if_agrees(
                predictable && at_sg(Protocol::Mencius) > 1.3 * at_sg(Protocol::ClockRsm),
            ),
        },
    ]
}

pub(super) fn report(measured: &Measured) -> Report {
    let figure = |sites, leader, alone| Figure { measured, sites, leader, alone };
    let (five_ca, five_va) = (figure(FIVE, CA, false), figure(FIVE, VA, false));
    let (three_ca, three_va) = (figure(THREE, CA, false), figure(THREE, VA, false));
    let alone = figure(FIVE, CA, true);
    let mut verdicts = vec![
        five_verdict(five_ca, "004 figure 3.1"),
        five_verdict(five_va, "004 figure 3.2"),
        three_verdict(three_ca, "004 figure 3.3"),
        three_verdict(three_va, "004 figure 3.4"),
    ];
    verdicts.extend(distribution_verdicts(five_ca, three_va));
    verdicts.extend(imbalanced_verdicts(alone, five_ca));
    let settings = [
        (
            "protocols",
            "models of the lab's own, without failures: Clock-RSM by algorithms 3 and 4 (Δ = 5 ms), Multi-Paxos with one leader, the same with acknowledgements to all, Mencius with \
             acknowledgements to all and skipped slots in them. A test checks that all replicas execute in one order, and that means are those of section 3.4's formulas where no other command is in the way"
                .to_owned(),
        ),
        ("product's code", "none: Timeball replicates by another protocol, with one leader for each range".to_owned()),
        (
            "links",
            "half of table 3.3's round trip, each message up to 2 % more or less (ours: the document prints no jitter), in order".to_owned(),
        ),
        ("clocks", "each up to 2 ms ahead or behind, drawn for each run (ours: the document says NTP with a public server nearby)".to_owned()),
        (
            "clients",
            "40 at each site, 0.3 ms from their replica, in a closed loop with a pause of 0 to 80 ms (section 3.6.2); imbalanced: at one site, each site a run of its own".to_owned(),
        ),
        ("left out", "disks, processors, batches: the document's machines had them, its formulas do not".to_owned()),
    ];
    let figures = [("3.1", five_ca), ("3.2", five_va), ("3.3", three_ca), ("3.4", three_va), ("3.7", alone)];
    Report {
        verdicts,
        settings: settings.map(|(a, b)| (a.to_owned(), b)).to_vec(),
        sections: sections(&figures, (five_ca, three_va, alone)),
    }
}

fn sections(
    figures: &[(&'static str, Figure<'_>)],
    (five_ca, three_va, alone): (Figure<'_>, Figure<'_>, Figure<'_>),
) -> Vec<Section> {
    let mut sections = vec![
        Section {
            heading: "Figure 3.5: latency distribution at JP, five sites".into(),
            text: "The document prints one range, Mencius-bcast's 134 to 230 ms; the rest is its sentence. Its own section says that a command at JP takes at least 140 ms with Clock-RSM, the way from IR:\n\
                   a command of Mencius-bcast can be faster, as slots are not bound to clocks, and IR may have used later ones before it heard of this one. What made the slowest\n\
                   commands of the document slower than ours it does not say: here replicas lose no time but on the way."
                .into(),
            picture: Some((
                "figure-3.5".into(),
                distribution(five_ca, AT_JP, "Commit latency at JP, five sites, balanced, leader CA (004, figure 3.5)".into()),
            )),
            table: None,
        },
        Section {
            heading: "Figure 3.6: latency distribution at CA, three sites".into(),
            text: "Prefix replication is dominated by the stable order here, so Clock-RSM varies by jitter and clocks alone.".into(),
            picture: Some((
                "figure-3.6".into(),
                distribution(three_va, AT_CA, "Commit latency at CA, three sites, balanced, leader VA (004, figure 3.6)".into()),
            )),
            table: None,
        },
        Section {
            heading: "Figure 3.8: latency distribution at SG, imbalanced".into(),
            text: "Clients at SG only. Mencius-bcast needs an answer of the farthest site, with the slots that it skips; Clock-RSM only a later time, which each site says every 5 ms by itself.".into(),
            picture: Some((
                "figure-3.8".into(),
                distribution(alone, AT_SG, "Commit latency at SG, five sites, clients at SG only, leader CA (004, figure 3.8)".into()),
            )),
            table: None,
        },
    ];
    for (number, figure) in figures {
        let load = if figure.alone { "imbalanced: one site a run" } else { "balanced" };
        let place = format!("{} sites, {load}, leader {}", figure.sites.len(), SITES[figure.sites[figure.leader]]);
        sections.push(Section {
            heading: format!("Figure {number}: mean and 95th percentile at each site, {place}"),
            picture: Some((
                format!("figure-{number}"),
                bars(*figure, format!("Commit latency, {place} (004, figure {number})")),
            )),
            ..Section::default()
        });
    }
    sections.push(Section {
        heading: "All numbers".into(),
        text: "The formulas are those of table 3.2, with section 3.4.2's for Paxos-bcast; latencies here include 0.6 ms between client and replica. Clock-RSM's formula for balanced load takes the\n\
               worst case of prefix replication for every command, so the mean lies below it."
            .into(),
        picture: None,
        table: Some(("latencies".into(), table(figures))),
    });
    sections
}
