//! What can never work fails at once, and what fails says why.

use std::error::Error as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencepost::seams::{Body, BoxFuture, Cause, Clock, Reading, Request, Response, Transport};
use fencepost::{Builder, Client};
use tokio::time::Instant;

const HELD: &str = r#"{"id":"e1","token":"t1","ttl_seconds":30,"state":"held","fence":7}"#;

/// Answers the first requests, and no others.
#[derive(Clone, Default)]
struct Server {
    answers: usize,
    panics_at: Option<usize>,
    sent: Arc<AtomicUsize>,
    bearer: Arc<Mutex<String>>,
}

struct Text(Option<&'static str>);

impl Body for Text {
    fn chunk(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, Cause>> {
        Box::pin(async { Ok(self.0.take().map(Vec::from)) })
    }
}

impl Transport for Server {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, Cause>> {
        Box::pin(async move {
            *self.bearer.lock().unwrap() = request.headers[0].1.clone();
            let nth = self.sent.fetch_add(1, Ordering::SeqCst);
            assert_ne!(Some(nth), self.panics_at, "the system refuses a thread");
            if nth >= self.answers {
                return Err("connection refused".into());
            }
            Ok(Response { status: 200, retry_after: None, body: Box::new(Text(Some(HELD))) })
        })
    }
}

struct Virtual(Instant);

impl Clock for Virtual {
    fn read(&self) -> Reading {
        let monotonic = self.0.elapsed();
        Reading { monotonic, boot: Some(monotonic), wall: monotonic }
    }
}

fn with(builder: Builder, server: &Server) -> Client {
    let builder = builder.url("http://a");
    builder.seams(server.clone(), Virtual(Instant::now())).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_token_is_trimmed() {
    let server = Server { answers: usize::MAX, ..Server::default() };
    let _held = with(Client::builder().token(" T\r\n"), &server).try_lock("a").await.unwrap();
    assert_eq!(*server.bearer.lock().unwrap(), "Bearer T");
    let from = Client::builder().token_from(|| async { Ok("T2\n".to_string()) });
    let _other = with(from, &server).try_lock("a").await.unwrap();
    assert_eq!(*server.bearer.lock().unwrap(), "Bearer T2");
}

#[test]
fn a_token_that_cannot_be_sent_makes_no_client() {
    for token in ["", " \n", "s3c\nret", "s3c ret", "s3cré"] {
        let error = Client::new("http://a", token).unwrap_err();
        assert_eq!(error.code(), "config");
        assert!(error.to_string().contains("token") && !error.to_string().contains("s3c"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_be_sent_fails_at_once() {
    let server = Server::default();
    let begun = Instant::now();
    let trace = Client::builder().token("T").traceparent(|| Some("a\nb".into()));
    let token = Client::builder().token_from(|| async { Ok("s3c\nret".to_string()) });
    for client in [with(trace, &server), with(token, &server)] {
        for error in [client.lock("a").await.unwrap_err(), client.look("a").await.unwrap_err()] {
            assert_eq!(error.code(), "invalid_request");
            assert!(!error.to_string().contains("s3c"), "{error}");
        }
        client.close().await;
    }
    assert_eq!((begun.elapsed(), server.sent.load(Ordering::SeqCst)), (Duration::ZERO, 0));
}

#[test]
fn urls_are_trimmed_and_split() {
    let client = Client::new(" http://a/ ,\nhttps://b:1/c/,", "T").unwrap();
    assert!(format!("{client:?}").contains(r#"["http://a", "https://b:1/c"]"#), "{client:?}");
}

#[test]
fn an_error_of_a_url_has_its_position_and_no_secret() {
    for url in ["http://u:s3cret@a", "s3cret", "ftp://s3cret", "http://a?s3cret", "http://a#s3cret"]
    {
        let error = Client::new(format!("http://a, {url}"), "T").unwrap_err().to_string();
        assert!(error.contains("URL 2") && !error.contains("s3cret"), "{error}");
    }
    assert_eq!(Client::new(" ,", "T").unwrap_err().code(), "config");
}

#[tokio::test(start_paused = true)]
async fn a_loss_says_since_when_no_renewal_succeeded_and_why() {
    let server = Server { answers: 1, ..Server::default() };
    let client = with(Client::builder().token("T"), &server);
    let lost = client.lock("a").await.unwrap().lost().await;
    let text = lost.to_string();
    assert!(text.contains("deadline: no renewal succeeded for 27.0 s"), "{text}");
    assert!(text.contains("http://a: connection refused"), "{text}");
    let cause = lost.source().unwrap().source().unwrap();
    assert_eq!(cause.to_string(), "connection refused");
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_http_library_costs_an_attempt() {
    let server = Server { answers: usize::MAX, panics_at: Some(1), ..Server::default() };
    let client = with(Client::builder().token("T"), &server);
    let held = client.lock("a").await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    held.check().unwrap();
    assert!(server.sent.load(Ordering::SeqCst) > 5);
}

struct Lines;

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl log::Log for Lines {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        if record.level() <= log::Level::Warn {
            LINES.lock().unwrap().push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// Nothing listens at the port.
#[tokio::test]
async fn a_wrong_port_warns_once_and_is_in_the_error() {
    log::set_logger(&Lines).unwrap();
    log::set_max_level(log::LevelFilter::Warn);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    let client = Client::builder().url(&url).token("T").retry_for(Duration::from_secs(1));
    let error = client.build().unwrap().try_lock("a").await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&url) && text.contains("refused"), "{text}");
    let mut cause = error.source();
    while let Some(e) = cause.filter(|e| !e.is::<std::io::Error>()) {
        cause = e.source();
    }
    assert!(cause.is_some(), "{error:?}");
    let mut lines = LINES.lock().unwrap().clone();
    lines.retain(|line| line.contains(&url));
    assert!(lines.len() == 1 && lines[0].contains("refused"), "{lines:?}");
}

/// A proxy that does not work is in the environment of a process of its own.
#[test]
fn no_proxy_is_used_for_loopback() {
    let test = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "a_server_at_loopback_is_reached"])
        .envs([("HTTP_PROXY", "http://127.0.0.1:1"), ("http_proxy", "http://127.0.0.1:1")])
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .output()
        .unwrap();
    assert!(test.status.success(), "{}", String::from_utf8_lossy(&test.stdout));
}

#[tokio::test]
#[ignore = "it is run with a proxy in its environment"]
async fn a_server_at_loopback_is_reached() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let client = Client::builder().url(url).token("T").retry_for(Duration::from_secs(5));
    let client = client.build().unwrap();
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_buf(&mut Vec::with_capacity(4096)).await.unwrap();
        stream.write_all(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n").await.unwrap();
    };
    let (refused, ()) = tokio::join!(client.look("a"), serve);
    assert_eq!(refused.unwrap_err().problem().unwrap().status, 403);
}
