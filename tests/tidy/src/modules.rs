//! The modules of a target: the items that each defines, and the paths that it contains.
//!
//! Modules under `#[cfg(test)]` are left out: tests may use anything.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, Macro, UseTree, VisRestricted};

/// The segments of a path, as written.
pub(crate) type Segments = Vec<String>;

/// A module.
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// Its file.
    pub(crate) file: PathBuf,
    /// The items that it defines, except modules.
    pub(crate) items: BTreeSet<String>,
    /// The names that it imports with `use`, with the path of each.
    pub(crate) names: BTreeMap<String, Segments>,
    /// The paths of its glob imports, `use ...::*`.
    pub(crate) globs: Vec<Segments>,
    /// All paths that it contains, including those of `use`.
    pub(crate) paths: Vec<Segments>,
}

/// Modules by their path; that of the root is empty.
pub(crate) type Modules = BTreeMap<Segments, Module>;

/// The root module in the file `root`, and all modules below it. `read` returns the text of a file, `None` without one.
pub(crate) fn read(root: &Path, read: &dyn Fn(&Path) -> Option<String>) -> Modules {
    let mut modules = Modules::new();
    let text = read(root).unwrap();
    let folder = root.parent().unwrap().to_owned();
    let source = Source { file: root.to_owned(), folder, read };
    source.take(&[], syn::parse_file(&text).unwrap().items, &mut modules);
    modules
}

/// A file, and the folder of its modules' files.
struct Source<'a> {
    file: PathBuf,
    folder: PathBuf,
    read: &'a dyn Fn(&Path) -> Option<String>,
}

impl Source<'_> {
    fn take(&self, path: &[String], items: Vec<Item>, modules: &mut Modules) {
        let mut module = Module { file: self.file.clone(), ..Module::default() };
        let (mut children, mut exported) = (Vec::new(), Vec::new());
        for item in items {
            match item {
                Item::Mod(child) if !is_test(&child.attrs) => children.push(child),
                Item::Mod(_) => {}
                item if is_test(attributes(&item)) => {}
                item => {
                    if let (Some(name), true) = (name(&item), is_exported(&item)) {
                        exported.push((name.clone(), [path, &[name]].concat()));
                    }
                    module.items.extend(name(&item));
                    Paths(&mut module).visit_item(&item);
                }
            }
        }
        modules.insert(path.to_vec(), module);
        for child in children {
            self.take_module(path, child, modules);
        }
        if let Some(root) = modules.get_mut(&Vec::new()) {
            let exported = exported
                .into_iter()
                .map(|(name, path)| (name, [&["crate".to_owned()], path.as_slice()].concat()));
            root.names.extend(exported);
        }
    }

    fn take_module(&self, parent: &[String], child: ItemMod, modules: &mut Modules) {
        let name = child.ident.to_string();
        let path = [parent, std::slice::from_ref(&name)].concat();
        let folder = self.folder.join(&name);
        if let Some((_, items)) = child.content {
            let source = Source { file: self.file.clone(), folder, read: self.read };
            source.take(&path, items, modules);
            return;
        }
        let file = self.folder.join(format!("{name}.rs"));
        let text = (self.read)(&file).unwrap();
        let source = Source { file, folder, read: self.read };
        source.take(&path, syn::parse_file(&text).unwrap().items, modules);
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Ident>().is_ok_and(|what| what == "test")
    })
}

/// Whether `item` is an exported macro, whose path begins at the root.
fn is_exported(item: &Item) -> bool {
    matches!(item, Item::Macro(_))
        && attributes(item).iter().any(|attribute| attribute.path().is_ident("macro_export"))
}

/// The name that `item` defines.
fn name(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Collects all paths of the visited syntax.
struct Paths<'a>(&'a mut Module);

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.0.paths.push(segments);
        visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.take_use(&[], &item.tree);
    }

    // A visibility is not a use.
    fn visit_vis_restricted(&mut self, _: &'ast VisRestricted) {}

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.visit_path(&called.path);
        self.take_tokens(called.tokens.clone());
    }

    /// Paths in text, such as those of serde's `with`, and in tokens.
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let syn::Meta::List(list) = &attribute.meta {
            self.take_tokens(list.tokens.clone());
        }
    }
}

impl Paths<'_> {
    fn take_use(&mut self, before: &[String], tree: &UseTree) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.take_use(&with(&path.ident), &path.tree),
            UseTree::Name(name) if name.ident == "self" => {
                self.take_name(before.last().cloned(), before.to_vec());
            }
            UseTree::Name(name) => self.take_name(Some(name.ident.to_string()), with(&name.ident)),
            UseTree::Rename(renamed) => {
                let path = if renamed.ident == "self" { before.to_vec() } else { with(&renamed.ident) };
                self.take_name(Some(renamed.rename.to_string()), path);
            }
            UseTree::Glob(_) => {
                self.0.paths.push(before.to_vec());
                self.0.globs.push(before.to_vec());
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.take_use(before, tree);
                }
            }
        }
    }

    fn take_name(&mut self, name: Option<String>, path: Segments) {
        self.0.paths.push(path.clone());
        self.0.names.extend(name.map(|name| (name, path)));
    }

    /// Collects paths in the tokens of a macro: identifiers with `::` between them.
    fn take_tokens(&mut self, tokens: TokenStream) {
        let mut path = Segments::new();
        let mut colons = 0;
        for token in tokens {
            match &token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.0.paths.push(std::mem::take(&mut path));
                    }
                    path.push(ident.to_string());
                    colons = 0;
                    continue;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(group) => self.take_tokens(group.stream()),
                TokenTree::Literal(literal) => self.take_text(&literal.to_string()),
                TokenTree::Punct(_) => {}
            }
            self.0.paths.push(std::mem::take(&mut path));
            colons = 0;
        }
        self.0.paths.push(path);
    }

    fn take_text(&mut self, literal: &str) {
        let is_path = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "_:".contains(c));
        if let Some(text) = literal.strip_prefix('"').and_then(|text| text.strip_suffix('"'))
            && text.contains("::")
            && is_path(text)
        {
            // serde's `with` names a module, whose functions are called.
            self.0.paths.push(text.split("::").chain(["serialize"]).map(str::to_owned).collect());
        }
    }
}
