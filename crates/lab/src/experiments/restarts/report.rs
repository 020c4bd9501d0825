//! What the numbers say: tables, figures and verdicts.

use super::{
    BASE, BETWEEN_US, BLOCK, Case, DIMENSIONS, Dimension, ERROR_US, ITEMS, MAX_OFFSET_US, MODES, Mode, PAUSE_US,
    READERS, REGION_US,
};
use crate::experiments::{Cell, Measured, Picture, Report, Section, Stand, Table, Verdict};
use crate::plot::{Bars, Chart, Color, Group, PALETTE, Series};

/// Colours of [`MODES`].
const COLORS: [Color; 3] = [PALETTE[1], PALETTE[0], PALETTE[2]];

/// How a dimension is shown.
struct Shown {
    heading: &'static str,
    /// Files' ends.
    end: &'static str,
    x_label: &'static str,
    x_log: bool,
    y_log: bool,
    text: &'static str,
}

impl Dimension {
    fn shown(self) -> Shown {
        match self {
            Dimension::Length => Shown {
                heading: "Length of reads",
                end: "length",
                x_label: "blocks that a transaction reads, one after the other",
                x_log: true,
                y_log: true,
                text: "The number of updates a second is nearly the same at all points: what grows is the time between a transaction's begin and its last read, and what it reads. A read that meets an uncertain\n\
                       version moves its snapshot up, unless something that it has read was changed since: then it begins anew, with an interval of then. With a static offset long reads do little else. What is 0 has no place on this axis.",
            },
            Dimension::Contention => Shown {
                heading: "Contention",
                end: "contention",
                x_label: "clients that update, of all nodes together",
                x_log: true,
                y_log: true,
                text: "A transaction reads as much at all points; the table has the updates a second.",
            },
            Dimension::Skew => Shown {
                heading: "Clock skew under a fixed offset",
                end: "skew",
                x_label: "between the first and the last clock, ms",
                x_log: false,
                y_log: false,
                text: "Three clocks: one behind, one right, one ahead; the static offset stays at 500 ms. The bound that nodes state grows with the skew, as it must to hold, and so do the dynamic intervals and\n\
                       what `strict` waits.",
            },
            Dimension::Nodes => Shown {
                heading: "Nodes",
                end: "nodes",
                x_label: "nodes that a transaction reads from",
                x_log: false,
                y_log: false,
                text: "All nodes together have the same items, readers and updaters, and a transaction reads the same number of blocks: of more nodes, fewer of each.",
            },
            Dimension::Regions => Shown {
                heading: "Regions",
                end: "regions",
                x_label: "regions in which the three nodes lie",
                x_log: false,
                y_log: false,
                text: "A transaction reads 6 blocks. Between regions a message takes 10 ms one way, in one 0.25. Reads take longer, and so do updates, whose majority lies in another region with three; so there are fewer of them.",
            },
        }
    }

    /// Where a case lies along x.
    fn x(self, case: &Case) -> f64 {
        match self {
            Dimension::Length => case.blocks as f64,
            Dimension::Contention => case.updaters as f64,
            Dimension::Skew => case.skew_us as f64 / 1e3,
            Dimension::Nodes => case.nodes as f64,
            Dimension::Regions => case.regions as f64,
        }
    }
}

#[derive(Clone, Copy)]
struct Numbers<'a>(&'a Measured);

