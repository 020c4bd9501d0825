//! Many machines: one seed, one trace; good seeds pass; each broken rule is caught within a stated number of seeds.

use checker::Anomaly;
use node::Sabotage;
use protocol::log::raft::Replicas;
use sim::Show;
use sim::register::Broken;
use sim::scenario::{Controls, Outcome, Scenario, What, find, run};

fn scenario(name: &str) -> Scenario {
    find(name).expect("it is there").remove(0)
}

fn fast() -> Vec<Scenario> {
    find("fast").expect("they can be read").into_iter().filter(|scenario| scenario.what != What::Alone).collect()
}

fn good(scenario: &Scenario, seed: u64) -> Outcome {
    let outcome = run(scenario, seed, &Controls::default(), Show::Nothing);
    assert!(outcome.is_good(), "{:?}\n{}repeat: {}", outcome.failure, outcome.verdict, outcome.repeat());
    outcome
}

#[test]
fn one_seed_twice_gives_one_trace_to_the_byte() {
    for scenario in fast() {
        let once = || run(&scenario, 77, &Controls::default(), Show::Keep(Vec::new()));
        let (first, second) = (once(), once());
        assert!(first.lines.len() > 20, "{}: the trace says what happens", scenario.name);
        assert_eq!(first.lines, second.lines, "{}", scenario.name);
        assert_eq!((first.hash, first.probes), (second.hash, second.probes), "{}", scenario.name);
    }
}

#[test]
fn seeds_are_good() {
    for scenario in fast() {
        for seed in 1000..1003 {
            let outcome = good(&scenario, seed);
            assert_eq!(outcome.undecided, 0, "{}: a search was given up", outcome.repeat());
        }
    }
}

/// A split was done while one of the new range's nodes was away, which got the old range by a snapshot later and so never made its replica of the
/// new one; its leader, who would have told it, was gone by then. The one that was left asked it for a vote, and it had nobody who could give one.
#[test]
fn who_missed_a_split_votes_in_what_was_split_off() {
    good(&scenario("fast/nodes-move"), 144);
    // An outcome is told to a range that nobody leads.
    good(&scenario("rare/nodes-storm"), 122);
}

/// A session whose clock is behind saw one account before all were filled and the other after, and moved money from nowhere.
#[test]
fn a_transfer_that_does_not_find_an_account_is_given_up() {
    good(&scenario("fast/nodes"), 1009);
    good(&scenario("fast/nodes-lies"), 1009);
}

/// Others had finished a commit, told everybody and forgotten it; its gateway asked for a fence, and told its client "aborted".
#[test]
fn a_commit_that_all_have_forgotten_is_unknown() {
    good(&scenario("fast/nodes"), 1140);
}

/// Who recovered a transaction had never heard of one of its participants, and told nobody.
#[test]
fn a_participant_that_was_never_heard_of_is_found() {
    good(&scenario("fast/nodes-move"), 24);
}

/// A tick between a proposal and its application took the range from those that are looked after.
#[test]
fn what_is_remembered_is_looked_after_from_when_it_is_applied() {
    good(&scenario("fast/nodes-lies"), 1238);
}

/// All replicas of a range had moved since a coordinator heard of it, and those that it knew did not say where.
#[test]
fn a_range_that_moved_away_altogether_is_found() {
    good(&scenario("fast/nodes-move"), 238);
}

/// A replica was removed and a new one told of, and the power failed: the old one's state was taken for the new one's, and the node did not open.
#[test]
fn a_replica_is_not_opened_with_the_state_of_an_earlier_one() {
    good(&scenario("rare/nodes-storm"), 181);
}

/// The one machine whose session was to fill what the others read had no clock that it could trust, to the end.
#[test]
fn another_fills_where_one_cannot() {
    good(&scenario("fast/nodes-lies"), 848);
}

/// A replica slept while it was removed, and the one that was to come in its place waited for it.
#[test]
fn a_replica_that_was_removed_in_its_sleep_goes() {
    good(&scenario("fast/nodes-move"), 1058);
}

