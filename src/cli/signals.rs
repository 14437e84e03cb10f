//! Signals become interrupts: the first asks to stop, the second to leave at once.

use tokio::sync::watch;

use crate::delivery::Interrupt;

/// Listens for SIGINT, SIGTERM and SIGHUP for the rest of the process.
///
/// # Errors
/// When the system does not let the process listen.
#[cfg(unix)]
pub(super) fn watch_signals() -> std::io::Result<watch::Receiver<Interrupt>> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // Under `nohup` a hang-up is ignored, and stays so.
    let mut hangup = if is_ignored(1) { None } else { Some(signal(SignalKind::hangup())?) };
    let (sender, receiver) = watch::channel(Interrupt::None);
    tokio::spawn(async move {
        loop {
            let number = tokio::select! {
                _ = interrupt.recv() => 2,
                _ = terminate.recv() => 15,
                _ = async { match &mut hangup {
                    Some(hangup) => hangup.recv().await,
                    None => std::future::pending().await,
                } } => 1,
            };
            sender.send_modify(|state| *state = next_interrupt(*state, number));
        }
    });
    Ok(receiver)
}

/// Whether the process was started with this signal ignored, as far as the system tells.
#[cfg(unix)]
fn is_ignored(signal: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Listens for Ctrl-C for the rest of the process.
///
/// # Errors
/// Never.
#[cfg(not(unix))]
pub(super) fn listen() -> std::io::Result<watch::Receiver<Interrupt>> {
    let (sender, receiver) = watch::channel(Interrupt::None);
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            sender.send_modify(|state| *state = next_interrupt(*state, 2));
        }
    });
    Ok(receiver)
}

fn next_interrupt(state: Interrupt, number: u8) -> Interrupt {
    match state {
        Interrupt::None => Interrupt::Graceful(number),
        Interrupt::Graceful(_) | Interrupt::Immediate(_) => Interrupt::Immediate(number),
    }
}
