//! What the formulas say, beside what the document prints.

use super::{FIVE, SITES, SIZES, THREE};
use crate::experiments::{Cell, Measured, Picture, Report, Section, Stand, Table, Verdict};
use crate::plot::{Bars, Group, PALETTE};

/// Table 3.4: share of replicas where Clock-RSM is faster, what it saves there (ms, %); the same where it is slower.
const TABLE_3_4: [[f64; 6]; 3] = [
    [0.0, 0.0, 0.0, 100.0, -9.9, -6.2],
    [68.6, 31.9, 15.2, 31.4, -30.6, -14.6],
    [85.7, 50.2, 21.5, 14.3, -39.4, -16.9],
];
/// Up to so much, milliseconds, a reduction is the same: more than rounded round trips explain, little enough to be the same computation.
const NEAR_MS: f64 = 2.1;

fn groups_chart(measured: &Measured) -> Bars {
    let group = |what: &str, rsm: &str, bcast: &str| {
        SIZES.map(|size| {
            let get = |name: &str| measured.get(&format!("groups {size}"), name);
            Group { name: format!("{size}, {what}"), values: vec![get(rsm), get(bcast)], atop: Vec::new() }
        })
    };
    let groups = [group("all", "rsm_all_ms", "bcast_all_ms"), group("highest", "rsm_highest_ms", "bcast_highest_ms")];
    Bars {
        title: "Mean commit latency over all groups of 3, 5 and 7 sites (004, figure 3.9)".into(),
        x_label: "sites in a group, and of which latencies the mean is: all, or the highest of each group".into(),
        y_label: "commit latency, ms".into(),
        contenders: vec![
            ("Clock-RSM (formula)".into(), PALETTE[0]),
            ("Paxos-bcast, best leader (formula)".into(), PALETTE[1]),
        ],
        groups: groups.concat(),
        decimals: 0,
    }
}

fn groups_table(measured: &Measured) -> Table {
    let mut table = Table::new([
        "replicas",
        "Clock-RSM, all, ms",
        "Paxos-bcast, all, ms",
        "Clock-RSM, highest, ms",
        "Paxos-bcast, highest, ms",
    ]);
    for size in SIZES {
        let get = |name: &str| Cell::Number(measured.get(&format!("groups {size}"), name), 1);
        table.row([
            Cell::Number(size as f64, 0),
            get("rsm_all_ms"),
            get("bcast_all_ms"),
            get("rsm_highest_ms"),
            get("bcast_highest_ms"),
        ]);
    }
    table
}

/// Ours in the order of [`TABLE_3_4`].
fn reductions(measured: &Measured, size: usize) -> [f64; 6] {
    let get = |name: &str| measured.get(&format!("groups {size}"), name);
    let share = get("wins") / get("replicas") * 100.0;
    let relative = |ms: f64| ms / get("bcast_all_ms") * 100.0;
    let loss = get("loss_ms");
    [share, get("gain_ms"), relative(get("gain_ms")), 100.0 - share, loss, relative(loss)]
}

fn reductions_table(measured: &Measured) -> Table {
    let mut table = Table::new([
        "replicas",
        "",
        "share, 004, %",
        "share, ours, %",
        "reduction, 004, ms",
        "reduction, ours, ms",
        "relative, 004, %",
        "relative, ours, %",
        "by rounded round trips, ms",
    ]);
    for (size, printed) in SIZES.into_iter().zip(TABLE_3_4) {
        let ours = reductions(measured, size);
        let rounding = |name: &str| measured.get(&format!("rounding {size}"), name);
        let range = format!("{:.1} to {:.1}", rounding("gain_least_ms"), rounding("gain_most_ms"));
        for (n, word) in [(0, "Clock-RSM faster"), (3, "Paxos-bcast faster, or the same")] {
            table.row([
                Cell::Number(size as f64, 0),
                word.into(),
                Cell::Number(printed[n], 1),
                Cell::Number(ours[n], 1),
                Cell::Number(printed[n + 1], 1),
                Cell::Number(ours[n + 1], 1),
                Cell::Number(printed[n + 2], 1),
                Cell::Number(ours[n + 2], 1),
                if n == 0 && size > 3 { range.as_str().into() } else { Cell::Empty },
            ]);
        }
    }
    table
}

const PROTOCOLS: [(&str, &str); 4] = [
    ("Paxos", "paxos_ms"),
    ("Paxos-bcast", "paxos_bcast_ms"),
    ("Mencius-bcast, least", "mencius_least_ms"),
    ("Clock-RSM", "rsm_balanced_ms"),
];

