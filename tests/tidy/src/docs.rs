//! What other crates may use has documentation: types, functions, constants and traits. Fields and variants have some where their
//! name does not say it; rustc's `missing_docs` cannot tell them apart, so it is off.

use std::path::PathBuf;

use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, TraitItem, Visibility};

use crate::workspace;

/// The public items without documentation in the visited syntax, by name.
#[derive(Default)]
struct Silent(Vec<String>);

impl Silent {
    fn judge(&mut self, visibility: &Visibility, attributes: &[Attribute], name: &syn::Ident) {
        let is_hidden = |attribute: &Attribute| {
            attribute.path().is_ident("doc") && !matches!(attribute.meta, syn::Meta::NameValue(_))
        };
        let is_documented = attributes.iter().any(|attribute| attribute.path().is_ident("doc"));
        if matches!(visibility, Visibility::Public(_)) && !is_documented && !attributes.iter().any(is_hidden)
        {
            self.0.push(name.to_string());
        }
    }
}

impl<'ast> Visit<'ast> for Silent {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Const(item) => self.judge(&item.vis, &item.attrs, &item.ident),
            Item::Enum(item) => self.judge(&item.vis, &item.attrs, &item.ident),
            Item::Fn(item) => self.judge(&item.vis, &item.attrs, &item.sig.ident),
            Item::Static(item) => self.judge(&item.vis, &item.attrs, &item.ident),
            Item::Struct(item) => self.judge(&item.vis, &item.attrs, &item.ident),
            Item::Trait(item) => self.judge(&item.vis, &item.attrs, &item.ident),
            Item::Type(item) => self.judge(&item.vis, &item.attrs, &item.ident),
            _ => {}
        }
        // Functions within functions are nobody else's, and neither are tests.
        match item {
            Item::Mod(item) if item.attrs.iter().any(|attribute| attribute.path().is_ident("cfg")) => {}
            Item::Mod(_) | Item::Impl(_) | Item::Trait(_) => visit::visit_item(self, item),
            _ => {}
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        for part in item.items.iter().filter(|_| item.trait_.is_none()) {
            match part {
                ImplItem::Const(part) => self.judge(&part.vis, &part.attrs, &part.ident),
                ImplItem::Fn(part) => self.judge(&part.vis, &part.attrs, &part.sig.ident),
                _ => {}
            }
        }
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        for part in &item.items {
            match part {
                TraitItem::Const(part) => self.judge(&item.vis, &part.attrs, &part.ident),
                TraitItem::Fn(part) => self.judge(&item.vis, &part.attrs, &part.sig.ident),
                TraitItem::Type(part) => self.judge(&item.vis, &part.attrs, &part.ident),
                _ => {}
            }
        }
    }
}

/// The public items without documentation in `text`.
fn silent(text: &str) -> Vec<String> {
    let mut silent = Silent::default();
    silent.visit_file(&syn::parse_file(text).unwrap());
    silent.0
}

#[test]
fn what_others_use_is_documented() {
    let of_file = |(path, text): (PathBuf, String)| -> Vec<String> {
        silent(&text).into_iter().map(|name| format!("{}: {name}", path.display())).collect()
    };
    // Comments on bodies of the API are descriptions in `/openapi.json`.
    let sources =
        workspace::sources().into_iter().filter(|(path, _)| !path.starts_with("orchestrator/api-types"));
    let silent: Vec<String> = sources.flat_map(of_file).collect();
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

#[test]
fn silent_items_are_found() {
    let text = "pub struct A; /// B.
        pub struct B { pub field: u8 } pub(crate) fn c() {} impl B { pub fn d() {} fn e() {} }
        impl Clone for B { fn clone(&self) -> Self {} } /// F.
        pub trait F { fn g(); } #[cfg(test)] mod tests { pub fn h() {} } mod m { pub const I: u8 = 1; }";
    assert_eq!(silent(text), ["A", "d", "g", "I"]);
}