impl Numbers<'_> {
    fn get(&self, case: &Case, mode: Mode, number: &str) -> f64 {
        self.0.get(&case.name(mode), number)
    }
    fn all(&self, dimension: Dimension, mode: Mode, number: &str) -> Vec<f64> {
        dimension.cases().iter().map(|case| self.get(case, mode, number)).collect()
    }

    /// Lines of some modes over a dimension.
    fn chart(
        &self,
        dimension: Dimension,
        (modes, number): (&[Mode], &str),
        (title, y_label, y_log): (String, &str, bool),
    ) -> Picture {
        let shown = dimension.shown();
        let line = |mode: &Mode| {
            let points = dimension.cases().into_iter().map(|case| (dimension.x(&case), self.get(&case, *mode, number)));
            Series {
                name: label(*mode).into(),
                color: COLORS[MODES.iter().position(|known| known == mode).unwrap_or(0)],
                dashed: false,
                marked: true,
                points: points.collect(),
            }
        };
        Picture::Lines(Chart {
            title,
            x_label: shown.x_label.into(),
            y_label: y_label.into(),
            x_log: shown.x_log,
            y_log,
            series: modes.iter().map(line).collect(),
        })
    }

    /// Restarts where x is not a quantity.
    fn bars(&self, dimension: Dimension, (title, y_label, _): (String, &str, bool)) -> Picture {
        let modes = dimension.modes();
        let group = |case: Case| Group {
            name: format!("{:.0}", dimension.x(&case)),
            values: modes.iter().map(|mode| self.get(&case, *mode, "met_per_1000")).collect(),
            atop: Vec::new(),
        };
        Picture::Bars(Bars {
            title,
            x_label: dimension.shown().x_label.into(),
            y_label: y_label.into(),
            contenders: modes.iter().zip(COLORS).map(|(mode, color)| (label(*mode).to_owned(), color)).collect(),
            groups: dimension.cases().into_iter().map(group).collect(),
            decimals: 0,
        })
    }

    fn table(&self, dimension: Dimension) -> Table {
        let mut table = Table::new([
            dimension.shown().x_label,
            "line",
            "restarts per 1000 reads",
            "reads with any, of 1000",
            "began anew, of 1000",
            "most of one",
            "read p50, ms",
            "read p95, ms",
            "update p50, ms",
            "update p95, ms",
            "reads/s",
            "updates/s",
        ]);
        for case in dimension.cases() {
            for &mode in dimension.modes() {
                let number = |name: &str, decimals: usize| Cell::Number(self.get(&case, mode, name), decimals);
                table.row([
                    Cell::Number(dimension.x(&case), usize::from(dimension == Dimension::Skew)),
                    label(mode).into(),
                    number("met_per_1000", 1),
                    number("touched_per_1000", 1),
                    number("anew_per_1000", 1),
                    number("most_met", 0),
                    number("read_p50_ms", 2),
                    number("read_p95_ms", 2),
                    number("update_p50_ms", 2),
                    number("update_p95_ms", 2),
                    number("reads_per_second", 0),
                    number("updates_per_second", 0),
                ]);
            }
        }
        table
    }

    fn section(&self, dimension: Dimension) -> Section {
        let shown = dimension.shown();
        let title = format!("Uncertainty restarts: {}", shown.heading.to_lowercase());
        let words = (title, "restarts per 1000 reads", shown.y_log);
        Section {
            heading: shown.heading.into(),
            text: shown.text.into(),
            picture: Some((
                shown.end.into(),
                match dimension {
                    Dimension::Regions => self.bars(dimension, words),
                    _ => self.chart(dimension, (dimension.modes(), "met_per_1000"), words),
                },
            )),
            table: Some((shown.end.into(), self.table(dimension))),
        }
    }

    /// Restarts of static offsets and of dynamic bounds from the first case to the last, in words.
    fn ends(&self, dimension: Dimension) -> String {
        let of = |mode: Mode| {
            let all = self.all(dimension, mode, "met_per_1000");
            format!("{} {:.0} to {:.0}", mode.word(), first(&all), last(&all))
        };
        format!("{}, {}", of(Mode::Static), of(Mode::Dynamic))
    }

    /// How much less a read takes with dynamic bounds, percent, at each case.
    fn saved_percent(&self, dimension: Dimension) -> Vec<f64> {
        let [fixed, dynamic] = [Mode::Static, Mode::Dynamic].map(|mode| self.all(dimension, mode, "read_p50_ms"));
        fixed.iter().zip(&dynamic).map(|(fixed, dynamic)| (1.0 - dynamic / fixed) * 100.0).collect()
    }

    fn verdicts(&self) -> Vec<Verdict> {
        let met = |dimension: Dimension, mode: Mode| self.all(dimension, mode, "met_per_1000");
        let grows = |dimension: Dimension| {
            let all = met(dimension, Mode::Static);
            all.is_sorted_by(|a, b| a < b)
        };
        let saved = |dimension: Dimension| {
            let all = self.saved_percent(dimension);
            format!("read p50 {:.0} to {:.0} % less with dynamic bounds", first(&all), last(&all))
        };
        let saves_more = |dimension: Dimension| {
            let all = self.saved_percent(dimension);
            last(&all) > first(&all)
        };
        let mut verdicts = Vec::new();
        for (dimension, item, what) in [
            (Dimension::Length, "000 section 5.3, length of reads", "blocks read"),
            (Dimension::Contention, "000 section 5.3, contention", "updaters"),
        ] {
            let cases = dimension.cases();
            let [from, to] = [cases.first(), cases.last()].map(|case| case.map_or(0.0, |case| dimension.x(case)));
            verdicts.push(Verdict {
                item,
                document:
                    "the improvement grew with the length of reads and with contention, which could not be told apart"
                        .into(),
                ours: format!(
                    "apart, from {from} to {to} {what}: restarts per 1000 reads {}; {}",
                    self.ends(dimension),
                    saved(dimension)
                ),
                stand: Stand::if_agrees(grows(dimension) && saves_more(dimension)),
            });
        }
        verdicts.push(self.skew_verdict());
        let most = self.all(Dimension::Nodes, Mode::Static, "most_met");
        let anew = self.all(Dimension::Nodes, Mode::Static, "anew_per_1000");
        verdicts.push(Verdict {
            item: "000 section 5.4, nodes",
            document: "each node makes a transaction restart at most once, so a larger cluster risks more restarts".into(),
            ours: format!(
                "reads of one length over 3, 6 and 12 nodes: restarts per 1000 reads {}; of one transaction at most {}, as {:.0} to {:.0} of 1000 began anew, each with a new interval",
                self.ends(Dimension::Nodes),
                most.iter().map(|most| format!("{most:.0}")).collect::<Vec<_>>().join(", "),
                first(&anew),
                last(&anew)
            ),
            stand: Stand::if_agrees(grows(Dimension::Nodes)),
        });
        verdicts.push(Verdict {
            item: "000 section 5.3, regions",
            document: "more nodes and several regions mean more latency, so the results might become more significant"
                .into(),
            ours: format!(
                "in 1, 2 and 3 regions: restarts per 1000 reads {}; {}",
                self.ends(Dimension::Regions),
                saved(Dimension::Regions)
            ),
            stand: Stand::if_agrees(
                first(&met(Dimension::Regions, Mode::Static)) < last(&met(Dimension::Regions, Mode::Static)),
            ),
        });
        verdicts.push(self.commit_wait_verdict());
        verdicts
    }

    fn skew_verdict(&self) -> Verdict {
        let of = |mode: Mode| self.all(Dimension::Skew, mode, "met_per_1000");
        let (fixed, dynamic) = (of(Mode::Static), of(Mode::Dynamic));
        let change = last(&fixed) / first(&fixed) - 1.0;
        Verdict {
            item: "000 section 2.5.1, clock skew",
            document: "necessary restarts depend on the actual skew only; less skew under an unchanged max_offset means fewer restarts".into(),
            ours: format!(
                "from no skew to 10 ms under a static 500 ms: {:.0} to {:.0} restarts per 1000 reads ({:+.0} %); dynamic {:.0} to {:.0}, as the bound must cover the skew",
                first(&fixed),
                last(&fixed),
                change * 100.0,
                first(&dynamic),
                last(&dynamic)
            ),
            stand: Stand::if_agrees(change > 0.05),
        }
    }

    fn commit_wait_verdict(&self) -> Verdict {
        let restarts: f64 = self.all(Dimension::Skew, Mode::Strict, "met_per_1000").iter().sum();
        let took_ms = self.all(Dimension::Skew, Mode::Strict, "update_p50_ms");
        let dynamic_ms = self.all(Dimension::Skew, Mode::Dynamic, "update_p50_ms");
        let errors_ms: Vec<f64> = Dimension::Skew.cases().iter().map(|case| case.error_us() as f64 / 1e3).collect();
        let slope = (last(&took_ms) - first(&took_ms)) / (last(&errors_ms) - first(&errors_ms));
        Verdict {
            item: "000 section 5.4, commit-wait",
            document: "commit-wait would end uncertainty restarts and add a delay to writes in proportion to the clocks' error".into(),
            ours: format!(
                "strict: {restarts:.0} restarts; an update takes {:.2} ms with an error of {:.2} ms and {:.2} with {:.2}: {slope:.2} ms for each of the error (dynamic: {:.2} to {:.2})",
                first(&took_ms),
                first(&errors_ms),
                last(&took_ms),
                last(&errors_ms),
                first(&dynamic_ms),
                last(&dynamic_ms)
            ),
            stand: Stand::if_agrees(restarts == 0.0 && (slope - 2.0).abs() < 0.1 && took_ms.is_sorted()),
        }
    }
}