/// Nodes that got a range after it was split knew of no other part, and asked themselves without end; transactions waited for such ranges.
#[test]
fn a_range_that_moved_after_a_split_is_found() {
    for seed in [35, 72, 88, 256, 315] {
        good(&scenario("fast/nodes-move"), seed);
    }
}

/// A leader was removed from its range and went as soon as it had applied that. The others had it in their logs, were not told any more that it is committed, and needed
/// its vote, as another old member was gone for good. (`protocol/tests/raft/controls.rs` has the schedule.)
#[test]
fn a_leader_that_is_removed_stays_until_that_is_known() {
    good(&scenario("rare/nodes-storm"), 11);
}

/// Power failed after a flush had written down that a change of members was applied, and before the record of the members was on the disk: the node began anew with the members
/// from before, and with the next change did not open at all.
#[test]
fn members_are_recalled_after_a_restart() {
    good(&scenario("rare/nodes-storm"), 316);
}

/// What was split off was refused for the keys of another range, and then for keys that it had no more: it had been split itself.
#[test]
fn a_refused_range_is_looked_at_again() {
    good(&scenario("fast/nodes-parts"), 513);
}

/// A replica slept while it was removed, and what was split off of its range could not come to its node.
#[test]
fn who_sleeps_on_the_keys_of_another_range_is_woken() {
    good(&scenario("rare/nodes-storm"), 304);
}

/// A node had forgotten the past of an idle range, up to what was closed. Then its leader needed it, and had no majority without it to log that the past is gone.
#[test]
fn a_range_that_is_here_is_taken_whatever_is_forgotten() {
    good(&scenario("rare/nodes-storm"), 324);
}

/// All nodes that a coordinator knew to replicate a range came back empty, as other nodes: it asks the others, too.
#[test]
fn a_range_whose_nodes_are_all_gone_is_found() {
    good(&scenario("fast/nodes-move"), 632);
}

/// A node was gone that many ranges had to copy for: each of its turns kept the repair of all others waiting for ten seconds.
#[test]
fn a_dead_node_does_not_hold_up_the_copies_for_others() {
    good(&scenario("fast/nodes-move"), 3099);
}

/// One node alone: at the end its clock's source disputed what was known before a step, and nobody was believed for minutes.
#[test]
fn a_disputed_clock_is_started_again() {
    good(&scenario("fast/alone"), 1240);
}

/// A log was written anew while a snapshot was being installed, and the power failed: nothing said any more that it was, and the machine did not open.
#[test]
fn a_snapshot_that_is_installed_while_the_log_is_carried_is_found() {
    good(&scenario("fast/disks"), 1558);
}

/// A clock was set far off just before everything healed, and its node could not write for as long as it was slewed.
#[test]
fn a_clock_that_was_set_at_the_end_is_healed() {
    good(&scenario("fast/crashes"), 74);
}

/// A transaction was left behind that had a part in a range of which the node that took it up knew nothing but the number.
#[test]
fn a_part_in_an_unknown_range_is_told_of_the_outcome() {
    good(&scenario("fast/nodes-move"), 69);
    good(&scenario("rare/nodes-storm"), 275);
}

/// A scan that waited took its answer for that of the bounds that its node had learned meanwhile, and read rows twice.
#[test]
fn a_scan_is_answered_for_what_it_asked() {
    good(&scenario("fast/nodes-move"), 1021);
}

/// A key was deleted while a replica was cut off, that was collected, and the key was written again: after a snapshot the replica showed the old value until then.
#[test]
fn a_snapshot_says_what_was_gone() {
    good(&scenario("fast/nodes-alone"), 213);
}

#[test]
fn every_scenario_can_be_read() {
    for folder in ["fast", "slow", "rare"] {
        assert!(!find(folder).expect("all can be read").is_empty());
    }
}

/// A rule, how it is broken, where that shows, within how many seeds, and as what (nothing: it stops the run).
struct Control {
    rule: &'static str,
    broken: Broken,
    tamper: Option<fn(&mut Replicas)>,
    nodes: Option<fn(&Sabotage)>,
    scenario: &'static str,
    seeds: u64,
    shows: &'static [Anomaly],
}

