use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::client::Client;
use crate::errors::{no_answer, Error};
use crate::request::{escape, read, repeat, Again, Attempt, Call, Failure, Then};
use crate::transport::Cause;
use crate::types::Event;

const IDLE: Duration = Duration::from_secs(45); // a server sends something every 15 s
const PAUSE: Duration = Duration::from_secs(1); // after a stream that ended
const MAX_EVENT: usize = 1 << 20; // bytes
const SILENT: &str = "the stream is silent";
const AHEAD: usize = 16; // events that are read before the program takes them

impl Client {
    /// What happens to the tenant's locks, from now on. A stream that is cut resumes where it was,
    /// at another URL if there is one, for as long as it takes. An event of the type `events.missed`
    /// says that some are unknown: read [`Client::list`] then. The stream ends after an error: a
    /// server refused for good.
    pub fn events(&self) -> Events {
        let call = Call {
            method: "GET",
            path: "/events".into(),
            trace: self.shared.trace(),
            ..Call::default()
        };
        Events { client: self.clone(), call: Some(call), events: None, task: None }
    }
}

/// A stream of events. It connects when it is first polled.
#[must_use]
pub struct Events {
    client: Client,
    call: Option<Call>, // until the stream begins
    events: Option<mpsc::Receiver<Result<Event, Error>>>,
    task: Option<AbortHandle>,
}

impl Events {
    /// Only events of these types; `events.missed` always comes.
    pub fn types<T: AsRef<str>>(self, types: impl IntoIterator<Item = T>) -> Self {
        self.select("types", types)
    }

    /// Only events of locks whose names match one of up to 8 patterns, each with at most one star.
    pub fn locks<T: AsRef<str>>(self, patterns: impl IntoIterator<Item = T>) -> Self {
        self.select("locks", patterns)
    }

    /// Begins after the event with this id, which you have kept.
    pub fn after(mut self, id: impl Into<String>) -> Self {
        if let Some(call) = &mut self.call {
            call.after = id.into();
        }
        self
    }

    fn select<T: AsRef<str>>(mut self, name: &str, values: impl IntoIterator<Item = T>) -> Self {
        let values: Vec<String> = values.into_iter().map(|value| escape(value.as_ref())).collect();
        if let Some(call) = &mut self.call {
            let mark = if call.path.contains('?') { '&' } else { '?' };
            call.path += &format!("{mark}{name}={}", values.join(","));
        }
        self
    }

    /// The next event; `None` after an error. Its future may be dropped without losing an event.
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Event, Error>>> {
        if let Some(call) = self.call.take() {
            let (send, receive) = mpsc::channel(AHEAD);
            let client = self.client.clone();
            self.events = Some(receive);
            let task = tokio::spawn(async move {
                let mut follow = Follow { client: &client, call, send: send.clone() };
                if let Err(error) = repeat(&client.shared, &mut follow).await {
                    let _ = send.send(Err(error)).await;
                }
            });
            self.task = Some(task.abort_handle());
        }
        match &mut self.events {
            Some(events) => events.poll_recv(context),
            None => Poll::Ready(None),
        }
    }
}

impl Stream for Events {
    type Item = Result<Event, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll(context)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

/// Reads events over the connections that it takes.
struct Follow<'a> {
    client: &'a Client,
    call: Call, // its `after` is the last id
    send: mpsc::Sender<Result<Event, Error>>,
}

impl Attempt for Follow<'_> {
    type Output = ();

    fn left(&self) -> Duration {
        Duration::MAX
    }

    /// Reads one connection until it ends.
    async fn attempt(&mut self, base: &str) -> Result<(), Failure> {
        let opened = timeout(IDLE, self.client.shared.open(base, &self.call)).await;
        let mut response = opened.map_err(|_| Failure::no_answer(SILENT))??;
        if response.status != 200 {
            read(response).await?;
            return Err(ended("what answered is no server"));
        }
        let (mut text, mut message) = (Vec::new(), Message::default());
        loop {
            let chunk = timeout(IDLE, response.body.chunk()).await;
            let chunk = chunk.map_err(|_| ended(SILENT))?;
            let Some(chunk) = chunk.map_err(ended)? else {
                return Err(ended("the stream ended"));
            };
            text.extend_from_slice(&chunk);
            while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = text.drain(..=end).collect();
                if message.take(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r'])) {
                    self.deliver(std::mem::take(&mut message)).await?;
                }
            }
            if text.len() + message.data.len() > MAX_EVENT {
                return Err(ended("an event is too long"));
            }
        }
    }
}

impl Follow<'_> {
    /// Hands over the event of a message, if there is one in it, and keeps its id.
    async fn deliver(&mut self, message: Message) -> Result<(), Failure> {
        if !message.data.is_empty() {
            let event = serde_json::from_str(&message.data).map_err(ended)?;
            // The receiver is gone: the task ends.
            let _ = self.send.send(Ok(event)).await;
        }
        if !message.id.is_empty() {
            self.call.after = message.id;
        }
        Ok(())
    }
}

fn ended(why: impl Into<Cause>) -> Failure {
    let error = no_answer(why);
    Failure::Again(Again { error, after: Some(PAUSE), then: Then::Elsewhere })
}

/// One message of a stream of server-sent events.
#[derive(Default)]
struct Message {
    id: String,
    data: String,
}

impl Message {
    /// Adds a line. It reports true for the empty one that ends the message.
    fn take(&mut self, line: &str) -> bool {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" => self.id = value.into(),
            "data" if self.data.is_empty() => self.data = value.into(),
            "data" => self.data += &format!("\n{value}"),
            _ => {}
        }
        line.is_empty()
    }
}
