//! Tests of delivery.
