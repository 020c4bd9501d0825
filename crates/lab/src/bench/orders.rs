//! TPC-C's schema and its five transactions, cut down: what a wholesaler's orders make of contention.
//!
//! 000 section 3.4.1 ran CockroachDB's TPC-C. Here are new-order and payment, which are 88 % of TPC-C's mix and most of its contention, delivery, and order-status
//! and stock-level, which read. Think times, orders of other warehouses, names and most columns are left out, and tables are smaller. So rates are no tpmC.
//! `cargo x bench tpcc` runs a whole TPC-C of others.

use super::{Progress, Workload};
use crate::client::{Client, ClientError, TextRow};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::fmt::Write as _;

/// Districts of a warehouse (TPC-C clause 1.2.1).
const DISTRICTS: u32 = 10;
/// Customers of a district: 3,000 in TPC-C.
const CUSTOMERS: u32 = 100;
/// Items: 100,000 in TPC-C.
const ITEMS: u32 = 1_000;
/// Lines of an order (clause 2.4.1.3).
const LINES: std::ops::RangeInclusive<u32> = 5..=15;
/// Orders that stock-level looks at (clause 2.8.2.2).
const LATEST_ORDERS: u32 = 20;
/// Rows of one INSERT while loading.
const BATCH_ROWS: usize = 500;
/// Carriers that deliver (clause 2.7.1.2).
const CARRIERS: std::ops::RangeInclusive<u32> = 1..=10;
/// Of a hundred transactions: payments and others as in clause 5.2.3, those that remain are new orders.
const PAYMENTS: u32 = 43;
const ORDER_STATUSES: u32 = 4;
const STOCK_LEVELS: u32 = 4;
const DELIVERIES: u32 = 4;

const TABLES: [(&str, &str); 9] = [
    ("warehouse", "w_id int PRIMARY KEY, w_ytd bigint NOT NULL"),
    ("district", "d_w_id int, d_id int, d_next_o_id int NOT NULL, d_ytd bigint NOT NULL, PRIMARY KEY (d_w_id, d_id)"),
    (
        "customer",
        "c_w_id int, c_d_id int, c_id int, c_balance bigint NOT NULL, c_payments int NOT NULL, PRIMARY KEY (c_w_id, c_d_id, c_id)",
    ),
    ("item", "i_id int PRIMARY KEY, i_price int NOT NULL"),
    ("stock", "s_w_id int, s_i_id int, s_quantity int NOT NULL, PRIMARY KEY (s_w_id, s_i_id)"),
    (
        "orders",
        "o_w_id int, o_d_id int, o_id int, o_c_id int NOT NULL, o_lines int NOT NULL, o_carrier_id int, PRIMARY KEY (o_w_id, o_d_id, o_id)",
    ),
    ("new_order", "no_w_id int, no_d_id int, no_o_id int, PRIMARY KEY (no_w_id, no_d_id, no_o_id)"),
    (
        "order_line",
        "ol_w_id int, ol_d_id int, ol_o_id int, ol_number int, ol_i_id int NOT NULL, ol_amount int NOT NULL, ol_is_delivered boolean NOT NULL, PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)",
    ),
    (
        "history",
        "h_id bigserial PRIMARY KEY, h_w_id int NOT NULL, h_d_id int NOT NULL, h_c_id int NOT NULL, h_amount int NOT NULL",
    ),
];

/// The workload.
#[derive(Clone, Copy, Debug)]
pub struct Orders {
    /// Warehouses.
    pub warehouses: u32,
}

/// Rows in batches.
fn insert(client: &mut Client, table: &str, rows: &[String]) -> Result<(), ClientError> {
    for batch in rows.chunks(BATCH_ROWS) {
        client.query(&format!("INSERT INTO {table} VALUES {}", batch.join(", ")))?;
    }
    Ok(())
}

/// The first field of the first row, as a number.
fn number(rows: &[TextRow]) -> u32 {
    rows.first().and_then(|row| row.first()?.as_deref()?.parse().ok()).unwrap_or(0)
}

impl Orders {
    fn district(&self, rng: &mut SmallRng) -> (u32, u32) {
        (rng.random_range(1..=self.warehouses), rng.random_range(1..=DISTRICTS))
    }

