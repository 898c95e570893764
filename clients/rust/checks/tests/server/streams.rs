use fencepost::{verify_webhook, Client};
use serde_json::Value;
use tokio::time::timeout;

use crate::receiver::Receiver;
use crate::{client, secs};

#[tokio::test]
async fn events_come_as_they_happen() {
    let client = client();
    let mut events = client.events().types(["lock.released"]).locks(["rust:events:*"]);
    let happens = tokio::spawn({
        let client = client.clone();
        async move {
            // The stream begins some time after the call.
            for i in 0.. {
                let held = client.lock(format!("rust:events:{i}")).await.unwrap();
                held.release().await.unwrap();
                tokio::time::sleep(secs(0.05)).await;
            }
        }
    });
    let mut last = 0;
    for _ in 0..5 {
        let event = timeout(secs(20.0), events.next()).await.unwrap().unwrap().unwrap();
        assert_eq!(event.kind, "lock.released");
        assert!(event.data.lock.unwrap().starts_with("rust:events:") && event.data.number > last);
        last = event.data.number;
    }
    happens.abort();
}

#[tokio::test]
async fn a_callback_reports_a_grant_that_is_claimed() {
    let (client, receiver) = (client(), Receiver::new().await);
    let secret = callback_secret().await;
    let held = client.lock("rust:async").await.unwrap();
    let pending = client.async_acquire("rust:async").callback_url(&receiver.url);
    let pending = pending.ttl(secs(15.0)).await.unwrap();
    held.release().await.unwrap();
    let (headers, body) = timeout(secs(20.0), receiver.receive("204 No Content")).await.unwrap();
    let event = verify_webhook(&headers, &body, &[secret]).unwrap();
    let entry = event.data.entry.as_ref().unwrap();
    assert_eq!((&*event.kind, &*entry.id), ("lock.acquired", pending.id()));
    let body: Value = serde_json::from_slice(&body).unwrap();
    let token = body["data"]["entry"]["token"].as_str().unwrap();
    assert!(!format!("{event:?}").contains(token));
    let claimed = client.claim(&event).await.unwrap();
    assert_eq!(Some(claimed.fence()), entry.fence);
    claimed.release().await.unwrap();
}

#[tokio::test]
async fn a_pending_entry_is_waited_for_or_leaves() {
    let client = client();
    let held = client.lock("rust:pending").await.unwrap();
    let leaves = client.async_acquire("rust:pending").await.unwrap();
    let mut waits = client.async_acquire("rust:pending").await.unwrap();
    leaves.leave().await.unwrap();
    held.release().await.unwrap();
    let next = timeout(secs(20.0), waits.wait()).await.unwrap().unwrap();
    next.release().await.unwrap();
}

/// A redirect would carry the lock's token to another server.
#[tokio::test]
async fn redirects_are_not_followed() {
    let (receiver, other) = (Receiver::new().await, Receiver::new().await);
    let answer = format!("307 Temporary Redirect\r\nLocation: {}", other.url);
    let client = Client::new(receiver.url.trim_end_matches("/granted"), "T").unwrap();
    let (_, refused) = tokio::join!(receiver.receive(&answer), client.try_lock("rust:redirect"));
    assert_eq!(refused.unwrap_err().problem().unwrap().status, 307);
    assert!(timeout(secs(0.2), other.receive("204 No Content")).await.is_err());
}

/// Makes a secret for callbacks, and returns it.
async fn callback_secret() -> String {
    let url = std::env::var("FENCEPOST_URL").unwrap() + "/webhooks/callback-secret/rotate";
    let request =
        reqwest::Client::new().post(url).bearer_auth(std::env::var("FENCEPOST_TOKEN").unwrap());
    let text = request.send().await.unwrap().text().await.unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap();
    answer["secret"].as_str().unwrap().into()
}
