//! The name of a unit in the path of a request.

use axum::http::Uri;
use percent_encoding::percent_decode_str;

/// The name in the last segment of the path. Clients of fleet escape it as in a query; a blank, for which they write `+`, is in no name, and
/// neither is what is not UTF-8.
pub(super) fn unit_name(uri: &Uri) -> String {
    let segment = uri.path().rsplit('/').next().unwrap_or_default();
    percent_decode_str(segment).decode_utf8_lossy().into_owned()
}