/// The formulas' side of figures 3.1 to 3.4.
fn sites_chart(measured: &Measured, sites: &[usize], leader: &str, figure: &str) -> Bars {
    let point = format!("sites {} {leader}", sites.len());
    let colors = [PALETTE[5], PALETTE[1], PALETTE[2], PALETTE[0]];
    let contenders = PROTOCOLS.iter().zip(colors).map(|((name, _), color)| ((*name).to_owned(), color)).collect();
    let groups = sites.iter().map(|site| {
        let get = |name: &str| measured.get(&point, &format!("{} {name}", SITES[*site]));
        let values = PROTOCOLS.map(|(_, number)| get(number)).to_vec();
        let atop = vec![f64::NAN, f64::NAN, get("mencius_most_ms"), f64::NAN];
        let mark = if SITES[*site] == leader { " (leader)" } else { "" };
        Group { name: format!("{}{mark}", SITES[*site]), values, atop }
    });
    Bars {
        title: format!("Commit latency by the formulas, balanced load, leader {leader} (004, {figure})"),
        x_label: "site at which a command is proposed; line atop Mencius-bcast: the worst delayed commit".into(),
        y_label: "commit latency, ms".into(),
        contenders,
        groups: groups.collect(),
        decimals: 0,
    }
}

fn sites_table(measured: &Measured) -> Table {
    let mut table = Table::new([
        "sites",
        "leader",
        "site",
        "Paxos, ms",
        "Paxos-bcast, ms",
        "Paxos-bcast as table 3.2 prints it, ms",
        "Mencius-bcast, balanced, ms",
        "Mencius-bcast, imbalanced, ms",
        "Clock-RSM, balanced, ms",
        "Clock-RSM, imbalanced, ms",
    ]);
    for (sites, leader) in [(&FIVE[..], "CA"), (&FIVE[..], "VA"), (&THREE[..], "CA"), (&THREE[..], "VA")] {
        for site in sites {
            let get = |name: &str| {
                measured.get(&format!("sites {} {leader}", sites.len()), &format!("{} {name}", SITES[*site]))
            };
            let number = |name: &str| Cell::Number(get(name), 1);
            table.row([
                Cell::Number(sites.len() as f64, 0),
                leader.into(),
                SITES[*site].into(),
                number("paxos_ms"),
                number("paxos_bcast_ms"),
                number("paxos_bcast_as_printed_ms"),
                format!("{:.1} to {:.1}", get("mencius_least_ms"), get("mencius_most_ms")).into(),
                number("mencius_imbalanced_ms"),
                number("rsm_balanced_ms"),
                number("rsm_imbalanced_ms"),
            ]);
        }
    }
    table
}

/// Numbers of all sites of a figure, in order.
fn all(measured: &Measured, sites: &[usize], leader: &str, number: &str) -> Vec<f64> {
    let point = format!("sites {} {leader}", sites.len());
    sites.iter().map(|site| measured.get(&point, &format!("{} {number}", SITES[*site]))).collect()
}

fn average(all: &[f64]) -> f64 {
    all.iter().sum::<f64>() / all.len().max(1) as f64
}

fn highest(all: &[f64]) -> f64 {
    all.iter().copied().fold(0.0, f64::max)
}

/// Figures 3.1 and 3.2: Clock-RSM is lower everywhere but at the leader, its highest and its mean are below those of both Paxos.
fn five_verdict(measured: &Measured, item: &'static str, leader: &str) -> Verdict {
    let get = |number: &str| all(measured, &FIVE, leader, number);
    let (rsm, bcast, paxos) = (get("rsm_balanced_ms"), get("paxos_bcast_ms"), get("paxos_ms"));
    let slower: Vec<&str> = FIVE.iter().filter(|n| rsm[**n] >= bcast[**n]).map(|n| SITES[*n]).collect();
    let lower = slower == [leader];
    let below = highest(&rsm) < highest(&bcast) && average(&rsm) < average(&bcast).min(average(&paxos));
    Verdict {
        item,
        document: "Clock-RSM is lower at all sites but the leader; its highest latency and its mean are below those of Paxos and Paxos-bcast".into(),
        ours: format!(
            "by the formulas: not lower at {}; highest {:.0} against {:.0} ms, mean {:.0} against {:.0} ms (Paxos-bcast)",
            slower.join(", "),
            highest(&rsm),
            highest(&bcast),
            average(&rsm),
            average(&bcast)
        ),
        stand: Stand::if_agrees(lower && below),
    }
}

/// The document says of its figures 3.1 and 3.2 that VA is the leader with the best overall latency.
fn leader_verdict(measured: &Measured) -> Verdict {
    let mean = |leader: &str, number: &str| average(&all(measured, &FIVE, leader, number));
    let both = ["paxos_ms", "paxos_bcast_ms"].map(|number| (mean("VA", number), mean("CA", number)));
    let [(paxos_va, paxos_ca), (bcast_va, bcast_ca)] = both;
    Verdict {
        item: "004 figure 3.2",
        document: "of five sites, VA as the leader gives the best overall latency for Paxos and Paxos-bcast".into(),
        ours: format!(
            "by the formulas over table 3.3: Paxos {paxos_va:.0} ms with VA and {paxos_ca:.0} with CA, Paxos-bcast {bcast_va:.0} and {bcast_ca:.0}"
        ),
        stand: Stand::if_agrees(both.iter().all(|(va, ca)| va <= ca)),
    }
}

