//! Comparison of two programs that do the same work.

use crate::process::Figures;

/// Runs both programs in alternation. Prints the figures of each run, and then the median ratios of the pairs.
pub(crate) fn compare(
    rounds: u64,
    (name, product): (&str, impl Fn() -> Figures),
    (other_name, other): (&str, impl Fn() -> Figures),
) {
    print_header();
    let mut pairs = Vec::new();
    for _ in 0..rounds {
        let product = product();
        print_row(name, &product);
        let other = other();
        print_row(other_name, &other);
        pairs.push((product, other));
    }
    let throughput = median(pairs.iter().map(|(product, other)| product.rate() / other.rate()).collect());
    let cpu = median(pairs.iter().map(|(product, other)| product.cpu_per_row() / other.cpu_per_row()).collect());
    println!("\n{name} / {other_name}, median of the pairs: {throughput:.2} × throughput, {cpu:.2} × CPU per message");
}

/// Prints the table header.
pub(crate) fn print_header() {
    println!("{:<8} {:>12} {:>14} {:>12} {:>8}", "", "messages/s", "CPU µs/msg", "peak MiB", "cores");
}

/// Prints a table row.
pub(crate) fn print_row(name: &str, figures: &Figures) {
    let cores = figures.cpu.as_secs_f64() / figures.wall.as_secs_f64();
    let mib = figures.peak_kib as f64 / 1024.0;
    println!("{name:<8} {:>12.0} {:>14.2} {mib:>12.1} {cores:>8.2}", figures.rate(), figures.cpu_per_row());
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
