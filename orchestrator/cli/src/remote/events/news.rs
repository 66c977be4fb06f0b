//! Waits until something happens on a site, by its stream of events. What has happened is read elsewhere.

use std::time::Duration;

use os_upgrade_api_types::route::Call;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::rest::Client;
use crate::rest::stream::EventStream;

/// How long what follows an event at once is awaited, so that it is read together.
const TOGETHER: Duration = Duration::from_millis(200);
/// The shortest time between two returns, so that a site on which much happens is not read too often.
const PAUSE: Duration = Duration::from_secs(1);

/// News of a site.
#[derive(Debug)]
pub(crate) struct News {
    call: Call,
    /// Absent while there is none; it is requested again.
    stream: Option<EventStream>,
    /// The id to resume after.
    last: Option<String>,
    /// When there were news last.
    told: Instant,
}

impl News {
    /// What happens from now on, of what `call` selects. Whoever reads the state afterwards misses nothing.
    pub(crate) async fn open(client: &Client, call: Call) -> Self {
        let stream = client.stream(&call, None).await.ok();
        Self { call, stream, last: None, told: Instant::now() }
    }

    /// Waits until something has happened, or may have, but not longer than `at_most`. Without a stream, something may have
    /// happened each time that it is requested in vain.
    pub(crate) async fn wait(&mut self, client: &Client, at_most: Duration) {
        if timeout(at_most, self.next(client)).await.is_ok() {
            let until = (Instant::now() + TOGETHER).max(self.told + PAUSE);
            while let Some(stream) = &mut self.stream {
                tokio::select! {
                    () = sleep_until(until) => break,
                    block = stream.next() => match block {
                        Ok(Some(block)) => self.last = block.id.or(self.last.take()),
                        Ok(None) | Err(_) => self.stream = None,
                    },
                }
            }
            sleep_until(until).await;
        }
        self.told = Instant::now();
    }

    /// Returns once there is an event, or the stream has ended or begun.
    async fn next(&mut self, client: &Client) {
        let Some(stream) = &mut self.stream else {
            sleep(PAUSE).await;
            self.stream = client.stream(&self.call, self.last.as_deref()).await.ok();
            return;
        };
        while let Ok(Some(block)) = stream.next().await {
            self.last = block.id.or(self.last.take());
            if block.data.is_some() {
                return;
            }
        }
        self.stream = None;
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_api_types::routes::events::FOLLOW;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// Far longer than anything here takes.
    const LONG: Duration = Duration::from_mins(1);

    /// Accepts a request for the stream, and begins to answer it. Returns the request too.
    async fn accept(listener: &TcpListener) -> (TcpStream, String) {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nid: a.1.0\n\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        (stream, String::from_utf8(request).unwrap())
    }

    #[tokio::test]
    async fn events_and_the_end_of_their_stream_are_news() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let client = Client::without_token(&url.parse().unwrap()).unwrap();
        let (mut news, (mut stream, _)) = tokio::join!(News::open(&client, FOLLOW.call()), accept(&listener));
        // An id alone is none.
        let begun = Instant::now();
        news.wait(&client, Duration::from_millis(300)).await;
        assert!(begun.elapsed() >= Duration::from_millis(300));

        stream.write_all(b"id: a.2.0\ndata: {}\n\nid: a.3.0\ndata: {}\n\n").await.unwrap();
        news.wait(&client, LONG).await;
        drop(stream);
        news.wait(&client, LONG).await;
        // It is requested again, from where it ended.
        let ((), (_stream, request)) = tokio::join!(news.wait(&client, LONG), accept(&listener));
        assert!(request.to_lowercase().contains("\r\nlast-event-id: a.3.0\r\n"), "{request}");
        assert!(begun.elapsed() < LONG);
    }
}
