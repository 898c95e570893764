use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use tokio::runtime::Builder;
use tokio::time::sleep;

use crate::{client, eventually, secs};

#[tokio::test]
async fn dropping_a_held_lock_releases_it() {
    let client = client();
    drop(client.lock("rust:drop").await.unwrap());
    eventually("the release", || async {
        client.look("rust:drop").await.unwrap().holders.is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_panic_of_the_work_releases_the_lock() {
    let client = client();
    let held = client.lock("rust:panic").await.unwrap();
    let work = tokio::spawn(async move { held.run(async { panic!("of the work") }).await });
    assert!(work.await.unwrap_err().is_panic());
    eventually("the release", || async {
        client.look("rust:panic").await.unwrap().holders.is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_panic_of_a_callback_is_its_own() {
    let (client, asked) = (client(), Arc::new(AtomicBool::new(false)));
    let seen = asked.clone();
    let lock = client.lock("rust:asked").ttl(secs(3.0)).on_release_requested(move |_| {
        seen.store(true, Ordering::SeqCst);
        panic!("of the callback");
    });
    let held = lock.await.unwrap();
    let waits = tokio::spawn({
        let client = client.clone();
        async move { client.lock("rust:asked").request_release(secs(1.0)).await.unwrap().fence() }
    });
    eventually("the request", || async { asked.load(Ordering::SeqCst) }).await;
    sleep(secs(3.0)).await;
    held.check().unwrap();
    held.release().await.unwrap();
    assert!(waits.await.unwrap() > held.fence());
}

#[test]
fn a_runtime_that_ends_loses_its_locks() {
    let runtime = Builder::new_multi_thread().enable_all().build().unwrap();
    let held =
        runtime.block_on(async { client().lock("rust:runtime").ttl(secs(2.0)).await.unwrap() });
    held.check().unwrap();
    drop(runtime);
    assert_eq!(held.check().unwrap_err().lost().unwrap().reason, "closed");
}

#[test]
fn a_held_lock_may_be_dropped_outside_of_its_runtime() {
    let runtime = Builder::new_multi_thread().enable_all().worker_threads(1).build().unwrap();
    let client = client();
    drop(runtime.block_on(async { client.lock("rust:outside").await.unwrap() }));
    let is_free = || async { client.look("rust:outside").await.unwrap().holders.is_empty() };
    runtime.block_on(eventually("the release", is_free));
}

/// A current-thread runtime that is blocked runs no timer: the deadline is checked before the work
/// goes on.
#[tokio::test]
async fn work_that_blocked_beyond_the_deadline_does_not_go_on() {
    let client = client();
    let held = client.lock("rust:block").ttl(secs(2.0)).await.unwrap();
    let goes_on = AtomicBool::new(false);
    let work = async {
        std::thread::sleep(secs(1.8));
        tokio::task::yield_now().await;
        goes_on.store(true, Ordering::SeqCst);
    };
    let lost = held.run(work).await.unwrap_err();
    assert_eq!(lost.lost().unwrap().reason, "deadline");
    assert!(!goes_on.load(Ordering::SeqCst));
    assert!(held.left().is_zero());
}
