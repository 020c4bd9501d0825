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
/// A 95th percentile that is so much of its mean above it, or more, is much higher: what is similar is not.
const MUCH_HIGHER: f64 = SIMILAR;
/// A share of the mean's spread that is so much smaller than another is smaller: less is chance and jitter.
const CLEARLY_LESS: f64 = 0.8;
/// Between a client and its replica, there and back, milliseconds: no formula has it.
const CLIENT_MS: f64 = 0.6;
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
    /// A range's width, of the mean.
    fn spread(&self, protocol: Protocol, at: usize) -> f64 {
        self.spread_ms(protocol, at) / self.mean_ms(protocol, at)
    }
    fn is_predictable(&self, protocol: Protocol, at: usize) -> bool {
        self.spread(protocol, at) <= PREDICTABLE
    }
    fn means_ms(&self, protocol: Protocol) -> Vec<f64> {
        (0..self.sites.len()).map(|at| self.mean_ms(protocol, at)).collect()
    }
    /// How much the 95th percentile is above the mean, of the mean, over the sites.
    fn tail(&self, protocol: Protocol) -> f64 {
        let above = |at| self.quantile_ms(protocol, at, 95) / self.mean_ms(protocol, at) - 1.0;
        mean(&(0..self.sites.len()).map(above).collect::<Vec<_>>())
    }
    /// The same in milliseconds.
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

fn names(sites: impl Iterator<Item = usize>) -> String {
    let all: Vec<&str> = sites.map(|at| SITES[at]).collect();
    if all.is_empty() { "none".into() } else { all.join(", ") }
}

/// Figures 3.1 and 3.2, sentence by sentence: Clock-RSM against the others, Mencius-bcast's 95th percentile, and Paxos-bcast against Mencius-bcast.
fn five_verdicts(figure: Figure<'_>, item: &'static str) -> [Verdict; 3] {
    let [paxos, bcast, mencius, rsm] = PROTOCOLS.map(|protocol| figure.means_ms(protocol));
    let sites = || 0..FIVE.len();
    let least = |at: usize| paxos[at].min(bcast[at]);
    let lower = sites().all(|at| at == figure.leader || rsm[at] < least(at));
    let below = highest(&rsm) < highest(&bcast).min(highest(&paxos)) && mean(&rsm) < mean(&bcast).min(mean(&paxos));
    let mencius_above = sites().all(|at| rsm[at] < mencius[at]);
    let tail = figure.tail(Protocol::Mencius);
    let bcast_lower: Vec<usize> = sites().filter(|at| bcast[*at] < mencius[*at]).collect();
    let most = 2 * bcast_lower.len() > FIVE.len();
    [
        Verdict {
            item,
            document: "Clock-RSM is lower at all sites but the leader and lower than Mencius-bcast everywhere; its highest latency and its mean are the lowest".into(),
            ours: format!(
                "simulated: sites at which it is not lower than both Paxos: {}, than Mencius-bcast: {}; highest {:.0} against {:.0} ms, mean {:.0} against {:.0} (Paxos-bcast) and {:.0} (Mencius-bcast)",
                names(sites().filter(|at| rsm[*at] >= least(*at))),
                names(sites().filter(|at| rsm[*at] >= mencius[*at])),
                highest(&rsm),
                highest(&bcast),
                mean(&rsm),
                mean(&bcast),
                mean(&mencius),
            ),
            stand: Stand::if_agrees(lower && below && mencius_above),
        },
        Verdict {
            item,
            document: "Mencius-bcast's 95th percentile is much higher than its mean".into(),
            ours: format!(
                "simulated: {:.0} % above the mean, over the sites (Clock-RSM: {:.0} %); up to {:.0} % counts as similar on this page",
                tail * 100.0,
                figure.tail(Protocol::ClockRsm) * 100.0,
                MUCH_HIGHER * 100.0
            ),
            stand: Stand::if_agrees(tail > MUCH_HIGHER),
        },
        Verdict {
            item,
            document: "Paxos-bcast is also better than Mencius-bcast in most cases".into(),
            ours: format!(
                "simulated: at {} of five sites ({}); Paxos-bcast {} ms, Mencius-bcast {}{}",
                bcast_lower.len(),
                names(bcast_lower.iter().copied()),
                list(&bcast),
                list(&mencius),
                if most { "" } else { ". A model without failures, whose replicas lose no time but on the way" }
            ),
            stand: Stand::if_agrees(most),
        },
    ]
}

