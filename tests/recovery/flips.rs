//! A bit that flips in the files of a ledger: nobody gets a second message, and what is lost is said.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::state::{copy_folder, put_back};
use super::witness::Witness;
use crate::support::{Chance, Folder, campaign, in_files, phone, telling};

/// How many people the campaigns go to, in envelopes of 1 and then of 5.
const PEOPLE: usize = 60;
/// How many bits are flipped in each story; the four of them add up to 300.
const FLIPS: usize = 75;

/// How the run ended before a bit of its ledger flips.
#[derive(Clone, Copy, Debug)]
struct Ended {
    /// The options of its last start.
    options: &'static [&'static str],
    /// Where it died, if it did: what it wrote is in the log then.
    died: Option<&'static str>,
}

const FINISHED: Ended = Ended { options: &[], died: None };
const STOPPED: Ended = Ended { options: &["--limit", "31"], died: None };
const KILLED_AT_THE_END: Ended = Ended { options: &[], died: Some("run.marked:1") };
const KILLED: Ended = Ended { options: &[], died: Some("outcome.kept:8") };

impl Ended {
    /// The files in which bits flip.
    fn files(self) -> &'static [&'static str] {
        match self.died {
            Some(_) => &["ledger.sqlite-wal"],
            None => &["ledger.sqlite", "ledger.sqlite", "ledger.sqlite", "ledger.mark"],
        }
    }

    /// A campaign whose run ended like this, with everything in its folder kept aside.
    fn scene(self) -> (Witness, Folder) {
        let witness = Witness::start();
        let sale = campaign().to(PEOPLE).batches_of(5).one_at_a_time().through(&witness).write();
        match self.died {
            None => drop(sale.run(self.options)),
            Some(point) => {
                let mut command = sale.command(&[&["run", "sale.yaml", "--no-wait"], self.options].concat());
                command.env("CAMPAIGN_FAILPOINT", point);
                crate::support::Process::start(command).finish().says("went off");
            }
        }
        assert!(witness.arrived() > 10, "{self:?}: too little was sent to lose any of it");
        copy_folder(&sale.path("state"), &sale.path("kept/state"));
        if sale.path("results").exists() {
            copy_folder(&sale.path("results"), &sale.path("kept/results"));
        }
        (witness, sale)
    }

    /// Flips so many bits, one after another, each in the files as they were.
    fn survives(self, flips: usize, chance: &mut Chance) {
        let (witness, sale) = self.scene();
        let (everybody, had): (BTreeSet<u64>, BTreeSet<u64>) =
            ((2..PEOPLE + 2).map(phone).collect(), witness.phones().into_iter().collect());
        for _ in 0..flips {
            let told = flip(&sale.path("state"), self.files(), chance);
            let _case = telling(format!("{self:?}, {told}"));
            let before = witness.arrived();
            let run = sale.run(&[]);
            let new = witness.phones().split_off(before);
            let again: BTreeSet<&u64> = new.iter().filter(|phone| had.contains(phone)).collect();
            assert!(again.is_empty(), "{} got a second message\n{}", again.len(), run.told());
            let new: BTreeSet<u64> = new.into_iter().collect();
            match run.code() {
                // Nothing was lost: who had no message has one now.
                Some(0 | 6) => assert_eq!(&had | &new, everybody, "{}", run.told()),
                // Some rows are in doubt, and that is said.
                Some(4 | 5) => assert!(run.told().contains("in doubt"), "{}", run.told()),
                Some(2 | 74) => assert!(!run.stderr.is_empty() && new.is_empty(), "{}", run.told()),
                _ => panic!("{}", run.told()),
            }
            put_back(&sale.path("kept/state"), &sale.path("state"));
            if sale.path("kept/results").exists() {
                put_back(&sale.path("kept/results"), &sale.path("results"));
            } else {
                // The trial may have written the first ones.
                let _ = fs::remove_dir_all(sale.path("results"));
            }
        }
    }
}

/// Flips a bit of one of these files, and tells which.
fn flip(state: &Path, files: &[&str], chance: &mut Chance) -> String {
    let file = files[chance.below(files.len() as u64) as usize];
    let mut bytes = fs::read(state.join(file)).expect("a file of the ledger");
    let (byte, bit) = (chance.below(bytes.len() as u64) as usize, chance.below(8));
    bytes[byte] ^= 1 << bit;
    fs::write(state.join(file), bytes).expect("a file of the ledger");
    format!("bit {bit} of byte {byte} of {file}")
}

#[test]
fn flipped_bit_in_ledger_of_finished_run_sends_nothing_twice() {
    let _files = in_files();
    FINISHED.survives(FLIPS, &mut Chance::seeded());
}

#[test]
fn flipped_bit_in_ledger_of_stopped_run_sends_nothing_twice() {
    let _files = in_files();
    STOPPED.survives(FLIPS, &mut Chance::seeded());
}

#[test]
fn flipped_bit_in_log_of_finished_run_sends_nothing_twice() {
    let _files = in_files();
    KILLED_AT_THE_END.survives(FLIPS, &mut Chance::seeded());
}

#[test]
fn flipped_bit_in_log_of_killed_run_sends_nothing_twice() {
    let _files = in_files();
    KILLED.survives(FLIPS, &mut Chance::seeded());
}

#[test]
#[ignore = "takes a quarter of an hour"]
fn three_thousand_bits_that_flip_send_nothing_twice() {
    for ended in [FINISHED, STOPPED, KILLED_AT_THE_END, KILLED] {
        ended.survives(750, &mut Chance::seeded());
    }
}
