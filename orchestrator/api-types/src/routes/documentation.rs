//! `/openapi.json`, the page that shows it, and `/metrics`.

use serde_json::{Value, json};

use crate::route::{ANYBODY, Answer, Method, PathName, Route, Shape, Tag, VIEWER};

/// The media type of the metrics.
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The media type of metrics for scrapers that know no `OpenMetrics`.
pub const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The description of the API.
pub const OPENAPI: Route = Route::new(
    Method::Get,
    "/openapi.json",
    ANYBODY,
    Tag::Orchestrator,
    "read-openapi",
    "Read the description of this API",
)
.answers(&[Answer::json(
    "an OpenAPI 3.1 document",
    Shape::inline::<Value>(),
    || json!({"openapi": "3.1.0"}),
)]);

/// Redirects to the page.
pub const PAGE_REDIRECT: Route = Route::new(
    Method::Get,
    "/docs",
    ANYBODY,
    Tag::Orchestrator,
    "find-page",
    "Redirect to the page that shows this API",
)
.answers(&[Answer::new(308, "the page is at `/docs/`").with_headers(&[("location", None)])]);

/// The page that shows the description.
pub const PAGE: Route =
    Route::new(Method::Get, "/docs/", ANYBODY, Tag::Orchestrator, "read-page", "Show this API on a page")
        .answers(&[Answer::text("the page", &["text/html"])]);

/// A file that the page needs.
pub const PAGE_FILE: Route = Route::new(
    Method::Get,
    "/docs/{file}",
    ANYBODY,
    Tag::Orchestrator,
    "read-page-file",
    "Read a file of the page",
)
.names(&[PathName::new("file", "the name of a file", Shape::inline::<String>(), Some("swagger-ui.css"))])
.answers(&[
    Answer::text("the file", &["text/css", "text/html", "text/javascript", "image/png"]),
    Answer::new(404, "there is no such file"),
]);

/// The metrics of this instance.
pub const METRICS: Route = Route::new(
    Method::Get,
    "/metrics",
    VIEWER,
    Tag::Orchestrator,
    "read-metrics",
    "Read metrics for Prometheus",
)
.answers(&[Answer::text(
    "metrics in the OpenMetrics text format, or in the older one of Prometheus if `Accept` prefers `text/plain`",
    &[OPEN_METRICS, PROMETHEUS_TEXT],
)]);
