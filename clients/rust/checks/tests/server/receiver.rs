//! A receiver of HTTP requests on this machine.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

pub struct Receiver {
    listener: TcpListener,
    pub url: String,
}

impl Receiver {
    pub async fn new() -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/granted", listener.local_addr().unwrap());
        Receiver { listener, url }
    }

    /// Receives one request and sends an answer.
    pub async fn receive(&self, answer: &str) -> (HeaderMap, Vec<u8>) {
        let (mut stream, _) = self.listener.accept().await.unwrap();
        let mut text = Vec::new();
        let end = loop {
            stream.read_buf(&mut text).await.unwrap();
            if let Some(at) = text.windows(4).position(|w| w == b"\r\n\r\n") {
                break at + 4;
            }
        };
        let head = String::from_utf8(text[..end].to_vec()).unwrap();
        let mut headers = HeaderMap::new();
        for line in head.lines().skip(1).filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').unwrap();
            let name: HeaderName = name.parse().unwrap();
            headers.insert(name, HeaderValue::try_from(value.trim()).unwrap());
        }
        let length = headers.get("content-length").map_or("0", |value| value.to_str().unwrap());
        while text.len() < end + length.parse::<usize>().unwrap() {
            stream.read_buf(&mut text).await.unwrap();
        }
        let answer = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.unwrap();
        (headers, text[end..].to_vec())
    }
}