impl Control {
    fn shows_in(self, scenario: &'static str, seeds: u64, shows: &'static [Anomaly]) -> Self {
        Control { scenario, seeds, shows, ..self }
    }

    fn controls(&self) -> Controls {
        Controls {
            register: sim::register::Controls { broken: self.broken, tamper: self.tamper },
            nodes: self.nodes,
            ..Controls::default()
        }
    }

    fn first(&self, scenario: &Scenario, seeds: u64) -> Option<Outcome> {
        let run = |seed| {
            let controls = self.controls();
            std::panic::catch_unwind(|| run(scenario, seed, &controls, Show::Nothing)).unwrap_or_else(|_| Outcome {
                failure: Some("an assertion".into()),
                seed,
                ..run(scenario, seed, &Controls::default(), Show::Nothing)
            })
        };
        (0..seeds).map(run).find(|outcome| !outcome.is_good())
    }
}

fn registers(rule: &'static str, break_it: fn(&mut Broken)) -> Control {
    let mut broken = Broken::default();
    break_it(&mut broken);
    Control { rule, broken, tamper: None, nodes: None, scenario: "", seeds: 0, shows: &[] }
}

fn core(rule: &'static str, tamper: fn(&mut Replicas)) -> Control {
    Control { tamper: Some(tamper), ..registers(rule, |_| {}) }
}

fn nodes(rule: &'static str, prepare: fn(&Sabotage)) -> Control {
    Control { nodes: Some(prepare), ..registers(rule, |_| {}) }
}

/// What no scenario notices soon enough is left to the schedules of `protocol`'s own controls: `leave_joint_early`,
/// `promise_before_durable`, `forget_the_woken`, `vote_before_durable` (stores that take turns seldom vote twice).
fn all() -> Vec<Control> {
    use Anomaly::{Diverged, LostWrite, SharedLease, ShownEarly, StaleRead, TornSnapshot, Unlinearizable};
    let stale = &[StaleRead, TornSnapshot, Unlinearizable];
    vec![
        registers("read without a lease", |b| b.read_without_lease = true).shows_in("fast/network", 12, stale),
        registers("acknowledge proposals", |b| b.acknowledge_proposals = true).shows_in(
            "fast/network",
            3,
            &[LostWrite],
        ),
        registers("forget clients", |b| b.forget_clients = true).shows_in("fast/network", 3, &[LostWrite]),
        registers("skip rule one", |b| b.skip_rule_one = true).shows_in("fast/crashes", 3, &[ShownEarly]),
        registers("ignore what is in flight", |b| b.ignore_in_flight = true).shows_in("fast/stops", 3, &[TornSnapshot]),
        registers("serve what is not applied", |b| b.serve_unapplied = true).shows_in(
            "fast/network",
            3,
            &[TornSnapshot],
        ),
        registers("apply by machine", |b| b.apply_by_machine = true).shows_in("fast/drowsy", 1, &[Diverged]),
        core("acknowledge before durable", |r| r.sabotage().ack_before_durable = true).shows_in("fast/disks", 30, &[]),
        core("vote without ends", |r| r.sabotage().vote_without_ends = true).shows_in("fast/drowsy", 3, &[SharedLease]),
        core("winner does not ratchet", |r| r.sabotage().winner_does_not_ratchet = true).shows_in(
            "fast/drowsy",
            3,
            &[SharedLease],
        ),
        core("keep the epoch", |r| r.sabotage().keep_epoch = true).shows_in("fast/clocks", 40, &[SharedLease]),
        core("stamp below the log", |r| r.sabotage().stamp_below_the_log = true).shows_in(
            "fast/drowsy",
            3,
            &[SharedLease],
        ),
    ]
}

