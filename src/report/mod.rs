//! Projections of the ledger: the results CSV, the summary, previews.
