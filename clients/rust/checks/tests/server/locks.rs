use std::future::IntoFuture;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Instant;

use fencepost::fencing::SqlGuard;
use fencepost::{Claim, Client, Error};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::{client, eventually, secs};

#[tokio::test]
async fn a_try_is_refused_by_the_holder() {
    let client = client();
    let held = client.lock("rust:try").holder("first").metadata("job", "nightly").await.unwrap();
    let refused = client.try_lock("rust:try").await.unwrap_err();
    assert!(refused.is_held(), "{refused}");
    assert_eq!(refused.problem().unwrap().holders[0].holder, "first");
    assert!(refused.problem().unwrap().retry_after.is_some());
    held.release().await.unwrap();
    held.release().await.unwrap();
    assert_eq!(held.check().unwrap_err().code(), "released");
    let next = client.try_lock("rust:try").await.unwrap();
    assert!(next.fence() > held.fence());
    next.release().await.unwrap();
}

#[tokio::test]
async fn a_name_may_have_all_allowed_characters() {
    let client = client();
    let name = "rust:a+b@c=d_e.f-G";
    let held = client.lock(name).await.unwrap();
    assert_eq!(client.look(name).await.unwrap().fence, held.fence());
    let mut list = client.list().prefix("rust:a+b").state("held");
    assert_eq!(list.next().await.unwrap().unwrap().name, name);
    assert!(list.next().await.unwrap().is_none());
    let guard = SqlGuard::new(name, 1, "db/orders");
    assert_eq!(guard.check(1), Ok(()));
    let stale = guard.check(held.fence() as i64).unwrap_err();
    assert_eq!((stale.presented, stale.known), (1, held.fence() as i64));
    stale.report(&client).await.unwrap();
    held.release().await.unwrap();
}

#[tokio::test]
async fn a_set_is_all_or_nothing() {
    let client = client();
    let set = [Claim::from("rust:set:b").shared(), Claim::from("rust:set:a")];
    let held = client.lock_set(set.clone()).await.unwrap();
    assert_eq!(held.fences().len(), 2);
    assert_eq!(held.fences()["rust:set:a"], held.fence());
    assert!(client.try_lock_set(["rust:set:a", "rust:set:c"]).await.unwrap_err().is_held());
    let free = client.try_lock("rust:set:c").await.unwrap();
    free.release().await.unwrap();
    held.release().await.unwrap();
}

#[tokio::test]
async fn readers_share_and_a_semaphore_counts() {
    let client = client();
    let first = client.lock("rust:readers").shared().await.unwrap();
    let second = client.try_lock("rust:readers").shared().await.unwrap();
    assert!(client.try_lock("rust:readers").await.unwrap_err().is_held());
    let one = client.try_lock("rust:places").semaphore(2).await.unwrap();
    let two = client.try_lock("rust:places").semaphore(2).await.unwrap();
    assert!(client.try_lock("rust:places").semaphore(2).await.unwrap_err().is_held());
    for held in [first, second, one, two] {
        held.release().await.unwrap();
    }
}

#[tokio::test]
async fn any_of_a_pool_is_taken() {
    let (client, pool) = (client(), ["rust:any:2", "rust:any:0", "rust:any:1"]);
    let first = client.lock_any(pool, 1).await.unwrap();
    assert_eq!(first.name(), pool[0]);
    let others = client.try_lock_any(pool, 2).await.unwrap();
    assert!(client.try_lock_any(pool, 1).await.unwrap_err().is_held());
    let next = tokio::spawn(client.lock_any(pool, 1).into_future());
    eventually("the wait", || async { client.look(pool[1]).await.unwrap().waiting == 1 }).await;
    others.release().await.unwrap();
    let next = next.await.unwrap().unwrap();
    assert!(next.fences().keys().eq([pool[1]]));
    next.release().await.unwrap();
    first.release().await.unwrap();
}