/// Of whole nodes.
fn of_nodes() -> Vec<Control> {
    use Anomaly::{G2, GSingle, HalfApplied, LostUpdate, LostWrite, RealTime, ShownEarly, StaleRead, TornSnapshot};
    let at = "fast/nodes";
    vec![
        nodes("skip rule one", |s| s.set_skip_rule_one(true)).shows_in(at, 3, &[ShownEarly]),
        nodes("skip uncertainty", |s| s.set_skip_uncertainty(true)).shows_in(at, 10, &[StaleRead]),
        nodes("stamp by the middle, and do not wait", |s| {
            s.set_stamp_by_the_middle(true);
            s.set_skip_rule_one(true);
        })
        .shows_in(at, 3, &[ShownEarly, RealTime, StaleRead]),
        nodes("skip read certification", |s| s.set_skip_read_certification(true)).shows_in(
            at,
            10,
            &[G2, GSingle, RealTime],
        ),
        nodes("skip write certification", |s| s.set_skip_write_certification(true)).shows_in(
            at,
            3,
            &[LostUpdate, LostWrite],
        ),
        nodes("acknowledge before durable", |s| s.set_ack_before_durable(true)).shows_in(
            at,
            5,
            &[ShownEarly, LostWrite],
        ),
        nodes("ignore what is in flight", |s| s.set_ignore_inflight(true)).shows_in(at, 3, &[TornSnapshot]),
        nodes("abort what is prepared", |s| s.set_abort_prepared(true)).shows_in(
            "fast/nodes-hands",
            40,
            &[LostWrite, HalfApplied, TornSnapshot],
        ),
        nodes("commands without an until", |s| s.set_without_until(true)).shows_in(at, 4, &[]),
        nodes("forget what no log allows", |s| s.set_collect_unlogged(true)).shows_in(at, 5, &[Anomaly::Diverged]),
        nodes("commit without the parts", |s| s.set_commit_unstaged(true)).shows_in(
            "fast/nodes-parts",
            5,
            &[LostWrite, HalfApplied, TornSnapshot, LostUpdate],
        ),
        nodes("overlook what came since", |s| s.set_overlook_what_came_since(true)).shows_in(
            "fast/nodes-parts",
            5,
            &[LostUpdate, LostWrite, Anomaly::Diverged],
        ),
        nodes("copy what comes later", |s| s.set_copy_what_comes_later(true)).shows_in(at, 10, &[]),
        nodes("forget versions", |s| s.set_forget_versions(true)).shows_in("fast/nodes-table", 5, &[]),
        nodes("reuse ids", |s| s.set_reuse_ids(true)).shows_in(at, 6, &[]),
        nodes("forget what peers told of their logs", |s| s.set_forget_reaches(true)).shows_in(
            "fast/nodes-back",
            5,
            &[],
        ),
        // A state that is older than what was forgotten of its log does not open.
        nodes("state apart", |s| s.set_state_apart(true)).shows_in(at, 1, &[]),
    ]
}

/// Of clusters that are raised to a newer release.
fn of_upgrades() -> Vec<Control> {
    let program = nodes("apply by the program", |s| s.set_apply_by_program(true));
    let word = nodes("say what is new", |s| s.set_say_what_is_new(true));
    vec![program.shows_in("fast/nodes-upgrade", 3, &[Anomaly::Diverged]), word.shows_in("fast/nodes-upgrade", 20, &[])]
}

/// Those that take a minute.
fn rare() -> Vec<Control> {
    vec![
        nodes("join what came again", |s| s.set_join_what_came_again(true)).shows_in(
            "fast/nodes-alone",
            30,
            &[Anomaly::Diverged],
        ),
        // Of the first hundred seeds 67 shows it; `node`'s `anew.rs` shows it each time.
        nodes("keep uncertainty for the next statement", |s| s.set_keep_uncertainty(true)).shows_in(
            "fast/nodes",
            100,
            &[Anomaly::StaleRead],
        ),
        nodes("clip the limit", |s| s.set_clip_limit(true)).shows_in("fast/nodes-move", 40, &[Anomaly::StaleRead]),
        nodes("closed is resolved", |s| s.set_closed_is_resolved(true)).shows_in(
            "rare/past",
            200,
            &[Anomaly::TornSnapshot],
        ),
    ]
}

