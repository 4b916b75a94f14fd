//! The views in DBSP, one worker: a transaction for each batch.
//!
//! Where a view only counts, the weights of Z-sets do: equal keys collapse, and joins multiply.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash;
use std::rc::Rc;

use dbsp::mimalloc::MiMalloc;
use dbsp::typed_batch::SpineSnapshot;
use dbsp::utils::{Tup0, Tup2, Tup3, Tup4};
use dbsp::{
    DBData, DBSPHandle, IndexedZSetReader, OrdIndexedZSet, OutputHandle, Runtime, ZSetHandle, ZWeight,
};
use stream::{Given, View};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

type Edge = Tup2<u32, u32>;
/// The rows of a table and their weights.
type Weighted<K> = Vec<Tup2<K, ZWeight>>;
/// The changes of a view that has one value for each key.
type Output<K, V> = OutputHandle<SpineSnapshot<OrdIndexedZSet<K, V>>>;
/// Passes a batch to the inputs: the table, the sign, the columns, the rows.
type Feed = Box<dyn FnMut(usize, i64, usize, &[i64])>;
type Answer = Box<dyn Fn() -> Vec<Vec<i64>>>;

struct Circuit {
    handle: DBSPHandle,
    feed: Feed,
    take: Box<dyn FnMut()>,
    answer: Answer,
}

impl View for Circuit {
    fn batch(&mut self, table: usize, sign: i64, columns: usize, rows: &[i64]) {
        (self.feed)(table, sign, columns, rows);
        self.handle.transaction().expect("the transaction commits");
        (self.take)();
    }

    fn rows(&mut self) -> Vec<Vec<i64>> {
        (self.answer)()
    }
}

/// A circuit whose view is kept as a map, to which the changes of each transaction are added.
fn kept<K, V>(
    handle: DBSPHandle,
    output: Output<K, V>,
    feed: Feed,
    row: impl Fn(&K, &V) -> Vec<i64> + 'static,
    empty: Vec<Vec<i64>>,
) -> Circuit
where
    K: DBData + Hash,
    V: DBData + Hash,
{
    let kept: Rc<RefCell<HashMap<(K, V), ZWeight>>> = Rc::default();
    let inside = kept.clone();
    let take = Box::new(move || {
        let mut rows = inside.borrow_mut();
        for (key, value, weight) in output.concat().iter() {
            let row = (key, value);
            let count = rows.entry(row.clone()).or_insert(0);
            *count += weight;
            if *count == 0 {
                rows.remove(&row);
            }
        }
    });
    let answer: Answer = Box::new(move || {
        let rows = kept.borrow();
        if rows.is_empty() { empty.clone() } else { rows.keys().map(|(key, value)| row(key, value)).collect() }
    });
    Circuit { handle, feed, take, answer }
}

/// The rows of a batch as a table has them; a row may be left out.
fn append<K: DBData>(
    input: &ZSetHandle<K>,
    columns: usize,
    rows: &[i64],
    row: impl Fn(&[i64]) -> Option<Tup2<K, ZWeight>>,
) {
    let mut found: Weighted<K> = rows.chunks_exact(columns).filter_map(row).collect();
    input.append(&mut found);
}

/// A circuit that counts in a table of edges.
fn counted(handle: DBSPHandle, edges: ZSetHandle<Edge>, count: Output<Tup0, ZWeight>) -> Circuit {
    let feed: Feed = Box::new(move |_, sign, columns, rows| {
        append(&edges, columns, rows, |row| Some(Tup2(Tup2(row[0] as u32, row[1] as u32), sign)));
    });
    kept(handle, count, feed, |_, count| vec![*count], vec![vec![0]])
}

/// The sum over nodes of edges in times edges out: both are weights.
fn two_hop() -> Circuit {
    let (handle, (edges, count)) = Runtime::init_circuit(1, |circuit| {
        let (edges, input) = circuit.add_input_zset::<Edge>();
        let into = edges.map_index(|edge| (edge.1, ()));
        let out = edges.map_index(|edge| (edge.0, ()));
        let count = into.join(&out, |_, _, _| Tup0()).weighted_count();
        Ok((input, count.accumulate_output()))
    })
    .expect("the circuit is built");
    counted(handle, edges, count)
}

/// Edges into b pass along (b, c) and are summed at c; there they meet the edges out.
fn three_hop() -> Circuit {
    let (handle, (edges, count)) = Runtime::init_circuit(1, |circuit| {
        let (edges, input) = circuit.add_input_zset::<Edge>();
        let into = edges.map_index(|edge| (edge.1, ()));
        let out = edges.map_index(|edge| (edge.0, ()));
        let forward = edges.map_index(|edge| (edge.0, edge.1));
        let paths = into.join_index(&forward, |_, _, c| Some((*c, ())));
        let count = paths.join(&out, |_, _, _| Tup0()).weighted_count();
        Ok((input, count.accumulate_output()))
    })
    .expect("the circuit is built");
    counted(handle, edges, count)
}

