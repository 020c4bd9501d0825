//! What the numbers say: tables, figures and verdicts.

use super::{
    BASE, BETWEEN_US, BLOCK, BLOCKS_OF_REGIONS, Case, DIMENSIONS, Dimension, ERROR_US, ITEMS, MAX_OFFSET_US, MODES,
    Mode, PARTS, PAUSE_US, READERS, REGION_US, RUNS,
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
    text: String,
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
                       version moves its snapshot up, unless something that it has read was changed since: then it begins anew, and keeps its limit and what it knows of the nodes that it has met. What is 0 has no place on this axis.".into(),
            },
            Dimension::Contention => Shown {
                heading: "Contention",
                end: "contention",
                x_label: "clients that update, of all nodes together",
                x_log: true,
                y_log: true,
                text: "A transaction reads as much at all points; the table has the updates a second.".into(),
            },
            Dimension::Skew => Shown {
                heading: "Clock skew under a fixed offset",
                end: "skew",
                x_label: "between the first and the last clock, ms",
                x_log: false,
                y_log: false,
                text: "Three clocks: one behind, one right, one ahead; the static offset stays. With it the error that nodes state is the same at all points, one that covers the greatest skew: so the skew alone\n\
                       varies. For the others the stated bound grows with the skew, as it must to hold, and with it the dynamic intervals and what `strict` waits.".into(),
            },
            Dimension::Nodes => Shown {
                heading: "Nodes",
                end: "nodes",
                x_label: "nodes that a transaction reads from",
                x_log: false,
                y_log: false,
                text: "All nodes together have the same items, readers and updaters, and a transaction reads the same number of blocks: of more nodes, fewer of each. Of more nodes more blocks lie away from the reader's:\n\
                       links are shorter there, so that all of them together take the same time.".into(),
            },
            Dimension::Regions => Shown {
                heading: "Regions",
                end: "regions",
                x_label: "regions in which the three nodes lie",
                x_log: false,
                y_log: false,
                text: format!(
                    "A transaction reads {BLOCKS_OF_REGIONS} blocks. Between regions a message takes {} ms one way, in one {}. Reads take longer, and so do updates where a majority lies in several regions; so more clients update in more\n\
                     regions ({}), so that the updates a second stay about the same.",
                    BETWEEN_US as f64 / 1e3,
                    REGION_US as f64 / 1e3,
                    together(Dimension::Regions.cases(Mode::Static).iter().map(|case| case.updaters.to_string()))
                ),
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
        dimension.cases(mode).iter().map(|case| self.get(case, mode, number)).collect()
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
            let points =
                dimension.cases(*mode).into_iter().map(|case| (dimension.x(&case), self.get(&case, *mode, number)));
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
        // These have the same cases for all modes.
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
            groups: dimension.cases(Mode::Static).into_iter().map(group).collect(),
            decimals: 0,
        })
    }

    fn table(&self, dimension: Dimension) -> Table {
        let mut table = Table::new([
            dimension.shown().x_label,
            "line",
            "restarts per 1000 reads",
            "standard error",
            "reads with any, of 1000",
            "times begun anew, per 1000 reads",
            "most restarts of one read",
            "most between two begins",
            "reads given up",
            "read p50, ms",
            "read p95, ms",
            "update p50, ms",
            "update p95, ms",
            "reads/s",
            "updates/s",
        ]);
        for n in 0..dimension.cases(Mode::Static).len() {
            for &mode in dimension.modes() {
                let case = dimension.cases(mode)[n];
                let number = |name: &str, decimals: usize| Cell::Number(self.get(&case, mode, name), decimals);
                table.row([
                    Cell::Number(dimension.x(&case), usize::from(dimension == Dimension::Skew)),
                    label(mode).into(),
                    number("met_per_1000", 1),
                    number("met_per_1000_se", 1),
                    number("touched_per_1000", 1),
                    number("anew_per_1000", 1),
                    number("most_met", 0),
                    number("met_at_once_max", 0),
                    number("failed_reads", 0),
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
            text: shown.text,
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

    /// Restarts per 1000 reads of each case, with twice their standard errors.
    fn met(&self, dimension: Dimension, mode: Mode) -> Vec<Estimate> {
        let [all, errors] = ["met_per_1000", "met_per_1000_se"].map(|number| self.all(dimension, mode, number));
        all.into_iter().zip(errors).map(|(mean, error)| Estimate { mean, error }).collect()
    }

    /// How much less a read takes with dynamic bounds, percent, at each case.
    fn saved_percent(&self, dimension: Dimension, number: &str) -> Vec<f64> {
        let [fixed, dynamic] = [Mode::Static, Mode::Dynamic].map(|mode| self.all(dimension, mode, number));
        fixed.iter().zip(&dynamic).map(|(fixed, dynamic)| (1.0 - dynamic / fixed) * 100.0).collect()
    }

    fn verdicts(&self) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for (dimension, item, what) in [
            (Dimension::Length, "000 section 5.3, length of reads", "blocks read"),
            (Dimension::Contention, "000 section 5.3, contention", "updaters"),
        ] {
            let cases = dimension.cases(Mode::Static);
            let [from, to] = [cases.first(), cases.last()].map(|case| case.map_or(0.0, |case| dimension.x(case)));
            let saved = self.saved_percent(dimension, "read_p50_ms");
            let stand = match change(&self.met(dimension, Mode::Static)) {
                Change::Rises => Stand::if_agrees(last(&saved) > first(&saved)),
                other => other.stand(),
            };
            verdicts.push(Verdict {
                item,
                document:
                    "the improvement grew with the length of reads and with contention, which could not be told apart"
                        .into(),
                ours: format!(
                    "apart, from {from} to {to} {what}: restarts per 1000 reads {}; read p50 {:.0} to {:.0} % less with dynamic bounds",
                    self.ends(dimension),
                    rounded(first(&saved)),
                    rounded(last(&saved))
                ),
                stand,
            });
        }
        verdicts.push(self.skew_verdict());
        verdicts.extend(self.nodes_verdicts());
        verdicts.push(self.regions_verdict());
        verdicts.push(self.commit_wait_verdict());
        verdicts
    }

    /// The two halves of 000's sentence: what a node does to one transaction, and what more nodes do.
    fn nodes_verdicts(&self) -> [Verdict; 2] {
        let item = "000 section 5.4, nodes";
        let cases = Dimension::Nodes.cases(Mode::Static);
        let at_once = self.all(Dimension::Nodes, Mode::Static, "met_at_once_max");
        let anew = self.all(Dimension::Nodes, Mode::Static, "anew_per_1000");
        let once = cases.iter().zip(&at_once).all(|(case, most)| *most <= case.nodes as f64);
        let nodes = together(cases.iter().map(|case| case.nodes.to_string()));
        let took_ms = self.all(Dimension::Nodes, Mode::Dynamic, "read_p50_ms");
        let met = self.met(Dimension::Nodes, Mode::Static);
        let stand = if is_level(&took_ms) { change(&met).stand() } else { Stand::NotHere };
        [
            Verdict {
                item,
                document: "each node makes a transaction restart at most once".into(),
                ours: format!(
                    "with a static offset, of {nodes} nodes: most restarts between two begins of a read {}; a read whose snapshot cannot move begins anew, with the limit that it had, {} times per 1000 reads",
                    together(at_once.iter().map(|most| format!("{most:.0}"))),
                    together(anew.iter().map(|anew| format!("{anew:.0}")))
                ),
                stand: Stand::if_agrees(once),
            },
            Verdict {
                item,
                document: "so a larger cluster risks more restarts".into(),
                ours: format!(
                    "{nodes} nodes, links such that reads without restarts take about the same (dynamic: p50 {} ms): static {} restarts per 1000 reads, dynamic {} (± two standard errors){}",
                    together(took_ms.iter().map(|ms| format!("{ms:.2}"))),
                    estimates(&met),
                    estimates(&self.met(Dimension::Nodes, Mode::Dynamic)),
                    if stand == Stand::NotHere { "; too near each other, or reads not of one length" } else { "" }
                ),
                stand,
            },
        ]
    }

    fn skew_verdict(&self) -> Verdict {
        let fixed = self.met(Dimension::Skew, Mode::Static);
        let cases = Dimension::Skew.cases(Mode::Static);
        let control = Estimate {
            mean: self.get(&BASE, Mode::Static, "met_per_1000"),
            error: self.get(&BASE, Mode::Static, "met_per_1000_se"),
        };
        let dynamic = self.all(Dimension::Skew, Mode::Dynamic, "met_per_1000");
        Verdict {
            item: "000 section 2.5.1, clock skew",
            document: "necessary restarts depend on the actual skew only; less skew under an unchanged max_offset means fewer restarts".into(),
            ours: format!(
                "static offset of {} ms, a stated error of {} ms throughout; skew {} ms: {} restarts per 1000 reads (± two standard errors). What the stated error alone does: without skew and with {} ms stated {}. Dynamic {:.0} to {:.0}, as the bound must cover the skew",
                MAX_OFFSET_US / 1_000,
                ms(cases[0].error_us),
                together(cases.iter().map(|case| ms(case.skew_us).to_string())),
                estimates(&fixed),
                ms(BASE.error_us),
                control.words(),
                first(&dynamic),
                last(&dynamic)
            ),
            stand: change(&fixed).stand(),
        }
    }

    fn regions_verdict(&self) -> Verdict {
        let [fixed, dynamic] = [Mode::Static, Mode::Dynamic].map(|mode| self.met(Dimension::Regions, mode));
        let fewer: Vec<Estimate> = fixed.iter().zip(&dynamic).map(|(fixed, dynamic)| fixed.minus(dynamic)).collect();
        let [p50, p95] = ["read_p50_ms", "read_p95_ms"].map(|number| self.saved_percent(Dimension::Regions, number));
        let updates = self.all(Dimension::Regions, Mode::Dynamic, "updates_per_second");
        // Each of the others against one region: between two and three the sentence says nothing.
        let more = fewer[1..].iter().all(|others| others.minus(&fewer[0]).is_above_zero());
        let faster = p95[1..].iter().all(|others| *others > p95[0]);
        let percent = |all: &[f64]| together(all.iter().map(|percent| format!("{:.0}", rounded(*percent))));
        let level = is_level(&updates);
        Verdict {
            item: "000 section 5.3, regions",
            document: "more nodes and several regions mean more latency, so the results might become more significant"
                .into(),
            ours: format!(
                "in {} regions: restarts per 1000 reads static {}, dynamic {} (± two standard errors); with dynamic bounds read p50 {} % less, p95 {} % less; {}",
                together(Dimension::Regions.cases(Mode::Static).iter().map(|case| case.regions.to_string())),
                estimates(&fixed),
                estimates(&dynamic),
                percent(&p50),
                percent(&p95),
                format_args!(
                    "{} updates a second{}",
                    together(updates.iter().map(|rate| format!("{rate:.0}"))),
                    if level { "" } else { ", so contention varied, too" }
                )
            ),
            stand: if level { Stand::if_agrees(more && faster) } else { Stand::NotHere },
        }
    }

    fn commit_wait_verdict(&self) -> Verdict {
        let restarts: f64 = self.all(Dimension::Skew, Mode::Strict, "met_per_1000").iter().sum();
        let took_ms = self.all(Dimension::Skew, Mode::Strict, "update_p50_ms");
        let dynamic_ms = self.all(Dimension::Skew, Mode::Dynamic, "update_p50_ms");
        let errors_ms: Vec<f64> = Dimension::Skew.cases(Mode::Strict).iter().map(|case| ms(case.error_us)).collect();
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

/// Numbers that are meant to be equal lie within so much of the least.
const LEVEL: f64 = 0.1;

fn is_level(all: &[f64]) -> bool {
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    all.iter().all(|one| *one <= least * (1.0 + LEVEL))
}

/// To a whole number, of which none is -0.
fn rounded(number: f64) -> f64 {
    number.round() + 0.0
}

fn ms(us: u64) -> f64 {
    us as f64 / 1e3
}

fn together(all: impl Iterator<Item = String>) -> String {
    all.collect::<Vec<_>>().join(", ")
}

/// A mean and its standard error.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    mean: f64,
    error: f64,
}

impl Estimate {
    fn minus(&self, other: &Estimate) -> Estimate {
        Estimate { mean: self.mean - other.mean, error: self.error.hypot(other.error) }
    }
    /// By more than twice its standard error.
    fn is_above_zero(&self) -> bool {
        self.mean > 2.0 * self.error
    }
    fn words(&self) -> String {
        format!("{:.0} ± {:.0}", self.mean, 2.0 * self.error)
    }
}

fn estimates(all: &[Estimate]) -> String {
    together(all.iter().map(Estimate::words))
}

/// Where a line goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// From its first point to its last by more than the errors, and nowhere down by more than they.
    Rises,
    /// Somewhere down by more than the errors.
    Falls,
    /// Its ends lie too near each other.
    Unclear,
}

impl Change {
    /// Of a sentence that says that it rises.
    fn stand(self) -> Stand {
        match self {
            Change::Rises => Stand::Agrees,
            Change::Falls => Stand::Differs,
            Change::Unclear => Stand::NotHere,
        }
    }
}

fn change(all: &[Estimate]) -> Change {
    let falls = |pair: &[Estimate]| pair[0].minus(&pair[1]).is_above_zero();
    match (all.first(), all.last()) {
        (Some(first), Some(last)) if all.windows(2).any(falls) || first.minus(last).is_above_zero() => Change::Falls,
        (Some(first), Some(last)) if last.minus(first).is_above_zero() => Change::Rises,
        _ => Change::Unclear,
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
                "`hybrid` with a static offset of {} ms, CockroachDB's default and nearly its rule (it reads at its clock's now, up to now and the offset; here a read begins at the earliest time of the clock's interval, or at the last timestamp that its node knows if that is later, up to the interval's middle and the offset), `hybrid` with the reader's own bound, and `strict`, which waits for commits: of one program",
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
                "one way {} ms in a region ({} where nodes vary) and {} between, up to 10 % more; clocks state an error of {ERROR_US} µs and half of what is between them (static offset and skew: of the greatest skew); four cores at 5 µs a message, syncs of 60 to 300 µs: none is saturated",
                REGION_US as f64 / 1e3,
                together(Dimension::Nodes.cases(Mode::Static).iter().map(|case| ms(case.link_us).to_string())),
                BETWEEN_US as f64 / 1e3
            ),
        ),
        (
            "restarts",
            format!("as the document's metric: uncertain versions that reads met, each of which moved a snapshot up; where that could not be, as something read before was changed since, the read began anew. Of reads that committed; what was given up has a column, and at each end of a run up to {READERS} were under way, which are in no number")
        ),
        (
            "repeated",
            format!("{RUNS} runs of each point, each of a seed of its own; standard errors are those of the means of {PARTS} parts of each run. A verdict of rising or falling is one of more than twice of them"),
        ),
    ];
    Report { verdicts: numbers.verdicts(), settings: settings.map(|(a, b)| (a.to_owned(), b)).to_vec(), sections }
}

#[cfg(test)]
mod tests {
    use super::{Change, Estimate, change, is_level};

    fn line(means: [f64; 3], error: f64) -> Change {
        change(&means.map(|mean| Estimate { mean, error }))
    }

    #[test]
    fn a_line_rises_by_more_than_its_errors_or_nothing_is_said() {
        assert_eq!(line([100.0, 150.0, 200.0], 5.0), Change::Rises);
        assert_eq!(line([100.0, 99.0, 200.0], 5.0), Change::Rises, "down within the errors");
        assert_eq!(line([100.0, 60.0, 200.0], 5.0), Change::Falls, "down between");
        assert_eq!(line([200.0, 150.0, 100.0], 5.0), Change::Falls);
        assert_eq!(line([200.0, 190.0, 180.0], 8.0), Change::Unclear, "neither");
        assert_eq!(line([100.0, 105.0, 110.0], 5.0), Change::Unclear);
        assert_eq!(line([100.0, 150.0, 200.0], f64::NAN), Change::Unclear, "one run says nothing");
    }

    #[test]
    fn what_is_meant_to_be_equal_is_looked_at() {
        assert!(is_level(&[100.0, 109.0, 101.0]) && !is_level(&[100.0, 112.0]));
        assert!(!is_level(&[f64::NAN]));
    }
}