/// Of five sites, the document finds VA the best leader.
fn leader_verdict(at_ca: Figure<'_>, at_va: Figure<'_>) -> Verdict {
    let means = |protocol: Protocol| [at_va, at_ca].map(|figure| mean(&figure.means_ms(protocol)));
    let ([paxos_va, paxos_ca], [bcast_va, bcast_ca]) = (means(Protocol::Paxos), means(Protocol::PaxosBcast));
    Verdict {
        item: "004 figure 3.2",
        document: "of five sites, VA as the leader gives the best overall latency for Paxos and Paxos-bcast".into(),
        ours: format!(
            "simulated, mean of the sites: Paxos {paxos_va:.0} ms with VA and {paxos_ca:.0} with CA, Paxos-bcast {bcast_va:.0} and {bcast_ca:.0}"
        ),
        stand: Stand::if_agrees(paxos_va < paxos_ca && bcast_va < bcast_ca),
    }
}

fn list(all_ms: &[f64]) -> String {
    all_ms.iter().map(|ms| format!("{ms:.0}")).collect::<Vec<_>>().join(", ")
}

fn three_verdict(figure: Figure<'_>, item: &'static str) -> Verdict {
    let [_, bcast, _, rsm] = PROTOCOLS.map(|protocol| figure.means_ms(protocol));
    let similar = |at: usize| (rsm[at] - bcast[at]).abs() <= SIMILAR * bcast[at];
    let at_ca = figure.leader == CA;
    let agrees = similar(0) && similar(1) && if at_ca { bcast[2] > 1.3 * rsm[2] } else { similar(2) };
    let document = match at_ca {
        true => "leader CA: similar at CA and VA; at IR Paxos-bcast is much higher",
        false => "leader VA: similar at all sites",
    };
    Verdict {
        item,
        document: document.into(),
        ours: format!("simulated at CA, VA, IR: Clock-RSM {} ms, Paxos-bcast {} ms", list(&rsm), list(&bcast)),
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

/// Figures 3.5 and 3.6: both Paxos are predictable, Mencius varies most; Clock-RSM varies some at JP, as commands of others come before, and hardly at CA.
fn distribution_verdicts(at_jp: Figure<'_>, at_ca: Figure<'_>, alone: Figure<'_>) -> [Verdict; 4] {
    let shape = |figure: Figure<'_>, at: usize| {
        let both = [Protocol::Paxos, Protocol::PaxosBcast];
        let others =
            both.iter().map(|paxos| figure.spread(*paxos, at)).fold(figure.spread(Protocol::ClockRsm, at), f64::max);
        both.iter().all(|paxos| figure.is_predictable(*paxos, at))
            && figure.spread(Protocol::Mencius, at) > 2.0 * others
    };
    let [jp, jp_alone, ca] = [(at_jp, AT_JP), (alone, AT_JP), (at_ca, AT_CA)];
    let rsm = |(figure, at): (Figure<'_>, usize)| figure.spread(Protocol::ClockRsm, at);
    let paxos = at_jp.spread(Protocol::Paxos, AT_JP).max(at_jp.spread(Protocol::PaxosBcast, AT_JP));
    let (of_prefix, hardly) = (rsm(jp_alone) < CLEARLY_LESS * rsm(jp), rsm(ca) < CLEARLY_LESS * rsm(jp));
    let (low, high) =
        (at_jp.quantile_ms(Protocol::Mencius, AT_JP, 0), at_jp.quantile_ms(Protocol::Mencius, AT_JP, QUANTILES));
    let near = |ours: f64, printed: f64| (ours / printed - 1.0).abs() <= NEAR;
    [
        Verdict {
            item: "004 figure 3.5",
            document: "Paxos and Paxos-bcast are very predictable, Mencius-bcast varies".into(),
            ours: format!("simulated, 98 % of the commands: {} ms", ranges(at_jp, AT_JP)),
            stand: Stand::if_agrees(shape(at_jp, AT_JP)),
        },
        Verdict {
            item: "004 figure 3.5",
            document: "Clock-RSM has some variance at JP, by prefix replication".into(),
            ours: format!(
                "simulated, 98 % of the commands, of the mean: {:.1} % at JP (both Paxos: up to {:.1}); with clients at JP only, so that no other command comes before, {:.1} %{}",
                rsm(jp) * 100.0,
                paxos * 100.0,
                rsm(jp_alone) * 100.0,
                if of_prefix {
                    ""
                } else {
                    ": it is of jitter and of how seldom clocks are told, not of prefix replication"
                }
            ),
            stand: Stand::if_agrees(rsm(jp) > paxos && of_prefix),
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
            ours: format!(
                "simulated, 98 % of the commands: {} ms; Clock-RSM's are {:.1} % of the mean, and {:.1} at JP of figure 3.5{}",
                ranges(at_ca, AT_CA),
                rsm(ca) * 100.0,
                rsm(jp) * 100.0,
                if hardly { "" } else { ": it varies no less, by jitter and by how seldom clocks are told" }
            ),
            stand: Stand::if_agrees(shape(at_ca, AT_CA) && hardly),
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
    let mut verdicts = five_verdicts(five_ca, "004 figure 3.1").to_vec();
    verdicts.extend(five_verdicts(five_va, "004 figure 3.2"));
    verdicts.push(leader_verdict(five_ca, five_va));
    verdicts.push(three_verdict(three_ca, "004 figure 3.3"));
    verdicts.push(three_verdict(three_va, "004 figure 3.4"));
    verdicts.extend(distribution_verdicts(five_ca, three_va, alone));
    verdicts.extend(imbalanced_verdicts(alone, five_ca));
    let settings = [
        (
            "protocols",
            "models of the lab's own, without failures: Clock-RSM by algorithms 3 and 4 (Δ = 5 ms), Multi-Paxos with one leader, the same with acknowledgements to all, Mencius with \
             acknowledgements to all and skipped slots in them. A test checks that all replicas execute in one order, and that means are those of section 3.4's formulas where no other command is in the way (within 3 % and 1 ms; Clock-RSM's within 5 ms below and 12 above, as clocks are apart and speak seldom)"
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
            text: "Prefix replication is dominated by the stable order here, so Clock-RSM varies by jitter and by how often the farthest site says its clock: with each command and acknowledgement, and else every 5 ms. How far clocks\n\
                   are off is drawn once a run: that moves a mean and varies nothing."
                .into(),
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
        text: format!(
            "The formulas are those of table 3.2, with section 3.4.2's for Paxos-bcast; latencies here include {CLIENT_MS} ms between client and replica. Clock-RSM's formula for balanced load takes the\n\
             worst case of prefix replication for every command, and neither jitter nor clocks that are apart. {}.",
            against_formula(figures)
        ),
        picture: None,
        table: Some(("latencies".into(), table(figures))),
    });
    sections
}

/// Where Clock-RSM's balanced means lie below their formula and where above, the way to the client taken off.
fn against_formula(figures: &[(&'static str, Figure<'_>)]) -> String {
    let mut seen = Vec::new();
    let mut words = Vec::new();
    // Figures that differ by the leader alone have the same numbers of Clock-RSM.
    for figure in figures.iter().map(|(_, figure)| figure).filter(|figure| !figure.alone) {
        if seen.contains(&figure.sites.len()) {
            continue;
        }
        seen.push(figure.sites.len());
        let group = Group::at(figure.sites);
        let above_ms = |at: usize| figure.mean_ms(Protocol::ClockRsm, at) - CLIENT_MS - group.clock_rsm_balanced_ms(at);
        let all: Vec<String> =
            (0..figure.sites.len()).map(|at| format!("{} {:+.1}", SITES[figure.sites[at]], above_ms(at))).collect();
        words.push(format!("of {} sites {} ms", figure.sites.len(), all.join(", ")));
    }
    format!("Its means against that: {}", words.join("; "))
}
