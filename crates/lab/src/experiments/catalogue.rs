//! The tables and figures of the seeds that the lab is to repeat, in the order of the documents.

/// A table, a figure or a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// Its name, as verdicts have it.
    pub name: &'static str,
    /// What it shows.
    pub shows: &'static str,
}

const fn item(name: &'static str, shows: &'static str) -> Item {
    Item { name, shows }
}

/// All of them.
pub(super) const ITEMS: &[Item] = &[
    item("000 section 3.3.1", "what a reading of a bounded clock costs"),
    item("000 section 2.5.2", "unnecessary restarts, by the latency between begin and first contact"),
    item("000 section 2.5.1, clock skew", "restarts by actual skew under a fixed max_offset"),
    item("000 section 5.3, length of reads", "restarts by the length of reads, contention left as it is"),
    item("000 section 5.3, contention", "restarts by contention, the length of reads left as it is"),
    item("000 section 5.3, regions", "restarts in one, two and three regions"),
    item("000 section 5.4, nodes", "restarts in larger clusters"),
    item("000 section 5.4, commit-wait", "commit-wait in place of restarts"),
    item("000 section 3.4.1", "TPC-C and YCSB B and F lose nothing by dynamic bounds"),
    item("000 tables C.1-C.5, figures 4.1-4.8", "posts and likes, 95 % reads: static 500 ms and dynamic bounds"),
    item("000 tables D.1-D.5, figures 4.9-4.16", "posts and likes, 50 % reads"),
    item("000 figure 4.17, table E.1", "the size of the bound over twelve hours"),
    item("002 section 5.2", "NTP's maximum error in one data center and in two"),
    item("002 experiment 1 (figures 2, 3)", "none, HybridTime, commit-wait: without replication and sync"),
    item("002 experiment 2 (figure 4)", "the same, with replication and sync"),
    item("002 experiment 3 (figure 5)", "the same, over two data centers"),
    item("003 figures 4.1-4.21", "CockroachDB, TiDB and YugabyteDB in a cloud"),
    item("004 section 2.4.5", "availability: the timestamp authority fails, or a partition"),
    item("004 section 2.5.5", "Clock-SI's model: the example"),
    item("004 section 2.5.3", "Clock-SI's model: delay by clock skew"),
    item("004 figure 2.3", "latency of read-only transactions in a LAN"),
    item("004 figure 2.4", "the same in a WAN"),
    item("004 figure 2.5", "throughput of transactions on one partition, of 1 to 8"),
    item("004 figure 2.6", "throughput of a feed-following application"),
    item("004 figure 2.7", "throughput of reads beside hot spots, by snapshot age"),
    item("004 figure 2.8", "latency of the same"),
    item("004 figure 2.9", "delay rate by number of items"),
    item("004 figure 2.10", "delay rate by snapshot age"),
    item("004 figure 2.11", "delay time by snapshot age"),
    item("004 figure 2.12", "abort rate by snapshot age"),
    item("004 figure 2.13", "clock skew plus one-way latency between two servers"),
    item("004 table 3.2", "latency formulas of four replication protocols"),
    item("004 figure 3.1", "commit latency at five sites, balanced, leader CA"),
    item("004 figure 3.2", "the same, leader VA"),
    item("004 figure 3.3", "commit latency at three sites, balanced, leader CA"),
    item("004 figure 3.4", "the same, leader VA"),
    item("004 figure 3.5", "latency distribution at JP, five sites, leader CA"),
    item("004 figure 3.6", "latency distribution at CA, three sites, leader VA"),
    item("004 figure 3.7", "commit latency at five sites, imbalanced, leader CA"),
    item("004 figure 3.8", "latency distribution at SG, imbalanced"),
    item("004 figure 3.9", "mean latency over all groups of 3, 5 and 7 sites"),
    item("004 table 3.4", "Clock-RSM's reduction of latency over Paxos-bcast"),
    item("004 figure 3.10", "throughput of five replicas by size of command"),
    item("004 table 4.2", "operations per second of one partition server"),
    item("004 figure 4.3", "latency distribution of Echo, GET, PUT, GET-TX"),
    item("004 figure 4.4", "throughput of 2 to 8 partitions"),
    item("004 figures 4.5, 4.6", "Orbe beside eventual consistency"),
    item("004 figures 4.7-4.10", "Orbe beside COPS"),
    item("004 figures 4.11-4.13", "dependency cleaning"),
];