fn three_verdicts(measured: &Measured) -> Vec<Verdict> {
    let get = |leader: &str, number: &str| all(measured, &THREE, leader, number);
    let (rsm, at_ca, at_va) = (get("CA", "rsm_balanced_ms"), get("CA", "paxos_bcast_ms"), get("VA", "paxos_bcast_ms"));
    let triple = |all: &[f64]| all.iter().map(|ms| format!("{ms:.0}")).collect::<Vec<_>>().join(", ");
    let similar = |a: f64, b: f64| (a - b).abs() <= 0.15 * b;
    vec![
        Verdict {
            item: "004 figure 3.3",
            document: "leader CA: similar at CA and VA; at IR Paxos-bcast is much higher".into(),
            ours: format!(
                "by the formulas at CA, VA, IR: Clock-RSM {} ms, Paxos-bcast {} ms",
                triple(&rsm),
                triple(&at_ca)
            ),
            stand: Stand::if_agrees(similar(rsm[0], at_ca[0]) && similar(rsm[1], at_ca[1]) && at_ca[2] > 1.3 * rsm[2]),
        },
        Verdict {
            item: "004 figure 3.4",
            document: "leader VA: similar at all sites".into(),
            ours: format!(
                "by the formulas at CA, VA, IR: Clock-RSM {} ms, Paxos-bcast {} ms",
                triple(&rsm),
                triple(&at_va)
            ),
            stand: Stand::if_agrees(rsm.iter().zip(&at_va).all(|(a, b)| similar(*a, *b))),
        },
    ]
}

fn imbalanced_verdict(measured: &Measured) -> Verdict {
    let get = |number: &str| all(measured, &FIVE, "CA", number);
    let (mencius, rsm, balanced) = (get("mencius_imbalanced_ms"), get("rsm_imbalanced_ms"), get("rsm_balanced_ms"));
    let above = mencius.iter().zip(&rsm).all(|(m, r)| m > r) && rsm.iter().zip(&balanced).all(|(i, b)| i <= b);
    Verdict {
        item: "004 figure 3.7",
        document: "imbalanced: Mencius-bcast's mean becomes much higher; Clock-RSM and Paxos-bcast stay as they were"
            .into(),
        ours: format!(
            "by the formulas the mean over the sites is {:.0} ms for Mencius-bcast, {:.0} ms for Clock-RSM (balanced: {:.0} ms)",
            average(&mencius),
            average(&rsm),
            average(&balanced)
        ),
        stand: Stand::if_agrees(above && average(&mencius) > 1.5 * average(&rsm)),
    }
}

