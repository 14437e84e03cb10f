//! Which identifiers a run, or an order to send again, may get.

use crate::domain::IdRange;

/// 2026-01-01T00:00:00Z in seconds: identifiers count days from here.
const FIRST_DAY: i64 = 1_767_225_600;

/// Ranges of `len` identifiers without end, in the order in which they are tried; the first that overlaps no other is taken.
///
/// `now` are microseconds since 1970.
pub(in crate::ledger) fn id_candidates(now: i64, random: u64, len: u64) -> impl Iterator<Item = IdRange> {
    let days = u64::try_from((now / 1_000_000 - FIRST_DAY) / 86_400).unwrap_or(0);
    let next =
        |random: &u64| Some(random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
    std::iter::successors(Some(random), next).map(move |random| IdRange::draw(days, random, len))
}
