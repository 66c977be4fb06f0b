//! The shapes of lists: entries, their keys, or a count. Each list is declared with its resource.

use utoipa::ToSchema;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder};
use utoipa::openapi::{Ref, RefOr, Schema};

use crate::body::Count;

/// Declares the shape of a list: its description, its name in the document, its form, and the types of its entries and
/// keys.
macro_rules! list {
    ($(#[doc = $meaning:literal])+ $name:ident = $form:ident of $entry:ty, or $key:ty) => {
        $(#[doc = $meaning])+
        #[derive(Debug)]
        pub struct $name;

        impl ::utoipa::PartialSchema for $name {
            fn schema() -> ::utoipa::openapi::RefOr<::utoipa::openapi::Schema> {
                let meaning = concat!($($meaning, " "),+);
                crate::lists::described::<$entry, $key>(crate::lists::$form, meaning)
            }
        }

        impl ::utoipa::ToSchema for $name {
            fn name() -> ::std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn schemas(
                schemas: &mut Vec<(String, ::utoipa::openapi::RefOr<::utoipa::openapi::Schema>)>,
            ) {
                crate::route::with_own::<$entry>(schemas);
                crate::route::with_own::<$key>(schemas);
                crate::route::with_own::<crate::body::Count>(schemas);
            }
        }
    };
}

pub(crate) use list;

/// The shape of a list of `T` with keys `K`, in this form.
pub(crate) fn described<T: ToSchema, K: ToSchema>(
    form: fn(Schema) -> Schema,
    meaning: &str,
) -> RefOr<Schema> {
    let entries = ArrayBuilder::new().items(either::<T, K>());
    let list = OneOfBuilder::new().item(form(entries.into())).item(reference::<Count>());
    list.description(Some(meaning.trim())).into()
}

/// A form of lists: all entries, or a page of them.
pub(crate) fn whole(entries: Schema) -> Schema {
    OneOfBuilder::new().item(entries.clone()).item(page(entries)).build().into()
}

/// A form of lists: a page of entries.
pub(crate) fn page(entries: Schema) -> Schema {
    page_of("items", entries)
}

/// A form of lists: a page of entries in the field `secrets`.
pub(crate) fn secrets(entries: Schema) -> Schema {
    page_of("secrets", entries)
}

fn page_of(name: &str, entries: Schema) -> Schema {
    let next = ObjectBuilder::new().schema_type(utoipa::openapi::schema::Type::String);
    let next = next.description(Some("The value of `after` for the next page; absent on the last page."));
    ObjectBuilder::new().property(name, entries).property("next", next).required(name).build().into()
}

fn either<T: ToSchema, K: ToSchema>() -> OneOfBuilder {
    OneOfBuilder::new().item(reference::<T>()).item(reference::<K>())
}

fn reference<T: ToSchema>() -> Ref {
    Ref::from_schema_name(T::name())
}
