//! The views in differential dataflow, one worker: a logical time for each batch.
//!
//! Arrangements are shared where a plan has a table twice. Counts and sums are differences of arranged rows, so that
//! equal keys collapse.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash;
use std::rc::Rc;

use differential_dataflow::Data;
use differential_dataflow::VecCollection;
use differential_dataflow::difference::{Abelian, IsZero, Monoid, Multiply, Semigroup};
use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::operators::CountTotal;
use differential_dogs3::altneu::AltNeu;
use differential_dogs3::operators::{propose, validate};
use mimalloc::MiMalloc;
use serde::{Deserialize, Serialize};
use stream::{Given, View};
use timely::dataflow::ProbeHandle;
use timely::worker::Worker;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

type Time = u32;
type Edge = (u32, u32);

/// A sum and a count, as a difference.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
struct Sum(i64, i64);

impl IsZero for Sum {
    fn is_zero(&self) -> bool {
        self.0 == 0 && self.1 == 0
    }
}

impl Semigroup for Sum {
    fn plus_equals(&mut self, other: &Self) {
        self.0 += other.0;
        self.1 += other.1;
    }
}

impl Monoid for Sum {
    fn zero() -> Self {
        Sum(0, 0)
    }
}

impl Abelian for Sum {
    fn negate(&mut self) {
        self.0 = -self.0;
        self.1 = -self.1;
    }
}

impl Multiply<Sum> for Sum {
    type Output = Sum;
    fn multiply(self, other: &Sum) -> Sum {
        Sum(self.0 * other.0, self.1 * other.1)
    }
}

impl Multiply<isize> for Sum {
    type Output = Sum;
    fn multiply(self, other: &isize) -> Sum {
        Sum(self.0 * *other as i64, self.1 * *other as i64)
    }
}

/// The rows of a view with their multiplicities, as they are emitted.
type Rows<D> = Rc<RefCell<HashMap<D, isize>>>;

fn kept<D: Data + Hash>(rows: VecCollection<Time, D, isize>, probe: &ProbeHandle<Time>) -> Rows<D> {
    let found = Rows::default();
    let inside = found.clone();
    rows.inspect(move |(row, _, change)| {
        let mut rows = inside.borrow_mut();
        let count = rows.entry(row.clone()).or_insert(0);
        *count += change;
        if *count == 0 {
            rows.remove(row);
        }
    })
    .probe_with(probe);
    found
}

/// The inputs of a view, by table.
enum Inputs {
    Edges(InputSession<Time, Edge, isize>),
    Star {
        sale: InputSession<Time, (u32, (u32, u32)), Sum>,
        product: InputSession<Time, (u32, u32), Sum>,
        store: InputSession<Time, (u32, u32), isize>,
        customer: InputSession<Time, (u32, u32), isize>,
    },
    Q3 {
        customer: InputSession<Time, u32, isize>,
        orders: InputSession<Time, (u32, (u32, u32, u32)), isize>,
        lineitem: InputSession<Time, u32, isize>,
    },
}

/// Calls an action on each input of a view.
macro_rules! each {
    ($inputs:expr, $input:ident => $action:expr) => {
        match $inputs {
            Inputs::Edges($input) => $action,
            Inputs::Star { sale, product, store, customer } => {
                { let $input = sale; $action }
                { let $input = product; $action }
                { let $input = store; $action }
                { let $input = customer; $action }
            }
            Inputs::Q3 { customer, orders, lineitem } => {
                { let $input = customer; $action }
                { let $input = orders; $action }
                { let $input = lineitem; $action }
            }
        }
    };
}

const BUILDING: i64 = 1;
const DAY: i64 = 9204; // 1995-03-15

