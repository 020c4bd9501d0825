//! The order in which inner joins are made.
//!
//! **Idea.** Of up to [`WHOLE_MAX`] inputs every order is weighed, by dynamic programming over their subsets, as in Selinger et al., "Access path
//! selection in a relational database management system", 1979; of more, the next is always the one that costs least. What is joined is always on
//! the left, one input at a time on the right. How two inputs are joined is decided while it runs ([`super::run`]); here that is foreseen.
//!
//! **Caveat.** An input of which little remains after its conditions is still read whole, unless a join finds its rows by key.

use super::run::ROWS_PER_LOOKUP;

/// Inputs up to which every order is weighed.
const WHOLE_MAX: usize = 10;
/// Inputs of which there is an order at all.
pub(super) const INPUTS_MAX: usize = 64;

/// What a pair costs that nothing ties: where ties can be had they come first, or an index behind them is of no use.
const PAIR_COST: f64 = 10.0;

/// What is joined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input {
    /// Rows that pass its own conditions.
    pub(super) rows: f64,
    /// Rows that are read for them.
    pub(super) read: f64,
}

/// Columns of which conditions say that they are equal: of some inputs one each.
#[derive(Clone, Debug)]
pub(super) struct Class {
    /// Input, different values, and whether an index finds its rows by the column.
    pub(super) members: Vec<(usize, f64, bool)>,
}

impl Class {
    fn has(&self, set: u64) -> bool {
        self.members.iter().any(|(input, ..)| set >> input & 1 == 1)
    }

    /// The share of the combinations of a set that agree: of two columns the one with fewer values is taken to find them all in the other.
    pub(super) fn share(&self, set: u64) -> f64 {
        let inside = self.members.iter().filter(|(input, ..)| set >> input & 1 == 1);
        let (mut share, mut fewest) = (1.0, f64::INFINITY);
        for (_, distinct, _) in inside {
            let distinct = distinct.max(1.0);
            share /= distinct;
            fewest = fewest.min(distinct);
        }
        if fewest.is_finite() { share * fewest } else { share }
    }

    /// Whether it ties an input to a set; and whether that finds the input's rows by key.
    fn ties(&self, set: u64, next: usize) -> (bool, bool) {
        let own = self.members.iter().find(|(input, ..)| *input == next);
        own.map_or((false, false), |(_, _, found)| (self.has(set), self.has(set) && *found))
    }
}

/// Another condition over some inputs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    /// Bits of the inputs.
    pub(super) inputs: u64,
    /// The share of their combinations that it lets through.
    pub(super) share: f64,
    /// It says that something of one is equal to something of another.
    pub(super) equal: bool,
}

/// See the module. Gives the places of the inputs, and how many rows there are after each.
pub(super) fn order(inputs: &[Input], classes: &[Class], edges: &[Edge]) -> (Vec<usize>, Vec<f64>) {
    let joins = Joins { inputs, classes, edges };
    let order = if inputs.len() <= WHOLE_MAX { joins.best() } else { joins.greedy() };
    let mut set = 0;
    let sizes = order.iter().map(|next| {
        set |= 1 << next;
        joins.rows(set)
    });
    let sizes = sizes.collect();
    (order, sizes)
}

struct Joins<'a> {
    inputs: &'a [Input],
    classes: &'a [Class],
    edges: &'a [Edge],
}

