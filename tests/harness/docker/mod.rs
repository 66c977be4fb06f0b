//! A site in containers of a real engine: the images of `docker/Dockerfile` and the compose file, as users run them, under
//! names of its own. Base images are made of the Debian systems in `.tools/` and of what is on the machine, for there may
//! be no registry. What is made carries the site's label and goes with the site.

mod engine;
mod images;
mod package;
mod project;
mod site;

pub use images::{PACKAGES, REBOOTS};
pub use project::{repository, tool};
pub use site::{Fault, ORCHESTRATORS, Site};
