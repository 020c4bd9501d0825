//! Switches that break one rule each, so that the tests can show that they would notice. Compiled in only with the feature
//! `sabotage`; otherwise every question is a constant `false`.

macro_rules! switches {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Rules to break on purpose.
        #[derive(Clone, Debug, Default)]
        pub struct Sabotage {
            $($(#[$doc])* #[cfg(feature = "sabotage")] pub $name: bool,)*
        }
        impl Sabotage {
            $(
                #[inline]
                pub(crate) fn $name(&self) -> bool {
                    #[cfg(feature = "sabotage")]
                    return self.$name;
                    #[cfg(not(feature = "sabotage"))]
                    false
                }
            )*
        }
    };
}

switches! {
    /// Votes leave before they are durable.
    vote_before_durable,
    /// Acknowledgements of appends leave before the entries are durable, and the leader counts its own at once.
    ack_before_durable,
    /// Votes do not carry the ends of promises.
    vote_without_ends,
    /// The winner starts below what the votes carry.
    winner_does_not_ratchet,
    /// Support is not withdrawn before a vote for another.
    keep_epoch,
    /// Who led and votes for another does not say to where its own lease reached.
    forget_the_own_lease,
    /// A joint configuration is left at once, and what was served is not in the log.
    leave_joint_early,
    /// Promises leave before they are durable.
    promise_before_durable,
    /// A store does not say which groups have woken.
    forget_the_woken,
    /// A new leader does not look at the timestamps in its log.
    stamp_below_the_log,
    /// A replica that was removed goes as soon as it has applied that itself.
    leave_at_once,
    /// A replica that was removed is made again for whoever asks for its vote.
    raise_the_removed,
    /// Each group looks for votes when its own patience ends, whatever the others do.
    elections_at_once,
    /// The one place for a snapshot that goes out is kept for whoever wants it, though nothing is heard of its store.
    copy_for_the_silent,
}
