//! The client does what clients/vectors says, like those in other languages.
//!
//! The runtime of a vector has one thread and a paused clock. It goes to the next timer once nothing
//! can run, which is the virtual time. A step waits some milliseconds more than it says, so that
//! what is due at the same time comes first.

mod format;
mod play;
mod server;

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;

use format::{Bodies, Vector};

#[test]
fn the_client_does_what_the_vectors_say() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors"));
    let bodies: Bodies = read(&folder.join("bodies.json"));
    let mut files: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| {
        file.extension().is_some_and(|e| e == "json") && !file.ends_with("bodies.json")
    });
    files.sort();
    let mut report =
        std::env::var("VECTORS_REPORT").ok().map(|path| std::fs::File::create(path).unwrap());
    let (mut seen, mut failed) = (HashSet::new(), 0);
    for vector in files.iter().flat_map(|file| read::<Vec<Vector>>(file)) {
        let name = vector.name.clone();
        assert!(seen.insert(name.clone()), "there are two vectors {name}");
        let faults = play::play(vector, bodies.clone());
        let outcome = if faults.is_empty() { "ok" } else { "failed" };
        if let Some(report) = &mut report {
            writeln!(report, "{name}\t{outcome}").unwrap();
        }
        for fault in &faults {
            eprintln!("{name}: {fault}");
        }
        failed += usize::from(!faults.is_empty());
    }
    assert!(seen.len() >= 40, "there are {} vectors", seen.len());
    assert_eq!(failed, 0, "of {} vectors", seen.len());
}

fn read<T: serde::de::DeserializeOwned>(file: &Path) -> T {
    let text = std::fs::read(file).unwrap();
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}
