//! Counts the repeated runs of a test program, and makes its exit code.

use std::process::ExitCode;

/// The results so far.
#[derive(Debug, Default)]
pub struct Rounds {
    runs: usize,
    wrong: usize,
}

impl Rounds {
    /// Counts a run, and prints its problems.
    pub fn record(&mut self, wrong: &[String]) {
        self.runs += 1;
        self.wrong += usize::from(!wrong.is_empty());
        for line in wrong {
            print(&format!("  WRONG: {line}"));
        }
    }

    /// Prints the totals. The exit code is 1 if any run had problems.
    pub fn exit_code(&self) -> ExitCode {
        print(&format!("{} runs, {} wrong", self.runs, self.wrong));
        ExitCode::from(u8::from(self.wrong > 0))
    }
}

#[expect(clippy::print_stdout, reason = "the output of the programs")]
fn print(line: &str) {
    println!("{line}");
}
