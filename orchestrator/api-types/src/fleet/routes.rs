//! The routes of both dialects. The routers are built from these tables, and so are the discovery documents.

use crate::fleet::version::Version;
use crate::role::Role;
use crate::route::Method;

/// What a route does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Describes the API.
    Discover,
    /// Lists machines.
    ListMachines,
    /// Lists units.
    ListUnits,
    /// Shows a unit.
    GetUnit,
    /// Creates a unit, or changes its wished state or, in v1, its contents.
    PutUnit,
    /// Destroys a unit.
    DestroyUnit,
    /// Lists what systemd says of units on machines.
    ListStates,
    /// Shows what systemd says of a unit.
    GetState,
}

/// A route of one dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FleetRoute {
    /// The HTTP method.
    pub method: Method,
    /// The path below the prefix, which begins with a slash and has the name of a unit in braces.
    pub path: &'static str,
    /// What it does.
    pub operation: Operation,
}

const fn route(method: Method, path: &'static str, operation: Operation) -> FleetRoute {
    FleetRoute { method, path, operation }
}

const V1_ALPHA: [FleetRoute; 6] = [
    route(Method::Get, "/discovery", Operation::Discover),
    route(Method::Get, "/machines", Operation::ListMachines),
    route(Method::Get, "/units", Operation::ListUnits),
    route(Method::Get, "/units/{name}", Operation::GetUnit),
    route(Method::Put, "/units/{name}", Operation::PutUnit),
    route(Method::Delete, "/units/{name}", Operation::DestroyUnit),
];

const V1: [FleetRoute; 8] = [
    route(Method::Get, "/discovery", Operation::Discover),
    route(Method::Get, "/machines", Operation::ListMachines),
    route(Method::Get, "/units", Operation::ListUnits),
    route(Method::Get, "/units/{unitName}", Operation::GetUnit),
    route(Method::Put, "/units/{unitName}", Operation::PutUnit),
    route(Method::Delete, "/units/{unitName}", Operation::DestroyUnit),
    route(Method::Get, "/state", Operation::ListStates),
    route(Method::Get, "/state/{unitName}", Operation::GetState),
];

impl Version {
    /// All routes of this dialect.
    pub const fn routes(self) -> &'static [FleetRoute] {
        match self {
            Self::V1Alpha => &V1_ALPHA,
            Self::V1 => &V1,
        }
    }

    /// The methods of a path of [`routes`](Self::routes), for the answer to any other one.
    pub fn methods(self, path: &str) -> Vec<Method> {
        let routes = self.routes().iter().filter(|route| route.path == path);
        routes.map(|route| route.method).collect()
    }
}

impl Operation {
    /// The role that it needs. A unit is root on its host, so changing one needs the highest.
    pub const fn role(self) -> Role {
        match self {
            Self::PutUnit | Self::DestroyUnit => Role::Admin,
            Self::Discover
            | Self::ListMachines
            | Self::ListUnits
            | Self::GetUnit
            | Self::ListStates
            | Self::GetState => Role::Viewer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_know_their_methods() {
        let item = [Method::Get, Method::Put, Method::Delete];
        for (version, path, methods) in [
            (Version::V1Alpha, "/units", vec![Method::Get]),
            (Version::V1Alpha, "/units/{name}", item.to_vec()),
            (Version::V1Alpha, "/state", vec![]),
            (Version::V1, "/units/{unitName}", item.to_vec()),
            (Version::V1, "/state", vec![Method::Get]),
            (Version::V1, "/discovery", vec![Method::Get]),
        ] {
            assert_eq!(version.methods(path), methods, "{version:?} {path}");
        }
    }

    #[test]
    fn changes_need_an_admin() {
        for route in Version::ALL.into_iter().flat_map(Version::routes) {
            let role = if route.method == Method::Get { Role::Viewer } else { Role::Admin };
            assert_eq!(route.operation.role(), role, "{route:?}");
        }
    }
}
