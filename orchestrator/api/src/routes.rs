//! Routes: each declaration is registered with its handler. The declaration determines who may call, and whether
//! `?site=` is accepted.

use axum::Router;
use axum::handler::Handler;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, on};
use os_upgrade_api_types::route::{Access, Declaration, Method, Route};
use os_upgrade_api_types::sites::takes_site;
use os_upgrade_auth::Authenticator;

use crate::context::Api;
use crate::http::authorization;
use crate::sites::{self, Sites};

/// The routes to serve.
#[derive(Default)]
pub(crate) struct Routes(Vec<(Declaration, MethodRouter<Api>)>);

impl Routes {
    /// Adds `route`, answered by `handler`.
    pub(crate) fn route<B, H, T>(mut self, route: &Route<B>, handler: H) -> Self
    where
        H: Handler<T, Api>,
        T: 'static,
    {
        let declaration = *route.declaration();
        self.0.push((declaration, on(filter(declaration.method), handler)));
        self
    }

    /// Adds `others`.
    pub(crate) fn merge(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// The declarations of all routes.
    pub(crate) fn declarations(&self) -> impl Iterator<Item = &Declaration> {
        self.0.iter().map(|(declaration, _)| declaration)
    }

    /// The router. It admits the callers that the declarations allow, and `authenticator` counts refusals. Requests with
    /// `?site=` go to `sites`; with `None` the parameter is not accepted.
    pub(crate) fn router(self, authenticator: &Authenticator, sites: Option<&Sites>) -> Router<Api> {
        self.0.into_iter().fold(Router::new(), |router, (declaration, methods)| {
            let sites = sites.filter(|_| takes_site(declaration.path));
            let methods = sites.into_iter().fold(methods, |methods, sites| {
                methods.route_layer(from_fn_with_state(sites.clone(), sites::forward_to_site))
            });
            let methods = match declaration.access {
                Access::Role(role) => methods
                    .route_layer(from_fn_with_state((authenticator.clone(), role), authorization::admit)),
                // The group is in the body, and the tokens of call-backs in the state, so the handler checks them.
                Access::Anybody | Access::LockGroup | Access::CallBack => methods,
            };
            router.route(declaration.path, methods)
        })
    }
}

const fn filter(method: Method) -> MethodFilter {
    match method {
        Method::Get => MethodFilter::GET,
        Method::Put => MethodFilter::PUT,
        Method::Post => MethodFilter::POST,
        Method::Patch => MethodFilter::PATCH,
        Method::Delete => MethodFilter::DELETE,
        Method::Options => MethodFilter::OPTIONS,
    }
}
