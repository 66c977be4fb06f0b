//! Runs of a program that tries the same thing for as long as it is told to, and ends with whether anything was wrong.

use std::process::ExitCode;

/// What has come of the runs so far.
#[derive(Debug, Default)]
pub struct Rounds {
    runs: usize,
    wrong: usize,
}

impl Rounds {
    /// Counts a run, and prints what was wrong with it.
    pub fn ended(&mut self, wrong: &[String]) {
        self.runs += 1;
        self.wrong += usize::from(!wrong.is_empty());
        for line in wrong {
            say(&format!("  WRONG: {line}"));
        }
    }

    /// Prints the sum. The exit code is 1 when anything was wrong.
    pub fn exit_code(&self) -> ExitCode {
        say(&format!("{} runs, {} wrong", self.runs, self.wrong));
        ExitCode::from(u8::from(self.wrong > 0))
    }
}

#[expect(clippy::print_stdout, reason = "the output of the programs")]
fn say(line: &str) {
    println!("{line}");
}
