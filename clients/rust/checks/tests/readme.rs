//! The program of the README is checks/src/bin/first_minute.rs, and does what the README says.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const README: &str = include_str!("../fencepost/README.md");
const PROGRAM: &str = include_str!("../src/bin/first_minute.rs");

#[test]
fn the_program_is_that_of_the_readme() {
    let (_, rest) = README.split_once("```rust,no_run\n").unwrap();
    let (program, _) = rest.split_once("```").unwrap();
    assert_eq!(program, PROGRAM);
    let code = program.lines().filter(|line| !line.trim().is_empty());
    assert!(code.clone().count() <= 20, "{} lines", code.count());
}

#[test]
fn the_program_names_a_variable_that_is_missing() {
    for name in ["FENCEPOST_URL", "FENCEPOST_TOKEN"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_first_minute"));
        command.envs([("FENCEPOST_URL", "http://a"), ("FENCEPOST_TOKEN", "T")]).env_remove(name);
        let output = command.output().unwrap();
        assert!(String::from_utf8_lossy(&output.stderr).contains(name), "{output:?}");
    }
}

/// Two programs run. The first holds the lock for longer than its TTL, and releases it. While the
/// second works, the server is killed.
#[test]
#[ignore = "it kills the server"]
fn the_program_holds_renews_releases_and_stops() {
    let mut first = Program::start();
    first.says("held, fence");
    let held = Instant::now();
    let mut second = Program::start();
    first.says("released");
    assert!(held.elapsed() > Duration::from_secs(6), "the lock is held for {:?}", held.elapsed());
    assert!(first.process.wait().unwrap().success());
    second.says("held, fence");
    let granted = Instant::now();
    let server = std::env::var("SERVER_PID").unwrap();
    assert!(Command::new("kill").args(["-9", &server]).status().unwrap().success());
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut second.errors, &mut rest).unwrap();
    assert!(rest.contains("orders:42") && rest.contains("deadline"), "{rest}");
    assert!(
        granted.elapsed() < Duration::from_secs(5),
        "the work goes on for {:?}",
        granted.elapsed()
    );
    assert!(!second.process.wait().unwrap().success());
}

struct Program {
    process: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    errors: std::process::ChildStderr,
}

impl Program {
    fn start() -> Program {
        let mut command = Command::new(env!("CARGO_BIN_EXE_first_minute"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let errors = process.stderr.take().unwrap();
        Program { process, lines, errors }
    }

    fn says(&mut self, what: &str) {
        let line = self.lines.next().unwrap_or(Ok(String::new())).unwrap();
        assert!(line.contains(what), "{line:?}, want {what:?}");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
    }
}
