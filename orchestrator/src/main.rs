//! The program `os-upgrade`. What it does lives in the library; see [`os_upgrade_orchestrator::cli`].

fn main() -> std::process::ExitCode {
    os_upgrade_orchestrator::cli::main()
}
