//! Bit flips in ledger files: no recipient gets a second message, and losses are reported.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::state::{copy_folder, restore_folder};
use super::witness::Witness;
use crate::support::{Chance, Folder, campaign, in_files, note_on_failure, phone};

/// The number of recipients of each campaign, in envelopes of 1, then 5.
const RECIPIENTS: usize = 60;
/// The number of bits flipped in each story; the four stories flip 300.
const FLIPS: usize = 75;

/// How the run ended before a bit of its ledger flips.
#[derive(Clone, Copy, Debug)]
struct RunEnd {
    /// The options of the last start.
    options: &'static [&'static str],
    /// The failpoint at which the run died, if it did. Its writes are then in the write-ahead log.
    failpoint: Option<&'static str>,
}

const FINISHED: RunEnd = RunEnd { options: &[], failpoint: None };
const STOPPED: RunEnd = RunEnd { options: &["--limit", "31"], failpoint: None };
const KILLED_AT_THE_END: RunEnd = RunEnd { options: &[], failpoint: Some("run.marked:1") };
const KILLED: RunEnd = RunEnd { options: &[], failpoint: Some("outcome.kept:8") };

impl RunEnd {
    /// The files in which bits flip. A file that is named more often is chosen more often.
    fn files(self) -> &'static [&'static str] {
        match self.failpoint {
            Some(_) => &["ledger.sqlite-wal"],
            None => &["ledger.sqlite", "ledger.sqlite", "ledger.sqlite", "ledger.mark"],
        }
    }

    /// A campaign whose run ended this way, with copies of its state and results.
    fn set_up(self) -> (Witness, Folder) {
        let witness = Witness::start();
        let sale = campaign().to(RECIPIENTS).batches_of(5).one_at_a_time().through(&witness).write();
        match self.failpoint {
            None => drop(sale.run(self.options)),
            Some(point) => {
                let mut command = sale.command(&[&["run", "sale.yaml", "--no-wait"], self.options].concat());
                command.env("CAMPAIGN_FAILPOINT", point);
                crate::support::Process::start(command).finish().says("went off");
            }
        }
        assert!(witness.arrivals() > 10, "{self:?}: too few messages were sent");
        copy_folder(&sale.path("state"), &sale.path("kept/state"));
        if sale.path("results").exists() {
            copy_folder(&sale.path("results"), &sale.path("kept/results"));
        }
        (witness, sale)
    }

    /// Flips this number of bits, one at a time, each in the undamaged files, and checks the run after each flip.
    fn flip_bits(self, flips: usize, chance: &mut Chance) {
        let (witness, sale) = self.set_up();
        let all_recipients: BTreeSet<u64> = (2..RECIPIENTS + 2).map(phone).collect();
        let with_message: BTreeSet<u64> = witness.phones().into_iter().collect();
        for _ in 0..flips {
            let flipped = flip_bit(&sale.path("state"), self.files(), chance);
            let _case = note_on_failure(format!("{self:?}, {flipped}"));
            let before = witness.arrivals();
            let run = sale.run(&[]);
            let new = witness.phones().split_off(before);
            let repeated: BTreeSet<&u64> = new.iter().filter(|phone| with_message.contains(phone)).collect();
            assert!(repeated.is_empty(), "{} recipients got a second message\n{}", repeated.len(), run.details());
            let new: BTreeSet<u64> = new.into_iter().collect();
            match run.code() {
                // The damage lost no record: the run sends the missing messages.
                Some(0 | 6) => assert_eq!(&with_message | &new, all_recipients, "{}", run.details()),
                // The run reports rows in doubt.
                Some(4 | 5) => assert!(run.details().contains("in doubt"), "{}", run.details()),
                Some(2 | 74) => assert!(!run.stderr.is_empty() && new.is_empty(), "{}", run.details()),
                _ => panic!("{}", run.details()),
            }
            restore_folder(&sale.path("kept/state"), &sale.path("state"));
            if sale.path("kept/results").exists() {
                restore_folder(&sale.path("kept/results"), &sale.path("results"));
            } else {
                // This run might have written the first results.
                let _ = fs::remove_dir_all(sale.path("results"));
            }
        }
    }
}

/// Flips a random bit in one of these files, and returns a description of the bit.
fn flip_bit(state: &Path, files: &[&str], chance: &mut Chance) -> String {
    let file = files[chance.below(files.len() as u64) as usize];
    let mut bytes = fs::read(state.join(file)).expect("a file of the ledger");
    let (byte, bit) = (chance.below(bytes.len() as u64) as usize, chance.below(8));
    bytes[byte] ^= 1 << bit;
    fs::write(state.join(file), bytes).expect("a file of the ledger");
    format!("bit {bit} of byte {byte} of {file}")
}

#[test]
fn flipped_bit_in_ledger_of_finished_run_causes_no_duplicates() {
    let _files = in_files();
    FINISHED.flip_bits(FLIPS, &mut Chance::seeded());
}

#[test]
fn flipped_bit_in_ledger_of_stopped_run_causes_no_duplicates() {
    let _files = in_files();
    STOPPED.flip_bits(FLIPS, &mut Chance::seeded());
}

#[test]
fn flipped_bit_in_wal_of_finished_run_causes_no_duplicates() {
    let _files = in_files();
    KILLED_AT_THE_END.flip_bits(FLIPS, &mut Chance::seeded());
}

#[test]
fn flipped_bit_in_wal_of_killed_run_causes_no_duplicates() {
    let _files = in_files();
    KILLED.flip_bits(FLIPS, &mut Chance::seeded());
}

#[test]
#[ignore = "takes a quarter of an hour"]
fn three_thousand_bit_flips_send_nothing_twice() {
    for run_end in [FINISHED, STOPPED, KILLED_AT_THE_END, KILLED] {
        run_end.flip_bits(750, &mut Chance::seeded());
    }
}
