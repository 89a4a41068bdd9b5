//! Tables of numbers, each also as a multiple of the first.

/// A table of one measure.
pub(crate) struct Table {
    rows: Vec<(&'static str, f64)>,
    what: &'static str,
}

impl Table {
    pub(crate) fn new(what: &'static str) -> Self {
        Self {
            rows: Vec::new(),
            what,
        }
    }

    pub(crate) fn row(&mut self, name: &'static str, value: f64) {
        self.rows.push((name, value));
    }

    pub(crate) fn print(&self) {
        println!("\n{}", self.what);
        let first = self.rows.first().map_or(1.0, |row| row.1);
        for (name, value) in &self.rows {
            println!("  {name:<28} {value:>12.1}   x {:.2}", value / first);
        }
    }
}

/// The median; of two middle values, the lower one.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) / 2]
}
