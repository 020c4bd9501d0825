//! Switches that break one rule each, so that the checker can show that it would notice. Compiled in only for tests and with the
//! feature `sabotage`; otherwise every question is a constant `false`.

macro_rules! switches {
    ($($(#[$doc:meta])* $name:ident: $set:ident),* $(,)?) => {
        /// Rules to break on purpose.
        #[derive(Debug, Default)]
        pub struct Sabotage {
            $(#[cfg(any(test, feature = "sabotage"))] $name: std::sync::atomic::AtomicBool,)*
        }
        impl Sabotage {
            $(
                $(#[$doc])*
                #[inline]
                pub fn $name(&self) -> bool {
                    #[cfg(any(test, feature = "sabotage"))]
                    return self.$name.load(std::sync::atomic::Ordering::Relaxed);
                    #[cfg(not(any(test, feature = "sabotage")))]
                    false
                }
                /// Turns the switch on or off.
                #[cfg(any(test, feature = "sabotage"))]
                pub fn $set(&self, on: bool) {
                    self.$name.store(on, std::sync::atomic::Ordering::Relaxed);
                }
            )*
        }
    };
}

switches! {
    /// Commits are acknowledged and shown before their timestamp is certainly past.
    skip_rule_one: set_skip_rule_one,
    /// Commits certify nothing that they read.
    skip_read_certification: set_skip_read_certification,
    /// What a transaction relies on is looked at when it says so, and not when it commits (design 4a.4).
    forget_versions: set_forget_versions,
    /// Commits do not certify that what they refer to is there.
    forget_references: set_forget_references,
    /// Keys are deleted that somebody has referred to since (`references`).
    forget_who_refers: set_forget_who_refers,
    /// Commits certify nothing that they write: the last committer wins.
    skip_write_certification: set_skip_write_certification,
    /// What was asked for ahead counts whatever the snapshot is by now.
    ahead_at_any_snapshot: set_ahead_at_any_snapshot,
    /// Who promises nothing takes a chunk that was asked ahead though it says only that something is uncertain.
    peek_at_what_is_uncertain: set_peek_at_what_is_uncertain,
    /// As `ahead_at_any_snapshot`, of spans.
    spans_at_any_snapshot: set_spans_at_any_snapshot,
    /// Commits are acknowledged when they are proposed.
    ack_before_durable: set_ack_before_durable,
    /// Readers do not wait for writes in flight.
    ignore_inflight: set_ignore_inflight,
    /// `strict` is served whatever the clock is worth.
    skip_ladder: set_skip_ladder,
    /// Snapshots are served that no lease covers.
    ignore_leases: set_ignore_leases,
    /// Snapshots are served by a lease that was given back.
    serve_after_release: set_serve_after_release,
    /// What peers say of clocks is not heard.
    ignore_proofs: set_ignore_proofs,
    /// What a peer's claim proved once is told it for ever, however long it was silent since.
    accuse_for_ever: set_accuse_for_ever,
    /// A node whose clock is in doubt goes by it all the same (`lent`).
    borrow_nothing: set_borrow_nothing,
    /// Who is not to wait for the time takes its own clock's where nobody has said it yet (`lent`).
    place_hastily: set_place_hastily,
    /// A leader whose clock is in doubt says what time it is all the same (`lent`, invariant 2).
    lend_in_doubt: set_lend_in_doubt,
    /// A node whose clock is in doubt acknowledges commits that nobody says are past (`lent`, invariant 4).
    acknowledge_unvouched: set_acknowledge_unvouched,
    /// Relative times go by the physical clock only.
    ago_by_the_clock: set_ago_by_the_clock,
    /// Of a commit that waits to be shown it is said that it did not happen.
    deny_commits: set_deny_commits,
    /// What a peer claims is held also against a reading that is not trusted.
    always_claim: set_always_claim,
    /// A prepared transaction is resolved as aborted although all its participants prepared.
    abort_prepared: set_abort_prepared,
    /// In a cluster, commands do not say until when copies of them may come (design 4a.1).
    without_until: set_without_until,
    /// Of a command that lies outside of its range it is said that nothing was done, though that may be forgotten (design 4a.1).
    deny_the_forgotten: set_deny_the_forgotten,
    /// A leader proposes each copy of a command that comes.
    propose_copies: set_propose_copies,
    /// A read ratchets the whole node's clock (design 4a.5).
    reads_ratchet_the_node: set_reads_ratchet_the_node,
    /// A leader clips a read's uncertainty to its own clock, whoever led before (design 4a.6).
    clip_limit: set_clip_limit,
    /// Leaders stamp by the middle of the interval.
    stamp_by_the_middle: set_stamp_by_the_middle,
    /// Who has moved past a node's time takes what was prepared there before, and committed above, for later (design 4a.6).
    forget_late_commits: set_forget_late_commits,
    /// A read has no uncertainty.
    skip_uncertainty: set_skip_uncertainty,
    /// Transactions restart past the uncertain version only, each time that they meet one (000 section 5.4).
    never_catch_up: set_never_catch_up,
    /// A statement keeps the uncertainty of the one before it, as if its client had sent both at once (decision 213).
    keep_uncertainty: set_keep_uncertainty,
    /// Who begins anew forgets what it knows of uncertainty, and may begin below what it has met.
    forget_uncertainty: set_forget_uncertainty,
    /// What peers tell of their logs is forgotten, so that a store that has gone back is heard (decision 218).
    forget_reaches: set_forget_reaches,
    /// Snapshots have the age that was set, whatever is collected meanwhile.
    age_beyond_what_is_kept: set_age_beyond_what_is_kept,
    /// Of what the leaders of a query answer the newest snapshot is taken.
    negotiate_the_newest: set_negotiate_the_newest,
    /// A leader answers for a snapshot without regard for what is in flight there.
    settle_over_flights: set_settle_over_flights,
    /// A read whose uncertainty ends at its snapshot is answered under any lease that reaches to it, as if nobody else could have led since (`serve`, invariant 4).
    clip_under_any_lease: set_clip_under_any_lease,
    /// Who was to be asked by way of another counts as who answered (`gateway`).
    trust_relays: set_trust_relays,
    /// Of a call that goes out again directly it is forgotten who relayed it before (`gateway`).
    forget_relays: set_forget_relays,
    /// Who asked for a lock in another's place passes no word about it on, and who wants a session's lock no more does not tell him (`carried`).
    pass_no_word_on: set_pass_no_word_on,
    /// A range is read above the timestamp of a split that is on its way (design 4a.2).
    read_while_splitting: set_read_while_splitting,
    /// A snapshot is installed although a split that is behind it stands in the log here, and was not applied (design 4a.2).
    jump_splits: set_jump_splits,
    /// A leader whose clock is not believed leads on (`fence`).
    keep_when_fenced: set_keep_when_fenced,
    /// A leader hands over below what it served (design 4a.3).
    release_below_reads: set_release_below_reads,
    /// A replica serves all that is closed, prepared or not (design 4a.7).
    closed_is_resolved: set_closed_is_resolved,
    /// A replica that is asked as the nearest answers, whether it has resolved the snapshot or not (`near`, invariant 1).
    answer_unresolved: set_answer_unresolved,
    /// A store of a cluster forgets what its shell wants, whatever its ranges' logs say (design 4a.8).
    collect_unlogged: set_collect_unlogged,
    /// A store refuses a range whose threshold is below its own, though it forgot nothing of it (design 4a.8).
    refuse_what_was_spared: set_refuse_what_was_spared,
    /// What is copied of a range is whatever there is when it is read, though the state was copied before (design 4a.9).
    copy_what_comes_later: set_copy_what_comes_later,
    /// What is written while a range is copied is not looked at before (design 4a.9).
    forget_what_is_followed: set_forget_what_is_followed,
    /// Of a key that was deleted and written again a snapshot brings only what is new, and not that it was gone in between (design 4a.9).
    join_what_came_again: set_join_what_came_again,
    /// What a snapshot does not have is deleted at the threshold of collection, though what is prepared may be decided for a time below it (design 4a.9).
    bury_what_is_prepared: set_bury_what_is_prepared,
    /// A layer is closed while a snapshot is half installed (`installing`).
    close_half_a_snapshot: set_close_half_a_snapshot,
    /// What was installed half is forgotten when its replica is removed, before the record of that is durable (`installing`).
    forget_half_a_snapshot: set_forget_half_a_snapshot,
    /// What is frozen carries the state of the ranges as it was the time before (design 4a.9).
    state_apart: set_state_apart,
    /// Whatever comes is taken, however far the engine is behind (`crowding`).
    take_when_crowded: set_take_when_crowded,
    /// A commit does not wait until all its parts are staged, nor is it asked whether they are.
    commit_unstaged: set_commit_unstaged,
    /// What was written since parts of a transaction were looked at is not noted.
    overlook_what_came_since: set_overlook_what_came_since,
    /// A node that ran alone becomes a member though it is ahead of time, and its ranges begin at the present (design 4a.11).
    join_ahead_of_time: set_join_ahead_of_time,
    /// A replica does what its program knows, whatever version its range has.
    apply_by_program: set_apply_by_program,
    /// What a later version of the cluster brings is said before that is in force.
    say_what_is_new: set_say_what_is_new,
    /// A new leader grants locks of sessions at once, whoever held them before.
    grant_without_grace: set_grant_without_grace,
    /// A gateway counts on the locks of its sessions, whether it hears their leader or not.
    count_on_locks_for_ever: set_count_on_locks_for_ever,
    /// A node's next life names its transactions as the last one did (design 4a.10).
    reuse_ids: set_reuse_ids,
}
