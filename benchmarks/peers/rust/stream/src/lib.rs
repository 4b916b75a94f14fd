//! Runs a view over the stream of a file. benchmarks/peers/programs.py describes the files and the output.

use std::io::Write;
use std::time::Instant;

/// A view that is maintained batch by batch.
pub trait View {
    /// Applies a batch: the rows of one table, all inserted (`sign` 1) or all deleted (-1), `columns` words each.
    fn batch(&mut self, table: usize, sign: i64, columns: usize, rows: &[i64]);
    /// The rows of the view.
    fn rows(&mut self) -> Vec<Vec<i64>>;
}

/// The arguments VIEW STREAM TIMES LIMIT, and the words of the stream.
pub struct Given {
    pub view: String,
    times: String,
    limit: f64,
    words: Vec<i64>,
}

impl Given {
    pub fn read() -> Self {
        let given: Vec<String> = std::env::args().skip(1).collect();
        let [view, stream, times, limit] = &given[..] else {
            panic!("VIEW STREAM TIMES LIMIT are needed");
        };
        let bytes = std::fs::read(stream).expect("the stream can be read");
        Given {
            view: view.clone(),
            times: times.clone(),
            limit: limit.parse().expect("the limit is in seconds"),
            words: bytes.chunks_exact(8).map(|word| i64::from_le_bytes(word.try_into().unwrap())).collect(),
        }
    }

    /// Takes a view through the stream; prints its answers and the CPU time, writes the times of the steps.
    pub fn run(self, view: &mut impl View) {
        let words = &self.words;
        let (steps, before) = (words[0] as usize, words[1] as usize);
        let mut at = 2;
        let mut taken: Vec<i64> = Vec::with_capacity(steps);
        let mut out = std::io::BufWriter::new(std::io::stdout());
        let mut cpu = 0;
        let mut begun = Instant::now();
        let mut cpu_since = spent();
        let mut since = Instant::now();
        for i in 0..steps {
            if i == before {
                begun = Instant::now();
                cpu_since = spent();
                since = begun;
            }
            let [table, sign, rows, columns, compared] = words[at..at + 5] else { unreachable!() };
            at += 5;
            let end = at + (rows * columns) as usize;
            view.batch(table as usize, sign, columns as usize, &words[at..end]);
            at = end;
            let then = Instant::now();
            taken.push((then - since).as_nanos() as i64);
            since = then;
            if compared == 1 {
                if i >= before {
                    cpu += spent() - cpu_since;
                }
                let found = view.rows();
                writeln!(out, "at {i} {}", found.len()).unwrap();
                for row in found {
                    let texts: Vec<String> = row.iter().map(i64::to_string).collect();
                    writeln!(out, "{}", texts.join(" ")).unwrap();
                }
                cpu_since = spent();
                since = Instant::now();
            } else if i >= before && (then - begun).as_secs_f64() > self.limit {
                cpu += spent() - cpu_since;
                break;
            }
        }
        writeln!(out, "cpu {cpu}").unwrap();
        out.flush().unwrap();
        let bytes: Vec<u8> = taken.iter().flat_map(|time| time.to_le_bytes()).collect();
        std::fs::write(&self.times, bytes).expect("the times can be written");
    }
}

/// Nanoseconds of CPU time of all threads.
fn spent() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
