//! Configuration providers: which of them is asked about which host and when, and what an answer means. It has no clock, no
//! randomness and no I/O.
//!
//! [`Schedule`] says what to ask now, and is told each [`Reply`]. [`Answer::interpret`] makes a reply of an HTTP answer.

mod answer;
mod backoff;
mod bucket;
mod content;
mod due;
mod failure;
mod name;
mod now;
mod retry_after;
mod schedule;
mod url_template;
mod validator;

pub use answer::{ANSWER_BYTES_MAX, Answer, Asked, Outcome, RETRY_AFTER_MAX, Reply};
pub use backoff::pause;
pub use bucket::Bucket;
pub use content::ContentBytes;
pub use due::{Phase, is_due_between, next_due};
pub use failure::{CredentialsProblem, Failure, Remedy};
pub use name::{ProviderName, ProviderNameError};
pub use now::Now;
pub use retry_after::read_retry_after;
pub use schedule::{Limits, PairStatus, Question, Schedule, Ticket};
pub use url_template::{HostUrlError, Origin, OriginError, UrlTemplate, UrlTemplateError, names_html};
pub use validator::{Condition, Validator};
