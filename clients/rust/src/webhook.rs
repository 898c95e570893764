use std::time::{SystemTime, UNIX_EPOCH};

use base64::prelude::{Engine, BASE64_STANDARD};
use hmac::{Hmac, Mac};
use reqwest::header::HeaderMap;
use serde_json::{Map, Value};
use sha2::Sha256;

use crate::errors::Error;
use crate::types::Event;

const TOLERANCE: u64 = 5 * 60; // seconds
const LEAST_SECRET: usize = 24; // bytes

/// Returns the event of a delivery that is signed with one of the secrets, as Standard Webhooks 1.0
/// says, and not older or newer than five minutes. While you rotate a secret, give both. `body` has
/// to be as it came, before anything parses it.
///
/// A delivery may come again, also from an attacker within the five minutes: skip an event whose
/// `webhook-id` you have seen. The error has the code `bad_webhook`; answer it with 400.
pub fn verify_webhook<S: AsRef<str>>(
    headers: &HeaderMap,
    body: &[u8],
    secrets: &[S],
) -> Result<Event, Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    verify_at(now.as_secs(), headers, body, secrets)
}

/// Verifies a delivery at a time in seconds since 1970.
pub fn verify_at<S: AsRef<str>>(
    now: u64,
    headers: &HeaderMap,
    body: &[u8],
    secrets: &[S],
) -> Result<Event, Error> {
    verify_signature(now, headers, body, secrets).map_err(|why| Error::BadWebhook(why.into()))?;
    event(body).map_err(|e| Error::BadWebhook(format!("it has no event: {e}")))
}

/// Reads an event. By themselves its types read lists, too, and have defaults.
fn event(body: &[u8]) -> serde_json::Result<Event> {
    let all: Map<String, Value> = serde_json::from_slice(body)?;
    if let Some(name) = ["id", "type", "timestamp", "data"].iter().find(|n| !all.contains_key(**n))
    {
        return Err(serde::de::Error::missing_field(name));
    }
    serde_json::from_value(all.into())
}

/// Returns why a delivery is refused.
fn verify_signature<S: AsRef<str>>(
    now: u64,
    headers: &HeaderMap,
    body: &[u8],
    secrets: &[S],
) -> Result<(), &'static str> {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp"));
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    if id.is_empty() || id.len() > 64 || !id.bytes().all(word) {
        return Err("its id is not valid"); // its dots could move what is signed
    }
    match timestamp.parse::<u64>() {
        Ok(sent) if !timestamp.starts_with('+') && now.abs_diff(sent) <= TOLERANCE => {}
        _ => return Err("its timestamp is not of now"),
    }
    for secret in secrets {
        let secret = secret.as_ref();
        let key = BASE64_STANDARD.decode(secret.strip_prefix("whsec_").unwrap_or(secret));
        let key =
            key.ok().filter(|key| key.len() >= LEAST_SECRET).ok_or("a secret is not valid")?;
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).map_err(|_| "a secret is not valid")?;
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            mac.update(part);
        }
        for signature in header("webhook-signature").split_ascii_whitespace() {
            let signature =
                signature.strip_prefix("v1,").and_then(|text| BASE64_STANDARD.decode(text).ok());
            // Compares in constant time.
            if signature.is_some_and(|signature| mac.clone().verify_slice(&signature).is_ok()) {
                return Ok(());
            }
        }
    }
    Err("no signature is of these secrets")
}