impl Joins<'_> {
    /// Rows of a set of inputs, joined.
    fn rows(&self, set: u64) -> f64 {
        let rows: f64 = (0..self.inputs.len()).filter(|at| set >> at & 1 == 1).map(|at| self.inputs[at].rows).product();
        let inside = self.edges.iter().filter(|edge| edge.inputs & !set == 0);
        let agree: f64 = self.classes.iter().map(|class| class.share(set)).product();
        (rows * agree * inside.map(|edge| edge.share).product::<f64>()).max(1.0)
    }

    /// What it costs to join one more input to a set that has so many rows, in rows that are looked at.
    fn cost(&self, set: u64, rows: f64, next: usize) -> f64 {
        let (bit, input) = (1 << next, &self.inputs[next]);
        let all = set | bit;
        let mut ties = self.edges.iter().filter(|edge| edge.equal && edge.inputs & !all == 0);
        let (mut tied, mut found) = (ties.any(|edge| edge.inputs & bit != 0), false);
        for class in self.classes {
            let (ties, finds) = class.ties(set, next);
            (tied, found) = (tied || ties, found || finds);
        }
        let made = self.rows(all);
        if !tied {
            return input.read + PAIR_COST * rows * input.rows + made;
        }
        let read = input.read + input.rows + rows;
        let looked_up = if found { rows * ROWS_PER_LOOKUP as f64 } else { f64::INFINITY };
        read.min(looked_up) + made
    }

    fn best(&self) -> Vec<usize> {
        let count = self.inputs.len();
        // For each set: the cost of its best order, and what comes last in it.
        let mut best = vec![(f64::INFINITY, 0_usize); 1 << count];
        for (at, input) in self.inputs.iter().enumerate() {
            best[1 << at] = (input.read, at);
        }
        for set in 1..best.len() as u64 {
            let (so_far, rows) = (best[set as usize].0, self.rows(set));
            for next in (0..count).filter(|next| set >> next & 1 == 0) {
                let cost = so_far + self.cost(set, rows, next);
                let place = &mut best[(set | 1 << next) as usize];
                if cost < place.0 {
                    *place = (cost, next);
                }
            }
        }
        let (mut set, mut order) = ((1_u64 << count) - 1, Vec::with_capacity(count));
        while set != 0 {
            let (_, last) = best[set as usize];
            order.push(last);
            set &= !(1 << last);
        }
        order.reverse();
        order
    }

    fn greedy(&self) -> Vec<usize> {
        let mut left: Vec<usize> = (0..self.inputs.len()).collect();
        let (mut set, mut order) = (0_u64, Vec::with_capacity(left.len()));
        while !left.is_empty() {
            let rows = self.rows(set);
            let cost = |next: &usize| match set {
                0 => self.inputs[*next].read + self.inputs[*next].rows,
                _ => self.cost(set, rows, *next),
            };
            let least = (0..left.len()).min_by(|a, b| cost(&left[*a]).total_cmp(&cost(&left[*b]))).unwrap_or(0);
            let next = left.remove(least);
            set |= 1 << next;
            order.push(next);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(rows: f64, read: f64) -> Input {
        Input { rows, read }
    }

    /// Columns of inputs, with so many values, that are equal.
    fn class(members: &[(usize, f64, bool)]) -> Class {
        Class { members: members.to_vec() }
    }

    #[test]
    fn what_is_found_by_key_comes_behind_what_is_few() {
        // A large table with a key, one small one that names some of its rows.
        let inputs = [input(1e6, 1e6), input(10.0, 10.0)];
        let (order, sizes) = order(&inputs, &[class(&[(0, 1e6, true), (1, 10.0, false)])], &[]);
        assert_eq!(order, [1, 0]);
        assert_eq!(sizes, [10.0, 10.0]);
    }

    #[test]
    fn inputs_without_a_condition_between_them_are_not_multiplied() {
        // A chain: 0 - 1 - 2; the ends are small.
        let inputs = [input(1e3, 1e3), input(1e5, 1e5), input(1e3, 1e3)];
        let classes = [class(&[(0, 1e3, false), (1, 1e3, false)]), class(&[(1, 1e3, false), (2, 1e3, false)])];
        let (order, _) = order(&inputs, &classes, &[]);
        assert_ne!(order[0] + order[1], 2, "{order:?}");
    }

    #[test]
    fn what_is_equal_to_one_is_equal_to_all() {
        let class = class(&[(0, 25.0, false), (1, 25.0, false), (2, 1000.0, true)]);
        assert_eq!([class.share(0b011), class.share(0b101), class.share(0b111)], [1.0 / 25.0, 1e-3, 1.0 / 25e3]);
        assert_eq!([class.share(0), class.share(0b100)], [1.0, 1.0]);
        assert_eq!(
            [class.ties(0b001, 2), class.ties(0b001, 1), class.ties(0, 2)],
            [(true, true), (true, false), (false, false)]
        );
    }

    #[test]
    fn many_inputs_have_an_order_too() {
        let inputs: Vec<Input> = (0..INPUTS_MAX).map(|n| input(n as f64 + 1.0, 100.0)).collect();
        let edge = |n: usize| Edge { inputs: 1 << (n - 1) | 1 << n, share: 0.01, equal: true };
        let edges: Vec<Edge> = (1..INPUTS_MAX).map(edge).collect();
        let (mut order, sizes) = order(&inputs, &[], &edges);
        assert!(sizes.iter().all(|rows| rows.is_finite()));
        order.sort_unstable();
        assert_eq!(order, (0..INPUTS_MAX).collect::<Vec<_>>());
    }

    #[test]
    fn every_order_of_few_is_weighed() {
        // Against all permutations, by the same costs.
        let inputs = [input(50.0, 1e4), input(2e3, 2e3), input(1e5, 1e5), input(5.0, 25.0), input(300.0, 1e3)];
        let classes = [
            class(&[(0, 1e4, false), (2, 1e4, true)]),
            class(&[(1, 2e3, true), (2, 1e3, false), (4, 300.0, false)]),
            class(&[(1, 25.0, false), (3, 25.0, false)]),
        ];
        let edges = [Edge { inputs: 1 << 2 | 1 << 4, share: 1e-3, equal: false }];
        let joins = Joins { inputs: &inputs, classes: &classes, edges: &edges };
        let total = |order: &[usize]| {
            let (mut set, mut total) = (1 << order[0], inputs[order[0]].read);
            for next in &order[1..] {
                total += joins.cost(set, joins.rows(set), *next);
                set |= 1 << next;
            }
            total
        };
        let mut orders: Vec<Vec<usize>> = vec![Vec::new()];
        for _ in 0..inputs.len() {
            let longer = |order: Vec<usize>| {
                let left: Vec<usize> = (0..5).filter(|n| !order.contains(n)).collect();
                left.into_iter().map(move |next| [order.clone(), vec![next]].concat())
            };
            orders = orders.into_iter().flat_map(longer).collect();
        }
        assert_eq!(orders.len(), 120);
        let least = orders.iter().map(|order| total(order)).fold(f64::INFINITY, f64::min);
        assert!((total(&joins.best()) - least).abs() < 1e-6);
    }
}
