//! What happened, as text and as one number: one seed has one trace.

/// Where the lines of a trace go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Show {
    /// Nowhere: only the hash is kept.
    #[default]
    Nothing,
    /// To standard output.
    Print,
    /// They are kept.
    Keep(Vec<String>),
}

/// A trace.
#[derive(Clone, Debug)]
pub struct Trace {
    begun_ns: u64,
    hash: u64,
    show: Show,
}

impl Trace {
    /// An empty trace of a run that begins at this true time.
    pub fn new(begun_ns: u64, show: Show) -> Self {
        Trace { begun_ns, hash: 0xcbf2_9ce4_8422_2325, show }
    }

    /// The hash of everything that was said.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The lines that were kept.
    pub fn lines(self) -> Vec<String> {
        match self.show {
            Show::Keep(lines) => lines,
            Show::Nothing | Show::Print => Vec::new(),
        }
    }

    /// Bytes that only the hash hears of.
    pub fn mix(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Something happened.
    pub fn say(&mut self, now_ns: u64, what: &str) {
        self.mix(what.as_bytes());
        let us = now_ns.saturating_sub(self.begun_ns) / 1000;
        match &mut self.show {
            Show::Nothing => {}
            #[allow(clippy::print_stdout, reason = "asked for on the command line")]
            Show::Print => println!("{us:>12} {what}"),
            Show::Keep(lines) => lines.push(format!("{us:>12} {what}")),
        }
    }
}