    /// Clause 2.4.2: an order of some items, all of this warehouse.
    fn new_order(&self, client: &mut Client, rng: &mut SmallRng) -> Result<(), ClientError> {
        let ((w, d), customer) = (self.district(rng), rng.random_range(1..=CUSTOMERS));
        let mut items: Vec<u32> = (0..rng.random_range(LINES)).map(|_| rng.random_range(1..=ITEMS)).collect();
        // In order, so that two orders do not wait for each other.
        items.sort_unstable();
        items.dedup();
        let order = number(&client.query(&format!(
            "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = {w} AND d_id = {d} RETURNING d_next_o_id"
        ))?);
        client.query(&format!("INSERT INTO orders VALUES ({w}, {d}, {order}, {customer}, {}, NULL)", items.len()))?;
        client.query(&format!("INSERT INTO new_order VALUES ({w}, {d}, {order})"))?;
        let mut lines = String::from("INSERT INTO order_line VALUES ");
        for (n, item) in items.iter().enumerate() {
            let price = number(&client.query(&format!("SELECT i_price FROM item WHERE i_id = {item}"))?);
            client.query(&format!(
                "UPDATE stock SET s_quantity = CASE WHEN s_quantity > 10 THEN s_quantity - 1 ELSE s_quantity + 90 END \
                 WHERE s_w_id = {w} AND s_i_id = {item}"
            ))?;
            let comma = if n == 0 { "" } else { ", " };
            let _ = write!(lines, "{comma}({w}, {d}, {order}, {n}, {item}, {price}, false)");
        }
        client.query(&lines).map(|_| ())
    }

    /// Clause 2.5.2.
    fn payment(&self, client: &mut Client, rng: &mut SmallRng) -> Result<(), ClientError> {
        let ((w, d), customer) = (self.district(rng), rng.random_range(1..=CUSTOMERS));
        let amount = rng.random_range(1..=5_000);
        client.query(&format!("UPDATE warehouse SET w_ytd = w_ytd + {amount} WHERE w_id = {w}"))?;
        client.query(&format!("UPDATE district SET d_ytd = d_ytd + {amount} WHERE d_w_id = {w} AND d_id = {d}"))?;
        client.query(&format!(
            "UPDATE customer SET c_balance = c_balance - {amount}, c_payments = c_payments + 1 \
             WHERE c_w_id = {w} AND c_d_id = {d} AND c_id = {customer}"
        ))?;
        let into = "INSERT INTO history (h_w_id, h_d_id, h_c_id, h_amount)";
        client.query(&format!("{into} VALUES ({w}, {d}, {customer}, {amount})")).map(|_| ())
    }

    /// Clause 2.6.2: a customer, and the last order.
    fn order_status(&self, client: &mut Client, rng: &mut SmallRng) -> Result<(), ClientError> {
        let ((w, d), customer) = (self.district(rng), rng.random_range(1..=CUSTOMERS));
        client.query(&format!(
            "SELECT c_balance FROM customer WHERE c_w_id = {w} AND c_d_id = {d} AND c_id = {customer}"
        ))?;
        let order = number(&client.query(&format!(
            "SELECT o_id FROM orders WHERE o_w_id = {w} AND o_d_id = {d} ORDER BY o_id DESC LIMIT 1"
        ))?);
        let of = format!("ol_w_id = {w} AND ol_d_id = {d} AND ol_o_id = {order}");
        client.query(&format!("SELECT ol_i_id, ol_amount FROM order_line WHERE {of}")).map(|_| ())
    }

    /// Clause 2.7.4: the oldest order of each district of a warehouse that is not delivered yet.
    fn delivery(&self, client: &mut Client, rng: &mut SmallRng) -> Result<(), ClientError> {
        let (w, carrier) = (self.district(rng).0, rng.random_range(CARRIERS));
        for d in 1..=DISTRICTS {
            let oldest = client.query(&format!(
                "SELECT no_o_id FROM new_order WHERE no_w_id = {w} AND no_d_id = {d} ORDER BY no_o_id LIMIT 1"
            ))?;
            // A district without one is skipped; another delivery may have come first.
            let order = number(&oldest);
            let of = |prefix: &str| format!("{prefix}_w_id = {w} AND {prefix}_d_id = {d}");
            let gone = client
                .query(&format!("DELETE FROM new_order WHERE {} AND no_o_id = {order} RETURNING no_o_id", of("no")))?;
            if gone.is_empty() {
                continue;
            }
            let customer = number(&client.query(&format!(
                "UPDATE orders SET o_carrier_id = {carrier} WHERE {} AND o_id = {order} RETURNING o_c_id",
                of("o")
            ))?);
            client.query(&format!(
                "UPDATE order_line SET ol_is_delivered = true WHERE {} AND ol_o_id = {order}",
                of("ol")
            ))?;
            let amount =
                number(&client.query(&format!(
                    "SELECT sum(ol_amount) FROM order_line WHERE {} AND ol_o_id = {order}",
                    of("ol")
                ))?);
            client.query(&format!(
                "UPDATE customer SET c_balance = c_balance + {amount} WHERE {} AND c_id = {customer}",
                of("c")
            ))?;
        }
        Ok(())
    }

