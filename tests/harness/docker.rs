//! A site in containers of a real engine: the images of `docker/Dockerfile` and the compose file, as users run them, under
//! the site's own names. Base images are made of the Debian systems in `.tools/` and of files of the machine, because there
//! may be no registry. All objects carry the site's label and are removed with it.

mod engine;
mod images;
mod package;
mod project;
mod site;

pub use images::{PACKAGES, REBOOTS};
pub use project::{repository, tool};
pub use site::{Fault, ORCHESTRATORS, Site};
