//! Whether a world kept the pace: the account's over all processes, and the campaign's own.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::life::ProcessLife;
use super::story::SimulatedWorld;

impl SimulatedWorld {
    /// Measures the pace of the account over all processes; that of the campaign within each, or over all of them where they
    /// send it together.
    pub(super) fn measure_rates(&self) {
        let processes = self.processes.lock().unwrap();
        let plan = &self.plan;
        let largest = |rate: f64| plan.batch.min((rate as usize).max(1)) as f64;
        // A process that is suspended may have had an envelope between its gate and the socket.
        let held = |life: &Arc<ProcessLife>| if life.was_suspended() { 1.0 } else { 0.0 };
        let largest = largest(plan.rate.unwrap_or(f64::INFINITY));
        // Together with others a process has no gate: each of its envelopes may be late by itself, before one in time.
        let late = if plan.sharing.is_some() { 1.0 + plan.in_flight as f64 } else { 1.0 };
        // A clock that is set forward forgets what is booked ahead.
        let forgotten = if self.clock_set.load(Ordering::Relaxed) { late } else { 0.0 };
        let spare: Vec<f64> = processes.iter().map(|life| (late + held(life) + forgotten) * largest).collect();
        if let Some(rate) = plan.account_rate {
            self.judge.measure_rate(rate, None, &spare);
        }
        match plan.rate {
            Some(rate) if plan.sharing.is_none() => {
                (0..processes.len()).for_each(|process| self.judge.measure_rate(rate, Some(process), &spare));
            }
            Some(rate) if !self.sent_whole.load(Ordering::Relaxed) => self.judge.measure_rate(rate, None, &spare),
            _ => {}
        }
    }
}
