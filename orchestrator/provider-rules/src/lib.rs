//! Configuration providers: which of them is asked about which host and when, and what an answer means. It has no clock, no
//! randomness and no I/O.
//!
//! [`Schedule`] says what to ask now, and is told each [`Reply`]. [`Answer::interpret`] makes a reply of an HTTP answer. [`hooks`] is the
//! protocol of providers that are told of events.

mod answer;
mod backoff;
mod bucket;
mod content;
mod digest;
mod due;
mod failure;
mod file_target;
pub mod hooks;
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
pub use failure::{ConfigurationProblem, CredentialsProblem, Failure, MemberProblem, Remedy};
pub use file_target::{FILE_PATH_BYTES_MAX, OWNER_BYTES_MAX, is_file_path, is_owner};
pub use name::{ProviderName, ProviderNameError};
pub use now::Now;
pub use retry_after::read_retry_after;
pub use schedule::{BatchId, Limits, PairStatus, Question, Schedule, Ticket};
pub use url_template::{HostUrlError, Origin, OriginError, UrlTemplate, UrlTemplateError, names_html};
pub use validator::{Condition, Validator};