#[tokio::test]
async fn sixty_callers_share_a_pool() {
    let (client, pool) = (client(), ["rust:pool:0", "rust:pool:1", "rust:pool:2", "rust:pool:3"]);
    let last = Arc::new(pool.map(|_| AtomicU64::new(0)));
    let mut callers = JoinSet::new();
    for _ in 0..60 {
        let (client, last) = (client.clone(), last.clone());
        callers.spawn(async move {
            let held = client.lock_any(pool, 1).await.unwrap();
            let member = &last[pool.iter().position(|name| *name == held.name()).unwrap()];
            assert!(member.swap(held.fence(), Ordering::SeqCst) < held.fence());
            held.release().await.unwrap();
        });
    }
    assert_eq!(callers.join_all().await.len(), 60);
    assert!(last.iter().all(|fence| fence.load(Ordering::SeqCst) > 0));
}

#[tokio::test]
async fn a_semaphore_has_permits_and_each_entry_a_limit() {
    let (client, name) = (client(), "rust:permits");
    let two = client.try_lock(name).semaphore(3).permits(2).await.unwrap();
    assert!(client.try_lock(name).semaphore(3).permits(2).await.unwrap_err().is_held());
    let one = client.try_lock(name).semaphore(3).await.unwrap();
    let another = client.try_lock(name).semaphore(4).await.unwrap();
    for held in [two, one, another] {
        held.release().await.unwrap();
    }
}