impl Inputs {
    fn update(&mut self, table: usize, sign: i64, row: &[i64]) {
        let one = sign as isize;
        let key = row[0] as u32;
        match self {
            Inputs::Edges(edges) => edges.update((key, row[1] as u32), one),
            Inputs::Star { sale, product, store, customer } => match table {
                0 => sale.update((row[1] as u32, (row[2] as u32, row[3] as u32)), Sum(sign * row[4], sign)),
                1 => product.update((key, row[1] as u32), Sum(sign * row[2], sign)),
                2 => store.update((key, row[1] as u32), one),
                _ => customer.update((key, row[1] as u32), one),
            },
            Inputs::Q3 { customer, orders, lineitem } => match table {
                0 if row[1] == BUILDING => customer.update(key, one),
                1 if row[2] < DAY => orders.update((row[1] as u32, (key, row[2] as u32, row[3] as u32)), one),
                // Revenues are positive: a sum is zero only where there is no item.
                2 if row[4] > DAY => lineitem.update(key, one * (row[2] * (100 - row[3])) as isize),
                _ => {}
            },
        }
    }
}

type Answer = Box<dyn Fn() -> Vec<Vec<i64>>>;

struct Dataflow<'a> {
    worker: &'a mut Worker,
    inputs: Inputs,
    probe: ProbeHandle<Time>,
    time: Time,
    answer: Answer,
}

impl View for Dataflow<'_> {
    fn batch(&mut self, table: usize, sign: i64, columns: usize, rows: &[i64]) {
        for row in rows.chunks_exact(columns) {
            self.inputs.update(table, sign, row);
        }
        self.time += 1;
        let time = self.time;
        each!(&mut self.inputs, input => {
            input.advance_to(time);
            input.flush();
        });
        let probe = &self.probe;
        self.worker.step_while(|| probe.less_than(&time));
    }

    fn rows(&mut self) -> Vec<Vec<i64>> {
        (self.answer)()
    }
}

/// The one row of a count: it is 0 where nothing was emitted.
fn counted(rows: Rows<((), isize)>) -> Answer {
    Box::new(move || {
        let rows = rows.borrow();
        vec![vec![rows.keys().next().map_or(0, |(_, count)| *count as i64)]]
    })
}

/// The sum over nodes of edges in times edges out: both are arranged as differences.
fn two_hop(worker: &mut Worker, probe: &ProbeHandle<Time>) -> (Inputs, Answer) {
    worker.dataflow(|scope| {
        let (input, edges) = scope.new_collection::<Edge, isize>();
        let into = edges.clone().map(|(_, b)| b).arrange_by_self();
        let out = edges.map(|(a, _)| a).arrange_by_self();
        let count = into.join_core(out, |_, _, _| Some(())).count_total();
        (Inputs::Edges(input), counted(kept(count, probe)))
    })
}

/// Edges into b pass along (b, c) and are summed at c; there they meet the edges out.
fn three_hop(worker: &mut Worker, probe: &ProbeHandle<Time>) -> (Inputs, Answer) {
    worker.dataflow(|scope| {
        let (input, edges) = scope.new_collection::<Edge, isize>();
        let into = edges.clone().map(|(_, b)| b).arrange_by_self();
        let out = edges.clone().map(|(a, _)| a).arrange_by_self();
        let paths = into.join_core(edges.arrange_by_key(), |_, _, c| Some(*c)).arrange_by_self();
        let count = paths.join_core(out, |_, _, _| Some(())).count_total();
        (Inputs::Edges(input), counted(kept(count, probe)))
    })
}

/// A delta query over two arrangements: no path of two edges is stored.
fn triangle(worker: &mut Worker, probe: &ProbeHandle<Time>) -> (Inputs, Answer) {
    worker.dataflow::<Time, _, _>(|scope| {
        let (input, edges) = scope.new_collection::<Edge, isize>();
        let forward = edges.clone().arrange_by_key();
        let reverse = edges.clone().map(|(a, b)| (b, a)).arrange_by_self();
        let closed = scope.scoped::<AltNeu<Time>, _, _>("triangles", |inner| {
            let changes = edges.enter(inner);
            let before = |time: &AltNeu<Time>| time.time.saturating_sub(1);
            let forward_alt = forward.clone().enter_at(inner, |_, _, t| AltNeu::alt(*t), before);
            let forward_neu = forward.enter_at(inner, |_, _, t| AltNeu::neu(*t), before);
            let reverse_alt = reverse.clone().enter_at(inner, |_, _, t| AltNeu::alt(*t), before);
            let reverse_neu = reverse.enter_at(inner, |_, _, t| AltNeu::neu(*t), before);
            let first = |edge: &Edge| edge.0;
            let second = |edge: &Edge| edge.1;
            // E1(a, b), E2(b, c), E3(c, a): a change of one meets those before it as they are, those after it as they
            // were. From an edge (x, y) go on from y, and look the edge back to x up.
            let of_1 = validate(propose(changes.clone(), forward_neu.clone(), second), reverse_neu.clone(), first);
            let of_2 = validate(propose(changes.clone(), forward_neu, second), reverse_alt.clone(), first);
            let of_3 = validate(propose(changes, forward_alt, second), reverse_alt, first);
            of_1.concat(of_2).concat(of_3).map(|_| ()).leave(scope)
        });
        (Inputs::Edges(input), counted(kept(closed.count_total(), probe)))
    })
}

