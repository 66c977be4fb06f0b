//! The shapes of lists: entries, or their keys, or how many there are.

use std::borrow::Cow;

use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::super::changes::ChangeItem;
use super::super::hosts::EntryBody;
use super::super::listing::Count;
use super::super::runs::{FactItem, RunItem};
use super::super::strongbox::Secret;
use super::super::strongbox::history::StrongboxItem;
use super::types::{FactKeyText, NameText, RunIdText, SecretNameText};

/// One line a list: what it is, its name in the document, how it is put together, and its entries and their keys.
macro_rules! lists {
    ($(#[doc = $meaning:literal] $name:ident = $form:ident of $entry:ty, or $key:ty;)*) => {
        $(
            #[doc = $meaning]
            pub(in crate::api) struct $name;

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    let entries = ArrayBuilder::new().items(either::<$entry, $key>());
                    let list = OneOfBuilder::new().item($form(entries)).item(reference::<Count>());
                    list.description(Some($meaning.trim())).into()
                }
            }

            impl ToSchema for $name {
                fn name() -> Cow<'static, str> {
                    stringify!($name).into()
                }

                fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
                    add::<$entry>(schemas);
                    add::<$key>(schemas);
                    add::<Count>(schemas);
                }
            }
        )*
    };
}

lists! {
    /// The hosts, by name, or a page of them; or their names; or how many there are.
    HostList = whole of EntryBody<'static>, or NameText;
    /// The secrets, by name; or their names; or how many there are.
    SecretList = secrets of Secret<'static>, or SecretNameText;
    /// A page of runs, newest first; or of their ids; or how many there are.
    RunList = page of RunItem<'static>, or RunIdText;
    /// A page of what operators did about slots, newest first; or of the keys of that; or how much there is.
    OrderList = page of FactItem<'static>, or FactKeyText;
    /// A page of which hosts operators approved and withdrew, newest first; or of the keys of that; or how much there is.
    EnrolmentList = page of FactItem<'static>, or FactKeyText;
    /// A page of changes, newest first; or of their keys; or how many there are.
    ChangeList = page of ChangeItem<'static>, or FactKeyText;
    /// A page of what was done about secrets, newest first; or of the keys of that; or how much there is.
    StrongboxHistory = page of StrongboxItem<'static>, or FactKeyText;
}

fn whole(entries: ArrayBuilder) -> Schema {
    let list: Schema = entries.into();
    OneOfBuilder::new().item(list.clone()).item(page(list)).build().into()
}

fn page(entries: impl Into<RefOr<Schema>>) -> Schema {
    page_of("items", entries)
}

fn secrets(entries: ArrayBuilder) -> Schema {
    page_of("secrets", entries)
}

fn page_of(name: &str, entries: impl Into<RefOr<Schema>>) -> Schema {
    let next = ObjectBuilder::new().schema_type(utoipa::openapi::schema::Type::String);
    let next = next.description(Some("What `after` of the next page is; absent from the last one."));
    ObjectBuilder::new().property(name, entries).property("next", next).required(name).build().into()
}

fn either<T: ToSchema, K: ToSchema>() -> OneOfBuilder {
    OneOfBuilder::new().item(reference::<T>()).item(reference::<K>())
}

fn reference<T: ToSchema>() -> Ref {
    Ref::from_schema_name(T::name())
}

fn add<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
}
