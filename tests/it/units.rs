//! Units on machines: fleet's API, the clients of others, and agents at the bus.

mod clients;
mod launched;
mod machines;
mod moves;
mod outages;
mod shared;