fn first(all: &[f64]) -> f64 {
    all.first().copied().unwrap_or(f64::NAN)
}

fn last(all: &[f64]) -> f64 {
    all.last().copied().unwrap_or(f64::NAN)
}

fn label(mode: Mode) -> &'static str {
    match mode {
        Mode::Static => "static 500 ms",
        Mode::Dynamic => "dynamic bounds",
        Mode::Strict => "strict",
    }
}

pub(super) fn report(measured: &Measured) -> Report {
    let numbers = Numbers(measured);
    let mut sections: Vec<Section> = DIMENSIONS.into_iter().map(|dimension| numbers.section(dimension)).collect();
    let words = ("What commit-wait costs an update, by clock skew".to_owned(), "update p50, ms", false);
    sections.push(Section {
        heading: "Commit-wait".into(),
        text: "The same points as under *Clock skew*: who waits for commits has no uncertain versions, and waits until twice the stated error is over, in which replication has its time, too.".into(),
        picture: Some(("commit-wait".into(), numbers.chart(Dimension::Skew, (&MODES, "update_p50_ms"), words))),
        table: None,
    });
    let settings = [
        (
            "static, dynamic, strict",
            format!(
                "`hybrid` with a static offset of {} ms (CockroachDB's rule and default), `hybrid` with the reader's own bound, and `strict`, which waits for commits: of one program",
                MAX_OFFSET_US / 1_000
            ),
        ),
        (
            "product's code",
            "a member of a cluster on each simulated machine: its log, leases, certification and transactions; a read whose snapshot cannot move begins anew at once, as a statement of SQL does (which gives up after 50 attempts, and leaves it to its client)".into(),
        ),
        (
            "where nothing else is said",
            format!(
                "{} nodes in {} region, each leading a range that three replicate; {ITEMS} items; {READERS} clients that read {} blocks of {BLOCK} items, {} that update an item, each with a pause of {} ms on average",
                BASE.nodes,
                BASE.regions,
                BASE.blocks,
                BASE.updaters,
                PAUSE_US / 1_000
            ),
        ),
        (
            "links, clocks, machines",
            format!(
                "one way {} ms in a region and {} between, up to 10 % more; clocks state an error of {ERROR_US} µs and half of what is between them; four cores at 5 µs a message, syncs of 60 to 300 µs: none is saturated",
                REGION_US as f64 / 1e3,
                BETWEEN_US as f64 / 1e3
            ),
        ),
        (
            "restarts",
            "as the document's metric: uncertain versions that reads met, each of which moved a snapshot up; where that could not be, as something read before was changed since, the read began anew".into(),
        ),
    ];
    Report { verdicts: numbers.verdicts(), settings: settings.map(|(a, b)| (a.to_owned(), b)).to_vec(), sections }
}