#[tokio::test]
async fn only_the_newest_waits() {
    let (client, name) = (client(), "rust:newest");
    let held = client.lock(name).await.unwrap();
    let older = tokio::spawn(client.lock(name).only_newest().into_future());
    eventually("the wait", || async { client.look(name).await.unwrap().waiting == 1 }).await;
    let newer = tokio::spawn(client.lock(name).only_newest().into_future());
    assert!(older.await.unwrap().unwrap_err().is_superseded());
    held.release().await.unwrap();
    newer.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_lock_is_kept_for_its_least_time() {
    let (client, begun) = (client(), Instant::now());
    let held = client.lock("rust:least").at_least(secs(2.0)).await.unwrap();
    let fence = held.fence();
    drop(held);
    let later = client.lock("rust:least").await.unwrap();
    assert!(begun.elapsed() >= secs(2.0) && later.fence() > fence);
    later.release().await.unwrap();
}

#[tokio::test]
async fn a_wait_that_is_over_is_an_error() {
    let client = client();
    let held = client.lock("rust:wait").await.unwrap();
    let error = client.lock("rust:wait").wait(secs(1.0)).await.unwrap_err();
    assert!(error.is_wait_timeout(), "{error}");
    held.release().await.unwrap();
}

#[tokio::test]
async fn three_hundred_callers_of_one_lock_take_turns() {
    let (client, last) = (client(), Arc::new(AtomicU64::new(0)));
    let mut callers = JoinSet::new();
    for _ in 0..300 {
        let (client, last) = (client.clone(), last.clone());
        callers.spawn(async move {
            let held = client.lock("rust:one").await.unwrap();
            assert!(last.swap(held.fence(), Ordering::SeqCst) < held.fence());
            held.release().await.unwrap();
        });
    }
    assert_eq!(callers.join_all().await.len(), 300);
}

/// A connection of HTTP/2 has 250 streams. `check` runs this over TLS, too, where HTTP/2 is offered.
#[tokio::test]
async fn a_holder_renews_next_to_three_hundred_waits() {
    let client = client();
    let held = client.lock("rust:waits").ttl(secs(3.0)).await.unwrap();
    let mut waits = JoinSet::new();
    for _ in 0..300 {
        waits.spawn(client.lock("rust:waits").into_future());
    }
    eventually("the waits", || async { client.look("rust:waits").await.unwrap().waiting == 300 })
        .await;
    assert!(timeout(secs(4.0), held.lost()).await.is_err());
    waits.abort_all();
    held.release().await.unwrap();
    client.close().await;
}

/// The waits are cancelled, and leave the queue before close returns.
#[tokio::test]
async fn closing_the_client_ends_its_waits() {
    let (client, other) = (client(), client());
    let held = other.lock("rust:close:wait").await.unwrap();
    let wait = tokio::spawn(client.lock("rust:close:wait").into_future());
    let look = || async { other.look("rust:close:wait").await.unwrap().waiting };
    eventually("the waiter", || async { look().await == 1 }).await;
    client.close().await;
    assert_eq!(wait.await.unwrap().unwrap_err().code(), "cancelled");
    eventually("that it left", || async { look().await == 0 }).await;
    held.release().await.unwrap();
}

/// The process that gave it away goes on without it.
#[tokio::test]
async fn a_lock_is_adopted_by_its_token() {
    let (client, other) = (client(), client());
    let held = client.lock("rust:adopt").ttl(secs(3.0)).await.unwrap();
    client.close().await;
    let of_a_file = format!("{}\n", held.token());
    let adopted = other.adopt("rust:adopt", of_a_file).await.unwrap();
    assert_eq!(adopted.fence(), held.fence());
    assert!(timeout(secs(4.0), adopted.lost()).await.is_err());
    adopted.release().await.unwrap();
    assert!(other.adopt("rust:adopt", held.token()).await.unwrap_err().is_lost());
}

#[tokio::test]
async fn three_hundred_callers_have_three_hundred_locks() {
    let client = client();
    let mut callers = JoinSet::new();
    for i in 0..300 {
        let client = client.clone();
        callers.spawn(async move { client.lock(format!("rust:many:{i}")).await.unwrap() });
    }
    let all = callers.join_all().await;
    let mut list = client.list().prefix("rust:many:");
    for _ in 0..300 {
        assert!(list.next().await.unwrap().is_some());
    }
    let mut releases = JoinSet::new();
    for held in all {
        releases.spawn(async move { held.release().await.unwrap() });
    }
    assert_eq!(releases.join_all().await.len(), 300);
}

#[tokio::test]
async fn a_leader_has_the_fence_as_its_term() {
    let client = client();
    let mut terms = Vec::new();
    for _ in 0..2 {
        terms.push(
            client
                .lead("rust:leader")
                .run(|term| async move {
                    term.check().unwrap();
                    term.fence()
                })
                .await
                .unwrap(),
        );
    }
    assert!(terms[0] < terms[1]);
}

/// The client repeats the acquire with its key. It is granted, and released at once.
#[tokio::test]
async fn dropping_an_acquire_takes_back_its_grant() {
    let client = client();
    let held = client.lock("rust:leave").await.unwrap();
    let waits = tokio::spawn(client.lock("rust:leave").into_future());
    eventually("the waiter", || async { client.look("rust:leave").await.unwrap().waiting == 1 })
        .await;
    waits.abort();
    assert!(waits.await.unwrap_err().is_cancelled());
    held.release().await.unwrap();
    let next = timeout(secs(10.0), client.lock("rust:leave")).await.unwrap().unwrap();
    next.release().await.unwrap();
}

#[tokio::test]
async fn closing_the_client_ends_its_locks() {
    let (client, other) = (client(), client());
    let held = client.lock("rust:close").ttl(secs(2.0)).await.unwrap();
    client.close().await;
    assert_eq!(held.lost().await.lost().unwrap().reason, "closed");
    assert_eq!(client.lock("rust:close").await.unwrap_err().code(), "cancelled");
    // It is not released, and expires.
    assert!(other.try_lock("rust:close").await.unwrap_err().is_held());
    other.lock("rust:close").await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn an_error_names_the_request_and_no_secret() {
    let api = std::env::var("FENCEPOST_URL").unwrap();
    let client = Client::new(api, "not-a-token-s3cret").unwrap();
    let error = client.look("rust:secret").await.unwrap_err();
    let problem = error.problem().unwrap();
    assert_eq!((problem.status, error.code()), (401, "unauthenticated"));
    assert!(error.to_string().contains(problem.request_id.as_ref().unwrap()), "{error}");
    let closed = Client::builder().url("http://127.0.0.1:1").retry_for(secs(0.3));
    let closed = closed.token("s3cret").build().unwrap();
    let held = closed.try_lock("rust:secret").await;
    for text in [format!("{client:?} {error} {error:?}"), format!("{closed:?} {held:?}")] {
        assert!(!text.contains("s3cret"), "{text}");
    }
    assert!(held.unwrap_err().is_no_answer());
}

#[test]
fn a_url_is_plain() {
    for url in ["", "example.org", "ftp://example.org", "http://a?b=c", "http://u:p@example.org"] {
        let error = Client::new(url, "T").unwrap_err();
        assert!(matches!(error, Error::Config(_)) && !error.to_string().contains("u:p"), "{error}");
    }
}
