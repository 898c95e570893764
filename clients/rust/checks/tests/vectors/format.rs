//! The format of vectors, which clients/vectors/README.md explains. Unknown fields are errors.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

pub type Bodies = HashMap<String, Value>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vector {
    pub name: String,
    #[serde(rename = "about")]
    pub _about: String,
    #[serde(default)]
    pub config: Config,
    pub steps: Vec<Step>,
    pub server: Vec<Exchange>,
    pub until: f64,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub urls: Option<Vec<String>>,
    pub retry_for: Option<f64>,
    pub clock: String,
    pub traceparent: Option<String>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Step {
    pub at: f64,
    #[serde(rename = "do")]
    pub what: String,
    #[serde(rename = "as")]
    pub name_of_call: String,
    pub of: String,

    pub name: String,
    pub claims: Vec<Claim>,
    pub any: usize,
    pub ttl: Option<f64>,
    pub wait: Option<f64>,
    pub mode: Option<String>,
    pub limit: Option<u32>,
    pub permits: Option<u32>,
    pub holder: Option<String>,
    pub metadata: BTreeMap<String, String>,
    pub request_release: Option<f64>,
    pub margin: Option<f64>,
    pub at_least: Option<f64>,
    pub only_newest: bool,
    pub callback_url: Option<String>,
    pub token: String,
    pub event: Value,

    pub prefix: Option<String>,
    pub state: Option<String>,
    pub types: Option<Vec<String>>,
    pub locks: Option<Vec<String>>,
    pub after: Option<String>,
    pub fence_presented: u64,
    pub fence_known: u64,
    pub resource: String,
    pub secrets: Vec<String>,
    pub headers: BTreeMap<String, String>,
    pub payload: String,
    pub seconds: f64,
    pub now: u64,

    pub result: Option<Outcome>,
    pub lost: Option<Loss>,
    pub release_requested: Vec<Asked>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Claim {
    pub name: String,
    pub mode: Option<String>,
    pub limit: Option<u32>,
    pub permits: Option<u32>,
}

/// How a call ends. What is not named is not compared.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct Outcome {
    pub at: Bounds,
    pub error: Option<Map<String, Value>>,
    pub fence: Option<u64>,
    pub fences: Option<BTreeMap<String, u64>>,
    pub names: Option<Vec<String>>,
    pub events: Option<Vec<Seen>>,
    pub terms: Option<Vec<Term>>,
    pub waiting: Option<u64>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub id: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Loss {
    pub at: Bounds,
    pub reason: String,
    pub revoke_reason: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    pub at: Bounds,
    pub by: String,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    pub at: Bounds,
    pub id: String,
    #[serde(rename = "type")]
    pub kind: String,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Term {
    pub fence: u64,
    pub at: Bounds,
    pub ended: Bounds,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    #[serde(default)]
    pub at: Bounds,
    pub during: Option<[f64; 2]>,
    #[serde(default = "one")]
    pub least: usize,
    pub request: String,
    #[serde(default)]
    pub key: String,
    #[serde(default)]
    pub token: String,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    pub send: Option<Value>,
    #[serde(default)]
    pub status: u16,
    #[serde(default)]
    pub answer: BTreeMap<String, String>,
    pub body: Option<Value>,
    #[serde(default)]
    pub delay: f64,
    #[serde(default)]
    pub fault: String,
    pub given_up: Option<Bounds>,
    pub stream: Option<Vec<Chunk>>,
    #[serde(skip)]
    pub answered: usize,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chunk {
    pub after: f64,
    pub text: String,
}

fn one() -> usize {
    1
}

/// The bounds of a time: a number is exact to 50 ms. Without bounds any time is within.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds(pub Option<[f64; 2]>);

impl Bounds {
    pub fn include(&self, at: f64) -> bool {
        const SLACK: f64 = 0.05;
        self.0.is_none_or(|[from, to]| at >= from - SLACK && at <= to + SLACK)
    }
}

impl<'de> Deserialize<'de> for Bounds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Text {
            One(f64),
            Two([f64; 2]),
        }
        Ok(Bounds(Some(match Text::deserialize(deserializer)? {
            Text::One(at) => [at, at],
            Text::Two(bounds) => bounds,
        })))
    }
}