pub(super) fn report(measured: &Measured) -> Report {
    let get = |size: usize, name: &str| measured.get(&format!("groups {size}"), name);
    let near = SIZES.into_iter().zip(TABLE_3_4).all(|(size, printed)| {
        let ours = reductions(measured, size);
        (ours[0] - printed[0]).abs() < 0.1
            && (ours[1] - printed[1]).abs() < NEAR_MS
            && (ours[4] - printed[4]).abs() < NEAR_MS
    });
    let [five, seven] = [5, 7].map(|size| reductions(measured, size));
    let mut verdicts = vec![
        Verdict {
            item: "004 table 3.2",
            document: "Paxos-bcast away from the leader: d(i,l) + 2·med(d(l,k))".into(),
            ours: "section 3.4.2 derives d(i,l) + med(d(l,k) + d(k,i)), and only that gives table 3.4: a slip of the table".into(),
            stand: Stand::Differs,
        },
        five_verdict(measured, "004 figure 3.1", "CA"),
        five_verdict(measured, "004 figure 3.2", "VA"),
        leader_verdict(measured),
    ];
    verdicts.extend(three_verdicts(measured));
    verdicts.push(imbalanced_verdict(measured));
    verdicts.push(Verdict {
        item: "004 figure 3.9",
        document: "Clock-RSM lower for 5 and 7 replicas, more so in the highest latency; with 3, Paxos-bcast slightly better".into(),
        ours: format!(
            "all: 3 sites {:.1} against {:.1} ms, 5: {:.1} against {:.1}, 7: {:.1} against {:.1}; highest: {:.1} against {:.1}, {:.1} against {:.1}, {:.1} against {:.1}",
            get(3, "rsm_all_ms"),
            get(3, "bcast_all_ms"),
            get(5, "rsm_all_ms"),
            get(5, "bcast_all_ms"),
            get(7, "rsm_all_ms"),
            get(7, "bcast_all_ms"),
            get(3, "rsm_highest_ms"),
            get(3, "bcast_highest_ms"),
            get(5, "rsm_highest_ms"),
            get(5, "bcast_highest_ms"),
            get(7, "rsm_highest_ms"),
            get(7, "bcast_highest_ms"),
        ),
        stand: Stand::if_agrees(
            [5, 7].into_iter().all(|size| get(size, "rsm_all_ms") < get(size, "bcast_all_ms"))
                && get(3, "rsm_all_ms") > get(3, "bcast_all_ms"),
        ),
    });
    verdicts.push(Verdict {
        item: "004 table 3.4",
        document: "5 replicas: lower at 68.6 % by 31.9 ms (15.2 %), higher by 30.6 ms; 7: lower at 85.7 % by 50.2 ms (21.5 %), higher by 39.4 ms; 3: higher by 9.9 ms".into(),
        ours: format!(
            "5: {:.1} % by {:.1} ms ({:.1} %), higher by {:.1} ms; 7: {:.1} % by {:.1} ms ({:.1} %), higher by {:.1} ms; 3: higher by {:.1} ms",
            five[0],
            five[1],
            five[2],
            -five[4],
            seven[0],
            seven[1],
            seven[2],
            -seven[4],
            -reductions(measured, 3)[4]
        ),
        stand: Stand::if_agrees(near),
    });
    let settings = [
        ("the formulas", "`lab::experiments::clock_rsm_model::formulas`; medians and maxima are over all replicas, the own one with delay 0 included".to_owned()),
        ("the delays", "half of table 3.3's round trips, symmetric; disks, local work and clock skew left out, as in section 3.4".to_owned()),
        (
            "Paxos-bcast's leader",
            "figure 3.9 and table 3.4: the one with the least mean over the group's replicas, chosen for each group".to_owned(),
        ),
        ("opponents", "formulas only: nothing ran".to_owned()),
    ];
    Report { verdicts, settings: settings.map(|(a, b)| (a.to_owned(), b)).to_vec(), sections: sections(measured) }
}

fn sections(measured: &Measured) -> Vec<Section> {
    let bars = |end: &str, bars: Bars| Some((end.to_owned(), Picture::Bars(bars)));
    vec![
        Section {
            heading: "Figure 3.9: all groups of 3, 5 and 7 sites".into(),
            text: "The document prints no numbers for this figure; its sentence stands above.".into(),
            picture: bars("figure-3.9", groups_chart(measured)),
            table: Some(("figure-3.9".into(), groups_table(measured))),
        },
        Section {
            heading: "Table 3.4: what Clock-RSM saves".into(),
            text: "Shares are met exactly, amounts within 2 ms. The relative reduction is the absolute one over the mean Paxos-bcast latency of *all* replicas: only that gives the\n\
                   printed percentages. With three replicas the printed row counts ties as losses. Rounded round trips do not explain what is left: the last column is the least and\n\
                   the greatest gain of random draws of ±0.5 ms on every round trip. One slip more: the text below the table gives 14.3 % where the table has 14.6 %."
                .into(),
            picture: None,
            table: Some(("table-3.4".into(), reductions_table(measured))),
        },
        Section {
            heading: "Figures 3.1 and 3.2: five sites".into(),
            text: "What the formulas say of the sites that the document measured; it prints no numbers. Mencius-bcast lies between its bar and the line atop it.\n\
                   The document says that VA is the best leader of the five. By its own formulas and round trips that holds for Paxos, barely; for Paxos-bcast CA is better.".into(),
            picture: bars("figure-3.1", sites_chart(measured, &FIVE, "CA", "figure 3.1")),
            table: None,
        },
        Section {
            heading: "Figure 3.2: leader VA".into(),
            picture: bars("figure-3.2", sites_chart(measured, &FIVE, "VA", "figure 3.2")),
            ..Section::default()
        },
        Section {
            heading: "Figures 3.3 and 3.4: three sites".into(),
            picture: bars("figure-3.3", sites_chart(measured, &THREE, "CA", "figure 3.3")),
            ..Section::default()
        },
        Section {
            heading: "Figure 3.4: leader VA".into(),
            picture: bars("figure-3.4", sites_chart(measured, &THREE, "VA", "figure 3.4")),
            ..Section::default()
        },
        Section {
            heading: "All numbers by site".into(),
            text: "Figure 3.5 measured 134 to 230 ms for Mencius-bcast at JP: by the formula its range begins with Clock-RSM's latency there, which counts the worst case of prefix\n\
                   replication at every command, so it begins later and ends later than what was measured."
                .into(),
            picture: None,
            table: Some(("sites".into(), sites_table(measured))),
        },
    ]
}
