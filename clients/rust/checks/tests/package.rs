//! The package is what its registry wants.

use std::process::Command;

use serde_json::Value;

/// The numbers of a version, without zeros at the end: 1.85.0 is 1.85.
fn version(text: &str) -> Vec<u32> {
    let mut parts: Vec<u32> = text.split('.').map(|part| part.parse().unwrap()).collect();
    while parts.last() == Some(&0) {
        parts.pop();
    }
    parts
}

/// Cargo.lock has no dependency that needs a later Rust than the crate says.
#[test]
fn the_least_version_of_rust_is_enough_for_all_dependencies() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--locked", "--format-version", "1"]);
    let metadata: Value = serde_json::from_slice(&cargo.output().unwrap().stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let own = packages.iter().find(|package| package["name"] == "fencepost").unwrap();
    for field in ["description", "license", "repository", "readme"] {
        assert!(own[field].is_string(), "{field}");
    }
    let least = version(own["rust_version"].as_str().unwrap());
    for package in packages {
        if let Some(needs) = package["rust_version"].as_str() {
            assert!(version(needs) <= least, "{} needs {needs}", package["name"]);
        }
    }
}