/// Paths of two edges meet the edge that closes them. The joins of DBSP are binary: the paths are stored.
fn triangle() -> Circuit {
    let (handle, (edges, count)) = Runtime::init_circuit(1, |circuit| {
        let (edges, input) = circuit.add_input_zset::<Edge>();
        let reverse = edges.map_index(|edge| (edge.1, edge.0));
        let forward = edges.map_index(|edge| (edge.0, edge.1));
        let closing = edges.map_index(|edge| (Tup2(edge.1, edge.0), ()));
        let paths = reverse.join_index(&forward, |_, a, c| Some((Tup2(*a, *c), ())));
        let count = paths.join(&closing, |_, _, _| Tup0()).weighted_count();
        Ok((input, count.accumulate_output()))
    })
    .expect("the circuit is built");
    counted(handle, edges, count)
}

/// Sales meet product, store and customer in turn; the sums are linear.
fn star() -> Circuit {
    let (handle, ((sale, product, store, customer), groups)) = Runtime::init_circuit(1, |circuit| {
        let (sales, sale) = circuit.add_input_zset::<Tup4<u32, u32, u32, i64>>();
        let (products, product) = circuit.add_input_zset::<Tup3<u32, u32, i64>>();
        let (stores, store) = circuit.add_input_zset::<Tup2<u32, u32>>();
        let (customers, customer) = circuit.add_input_zset::<Tup2<u32, u32>>();
        let products = products.map_index(|row| (row.0, Tup2(row.1, row.2)));
        let stores = stores.map_index(|row| (row.0, row.1));
        let customers = customers.map_index(|row| (row.0, row.1));
        let groups = sales
            .map_index(|row| (row.0, Tup3(row.1, row.2, row.3)))
            .join_index(&products, |_, sale, product| {
                Some((sale.0, Tup3(sale.1, product.0, sale.2 * product.1)))
            })
            .join_index(&stores, |_, sale, region| Some((sale.0, Tup3(sale.1, *region, sale.2))))
            .join_index(&customers, |_, sale, segment| Some((Tup3(sale.0, sale.1, *segment), sale.2)))
            .aggregate_linear(|worth| Tup2(*worth, 1i64));
        Ok(((sale, product, store, customer), groups.accumulate_output()))
    })
    .expect("the circuit is built");
    let feed: Feed = Box::new(move |table, sign, columns, rows| match table {
        0 => append(&sale, columns, rows, |row| {
            Some(Tup2(Tup4(row[1] as u32, row[2] as u32, row[3] as u32, row[4]), sign))
        }),
        1 => append(&product, columns, rows, |row| Some(Tup2(Tup3(row[0] as u32, row[1] as u32, row[2]), sign))),
        2 => append(&store, columns, rows, |row| Some(Tup2(Tup2(row[0] as u32, row[1] as u32), sign))),
        _ => append(&customer, columns, rows, |row| Some(Tup2(Tup2(row[0] as u32, row[1] as u32), sign))),
    });
    let row = |group: &Tup3<u32, u32, u32>, sum: &Tup2<i64, i64>| {
        vec![group.0 as i64, group.1 as i64, group.2 as i64, sum.0, sum.1]
    };
    kept(handle, groups, feed, row, vec![])
}

const BUILDING: i64 = 1;
const DAY: i64 = 9204; // 1995-03-15

/// Orders of the customers meet the revenue, which is the weight of an item's order.
fn q3() -> Circuit {
    let (handle, ((customer, orders, lineitem), groups)) = Runtime::init_circuit(1, |circuit| {
        let (customers, customer) = circuit.add_input_zset::<u32>();
        let (ordered, orders) = circuit.add_input_zset::<Tup4<u32, u32, u32, u32>>();
        let (items, lineitem) = circuit.add_input_zset::<u32>();
        let customers = customers.map_index(|key| (*key, ()));
        let items = items.map_index(|order| (*order, ()));
        let groups = ordered
            .map_index(|row| (row.0, Tup3(row.1, row.2, row.3)))
            .join_index(&customers, |_, order, _| Some((order.0, Tup2(order.1, order.2))))
            .join(&items, |order, about, _| Tup3(*order, about.0, about.1))
            .weighted_count();
        Ok(((customer, orders, lineitem), groups.accumulate_output()))
    })
    .expect("the circuit is built");
    let feed: Feed = Box::new(move |table, sign, columns, rows| match table {
        0 => append(&customer, columns, rows, |row| (row[1] == BUILDING).then(|| Tup2(row[0] as u32, sign))),
        1 => append(&orders, columns, rows, |row| {
            (row[2] < DAY).then(|| Tup2(Tup4(row[1] as u32, row[0] as u32, row[2] as u32, row[3] as u32), sign))
        }),
        // Revenues are positive: a sum is zero only where there is no item.
        _ => append(&lineitem, columns, rows, |row| {
            (row[4] > DAY).then(|| Tup2(row[0] as u32, sign * row[2] * (100 - row[3])))
        }),
    });
    let row = |order: &Tup3<u32, u32, u32>, sum: &ZWeight| vec![order.0 as i64, *sum, order.1 as i64, order.2 as i64];
    kept(handle, groups, feed, row, vec![])
}

fn main() {
    let given = Given::read();
    let mut view = match given.view.as_str() {
        "2-hop" => two_hop(),
        "3-hop" => three_hop(),
        "triangle" => triangle(),
        "star" => star(),
        "q3" => q3(),
        other => panic!("there is no view {other}"),
    };
    given.run(&mut view);
    // The circuit is not taken apart: that is not part of what is measured.
    std::process::exit(0);
}
