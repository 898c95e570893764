use std::collections::VecDeque;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::errors::{no_answer, Error};
use crate::request::{escape, Call};
use crate::types::{Lock, LockSummary};

impl Client {
    /// A lock with its holders and waiters. A free lock has none.
    pub async fn look(&self, name: &str) -> Result<Lock, Error> {
        self.get(format!("/locks/{}", escape(name))).await
    }

    /// Lists the locks that are in use.
    pub fn list(&self) -> List {
        List {
            client: self.clone(),
            query: String::new(),
            page: VecDeque::new(),
            cursor: Some(String::new()),
        }
    }

    /// For a resource that rejected a write: reports the fence that came with the write, the
    /// greatest that the resource knows, and its name. Operators see the report.
    pub async fn stale_write(
        &self,
        name: &str,
        presented: u64,
        known: u64,
        resource: &str,
    ) -> Result<(), Error> {
        let body = StaleWrite { fence_presented: presented, fence_known: known, resource };
        let call = Call {
            method: "POST",
            path: format!("/locks/{}/stale-writes", escape(name)),
            trace: self.shared.trace(),
            body: serde_json::to_vec(&body).ok(),
            ..Call::default()
        };
        self.shared.ask(call).await.map(|_| ())
    }

    async fn get<T: DeserializeOwned>(&self, path: String) -> Result<T, Error> {
        let trace = self.shared.trace();
        let body = self.shared.ask(Call { method: "GET", path, trace, ..Call::default() }).await?;
        serde_json::from_slice(&body).map_err(no_answer)
    }
}

#[derive(Serialize)]
struct StaleWrite<'a> {
    fence_presented: u64,
    fence_known: u64,
    resource: &'a str,
}

/// Locks in use, in byte order of their names, read in pages.
#[derive(Debug)]
#[must_use]
pub struct List {
    client: Client,
    query: String,
    page: VecDeque<LockSummary>,
    cursor: Option<String>, // of the next page
}

#[derive(Deserialize)]
struct Page {
    locks: Vec<LockSummary>,
    next_cursor: Option<String>,
}

impl List {
    /// Only locks whose names begin with `prefix`.
    pub fn prefix(mut self, prefix: &str) -> Self {
        self.query += &format!("&prefix={}", escape(prefix));
        self
    }

    /// Only locks in a state: `contended` if an entry waits, else `held`.
    pub fn state(mut self, state: &str) -> Self {
        self.query += &format!("&state={}", escape(state));
        self
    }

    /// The next lock; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<LockSummary>, Error> {
        while self.page.is_empty() {
            let Some(cursor) = &self.cursor else { return Ok(None) };
            let query = match &**cursor {
                "" => self.query.clone(),
                cursor => format!("{}&cursor={}", self.query, escape(cursor)),
            };
            let path = format!("/locks{}", query.replacen('&', "?", 1));
            let page: Page = self.client.get(path).await?;
            self.page = page.locks.into();
            self.cursor = page.next_cursor.filter(|cursor| !cursor.is_empty());
        }
        Ok(self.page.pop_front())
    }
}
