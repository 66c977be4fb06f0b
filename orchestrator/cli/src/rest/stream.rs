//! A stream of Server-Sent Events from an instance: its blocks, one after the other.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{anyhow, bail};
use os_upgrade_api_types::route::Call;
use os_upgrade_api_types::routes::events::{EVENT_STREAM, LAST_EVENT_ID};
use os_upgrade_tls::http_client::read_up_to;
use reqwest::header::ACCEPT;
use reqwest::{RequestBuilder, StatusCode};
use tokio::time::Instant;

use super::{ANSWER_BYTES_MAX, Client, Instance, Unanswered, refusal, unread, url};

/// How long a stream may take in total; after that it is requested again.
const STREAM_WITHIN: Duration = Duration::from_hours(24);
/// How long nothing may arrive: three times what an instance lets pass between two blocks.
const SILENCE_MAX: Duration = Duration::from_secs(45);
/// The longest line, and the longest block, in bytes: a thousand hosts with the longest names are shorter.
const LINE_BYTES_MAX: usize = 1024 * 1024;

/// A stream of Server-Sent Events.
#[derive(Debug)]
pub(crate) struct EventStream {
    response: reqwest::Response,
    parser: Parser,
    blocks: VecDeque<Block>,
    /// When something arrived last: whoever waits may do so in several turns.
    heard: Instant,
}

/// A block of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Block {
    /// The id to resume after, if the block sets one.
    pub(crate) id: Option<String>,
    /// The data of its event; `None` if it only sets the id.
    pub(crate) data: Option<String>,
}

impl Client {
    /// Opens the stream of `call`, after the event with the id `last`, if given.
    ///
    /// # Errors
    /// The stream is refused, or cannot be had now; see [`super::may_pass`].
    pub(crate) async fn stream(&self, call: &Call, last: Option<&str>) -> anyhow::Result<EventStream> {
        let asked = self.ask(async |instance| self.stream_of(instance, call, last).await);
        asked.await.map_err(|unanswered| match unanswered {
            Unanswered::AskAnother(why) => unread(why),
            Unanswered::Final(error) | Unanswered::NotReady(error) => error,
        })
    }

    async fn stream_of(
        &self,
        instance: &Instance,
        call: &Call,
        last: Option<&str>,
    ) -> Result<EventStream, Unanswered> {
        let url = url(instance.base.url(), call).map_err(Unanswered::Final)?;
        let request = instance.http.get(url).timeout(STREAM_WITHIN).header(ACCEPT, EVENT_STREAM);
        let request = self.token.iter().fold(request, RequestBuilder::bearer_auth);
        let request = last.into_iter().fold(request, |request, id| request.header(LAST_EVENT_ID, id));
        let unanswered = |error: reqwest::Error| Unanswered::AskAnother(instance.unanswered(&error));
        let response = tokio::time::timeout(super::ANSWER_WITHIN, request.send());
        let late = |_| Unanswered::AskAnother(format!("{} has not answered", instance.base));
        let response = response.await.map_err(late)?.map_err(unanswered)?;
        let status = response.status();
        if status == StatusCode::OK {
            return Ok(EventStream {
                response,
                parser: Parser::default(),
                blocks: VecDeque::new(),
                heard: Instant::now(),
            });
        }
        let answer = read_up_to(response, ANSWER_BYTES_MAX).await.map_err(unanswered)?;
        let refused = refusal((status, None), &answer, false);
        Err(match status {
            StatusCode::SERVICE_UNAVAILABLE => Unanswered::NotReady(unread(refused.to_string())),
            // A moment later it may be another matter.
            _ if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                Unanswered::Final(unread(refused.to_string()))
            }
            _ => Unanswered::Final(refused),
        })
    }
}

impl EventStream {
    /// The next block; `None` once the stream has ended, for whatever reason.
    ///
    /// # Errors
    /// It is not a stream of Server-Sent Events.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<Block>> {
        while self.blocks.is_empty() {
            let chunk = tokio::time::timeout_at(self.heard + SILENCE_MAX, self.response.chunk());
            let Ok(Ok(Some(bytes))) = chunk.await else {
                return Ok(None);
            };
            self.heard = Instant::now();
            self.blocks.extend(self.parser.read(&bytes)?);
        }
        Ok(self.blocks.pop_front())
    }
}

/// Reads blocks as they arrive, in pieces of any size.
#[derive(Debug, Default)]
struct Parser {
    /// The beginning of a line.
    line: Vec<u8>,
    block: Block,
}

impl Parser {
    /// The blocks that end in `bytes`.
    fn read(&mut self, bytes: &[u8]) -> anyhow::Result<Vec<Block>> {
        let mut blocks = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() + piece.len() > LINE_BYTES_MAX {
                bail!("the stream of events has a line of more than {LINE_BYTES_MAX} bytes");
            }
            let held = self.block.data.as_ref().map_or(0, String::len);
            if held + piece.len() > LINE_BYTES_MAX {
                bail!("the stream of events has a block of more than {LINE_BYTES_MAX} bytes");
            }
            self.line.extend_from_slice(piece);
            if self.line.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                let line =
                    std::str::from_utf8(&line).map_err(|_| anyhow!("the stream of events is no text"))?;
                blocks.extend(self.read_line(line.trim_end_matches(['\n', '\r'])));
            }
        }
        Ok(blocks)
    }

    /// The block that ends with `line`, if one does.
    fn read_line(&mut self, line: &str) -> Option<Block> {
        if line.is_empty() {
            return Some(std::mem::take(&mut self.block)).filter(|block| *block != Block::default());
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" => self.block.id = Some(value.to_owned()),
            "data" => match &mut self.block.data {
                Some(data) => data.extend(["\n", value]),
                None => self.block.data = Some(value.to_owned()),
            },
            // Comments, the kind, which is in the data too, and what a later version adds.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_from_pieces() {
        let block = |id: Option<&str>, data: Option<&str>| Block {
            id: id.map(ToOwned::to_owned),
            data: data.map(ToOwned::to_owned),
        };
        let text = "retry: 1000\nid: a.1.0\n\n: \n\nid: a.2.0\nevent: x\ndata: {\"k\":\r\ndata: 1}\n\ndata:2\n\nid: a";
        let expected =
            [block(Some("a.1.0"), None), block(Some("a.2.0"), Some("{\"k\":\n1}")), block(None, Some("2"))];
        for size in [1, 2, 7, text.len()] {
            let mut parser = Parser::default();
            let blocks = text.as_bytes().chunks(size).flat_map(|piece| parser.read(piece).unwrap());
            assert_eq!(blocks.collect::<Vec<_>>(), expected, "pieces of {size}");
        }
        let endless = vec![b'x'; LINE_BYTES_MAX + 1];
        assert!(Parser::default().read(&endless).is_err());
        let lines = "data: x\n".repeat(LINE_BYTES_MAX / 2);
        let error = Parser::default().read(lines.as_bytes()).unwrap_err().to_string();
        assert_eq!(error, "the stream of events has a block of more than 1048576 bytes");
    }
}