    /// Clause 2.8.2: items of the latest orders of which little is left: the longest read.
    fn stock_level(&self, client: &mut Client, rng: &mut SmallRng) -> Result<(), ClientError> {
        let (w, d) = self.district(rng);
        let next =
            number(&client.query(&format!("SELECT d_next_o_id FROM district WHERE d_w_id = {w} AND d_id = {d}"))?);
        let from = next.saturating_sub(LATEST_ORDERS);
        client
            .query(&format!(
                "SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id \
                 WHERE ol_w_id = {w} AND ol_d_id = {d} AND ol_o_id > {from} AND ol_o_id <= {next} AND s_quantity < 20"
            ))
            .map(|_| ())
    }
}

impl Workload for Orders {
    fn name(&self) -> &'static str {
        "orders"
    }
    fn operations(&self) -> &'static [&'static str] {
        &["new-order", "payment", "order-status", "stock-level", "delivery"]
    }

    fn load(&self, client: &mut Client, rng: &mut SmallRng, progress: &mut Progress<'_>) -> Result<(), ClientError> {
        for (table, columns) in TABLES {
            client.query(&format!("DROP TABLE IF EXISTS {table}"))?;
            client.query(&format!("CREATE TABLE {table} ({columns})"))?;
        }
        let all = u64::from(self.warehouses);
        let items: Vec<String> = (1..=ITEMS).map(|i| format!("({i}, {})", rng.random_range(100..10_000))).collect();
        insert(client, "item", &items)?;
        for w in 1..=self.warehouses {
            insert(client, "warehouse", &[format!("({w}, 0)")])?;
            let districts: Vec<String> = (1..=DISTRICTS).map(|d| format!("({w}, {d}, 0, 0)")).collect();
            insert(client, "district", &districts)?;
            let of = |d: u32| (1..=CUSTOMERS).map(move |c| format!("({w}, {d}, {c}, 0, 0)"));
            insert(client, "customer", &(1..=DISTRICTS).flat_map(of).collect::<Vec<_>>())?;
            let stock: Vec<String> =
                (1..=ITEMS).map(|i| format!("({w}, {i}, {})", rng.random_range(10..=100))).collect();
            insert(client, "stock", &stock)?;
            progress(u64::from(w), all);
        }
        Ok(())
    }

    fn prepare(&self, _client: &mut Client) -> Result<(), ClientError> {
        Ok(())
    }

    fn choose(&self, rng: &mut SmallRng) -> (usize, u32) {
        let operation = match rng.random_range(0..100) {
            n if n < PAYMENTS => 1,
            n if n < PAYMENTS + ORDER_STATUSES => 2,
            n if n < PAYMENTS + ORDER_STATUSES + STOCK_LEVELS => 3,
            n if n < PAYMENTS + ORDER_STATUSES + STOCK_LEVELS + DELIVERIES => 4,
            _ => 0,
        };
        (operation, rng.random())
    }

    fn run(&self, client: &mut Client, operation: usize, parameter: u32) -> Result<(), ClientError> {
        // A transaction that is tried again is the same one.
        let mut rng = SmallRng::seed_from_u64(u64::from(parameter));
        client.query("BEGIN")?;
        let done = match operation {
            0 => self.new_order(client, &mut rng),
            1 => self.payment(client, &mut rng),
            2 => self.order_status(client, &mut rng),
            3 => self.stock_level(client, &mut rng),
            _ => self.delivery(client, &mut rng),
        };
        let done = done.and_then(|()| client.query("COMMIT").map(|_| ()));
        if done.is_err() {
            client.query("ROLLBACK")?;
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::Orders;
    use crate::bench::Workload;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    #[test]
    fn the_mix_is_that_of_clause_5_2_3() {
        let (orders, mut rng) = (Orders { warehouses: 1 }, SmallRng::seed_from_u64(1));
        let drawn: Vec<usize> = (0..50_000).map(|_| orders.choose(&mut rng).0).collect();
        for (operation, percent) in [(0, 45.0), (1, 43.0), (2, 4.0), (3, 4.0), (4, 4.0)] {
            let share = drawn.iter().filter(|drawn| **drawn == operation).count() as f64 / 500.0;
            assert!((share - percent).abs() < 1.0, "{}: {share} %", orders.operations()[operation]);
        }
    }
}