/// Sales meet product, store and customer in turn. Quantity times price is the difference from the first join on.
fn star(worker: &mut Worker, probe: &ProbeHandle<Time>) -> (Inputs, Answer) {
    worker.dataflow(|scope| {
        let (sale, sales) = scope.new_collection::<(u32, (u32, u32)), Sum>();
        let (product, products) = scope.new_collection::<(u32, u32), Sum>();
        let (store, stores) = scope.new_collection::<(u32, u32), isize>();
        let (customer, customers) = scope.new_collection::<(u32, u32), isize>();
        let groups = sales
            .arrange_by_key()
            .join_core(products.arrange_by_key(), |_, (store, customer), category| Some((*store, (*customer, *category))))
            .arrange_by_key()
            .join_core(stores.arrange_by_key(), |_, (customer, category), region| Some((*customer, (*category, *region))))
            .arrange_by_key()
            .join_core(customers.arrange_by_key(), |_, (category, region), segment| Some((*category, *region, *segment)))
            .count_total();
        let rows = kept(groups, probe);
        let answer: Answer = Box::new(move || {
            let rows = rows.borrow();
            rows.keys().map(|((c, r, s), sum)| vec![*c as i64, *r as i64, *s as i64, sum.0, sum.1]).collect()
        });
        (Inputs::Star { sale, product, store, customer }, answer)
    })
}

/// Orders of the customers meet the revenue, which is the difference of an item's order.
fn q3(worker: &mut Worker, probe: &ProbeHandle<Time>) -> (Inputs, Answer) {
    worker.dataflow(|scope| {
        let (customer, customers) = scope.new_collection::<u32, isize>();
        let (orders, ordered) = scope.new_collection::<(u32, (u32, u32, u32)), isize>();
        let (lineitem, items) = scope.new_collection::<u32, isize>();
        let groups = ordered
            .arrange_by_key()
            .join_core(customers.arrange_by_self(), |_, (order, date, priority), _| Some((*order, (*date, *priority))))
            .arrange_by_key()
            .join_core(items.arrange_by_self(), |order, (date, priority), _| Some((*order, *date, *priority)))
            .count_total();
        let rows = kept(groups, probe);
        let answer: Answer = Box::new(move || {
            let rows = rows.borrow();
            rows.keys().map(|((o, date, priority), sum)| vec![*o as i64, *sum as i64, *date as i64, *priority as i64]).collect()
        });
        (Inputs::Q3 { customer, orders, lineitem }, answer)
    })
}

fn main() {
    let given = Given::read();
    timely::execute_directly(move |worker| {
        let probe = ProbeHandle::new();
        let (inputs, answer) = match given.view.as_str() {
            "2-hop" => two_hop(worker, &probe),
            "3-hop" => three_hop(worker, &probe),
            "triangle" => triangle(worker, &probe),
            "star" => star(worker, &probe),
            "q3" => q3(worker, &probe),
            other => panic!("there is no view {other}"),
        };
        let mut view = Dataflow { worker, inputs, probe, time: 0, answer };
        // Time 0 has no rows: the traces of a delta query ask for the time before.
        view.batch(0, 1, 1, &[]);
        given.run(&mut view);
        // The dataflow is not taken apart: that is not part of what is measured.
        std::process::exit(0);
    });
}