/// Those that no scenario notices soon enough: for the survey. (What a range remembers makes copies harmless. `deny_commits` is of one node alone.) Schedules of `node`'s own tests show them.
fn unnoticed() -> Vec<Control> {
    vec![
        nodes("release below what was read", |s| s.set_release_below_reads(true)),
        nodes("read while splitting", |s| s.set_read_while_splitting(true)),
        nodes("forget references", |s| s.set_forget_references(true)),
        nodes("forget who refers", |s| s.set_forget_who_refers(true)),
        nodes("propose copies", |s| s.set_propose_copies(true)),
        nodes("jump splits", |s| s.set_jump_splits(true)),
        nodes("bury what is prepared", |s| s.set_bury_what_is_prepared(true)),
        core("leave joint early", |r| r.sabotage().leave_joint_early = true),
        core("vote before durable", |r| r.sabotage().vote_before_durable = true),
        core("leave at once", |r| r.sabotage().leave_at_once = true),
    ]
}

#[test]
#[ignore = "takes a minute: dozens of seeds for one rule"]
fn each_rarely_broken_rule_is_caught() {
    are_caught(rare());
}

#[test]
fn each_broken_rule_of_the_log_is_caught() {
    are_caught(all());
}

#[test]
fn each_broken_rule_of_nodes_is_caught() {
    are_caught(of_nodes());
}

/// A newer program comes with each restart: what is new waits until all know it and the version is raised, and is done alike by all from then on.
#[test]
fn a_newer_release_comes_node_by_node() {
    let scenario = scenario("fast/nodes-upgrade");
    let raised = "the cluster's version was raised";
    assert!((0..4).filter(|seed| good(&scenario, *seed).probes.count(raised) > 0).count() > 1);
    are_caught(of_upgrades());
}

#[track_caller]
fn are_caught(controls: Vec<Control>) {
    for control in controls {
        let scenario = scenario(control.scenario);
        let found = control.first(&scenario, control.seeds);
        let found = found.unwrap_or_else(|| panic!("{}: not noticed in {} seeds", control.rule, control.seeds));
        let shown = control.shows.is_empty() || control.shows.iter().any(|kind| found.verdict.has(*kind));
        assert!(shown, "{}: {:?}\n{}", control.rule, found.failure, found.verdict);
        // What is caught is the broken rule and nothing else.
        good(&scenario, found.seed);
    }
}

/// Seeds of the survey, unless SEEDS says another number.
const SURVEYED: u64 = 40;

/// What surveys are told. (A test has no other arguments.)
#[allow(clippy::disallowed_methods, reason = "a test has no other arguments")]
fn told(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn look_for(control: &Control, scenario: &Scenario) {
    let seeds = told("SEEDS").and_then(|seeds| seeds.parse().ok()).unwrap_or(SURVEYED);
    match control.first(scenario, seeds) {
        Some(found) => {
            let kinds: Vec<Anomaly> = found.verdict.found.iter().map(|(kind, _)| *kind).collect();
            let what: String = found.failure.unwrap_or_default().chars().take(150).collect();
            println!("{} {}: seed {} {what} {kinds:?}", control.rule, scenario.name, found.seed);
        }
        None => println!("{} {}: nothing in {seeds} seeds", control.rule, scenario.name),
    }
}

/// Where to look for what: `cargo test -p timeball-sim --test cluster --profile sim -- --ignored --nocapture survey`. `RULE=clip` before it: of the rules whose
/// names contain that; `IN=rare`: in those scenarios; `SEEDS=100`: so many seeds.
#[test]
#[ignore = "a survey: which scenario catches which broken rule, and how soon"]
fn survey() {
    let rule = told("RULE").unwrap_or_default();
    let scenarios = find(&told("IN").unwrap_or_else(|| "fast".into())).expect("they can be read");
    let all = all().into_iter().chain(of_nodes()).chain(of_upgrades()).chain(rare()).chain(unnoticed());
    for control in all.filter(|control| control.rule.contains(&rule)) {
        let what = if control.nodes.is_some() { What::Nodes } else { What::Register };
        scenarios.iter().filter(|scenario| scenario.what == what).for_each(|scenario| look_for(&control, scenario));
    }
}
